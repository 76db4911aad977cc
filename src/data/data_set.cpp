#include "implicit_diffusion/data/data_set.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <system_error>

#include "damage.hpp"
#include "implicit_diffusion/data/cifar.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/data/idx.hpp"
#include "implicit_diffusion/data/lmdb.hpp"
#include "implicit_diffusion/io/file.hpp"

namespace implicit_diffusion::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_file = std::size_t{1} << 32;  // of IDX, CIFAR or a single image

bool is_file(const fs::path& path) {
  std::error_code none;
  return fs::is_regular_file(path, none);
}
bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

// Images of one shape, in memory.
class ArraySet : public DataSet {
 public:
  ArraySet(Kind kind, const ImageShape& shape, std::vector<std::uint8_t> values, std::vector<std::uint8_t> labels)
      : kind_(kind), shape_(shape), values_(std::move(values)), labels_(std::move(labels)) {}

  void name_classes(std::vector<std::string> names) { class_names_ = std::move(names); }
  void append(const CifarRecords& records) {
    values_.insert(values_.end(), records.values.begin(), records.values.end());
    labels_.insert(labels_.end(), records.labels.begin(), records.labels.end());
  }

  Kind kind() const override { return kind_; }
  std::size_t size() const override { return values_.size() / shape_.values(); }
  std::optional<ImageShape> shape() const override { return shape_; }
  std::optional<std::size_t> label(std::size_t i) const override {
    return labels_.empty() ? std::nullopt : std::optional<std::size_t>(labels_[i]);
  }
  Image image(std::size_t i) const override {
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(i * shape_.values());
    return {shape_, {begin, begin + static_cast<std::ptrdiff_t>(shape_.values())}};
  }

 private:
  Kind kind_;
  ImageShape shape_;
  std::vector<std::uint8_t> values_;
  std::vector<std::uint8_t> labels_;  // none, or one for each image
};

std::vector<std::string> numbers_below(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back(std::to_string(i));
  return names;
}

// ------------------------------------------------------------------ IDX

IdxArray read_idx(const fs::path& file, std::size_t dimensions, const char* what) {
  IdxArray array = parse_idx(io::read_file(file, largest_file), io::display(file));
  if (array.shape.size() != dimensions)
    damaged(io::display(file), 3,
            fmt::format("an array of {} dimensions; {} have {}", array.shape.size(), what, dimensions));
  return array;
}

// The labels that belong to a file of images, where its name tells: images-idx3 becomes labels-idx1.
std::optional<fs::path> labels_beside(const fs::path& images) {
  std::string name = images.filename().string();
  if (name.ends_with(".gz")) name.resize(name.size() - 3);
  for (const auto& [from, to] : {std::pair<std::string, std::string>{"images", "labels"}, {"idx3", "idx1"}}) {
    const std::size_t at = name.rfind(from);
    if (at == std::string::npos) return {};
    name.replace(at, from.size(), to);
  }
  for (const std::string& form : {name, name + ".gz"})
    if (const fs::path file = images.parent_path() / form; fs::exists(fs::symlink_status(file)))
      return file;  // whatever it is: what is no file is said when it is read
  return {};
}

std::unique_ptr<DataSet> open_idx(const fs::path& images_file) {
  IdxArray images = read_idx(images_file, 3, "images");
  std::vector<std::uint8_t> labels;
  if (const auto file = labels_beside(images_file)) {
    labels = read_idx(*file, 1, "labels").values;
    if (labels.size() != images.shape[0])
      throw Error(
          ErrorKind::data, io::display(*file),
          fmt::format("{} labels, but {} has {} images", labels.size(), io::display(images_file), images.shape[0]));
  }
  const std::size_t classes = labels.empty() ? 0 : *std::max_element(labels.begin(), labels.end()) + std::size_t{1};
  auto set = std::make_unique<ArraySet>(Kind::idx, ImageShape{1, images.shape[1], images.shape[2]},
                                        std::move(images.values), std::move(labels));
  set->name_classes(numbers_below(classes));
  return set;
}

// The images of a split; both spellings, plain or compressed.
std::optional<fs::path> find_idx(const fs::path& folder, Split split) {
  const std::string stem = split == Split::train ? "train-images" : "t10k-images";
  for (const char* ending : {"-idx3-ubyte", ".idx3-ubyte", "-idx3-ubyte.gz", ".idx3-ubyte.gz"})
    if (const fs::path file = folder / (stem + ending); is_file(file)) return file;
  return {};
}

// ------------------------------------------------------------------ CIFAR

// The lines of a file beside the data; nothing where it is not there.
std::vector<std::string> read_names(const fs::path& file, std::size_t count) {
  if (!is_file(file)) return {};
  const std::string text = io::read_file(file, 1 << 16);
  std::vector<std::string> names;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    if (!line.empty()) names.push_back(io::printable(line, 64));
    at = end + 1;
  }
  if (names.size() != count)
    throw Error(ErrorKind::data, io::display(file),
                fmt::format("{} names of classes; {} are meant", names.size(), count));
  return names;
}

std::unique_ptr<DataSet> open_cifar(const std::vector<fs::path>& files, std::optional<CifarVariant> variant) {
  std::unique_ptr<ArraySet> set;
  for (const fs::path& file : files) {
    const CifarRecords records = parse_cifar(io::read_file(file, largest_file), io::display(file), variant);
    variant = records.variant;
    if (!set)
      set = std::make_unique<ArraySet>(*variant == CifarVariant::cifar10 ? Kind::cifar10 : Kind::cifar100,
                                       ImageShape{3, 32, 32}, std::vector<std::uint8_t>{}, std::vector<std::uint8_t>{});
    set->append(records);
  }
  const bool is_ten = *variant == CifarVariant::cifar10;
  const fs::path folder = files.front().parent_path();
  std::vector<std::string> names =
      is_ten ? read_names(folder / "batches.meta.txt", 10) : read_names(folder / "fine_label_names.txt", 100);
  if (names.empty())
    names = is_ten ? std::vector<std::string>{"airplane", "automobile", "bird",  "cat",  "deer",
                                              "dog",      "frog",       "horse", "ship", "truck"}
                   : numbers_below(100);
  set->name_classes(std::move(names));
  return set;
}

std::unique_ptr<DataSet> open_cifar_folder(const fs::path& folder, Split split) {
  std::vector<fs::path> batches;
  for (int k = 1; k <= 5; ++k) batches.push_back(folder / fmt::format("data_batch_{}.bin", k));
  const fs::path test = folder / "test_batch.bin";
  if (std::ranges::any_of(batches, is_file) || is_file(test)) {
    if (split == Split::test) return open_cifar({test}, CifarVariant::cifar10);
    for (const fs::path& file : batches)
      if (!is_file(file))
        throw Error(ErrorKind::missing, io::display(file),
                    "no such file; CIFAR-10 has data_batch_1.bin to data_batch_5.bin");
    return open_cifar(batches, CifarVariant::cifar10);
  }
  const fs::path one = folder / "train.bin", other = folder / "test.bin";
  if (!is_file(one) && !is_file(other)) return nullptr;
  return open_cifar({split == Split::train ? one : other}, CifarVariant::cifar100);
}

// ------------------------------------------------------------------ LMDB

class LmdbSet : public DataSet {
 public:
  LmdbSet(const fs::path& folder, const fs::path& helper) : where_(io::display(folder)), reader_(folder, helper) {}

  Kind kind() const override { return Kind::lmdb; }
  std::size_t size() const override { return reader_.size(); }
  std::optional<std::size_t> label(std::size_t) const override { return {}; }
  Image image(std::size_t i) const override {
    return decode_image(reader_.value(i),
                        fmt::format("{}: entry {} (key {})", where_, i, io::excerpt(reader_.key(i), 64)));
  }

 private:
  std::string where_;
  LmdbReader reader_;
};

// ------------------------------------------------------------------ folders of images

bool is_image_name(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg" || extension == ".webp";
}

// One that is not hidden.
bool is_image_file(const fs::path& path) { return !path.filename().native().starts_with('.') && is_image_name(path); }

class FolderSet : public DataSet {
 public:
  FolderSet(const fs::path& folder, const std::vector<fs::path>& classes) {
    if (classes.empty()) add_images(folder);
    for (const fs::path& one : classes) {
      add_images(one);
      labels_.resize(files_.size(), static_cast<std::uint32_t>(class_names_.size()));
      class_names_.push_back(io::printable(one.filename().native(), 64));
    }
    if (files_.empty())
      throw Error(ErrorKind::data, io::display(folder),
                  "no data set: neither IDX nor CIFAR nor LMDB, and no .png, .jpg, .jpeg or .webp in it or directly in "
                  "its subfolders");
  }

  Kind kind() const override { return Kind::image_folder; }
  std::size_t size() const override { return files_.size(); }
  std::optional<std::size_t> label(std::size_t i) const override {
    return labels_.empty() ? std::nullopt : std::optional<std::size_t>(labels_[i]);
  }
  Image image(std::size_t i) const override {
    return decode_image(io::read_file(files_[i], largest_file), io::display(files_[i]));
  }

 private:
  // In the order of the names.
  void add_images(const fs::path& folder) {
    const auto first = static_cast<std::ptrdiff_t>(files_.size());
    for (fs::path& path : io::list_directory(folder))
      if (is_image_file(path)) files_.push_back(std::move(path));
    std::sort(files_.begin() + first, files_.end());
  }

  std::vector<fs::path> files_;
  std::vector<std::uint32_t> labels_;  // none, or one for each image
};

std::vector<fs::path> subfolders(const fs::path& folder) {
  std::vector<fs::path> all;
  for (fs::path& path : io::list_directory(folder))
    if (!path.filename().native().starts_with('.') && is_folder(path)) all.push_back(std::move(path));
  std::ranges::sort(all);
  return all;
}

const char* name_of(Split split) { return split == Split::train ? "train" : "test"; }

bool is_split_name(const fs::path& folder) {
  return std::ranges::count(std::array{"train", "test", "val", "valid", "validation"}, folder.filename()) > 0;
}

// The subfolders of a folder that hold images: each is a class.
std::vector<fs::path> classes_in(const fs::path& folder) {
  const auto has_images = [](const fs::path& inside) {
    return std::ranges::any_of(io::list_directory(inside), is_image_file);
  };
  std::vector<fs::path> classes = subfolders(folder);
  std::erase_if(classes, [&](const fs::path& inside) { return !has_images(inside); });
  if (!classes.empty() && has_images(folder))
    throw Error(ErrorKind::data, io::display(folder),
                fmt::format("has images beside the folder of a class, {}: which of them are meant?",
                            io::display(classes.front().filename())));
  return classes;
}

// For sets that are not divided.
void require_train(const fs::path& folder, Split split) {
  if (split == Split::test)
    throw Error(ErrorKind::missing, io::display(folder),
                "has no test images of its own: it is not divided into train and test");
}

std::unique_ptr<DataSet> open_folder(const fs::path& folder, const DataSetOptions& options) {
  if (is_file(folder / "data.mdb")) {
    require_train(folder, options.split);
    return std::make_unique<LmdbSet>(folder, options.lmdb_helper.empty() ? default_lmdb_helper() : options.lmdb_helper);
  }
  if (const auto images = find_idx(folder, options.split)) return open_idx(*images);
  if (const auto other = find_idx(folder, options.split == Split::train ? Split::test : Split::train))
    throw Error(
        ErrorKind::missing, io::display(folder),
        fmt::format("has {}, but no images of the {} split", io::display(other->filename()), name_of(options.split)));
  if (auto set = open_cifar_folder(folder, options.split)) return set;
  const std::vector<fs::path> inside = subfolders(folder);
  if (!inside.empty() && std::ranges::all_of(inside, is_split_name)) {
    const fs::path split = folder / name_of(options.split);
    if (is_folder(split)) return std::make_unique<FolderSet>(split, classes_in(split));
    throw Error(ErrorKind::missing, io::display(folder),
                fmt::format("has {}, but no {}", io::display(inside.front().filename()), name_of(options.split)));
  }
  require_train(folder, options.split);
  return std::make_unique<FolderSet>(folder, classes_in(folder));
}

}  // namespace

const char* to_string(Kind kind) {
  constexpr const char* names[] = {"IDX", "CIFAR-10 (binary)", "CIFAR-100 (binary)", "LMDB", "image folder"};
  return names[static_cast<std::size_t>(kind)];
}

std::unique_ptr<DataSet> open_data_set(const std::filesystem::path& path, const DataSetOptions& options) {
  if (is_folder(path)) return open_folder(path, options);
  const io::FileReader file(path);  // says what is wrong with the name
  if (path.extension() == ".bin") return open_cifar({path}, {});
  if (path.extension() == ".mdb")
    throw Error(ErrorKind::missing, io::display(path), "is a file of LMDB; name the folder that it is in");
  if (is_image_name(path))
    throw Error(ErrorKind::data, io::display(path), "is a single image; name the folder that it is in");
  return open_idx(path);
}

}  // namespace implicit_diffusion::data
