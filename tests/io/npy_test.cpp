#include "implicit_diffusion/io/npy.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion::io {
namespace {

using Shape = std::vector<std::size_t>;

// A file with this header, as it is, and these values.
std::string with_header(const std::string& header, const std::string& values = "") {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size() & 0xFF);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header + values;
}

std::string with_dict(const std::string& descr, const std::string& order, const std::string& shape,
                      const std::string& values) {
  return with_header("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n", values);
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// What numpy.save of NumPy 1.24.2 wrote.
TEST(Npy, IsWrittenAsNumPyDoes) {
  const std::vector<float> f = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(npy_bytes(f, Shape{2, 3}), std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                           "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
                                           std::string(58, ' ') + "\n" + raw(f));
  const std::vector<double> d = {1, -2, 0.5};
  EXPECT_EQ(npy_bytes(d, Shape{3}), std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                        "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }" +
                                        std::string(60, ' ') + "\n" +
                                        std::string("\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\xe0\x3f", 24));
  const std::vector<double> one = {1.5};
  EXPECT_EQ(npy_bytes(one, Shape{}), std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                                         "{'descr': '<f8', 'fortran_order': False, 'shape': (), }" +
                                         std::string(62, ' ') + "\n" + std::string("\0\0\0\0\0\0\xf8\x3f", 8));
}

// Images are arrays (n, C, H, W).
TEST(Npy, FourDimensions) {
  const std::vector<float> f = {0, 1, 2, 3, 4, 5, 6, 7};
  const std::string bytes = npy_bytes(f, Shape{2, 1, 2, 2});
  EXPECT_EQ(bytes, std::string("\x93NUMPY\x01\x00\x76\x00", 10) +
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 2, 2), }" + std::string(52, ' ') +
                       "\n" + raw(f));
  const Array back = parse_npy(bytes, "x.npy");
  EXPECT_EQ(back.shape, (Shape{2, 1, 2, 2}));
  EXPECT_EQ(back.values, std::vector<double>(f.begin(), f.end()));
}

// The header grows by 64 bytes once 13 more dimensions do not fit, room for a longer first one counted.
TEST(Npy, HeaderIsAsLongAsNumPys) {
  for (std::size_t k = 1; k < 32; ++k) {
    Shape shape(k + 1, 1);
    shape[0] = 0;
    const std::string bytes = npy_bytes(std::vector<float>{}, shape);
    EXPECT_EQ(bytes.size(), k <= 13 ? 128U : 192U) << k;
    EXPECT_EQ(parse_npy(bytes, "x.npy").shape, shape);
  }
}

TEST(Npy, EncodingRefusesAShapeThatDoesNotFit) {
  const std::vector<double> values(6);
  EXPECT_ERROR(npy_bytes(values, Shape{2, 2}), usage, "shape: (2, 2) is not the shape of 6 values");
  EXPECT_ERROR(npy_bytes(values, Shape{}), usage, "() is not the shape of 6 values");
  EXPECT_ERROR(npy_bytes(values, Shape{std::size_t{1} << 63, 2, 3}), usage, "is not the shape of 6 values");
  EXPECT_ERROR(npy_bytes(std::vector<double>{}, Shape(33, 0)), usage, "is not the shape of 0 values");
}

RC_GTEST_PROP(Npy, ReadsBackWhatWasWritten, (const std::vector<double>& values)) {
  const Array back = parse_npy(npy_bytes(values, Shape{values.size()}), "x.npy");
  RC_ASSERT(back.shape == Shape{values.size()});
  RC_ASSERT(raw(back.values) == raw(values));

  const std::vector<float> narrow(values.begin(), values.end());
  const Array wide = parse_npy(npy_bytes(narrow, Shape{1, narrow.size(), 1}), "x.npy");
  RC_ASSERT((wide.shape == Shape{1, narrow.size(), 1}));
  RC_ASSERT(wide.values == std::vector<double>(narrow.begin(), narrow.end()));
}

TEST(Npy, ReadsEveryTypeOfValue) {
  const auto values = [](const std::string& descr, const std::string& bytes) {
    return parse_npy(with_dict(descr, "False", "(3,)", bytes), "x.npy").values;
  };
  const std::vector<double> expected = {1, -2, 100};
  EXPECT_EQ(values("<f4", raw<float>({1, -2, 100})), expected);
  EXPECT_EQ(values("<f8", raw<double>({1, -2, 100})), expected);
  EXPECT_EQ(values("<i4", raw<std::int32_t>({1, -2, 100})), expected);
  EXPECT_EQ(values("<i8", raw<std::int64_t>({1, -2, 100})), expected);
  EXPECT_EQ(values("|u1", raw<std::uint8_t>({0, 1, 255})), (std::vector<double>{0, 1, 255}));
}

TEST(Npy, ReadsFortranOrder) {
  const Array two = parse_npy(with_dict("<f8", "True", "(2, 3)", raw<double>({0, 3, 1, 4, 2, 5})), "x.npy");
  EXPECT_EQ(two.values, (std::vector<double>{0, 1, 2, 3, 4, 5}));
  const Array three = parse_npy(
      with_dict("|u1", "True", "(2, 3, 2)", raw<std::uint8_t>({0, 6, 2, 8, 4, 10, 1, 7, 3, 9, 5, 11})), "x.npy");
  std::vector<double> counted(12);
  std::iota(counted.begin(), counted.end(), 0);
  EXPECT_EQ(three.values, counted);
  EXPECT_EQ(parse_npy(with_dict("|u1", "True", "(0, 3)", ""), "x.npy").shape, (Shape{0, 3}));
}

TEST(Npy, ReadsOtherVersionsAndSpellingsOfTheHeader) {
  const std::string dict = "{\"shape\":(2L,),\t'fortran_order' : False,\n 'descr':\"|u1\"}";
  std::string bytes("\x93NUMPY\x02\x00", 8);
  bytes += static_cast<char>(dict.size());
  bytes += std::string(3, '\0') + dict + "\x05\x06";
  EXPECT_EQ(parse_npy(bytes, "x.npy").values, (std::vector<double>{5, 6}));
  bytes[6] = 3;
  EXPECT_EQ(parse_npy(bytes, "x.npy").values, (std::vector<double>{5, 6}));
}

TEST(Npy, NamesTheFileAndTheByte) {
  const auto parse = [](const std::string& bytes) { return parse_npy(bytes, "x.npy"); };
  const std::string v2("\x93NUMPY\x02\x00\x00\x00", 10);
  EXPECT_ERROR(parse(""), data, "x.npy: byte 0: the file is empty");
  EXPECT_ERROR(parse("1,2,3\n"), data, "x.npy: byte 0: not a .npy file");
  EXPECT_ERROR(parse("PK\x03\x04..."), data, "zip archive");
  EXPECT_ERROR(parse("version https://git-lfs.github.com/spec/v1"), data, "Git LFS pointer");
  EXPECT_ERROR(parse("<!DOCTYPE html>"), data, "HTML page");
  EXPECT_ERROR(parse("\x93NUMPY\x01"), data, "x.npy: byte 7: the file ends before the header");
  EXPECT_ERROR(parse(v2), data, "x.npy: byte 10: the file ends before the header");
  EXPECT_ERROR(parse("\x93NUMPY\x04\x01  "), data, "x.npy: byte 6: version 4.1 of the format is not known");
  EXPECT_ERROR(parse("\x93NUMPY\x01" + std::string("\0\xff\xff..", 5)), data,
               "x.npy: byte 8: a header of 65535 bytes, but the file has 2 more");

  const std::string no_dictionary = "x.npy: byte 10: header is not a dictionary with descr, fortran_order and shape";
  for (const std::string header : {"", "\n", "{}", "{'descr': '<f8'}", "[1]", "{", "{'descr", "{'descr'", "{'descr':",
                                   "{'descr': 1}", "{descr: '<f8'}", "{'fortran_order': False, 'shape': (), }",
                                   "{'descr': '<f8', 'fortran_order': False, 'shape': (), } x",
                                   "{'descr': '<f8' 'fortran_order': False, 'shape': (), }",
                                   "{'descr': '<f8', , 'fortran_order': False, 'shape': ()}"})
    EXPECT_ERROR(parse(with_header(header)), data, no_dictionary) << header;

  EXPECT_ERROR(parse(with_header("{'desc': '<f8'}")), data, "x.npy: byte 11: unknown key 'desc' in the header");
  EXPECT_ERROR(parse(with_header("{'shape': (), 'shape': ()}")), data, "x.npy: byte 24: key 'shape' twice");
  EXPECT_ERROR(parse(with_dict(">f8", "False", "()", "")), data,
               "x.npy: byte 20: values are big-endian ('>f8'); save them as '<f8'");
  EXPECT_ERROR(parse(with_dict("<c8", "False", "()", "")), data,
               "x.npy: byte 20: values are of type '<c8', not one of '<f4'");
  EXPECT_ERROR(parse(with_header("{'descr': [('a', '<f8')]}")), data, "x.npy: byte 20: a structured array");
  EXPECT_ERROR(parse(with_dict("<f8", "0", "()", "")), data, "x.npy: byte 44: fortran_order is neither True nor False");
  for (const std::string shape : {"3", "[3]", "(3", "(-3,)", "(3 4)", "(,)", "(1.5,)", "('a',)"})
    EXPECT_ERROR(parse(with_dict("<f8", "False", shape, "")), data, "shape is not a tuple of sizes") << shape;
  EXPECT_ERROR(parse(with_dict("<f8", "False", "(99999999999999999999,)", "")), data, "a size in shape is too large");
  EXPECT_ERROR(parse(with_dict("<f8", "False", "(4294967296, 4294967296)", "")), data,
               "x.npy: byte 10: shape (4294967296, 4294967296) is too large");
  EXPECT_ERROR(parse(with_dict("<f8", "False", "(2305843009213693952,)", "")), data, "is too large");
  EXPECT_ERROR(parse(with_dict("<f8", "False", "(1000000000000,)", "")), data,
               "takes 8000000000000 bytes, but the file has 0 here");
  std::string many = "(";
  for (int k = 0; k < 33; ++k) many += "1,";
  EXPECT_ERROR(parse(with_dict("<f8", "False", many + ")", "")), data, "more than 32 dimensions");
  const std::string good = npy_bytes(std::vector<double>{1, 2}, Shape{2});
  EXPECT_ERROR(parse(good + "x"), data, "x.npy: byte 128: shape (2) of '<f8' takes 16 bytes, but the file has 17 here");
  EXPECT_ERROR(parse(good.substr(0, 143)), data, "takes 16 bytes, but the file has 15 here");
}

// Any other value in place of any byte: the file is read or refused in one line that names file and byte; it is never a
// crash.
TEST(Npy, NoDamageToAByteGoesWrong) {
  const std::string good = npy_bytes(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 3});
  int refused = 0;
  for (std::size_t i = 0; i < good.size(); ++i)
    for (int value = 0; value < 256; ++value) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(value);
      try {
        const Array array = parse_npy(bytes, "x.npy");
        const std::size_t count =
            std::accumulate(array.shape.begin(), array.shape.end(), std::size_t{1}, std::multiplies<>());
        ASSERT_EQ(array.values.size(), count);
      } catch (const Error& error) {
        ++refused;
        const std::string message = error.what();
        ASSERT_EQ(error.kind(), ErrorKind::data);
        ASSERT_EQ(message.rfind("x.npy: byte ", 0), 0U) << message;
        ASSERT_EQ(message.find('\n'), std::string::npos) << message;
      }
    }
  EXPECT_GT(refused, 60 * 200) << "damage to the header is hardly noticed";
}

TEST(Npy, EveryTruncationIsRefused) {
  const std::string good = npy_bytes(std::vector<float>{1, 2, 3, 4, 5, 6}, Shape{2, 3});
  for (std::size_t n = 0; n < good.size(); ++n)
    EXPECT_ERROR(parse_npy(good.substr(0, n), "x.npy"), data, "x.npy: byte ");
}

RC_GTEST_PROP(Npy, AnyHeaderIsReadOrRefused, (const std::string& text)) {
  for (const std::string& bytes : {text, with_header(text), with_dict("|u1", "False", text, "")}) {
    try {
      (void)parse_npy(bytes, "x.npy");
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::data);
    }
  }
}

TEST(Npy, FindsTheFirstValueThatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(find_nonfinite({{3}, {1, -0.0, 1e308}}), std::nullopt);
  EXPECT_EQ(find_nonfinite({{3}, {1, nan, inf}}), 1U);
  EXPECT_EQ(find_nonfinite({{3}, {1, 2, -inf}}), 2U);
  EXPECT_EQ(find_nonfinite({{0}, {}}), std::nullopt);
}

TEST(Npy, ReadsAFile) {
  const TemporaryFolder folder;
  write_file(folder / "x.npy", npy_bytes(std::vector<double>{1, 2}, Shape{2}));
  EXPECT_EQ(read_npy(folder / "x.npy").values, (std::vector<double>{1, 2}));
  write_file(folder / "y.npy", "?");
  EXPECT_ERROR(read_npy(folder / "y.npy"), data, (folder / "y.npy").native() + ": byte 0: not a .npy file");
  EXPECT_ERROR(read_npy(folder / "z.npy"), missing, "no such file");
}

}  // namespace
}  // namespace implicit_diffusion::io
