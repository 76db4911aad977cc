#include "implicit_diffusion/data/idx.hpp"

#include "data/support.hpp"

namespace implicit_diffusion::data {
namespace {

using Shape = std::vector<std::size_t>;

TEST(Idx, ReadsPlainAndCompressed) {
  const std::string bytes = idx_bytes({2, 1, 3}, "abcdef");
  for (const std::string& file : {bytes, gzip(bytes), gzip(bytes.substr(0, 9)) + gzip(bytes.substr(9))}) {
    const IdxArray array = parse_idx(file, "x");
    EXPECT_EQ(array.shape, (Shape{2, 1, 3}));
    EXPECT_EQ(std::string(array.values.begin(), array.values.end()), "abcdef");
  }
}

// One row of the table of bad input each: the message names file, byte and reason.
TEST(Idx, BadInput) {
  const std::string good = idx_bytes({2, 2}, "abcd");
  const auto with = [&](std::size_t at, int value) {
    std::string bytes = good;
    bytes[at] = static_cast<char>(value);
    return bytes;
  };
  struct Row {
    const char* name;
    std::string bytes, message;
  };
  const std::vector<Row> rows{
      {"bad magic", with(0, 'P'), "x: byte 0: not an IDX file (it begins with two zero bytes)"},
      {"unknown type", with(2, 10), "x: byte 2: type 0A of values is not known; bytes (type 08) are meant"},
      {"floats", with(2, 13), "x: byte 2: values are floats (type 0D); bytes (type 08) are meant"},
      {"no dimensions", with(3, 0), "x: byte 3: an array of 0 dimensions; 1 to 4 are meant"},
      {"255 dimensions", with(3, 255), "x: byte 3: an array of 255 dimensions; 1 to 4 are meant"},
      {"overflow", idx_bytes({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, "abcd"), "more than the file can hold"},
      {"overflow to the right size", idx_bytes({0x80000000, 0x80000000, 4, 1}, ""), "more than the file can hold"},
      {"short data", good.substr(0, 15), "x: byte 4: sizes (2, 2) take 4 bytes, more than the file can hold"},
      {"extra data", good + "e", "x: byte 16: sizes (2, 2) take 4 bytes, but the file has more"},
      {"swapped", std::string("\x02\x08\0\0\x02\0\0\0\x02\0\0\0abcd", 16),
       "x: byte 0: an IDX file with its bytes swapped; IDX is big-endian"},
      {"no images", idx_bytes({0, 2}, ""), "x: byte 4: sizes (0, 2) are of an empty array"},
      {"empty", "", "x: byte 0: the file is empty; an IDX file"},
      {"ends in the magic", good.substr(0, 3), "x: byte 3: the file ends before the sizes"},
      {"ends in the sizes", good.substr(0, 9), "x: byte 9: the file ends before the sizes"},
      {"LFS pointer", "version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"},
      {"HTML", "<html>404", "an HTML page"},
      {"short data, compressed", gzip(good.substr(0, 15)),
       "x: byte 15: sizes (2, 2) take 4 bytes, but the file has 3 here"},
      {"extra data, compressed", gzip(good + "e"), "x: byte 16: sizes (2, 2) take 4 bytes, but the file has more"},
      {"something else, compressed", gzip("hello, world"), "x: byte 0: not an IDX file"},
      {"gzip cut short", gzip(good).substr(0, 20), "of the gzip file: the file ends before its compressed data does"},
      {"gzip with a tail", gzip(good) + "tail", "of the gzip file: 4 bytes follow the compressed data"},
      {"a large array of few bytes, compressed", gzip(idx_bytes({0xffffffff, 1}, "")), "more than the file can hold"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_ERROR(parse_idx(row.bytes, "x"), data, row.message);
  }
  std::string crc = gzip(good);
  crc[crc.size() - 5] = static_cast<char>(crc[crc.size() - 5] ^ 1);
  EXPECT_ERROR(parse_idx(crc, "x"), data, "of the gzip file: incorrect data check");
}

TEST(Idx, EveryTruncationIsRefused) {
  const std::string plain = idx_bytes({2, 2}, "abcd"), packed = gzip(plain);
  for (std::size_t n = 0; n < plain.size(); ++n) EXPECT_ERROR(parse_idx(plain.substr(0, n), "x"), data, "x: byte ");
  for (std::size_t n = 0; n < packed.size(); ++n) EXPECT_ERROR(parse_idx(packed.substr(0, n), "x"), data, "x: byte ");
}

}  // namespace
}  // namespace implicit_diffusion::data
