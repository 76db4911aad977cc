#include "implicit_diffusion/io/samples.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion::io {
namespace {

using Shape = std::vector<std::size_t>;

class Samples : public testing::Test {
 protected:
  std::filesystem::path npy(const std::vector<double>& values, const Shape& shape) const {
    write_file(folder_ / "x.npy", npy_bytes(values, shape));
    return folder_ / "x.npy";
  }
  std::filesystem::path text(const std::string& name, const std::string& content) const {
    write_file(folder_ / name, content);
    return folder_ / name;
  }

  TemporaryFolder folder_;
};

TEST_F(Samples, AreReadFromEitherFormat) {
  const std::vector<double> values = {1, 2, 3, 4, 5, 6};
  for (const std::filesystem::path& path :
       {npy(values, {3, 2}), text("a.csv", "1,2\n3,4\n5,6\n"), text("b.CSV", "x,y\n1,2\n3,4\n5,6\n"),
        text("c.txt", "# from a tool\n1 2\n3 4\n5 6\n"), text("d.tsv", "1\t2\n3\t4\n5\t6\n")}) {
    const Array samples = read_samples(path);
    EXPECT_EQ(samples.shape, (Shape{3, 2})) << path;
    EXPECT_EQ(samples.values, values) << path;
  }
}

TEST_F(Samples, OnALineHaveOneCoordinate) {
  EXPECT_EQ(read_samples(npy({1, 2, 3}, {3})).shape, (Shape{3, 1}));
  EXPECT_EQ(read_samples(text("a.csv", "1\n2\n3\n")).shape, (Shape{3, 1}));
}

// Files of a terabyte, but for their beginning a hole: nobody could read them.
TEST_F(Samples, AreRefusedFromTheBeginningOfTheirFile) {
  constexpr std::uintmax_t terabyte = std::uintmax_t{1} << 40;
  std::string long_beginning;  // 3 MiB of text
  for (std::size_t i = 0; i < (std::size_t{3} << 20); ++i) long_beginning += i % 2 ? '\n' : '1';
  const std::filesystem::path garbage = text("a.npy", "x"), short_shape = npy({1, 2}, {2, 1}),
                              hole = text("a.csv", "1"), long_text = text("b.csv", long_beginning);
  for (const std::filesystem::path& path : {garbage, short_shape, hole, long_text}) {
    std::error_code error;
    std::filesystem::resize_file(path, terabyte, error);
    if (error) GTEST_SKIP() << "no file of a terabyte can be made here";
  }
  EXPECT_ERROR(read_samples(garbage), data, "a.npy: byte 0: not a .npy file");
  EXPECT_ERROR(read_samples(short_shape), data,
               "x.npy: byte 128: shape (2, 1) of '<f8' takes 16 bytes, but the file has 1099511627648 here");
  EXPECT_ERROR(read_samples(hole), data, "a.csv: byte 1: a zero byte");
  EXPECT_ERROR(read_samples(long_text), data, "b.csv: byte 3145728: a zero byte");
  // A header that goes on and on.
  write_file(folder_ / "h.npy", std::string("\x93NUMPY\x02\0\0\0\0\x10", 12));
  std::filesystem::resize_file(folder_ / "h.npy", terabyte);
  EXPECT_ERROR(read_samples(folder_ / "h.npy"), data, "h.npy: byte 8: a header of 268435456 bytes is too long");
}

TEST_F(Samples, AreRefusedWithTheirReason) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_ERROR(read_samples(npy({}, {0, 2})), data, "x.npy: no samples: shape (0, 2)");
  EXPECT_ERROR(read_samples(npy({}, {2, 0})), data, "x.npy: no samples: shape (2, 0)");
  EXPECT_ERROR(read_samples(npy({1}, {})), data, "x.npy: shape () is not that of samples, (n, d)");
  EXPECT_ERROR(read_samples(npy({1}, {1, 1, 1})), data, "x.npy: shape (1, 1, 1) is not that of samples, (n, d)");
  EXPECT_ERROR(read_samples(npy({1, 2, 3, nan}, {2, 2})), data,
               "x.npy: row 2, column 2 (counted from 1): nan is not finite");
  EXPECT_ERROR(read_samples(npy({1, 2, -inf, 4}, {2, 2})), data,
               "row 2, column 1 (counted from 1): -inf is not finite");
  EXPECT_ERROR(read_samples(text("a.csv", "1,2\ninf,3\n")), data,
               "a.csv: row 2, column 1 (counted from 1): inf is not finite");
  EXPECT_ERROR(read_samples(text("a.csv", "1,2\n,3\n")), data, "a.csv: line 2, column 1: the cell is empty");
  EXPECT_ERROR(read_samples(text("a.csv", "x,y\n")), data, "a.csv: no samples");
  EXPECT_ERROR(read_samples(text("a.csv", "")), data, "a.csv: no samples");
  EXPECT_ERROR(read_samples(text("a.json", "[]")), usage, "a.json: the name of a file of samples ends in .npy or .csv");
  EXPECT_ERROR(read_samples(folder_ / "none.xyz"), missing, "none.xyz: no such file");
}

}  // namespace
}  // namespace implicit_diffusion::io
