#include "implicit_diffusion/data/data_set.hpp"

#include "data/support.hpp"
#include "implicit_diffusion/data/cifar.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/io/file.hpp"

#include <array>
#include <chrono>
#include <numeric>

namespace implicit_diffusion::data {
namespace {

namespace fs = std::filesystem;
using io::TemporaryFolder;

void write(const fs::path& file, std::string_view bytes) {
  fs::create_directories(file.parent_path());
  io::write_file(file, bytes);
}
std::string error_of(const fs::path& path, ErrorKind kind, Split split = Split::train) {
  try {
    (void)open_data_set(path, {.split = split});
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}
double mean(const DataSet& set) {
  double sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const Image image = set.image(i);
    sum += std::accumulate(image.values.begin(), image.values.end(), 0.0) / static_cast<double>(image.values.size());
  }
  return sum / (255 * static_cast<double>(set.size()));
}
std::vector<std::size_t> histogram(const DataSet& set) {
  std::vector<std::size_t> counts(set.class_names().size());
  for (std::size_t i = 0; i < set.size(); ++i) ++counts.at(set.label(i).value());
  return counts;
}

// ------------------------------------------------------------------ known sets

// The histogram is that of the official file.
TEST(DataSet, Mnist) {
  NEEDS(shared_data / "mnist");
  const auto set = open_data_set(shared_data / "mnist");
  EXPECT_EQ(set->kind(), Kind::idx);
  ASSERT_EQ(set->size(), 60'000U);
  EXPECT_EQ(set->shape(), (ImageShape{1, 28, 28}));
  EXPECT_EQ(histogram(*set), (std::vector<std::size_t>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}));
  std::vector<std::size_t> first;
  for (std::size_t i = 0; i < 5; ++i) first.push_back(*set->label(i));
  EXPECT_EQ(first, (std::vector<std::size_t>{5, 0, 4, 1, 9}));
  EXPECT_NEAR(mean(*set), 0.1307, 0.00005);
  const auto test = open_data_set(shared_data / "mnist", {.split = Split::test});
  EXPECT_EQ(test->size(), 10'000U);
  EXPECT_EQ(test->label(0), 7U);
}

TEST(DataSet, FashionMnist) {
  NEEDS(fashion_mnist);
  const auto set = open_data_set(fashion_mnist);
  ASSERT_EQ(set->size(), 60'000U);
  EXPECT_EQ(histogram(*set), std::vector<std::size_t>(10, 6000));
  EXPECT_EQ(set->label(0), 9U);
  EXPECT_NEAR(mean(*set), 0.2860, 0.00005);
}

// Its own names and numbers; the mean of CIFAR-10's training images is .473 (.4914, .4822, .4465 by channel), of which
// these are a tenth: standard error .16 / sqrt(5000) = .0023 with the spread of the means of single images.
TEST(DataSet, CifarFolder) {
  NEEDS(shared_data / "cifar10-folder");
  const auto set = open_data_set(shared_data / "cifar10-folder");
  EXPECT_EQ(set->kind(), Kind::image_folder);
  ASSERT_EQ(set->size(), 5000U);
  EXPECT_EQ(set->class_names(), (std::vector<std::string>{"airplane", "automobile", "bird", "cat", "deer", "dog",
                                                          "frog", "horse", "ship", "truck"}));
  EXPECT_EQ(histogram(*set), std::vector<std::size_t>(10, 500));
  EXPECT_EQ(set->image(4999).shape, (ImageShape{3, 32, 32}));
  EXPECT_NEAR(mean(*set), 0.4734, 5 * 0.0023);
  EXPECT_EQ(open_data_set(shared_data / "cifar10-folder", {.split = Split::test})->size(), 1000U);
}

// ------------------------------------------------------------------ IDX

TEST(DataSet, IdxFolderOrFile) {
  const TemporaryFolder folder;
  write(folder / "train-images-idx3-ubyte", idx_bytes({3, 1, 2}, "abcdef"));
  write(folder / "train-labels-idx1-ubyte.gz", gzip(idx_bytes({3}, std::string("\2\0\1", 3))));
  for (const fs::path& path : {folder.path(), folder / "train-images-idx3-ubyte"}) {
    const auto set = open_data_set(path);
    EXPECT_EQ(set->size(), 3U);
    EXPECT_EQ(set->shape(), (ImageShape{1, 1, 2}));
    EXPECT_EQ(set->image(1), (Image{{1, 1, 2}, {'c', 'd'}}));
    EXPECT_EQ(set->label(0), 2U);
    EXPECT_EQ(set->class_names(), (std::vector<std::string>{"0", "1", "2"}));
  }
  EXPECT_NE(error_of(folder.path(), ErrorKind::missing, Split::test).find("no images of the test split"),
            std::string::npos);
  fs::remove(folder / "train-labels-idx1-ubyte.gz");
  const auto unlabelled = open_data_set(folder.path());
  EXPECT_EQ(unlabelled->label(0), std::nullopt);
  EXPECT_TRUE(unlabelled->class_names().empty());
}

TEST(DataSet, IdxMismatches) {
  const TemporaryFolder folder;
  const fs::path images = folder / "train-images-idx3-ubyte", labels = folder / "train-labels-idx1-ubyte";
  write(images, idx_bytes({3, 1, 2}, "abcdef"));
  write(labels, idx_bytes({2}, "ab"));
  EXPECT_EQ(error_of(folder.path(), ErrorKind::data),
            labels.string() + ": 2 labels, but " + images.string() + " has 3 images");
  write(labels, idx_bytes({3, 1}, "abc"));
  EXPECT_EQ(error_of(folder.path(), ErrorKind::data),
            labels.string() + ": byte 3: an array of 2 dimensions; labels have 1");
  EXPECT_EQ(error_of(labels, ErrorKind::data), labels.string() + ": byte 3: an array of 2 dimensions; images have 3");
}

// ------------------------------------------------------------------ CIFAR

std::string batch(char label, std::size_t count = 2, std::size_t label_bytes = 1) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) bytes += std::string(label_bytes, label) + std::string(cifar_values, label);
  return bytes;
}

TEST(DataSet, CifarBinaryFolder) {
  const TemporaryFolder folder;
  for (char k = 1; k <= 5; ++k) write(folder / ("data_batch_" + std::to_string(k) + ".bin"), batch(k));
  write(folder / "test_batch.bin", batch(9, 1));
  const auto set = open_data_set(folder.path());
  EXPECT_EQ(set->kind(), Kind::cifar10);
  EXPECT_EQ(set->size(), 10U);
  EXPECT_EQ(set->label(9), 5U);
  EXPECT_EQ(set->image(4), (Image{{3, 32, 32}, std::vector<std::uint8_t>(cifar_values, 3)}));
  EXPECT_EQ(set->class_names()[9], "truck");
  EXPECT_EQ(open_data_set(folder.path(), {.split = Split::test})->label(0), 9U);
  EXPECT_EQ(open_data_set(folder / "data_batch_3.bin")->label(0), 3U);
  write(folder / "batches.meta.txt", "a\nb\nc\nd\ne\nf\ng\nh\ni\r\nj\n\n");
  EXPECT_EQ(open_data_set(folder.path())->class_names()[8], "i");
  write(folder / "batches.meta.txt", "a\nb\n");
  EXPECT_NE(error_of(folder.path(), ErrorKind::data).find("batches.meta.txt: 2 names of classes; 10 are meant"),
            std::string::npos);
  fs::remove(folder / "batches.meta.txt");

  write(folder / "data_batch_2.bin", batch(1, 2, 2));
  EXPECT_NE(error_of(folder.path(), ErrorKind::data)
                .find("data_batch_2.bin: byte 3073: records are of 3074 bytes, as CIFAR-100"),
            std::string::npos);
  write(folder / "data_batch_2.bin", "");
  EXPECT_NE(error_of(folder.path(), ErrorKind::data).find("data_batch_2.bin: byte 0: the file is empty"),
            std::string::npos);
  fs::remove(folder / "data_batch_2.bin");
  EXPECT_NE(error_of(folder.path(), ErrorKind::missing).find("data_batch_2.bin: no such file; CIFAR-10 has"),
            std::string::npos);
  fs::remove(folder / "test_batch.bin");
  EXPECT_NE(error_of(folder.path(), ErrorKind::missing, Split::test).find("test_batch.bin: no such file"),
            std::string::npos);
}

TEST(DataSet, Cifar100Folder) {
  const TemporaryFolder folder;
  write(folder / "train.bin", batch(17, 3, 2));
  const auto set = open_data_set(folder.path());
  EXPECT_EQ(set->kind(), Kind::cifar100);
  EXPECT_EQ(set->size(), 3U);
  EXPECT_EQ(set->label(2), 17U);
  EXPECT_EQ(set->class_names().size(), 100U);
  EXPECT_NE(error_of(folder.path(), ErrorKind::missing, Split::test).find("test.bin: no such file"), std::string::npos);
  write(folder / "train.bin", batch(7, 3, 1));
  EXPECT_NE(error_of(folder.path(), ErrorKind::data).find("records are of 3073 bytes, as CIFAR-10 has them"),
            std::string::npos);
}

// ------------------------------------------------------------------ folders

TEST(DataSet, FolderByClassOrFlat) {
  const TemporaryFolder folder;
  const Image a = random_image({3, 4, 5}, 1), b = random_image({1, 2, 2}, 2);
  write(folder / "cats/2.png", png_bytes(a));
  write(folder / "cats/10.PNG", png_bytes(b));
  write(folder / "ants/x.png", png_bytes(b));
  write(folder / "ants/.hidden.png", "");
  write(folder / "ants/notes.txt", "");
  fs::create_directories(folder / "empty");
  const auto set = open_data_set(folder.path());
  EXPECT_EQ(set->kind(), Kind::image_folder);
  EXPECT_EQ(set->class_names(), (std::vector<std::string>{"ants", "cats"}));
  ASSERT_EQ(set->size(), 3U);
  EXPECT_EQ(set->image(1), b);
  EXPECT_EQ(set->image(2), a);
  EXPECT_EQ(set->label(0), 0U);
  EXPECT_EQ(set->label(2), 1U);
  EXPECT_EQ(set->shape(), std::nullopt);

  const auto flat = open_data_set(folder / "cats");
  EXPECT_EQ(flat->size(), 2U);
  EXPECT_EQ(flat->label(0), std::nullopt);
  write(folder / "cats/2.png", png_bytes(a).substr(0, 60));
  EXPECT_ERROR(flat->image(1), data, (folder / "cats/2.png").string() + ": byte 60: damaged PNG: the file ends inside");
  fs::remove(folder / "cats/2.png");
  EXPECT_ERROR(flat->image(1), missing, (folder / "cats/2.png").string() + ": no such file");
}

TEST(DataSet, FolderWithSplits) {
  const TemporaryFolder folder;
  const std::string image = png_bytes(random_image({1, 2, 2}, 2));
  write(folder / "train/cats/1.png", image);
  write(folder / "train/cats/2.png", image);
  write(folder / "val/cats/1.png", image);
  EXPECT_EQ(open_data_set(folder.path())->size(), 2U);
  EXPECT_NE(error_of(folder.path(), ErrorKind::missing, Split::test).find("has train, but no test"), std::string::npos);
  write(folder / "test/1.png", image);
  EXPECT_EQ(open_data_set(folder.path())->class_names(), std::vector<std::string>{"cats"});
  const auto test = open_data_set(folder.path(), {.split = Split::test});
  EXPECT_EQ(test->size(), 1U);
  EXPECT_TRUE(test->class_names().empty());
  // One that is not divided has no test images.
  EXPECT_NE(error_of(folder / "train", ErrorKind::missing, Split::test).find("has no test images of its own"),
            std::string::npos);
}

TEST(DataSet, FolderWithAndWithoutClasses) {
  const TemporaryFolder folder;
  const std::string image = png_bytes(random_image({1, 2, 2}, 2));
  write(folder / "1.png", image);
  fs::create_directories(folder / "notes");
  EXPECT_EQ(open_data_set(folder.path())->size(), 1U) << "a folder without images is no class";
  write(folder / "cats/1.png", image);
  EXPECT_NE(error_of(folder.path(), ErrorKind::data).find("has images beside the folder of a class, cats"),
            std::string::npos);
  EXPECT_NE(error_of(folder / "1.png", ErrorKind::data).find("is a single image"), std::string::npos);
}

TEST(DataSet, WhatIsNoDataSet) {
  const TemporaryFolder folder;
  EXPECT_EQ(error_of(folder / "none", ErrorKind::missing), (folder / "none").string() + ": no such file");
  EXPECT_NE(error_of(folder.path(), ErrorKind::data).find("no data set: neither IDX nor CIFAR nor LMDB"),
            std::string::npos);
  write(folder / "x.bin", std::string(100, 'x'));
  EXPECT_NE(error_of(folder / "x.bin", ErrorKind::data).find("100 bytes are no multiple"), std::string::npos);
  write(folder / "data.mdb", std::string(100, 'x'));
  EXPECT_NE(error_of(folder / "data.mdb", ErrorKind::missing).find("name the folder that it is in"), std::string::npos);
}

}  // namespace
}  // namespace implicit_diffusion::data
