// `show-data` as a user runs it: sets that are whole, and every kind of bad one. One line, the exit code of the table,
// and nothing written.
#include "implicit_diffusion/data/codec.hpp"
#include "program/run_program.hpp"

namespace program_test {
namespace {

std::string idx(char type, char dimensions, const std::string& rest) {
  return std::string{0, 0, type, dimensions} + rest;
}
const std::string three_images = idx(8, 3, std::string("\0\0\0\3\0\0\0\1\0\0\0\2", 12) + "abcdef");
std::string cifar(char label) { return std::string(1, label) + std::string(3072, 'x'); }

TEST(ShowData, DescribesAndDraws) {
  const Folder folder;
  write(folder / "set/train-images-idx3-ubyte", three_images);
  write(folder / "set/train-labels-idx1-ubyte", idx(8, 1, std::string("\0\0\0\3\1\0\1", 7)));
  const Result r = run(folder, {"show-data", "set"});
  EXPECT_EQ(r.code, 0) << r.err;
  // The mean of the letters a to f, 97 to 102, is 99.5 / 255.
  EXPECT_EQ(r.out,
            "kind      IDX\nimages    3\nheight    1\nwidth     2\nchannels  1\nclasses   2: 0 (1), 1 (2)\n"
            "mean      0.3902\nsheet     contact-sheet.png\n");
  // Two columns: 2 + 2 (2 + 2) wide, 2 + 2 (1 + 2) high.
  EXPECT_EQ(implicit_diffusion::data::decode_image(contents(folder / "contact-sheet.png"), "sheet").shape,
            (implicit_diffusion::data::ImageShape{1, 8, 10}));

  // A sheet that was not named is not replaced; one that was, is.
  write(folder / "contact-sheet.png", "mine");
  const Result again = run(folder, {"show-data", "set"});
  EXPECT_EQ(again.code, 73);
  EXPECT_TRUE(is_error_line(again.err, {"contact-sheet.png: exists; --output names another file"}));
  EXPECT_EQ(contents(folder / "contact-sheet.png"), "mine");
  EXPECT_EQ(run(folder, {"show-data", "set", "--output", "contact-sheet.png", "--count", "1"}).code, 0);
  EXPECT_NE(contents(folder / "contact-sheet.png"), "mine");

  const Result input = run(folder, {"show-data", "set", "--output", "set/train-images-idx3-ubyte"});
  EXPECT_EQ(input.code, 73);
  EXPECT_TRUE(is_error_line(input.err, {"set/train-images-idx3-ubyte: belongs to the data set"}));
  EXPECT_EQ(contents(folder / "set/train-images-idx3-ubyte"), three_images);
}

TEST(ShowData, KeepsItsSheetOutOfAFolderOfImages) {
  const Folder folder;
  write(folder / "set/a.png", implicit_diffusion::data::png_bytes({{1, 1, 2}, {1, 2}}));
  const Result inside = run(folder, {"show-data", "set", "--output", "set/sheet.png"});
  EXPECT_EQ(inside.code, 73);
  EXPECT_TRUE(is_error_line(inside.err, {"set/sheet.png: would become a part of the data set"}));
  EXPECT_FALSE(fs::exists(folder / "set/sheet.png"));
  EXPECT_EQ(run(folder, {"show-data", "set", "--output", "sheet.png"}).code, 0);
  // What is wrong with the data set is said first.
  write(folder / "contact-sheet.png", "mine");
  EXPECT_EQ(run(folder, {"show-data", "nowhere"}).code, 66);
}

TEST(ShowData, BadInput) {
  struct Row {
    const char* name;
    std::vector<std::pair<std::string, std::string>> files;
    std::string path;
    int code;
    std::vector<std::string> words;
  };
  const std::string images = "set/train-images-idx3-ubyte", labels = "set/train-labels-idx1-ubyte";
  const std::vector<Row> rows{
      {"bad magic", {{images, "x" + three_images}}, "set", 65, {images, "byte 0: not an IDX file"}},
      {"type", {{images, idx(9, 3, "")}}, "set", 65, {images, "byte 2: values are signed bytes"}},
      {"0 dimensions", {{images, idx(8, 0, "")}}, "set", 65, {images, "byte 3: an array of 0 dimensions"}},
      {"255 dimensions", {{images, idx(8, '\xff', "")}}, "set", 65, {images, "byte 3: an array of 255 dimensions"}},
      {"overflow", {{images, idx(8, 3, std::string(12, '\xff'))}}, "set", 65, {images, "byte 4: sizes (4294967295,"}},
      {"short", {{images, three_images.substr(0, 20)}}, "set", 65, {images, "more than the file can hold"}},
      {"extra", {{images, three_images + "g"}}, "set", 65, {images, "byte 22: sizes (3, 1, 2)", "has more"}},
      {"labels",
       {{images, three_images}, {labels, idx(8, 1, std::string("\0\0\0\1a", 5))}},
       "set",
       65,
       {labels, "1 labels, but", "has 3 images"}},
      {"swapped", {{images, std::string("\3\x08\0\0", 4)}}, "set", 65, {images, "bytes swapped"}},
      {"no images", {{images, idx(8, 3, std::string(12, '\0'))}}, "set", 65, {images, "of an empty array"}},
      {"CIFAR size",
       {{"x.bin", cifar(1) + "xx"}},
       "x.bin",
       65,
       {"x.bin: byte 3073: 3075 bytes are no multiple of 3073 or 3074"}},
      {"CIFAR label", {{"x.bin", cifar(1) + cifar(10)}}, "x.bin", 65, {"x.bin: record 1 (byte 3073): label 10"}},
      {"CIFAR batch", {{"set/data_batch_1.bin", cifar(1)}}, "set", 66, {"set/data_batch_2.bin: no such file"}},
      {"CIFAR empty", {{"x.bin", ""}}, "x.bin", 65, {"x.bin: byte 0: the file is empty"}},
      {"CIFAR variant", {{"set/train.bin", cifar(1)}}, "set", 65, {"set/train.bin", "as CIFAR-10 has them"}},
      {"LMDB", {{"set/data.mdb", std::string(9000, 'x')}}, "set", 65, {"set: entry 0: damaged LMDB: MDB_INVALID"}},
      {"LMDB empty", {{"set/data.mdb", ""}}, "set", 65, {"set/data.mdb: byte 0: the file is empty"}},
      {"image", {{"set/a.png", "no"}}, "set", 65, {"set/a.png: byte 0: not a PNG, JPEG or WebP image"}},
      {"nothing", {{"set/a.txt", "no"}}, "set", 65, {"set: no data set"}},
      {"missing", {}, "none", 66, {"none: no such file"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Folder folder;
    for (const auto& [file, bytes] : row.files) write(folder / file, bytes);
    const auto before = tree(folder.path());
    const Result r = run(folder, {"show-data", row.path});
    EXPECT_EQ(r.code, row.code);
    EXPECT_EQ(r.out, "");
    EXPECT_TRUE(is_error_line(r.err, row.words));
    EXPECT_EQ(tree(folder.path()), before) << "something was written";
  }
}

}  // namespace
}  // namespace program_test
