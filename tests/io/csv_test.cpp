#include "implicit_diffusion/io/csv.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
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

using Names = std::vector<std::string>;
using Columns = std::vector<std::vector<double>>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double inf = std::numeric_limits<double>::infinity();

CsvTable parse(const std::string& text, EmptyCell empty = EmptyCell::error) { return parse_csv(text, "x.csv", empty); }

// Equal bit by bit, except that one NaN is as good as another.
bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

TEST(Csv, ReadsWithAndWithoutNames) {
  const CsvTable plain = parse("1,2\n3,4\n");
  EXPECT_EQ(plain.header, Names{});
  EXPECT_EQ(plain.columns, (Columns{{1, 3}, {2, 4}}));
  const CsvTable named = parse("x,\"the \"\"y\"\"\"\n1,2\n3,4");
  EXPECT_EQ(named.header, (Names{"x", "the \"y\""}));
  EXPECT_EQ(named.columns, plain.columns);
}

TEST(Csv, ReadsEverySeparator) {
  const Columns expected = {{1, 3}, {2.5, -4e2}};
  for (const std::string text :
       {"1,2.5\n3,-4e2\n", "1;2.5\n3;-4e2\n", "1\t2.5\n3\t-4e2\n", "1 2.5\n3 -4e2\n", "  1.0   +2.5 \n 3\t -400\n",
        "1 , 2.5\n3 , -4e2\n", "\xEF\xBB\xBF\x31,2.5\r\n3,-4e2\r\n", "# comment\n\n1,2.5\n  # another\n3,-4e2\n\n"})
    EXPECT_EQ(parse(text).columns, expected) << text;
}

TEST(Csv, ReadsNothing) {
  for (const std::string text : {"", "\n", "# only a comment", "\r\n\r\n", "\xEF\xBB\xBF"})
    EXPECT_TRUE(parse(text).columns.empty());
  EXPECT_EQ(parse("x,y\n").columns, (Columns{{}, {}}));
  EXPECT_EQ(parse("x,y\n").header, (Names{"x", "y"}));
}

// What would otherwise be taken for names, and its row lost.
TEST(Csv, AMistypedFirstRowIsNotALineOfNames) {
  EXPECT_ERROR(parse("1.0,2.x\n3,4\n"), data, "x.csv: line 1, column 2: '2.x' is not a number");
  EXPECT_ERROR(parse("1..0\n3\n"), data, "x.csv: line 1, column 1: '1..0' is not a number");
  EXPECT_ERROR(parse("-1,0;2,5\n"), data, "x.csv: line 1, column 1: '-1,0' is not a number");
  EXPECT_EQ(parse("nan,inf\n3,4\n").header, Names{});
  EXPECT_EQ(parse(",x\n3,4\n").header, (Names{"", "x"}));
}

TEST(Csv, QuotedNumbersAreNumbersInEveryRow) {
  const CsvTable table = parse("\"1\",\"-2.5\"\n\"3\",4\n");
  EXPECT_EQ(table.header, Names{});
  EXPECT_EQ(table.columns, (Columns{{1, 3}, {-2.5, 4}}));
}

TEST(Csv, WhatCanBeMeantAsANumberIsNotAName) {
  for (const std::string cell :
       {"\u22125", "O.5", "-O.5", "l.5",     "NA",      "N/A",    "n/a",     "null",       "NULL",
        "None",    "-",   "na",   "missing", "Missing", "nil",    "NONE",    "--",         "?",
        ".",       "$5",  "(5)",  "<0.1",    "\"1,5\"", "\"NA\"", "\"O.5\"", "\"\u22125\""}) {
    std::string text = cell;
    std::erase(text, '"');
    EXPECT_ERROR(parse(cell + "\n2\n"), data, "x.csv: line 1, column 1: '" + text + "' is not a number");
    EXPECT_ERROR(parse("3;" + cell + "\n2;3\n"), data, "x.csv: line 1, column 2: '" + text + "' is not a number");
  }
  EXPECT_ERROR(parse("x\n\u22125\n"), data,
               "x.csv: line 2, column 1: '\u22125' is not a number: it begins with a dash that is not the minus sign");
  EXPECT_ERROR(parse("x,\"2nd\"\n1,2\n"), data,
               "x.csv: line 1, column 1: 'x' is not a number, and '2nd' in column 2 is not a name");
  for (const std::string name :
       {"x", "_1", "x.1", "O3", "O", "Na", "(x)", "\"a, b\"", "\u03b8", "\u03b81", "nana", "e5"}) {
    std::string text = name;
    std::erase(text, '"');
    EXPECT_EQ(parse(name + "\n2\n").header, Names{text});
    EXPECT_EQ(parse(name + "\n2\n").columns, Columns{{2}});
  }
}

TEST(Csv, NamesLineColumnAndText) {
  EXPECT_ERROR(parse("1,2\n3,abc\n"), data, "x.csv: line 2, column 2: 'abc' is not a number");
  EXPECT_ERROR(parse("# c\n\n1\n2 3\n"), data, "x.csv: line 4: 2 cells, but 1 in the first line: '2 3'");
  EXPECT_ERROR(parse("1,2\n3\n"), data, "x.csv: line 2: 1 cells, but 2 in the first line: '3'");
  EXPECT_ERROR(parse("1,2\n3,4,\n"), data, "x.csv: line 2: 3 cells, but 2 in the first line: '3,4,'");
  EXPECT_ERROR(parse("1,2\n,4\n"), data, "x.csv: line 2, column 1: the cell is empty");
  EXPECT_ERROR(parse("1,2\n3,1e999\n"), data, "x.csv: line 2, column 2: '1e999' is outside the range of a double");
  EXPECT_ERROR(parse("x\n0x10\n"), data, "'0x10' is not a number");
  EXPECT_ERROR(parse("x\n1_000\n"), data, "'1_000' is not a number");
  EXPECT_ERROR(parse("x\n+-1\n"), data, "'+-1' is not a number");
  EXPECT_ERROR(parse("x\n\"1\n"), data, "x.csv: line 2, column 1: '\"1' has no closing quote");
  EXPECT_ERROR(parse("1,2\n\"1\"2,3\n"), data, "x.csv: line 2, column 1: '2' follows a closing quote");
  EXPECT_ERROR(parse("1\n" + std::string(100'000, 'x')), data, "line 2, column 1: 'xxxx");
  EXPECT_ERROR(parse(std::string("1\n\0\x01", 4)), data, "'\\x00\\x01' is not a number");
  EXPECT_ERROR(parse("\xFF\xFE"
                     "1"),
               data, "x.csv: the text is UTF-16; save it as UTF-8");
}

TEST(Csv, EmptyCellsAreNanWhereThatIsAllowed) {
  const CsvTable table = parse("a,b,c\n1,,3\n,,\n", EmptyCell::nan);
  ASSERT_EQ(table.columns.size(), 3U);
  EXPECT_EQ(table.columns[0][0], 1);
  EXPECT_TRUE(std::isnan(table.columns[1][0]));
  EXPECT_EQ(table.columns[2][0], 3);
  EXPECT_TRUE(std::isnan(table.columns[2][1]));
}

TEST(Csv, IsWrittenWithTheFewestDigits) {
  const Names names = {"step", "reward", "exact_kl"};
  const std::vector<std::vector<double>> rows = {{0, 0.1, nan}, {1e6, -1e-300, inf}, {nan, -0.0, 1.0 / 3}};
  EXPECT_EQ(csv_bytes(names, rows), "step,reward,exact_kl\n0,0.1,\n1000000,-1e-300,inf\n,-0,0.3333333333333333\n");
  EXPECT_EQ(csv_bytes({}, std::vector<std::vector<double>>{{1, 2}}), "1,2\n");
  EXPECT_EQ(csv_bytes(Names{"x"}, std::vector<std::vector<double>>{{nan}}), "x\n\"\"\n");
  EXPECT_EQ(csv_bytes({}, {}), "");
}

TEST(Csv, RefusesToWriteWhatWouldNotReadBack) {
  const std::vector<std::vector<double>> ragged = {{1, 2}, {3}};
  EXPECT_ERROR(csv_bytes({}, ragged), usage, "rows: row 1 has 1 cells, not 2");
  EXPECT_ERROR(csv_bytes(Names{"x"}, ragged), usage, "rows: row 0 has 2 cells, not 1");
  EXPECT_ERROR(csv_bytes(Names{""}, {}), usage, "header: '' cannot be the name of a column");
  EXPECT_ERROR(csv_bytes(Names{"a\nb"}, {}), usage, "header: 'a\\x0ab' cannot be the name of a column");
  EXPECT_ERROR(csv_bytes(Names{"1"}, {}), usage, "header: '1' cannot be the name of a column");
  EXPECT_ERROR(csv_bytes(Names{"NA"}, {}), usage, "header: 'NA' cannot be the name of a column");
}

double any_double() { return std::bit_cast<double>(*rc::gen::arbitrary<std::uint64_t>()); }

// What is refused as a name would not be read as one.
bool can_be_written(const std::string& name) try {
  (void)csv_bytes(Names{name}, {});
  return true;
} catch (const Error&) {
  if (name.find_first_of("\r\n") != std::string::npos) return false;
  std::string quoted = "\"";
  for (const char c : name) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  try {
    EXPECT_NE(parse(quoted + "\"\n").header, Names{name});
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::data);
  }
  return false;
}

RC_GTEST_PROP(Csv, ReadsBackWhatWasWritten, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 5);
  const auto height = *rc::gen::inRange<std::size_t>(0, 6);
  Names names;
  if (*rc::gen::arbitrary<bool>())
    for (std::size_t k = 0; k < width; ++k)
      names.push_back(*rc::gen::suchThat(rc::gen::string<std::string>(), can_be_written));
  std::vector<std::vector<double>> rows(height, std::vector<double>(width));
  for (std::vector<double>& row : rows)
    for (double& x : row) x = any_double();

  const CsvTable back = parse(csv_bytes(names, rows), EmptyCell::nan);
  RC_ASSERT(back.header == names);
  RC_ASSERT(back.columns.size() == (names.empty() && rows.empty() ? 0 : width));
  for (std::size_t k = 0; k < back.columns.size(); ++k) {
    RC_ASSERT(back.columns[k].size() == height);
    for (std::size_t i = 0; i < height; ++i) RC_ASSERT(same(back.columns[k][i], rows[i][k]));
  }
}

RC_GTEST_PROP(Csv, AnyTextIsReadOrRefused, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::element(
      '0', '1', '.', '-', '+', 'e', 'n', 'a', 'x', ',', ';', '\t', ' ', '"', '#', '\n', '\r', '\0', '\xEF'));
  try {
    const CsvTable table = parse(text, EmptyCell::nan);
    for (const std::vector<double>& column : table.columns) RC_ASSERT(column.size() == table.columns.front().size());
    RC_ASSERT(table.header.empty() || table.header.size() == table.columns.size());
  } catch (const Error& error) {
    RC_ASSERT(error.kind() == ErrorKind::data);
    RC_ASSERT(std::string(error.what()).starts_with("x.csv: line "));
    RC_ASSERT(std::string(error.what()).find('\n') == std::string::npos);
  }
}

TEST(Csv, ReadsAFile) {
  const TemporaryFolder folder;
  write_file(folder / "x.csv", "1,2\n");
  EXPECT_EQ(read_csv(folder / "x.csv").columns, (Columns{{1}, {2}}));
  EXPECT_ERROR(read_csv(folder / "y.csv"), missing, "no such file");
}

}  // namespace
}  // namespace implicit_diffusion::io
