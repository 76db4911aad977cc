#include "implicit_diffusion/io/csv.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <system_error>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

namespace implicit_diffusion::io {
namespace {

constexpr char any_blank = ' ';  // as a separator: a run of blanks and tabs

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

struct Cell {
  std::string_view text;  // without blanks around it and without its quotes
  bool in_quotes = false;
};

struct Line {
  std::string_view text;
  std::size_t number;  // from 1
  const std::string& where;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(ErrorKind::data, where, fmt::format("line {}: {}", number, what));
  }
  [[noreturn]] void fail(std::size_t column, const std::string& what) const {
    throw Error(ErrorKind::data, where, fmt::format("line {}, column {}: {}", number, column + 1, what));
  }
};

// Semicolons and tabs before commas: there, a comma can only be a decimal one, and the message about it should name the
// whole cell.
char separator_of(std::string_view line) {
  bool in_quotes = false, comma = false, tab = false;
  for (const char c : line) {
    if (c == '"') in_quotes = !in_quotes;
    if (in_quotes) continue;
    if (c == ';') return ';';
    comma = comma || c == ',';
    tab = tab || c == '\t';
  }
  return tab ? '\t' : comma ? ',' : any_blank;
}

// The cells of a line; the vector is used again for each line.
void split(const Line& line, char separator, std::vector<Cell>& cells) {
  cells.clear();
  std::string_view rest = trim(line.text);
  if (separator == '\t') rest = line.text;  // tabs at the ends are separators
  const auto ends_cell = [&](char c) { return separator == any_blank ? is_blank(c) : c == separator; };
  while (true) {
    while (!rest.empty() && is_blank(rest.front()) && rest.front() != separator) rest.remove_prefix(1);
    Cell cell{{}, rest.starts_with('"')};
    if (cell.in_quotes) {
      std::size_t end = rest.find('"', 1);
      while (end != std::string_view::npos && rest.substr(end + 1).starts_with('"')) end = rest.find('"', end + 2);
      if (end == std::string_view::npos) line.fail(cells.size(), fmt::format("{} has no closing quote", excerpt(rest)));
      cell.text = rest.substr(1, end - 1);
      rest.remove_prefix(end + 1);
    }
    const auto length = static_cast<std::size_t>(std::find_if(rest.begin(), rest.end(), ends_cell) - rest.begin());
    const std::string_view plain = trim(rest.substr(0, length));
    if (!cell.in_quotes)
      cell.text = plain;
    else if (!plain.empty())
      line.fail(cells.size(), fmt::format("{} follows a closing quote", excerpt(plain)));
    rest.remove_prefix(length);
    cells.push_back(cell);
    if (rest.empty()) return;
    rest.remove_prefix(1);
    if (separator == any_blank) rest = trim(rest);
  }
}

// The error is invalid_argument where there is no number, result_out_of_range where a double cannot hold it.
std::errc read_number(std::string_view text, double& value) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return end == text.data() + text.size() ? error : std::errc::invalid_argument;
}

bool is_number(std::string_view text) {
  double value = 0;
  return read_number(text, value) != std::errc::invalid_argument;
}

// Dashes that are drawn like a minus sign: U+2010 to U+2015, U+2212, U+FE63, U+FF0D.
std::size_t dash_at_beginning(std::string_view text) {
  for (const std::string_view dash :
       {"\u2010", "\u2011", "\u2012", "\u2013", "\u2014", "\u2015", "\u2212", "\uFE63", "\uFF0D"})
    if (text.starts_with(dash)) return dash.size();
  return 0;
}

// "2.x", "O.5" or "NA" in a file without names is a slip of the pen or a missing value, not a name: taken for one, it
// would cost a row in silence. So a name begins with a letter or an underscore, whatever marks there are before it.
bool can_be_meant_as_number(std::string_view text) {
  if (is_number(text)) return true;
  if (text == "NA" || text == "na") return true;  // Na is sodium
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  for (const std::string_view missing : {"n/a", "null", "none", "nil", "missing"})
    if (lower == missing) return true;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  while (!text.empty() && !is_letter(text.front()) && !is_digit(text.front())) {
    const std::size_t dash = dash_at_beginning(text);
    if (dash == 0 && static_cast<unsigned char>(text.front()) >= 0x80) return false;  // a letter of another alphabet
    text.remove_prefix(std::max<std::size_t>(dash, 1));
  }
  if (text.empty() || is_digit(text.front())) return true;
  // A letter in the place of 0 or 1.
  constexpr std::string_view like_digits = "OolI", points = ".,";
  return text.size() > 2 && like_digits.find(text[0]) != std::string_view::npos &&
         points.find(text[1]) != std::string_view::npos && is_digit(text[2]);
}

bool is_header(const std::vector<Cell>& cells) {
  const auto is_empty = [](const Cell& cell) { return cell.text.empty(); };
  return !std::all_of(cells.begin(), cells.end(), is_empty) &&
         std::all_of(cells.begin(), cells.end(),
                     [&](const Cell& cell) { return is_empty(cell) || !can_be_meant_as_number(cell.text); });
}

// In a first line that is not one of names: a cell that can only be a name, beside one that cannot.
void refuse_names_among_numbers(const Line& line, const std::vector<Cell>& cells) {
  const auto can_be_number = [](const Cell& cell) { return !cell.text.empty() && can_be_meant_as_number(cell.text); };
  const auto number = std::find_if(cells.begin(), cells.end(), can_be_number);
  for (std::size_t k = 0; number != cells.end() && k < cells.size(); ++k)
    if (!cells[k].text.empty() && !can_be_number(cells[k]))
      line.fail(k, fmt::format("{} is not a number, and {} in column {} is not a name", excerpt(cells[k].text),
                               excerpt(number->text), number - cells.begin() + 1));
}

std::string without_double_quotes(const Cell& cell) {
  std::string name;
  for (std::size_t i = 0; i < cell.text.size(); ++i) {
    name += cell.text[i];
    if (cell.in_quotes && cell.text[i] == '"') ++i;  // "" stands for "
  }
  return name;
}

double value_of(const Line& line, std::size_t column, const Cell& cell, EmptyCell empty) {
  if (cell.text.empty()) {
    if (empty == EmptyCell::nan) return std::numeric_limits<double>::quiet_NaN();
    line.fail(column, "the cell is empty");
  }
  double value = 0;
  const std::errc error = read_number(cell.text, value);
  if (error == std::errc::result_out_of_range)
    line.fail(column, fmt::format("{} is outside the range of a double", excerpt(cell.text)));
  if (error == std::errc()) return value;
  std::string what = fmt::format("{} is not a number", excerpt(cell.text));
  if (dash_at_beginning(cell.text) > 0) what += ": it begins with a dash that is not the minus sign '-'";
  line.fail(column, what);
}

// Such a name reads back as it is, without quotes.
bool is_plain_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto plain = [&](char c) { return letter(c) || is_digit(c) || c == '.' || c == '-' || c == '/'; };
  return letter(name.front()) && std::all_of(name.begin(), name.end(), plain);
}

bool is_utf_16(std::string_view text) { return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"); }

}  // namespace

CsvTable parse_csv(std::string_view text, const std::string& where, EmptyCell empty) {
  if (is_utf_16(text)) throw Error(ErrorKind::data, where, "the text is UTF-16; save it as UTF-8");
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);

  CsvTable table;
  std::vector<Cell> cells;
  std::optional<char> separator;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    Line line{text.substr(0, end), number, where};
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.text.ends_with('\r')) line.text.remove_suffix(1);

    const std::string_view content = trim(line.text);
    if (content.empty() || content.starts_with('#')) continue;

    const bool first = !separator;
    if (first) separator = separator_of(line.text);
    split(line, *separator, cells);
    if (first) {
      table.columns.resize(cells.size());
      if (is_header(cells)) {
        for (const Cell& cell : cells) table.header.push_back(without_double_quotes(cell));
        continue;
      }
      refuse_names_among_numbers(line, cells);
    }
    if (cells.size() != table.columns.size())
      line.fail(
          fmt::format("{} cells, but {} in the first line: {}", cells.size(), table.columns.size(), excerpt(content)));
    for (std::size_t k = 0; k < cells.size(); ++k) table.columns[k].push_back(value_of(line, k, cells[k], empty));
  }
  return table;
}

CsvTable read_csv(const std::filesystem::path& path, EmptyCell empty) {
  // What is no text is refused before the rest of it is read.
  const FileReader file(path);
  std::string text, piece;
  for (std::uint64_t at = 0; at < file.size() && !is_utf_16(text); at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(file.size() - at, piece_size));
    file.read(at, piece);
    if (const std::size_t zero = piece.find('\0'); zero != std::string::npos && !is_utf_16(at == 0 ? piece : text))
      throw Error(ErrorKind::data, display(path),
                  fmt::format("byte {}: a zero byte; this is not a text file", at + zero));
    text += piece;
  }
  return parse_csv(text, display(path), empty);
}

std::string csv_bytes(std::span<const std::string> header, std::span<const std::vector<double>> rows) {
  std::string out;
  for (const std::string& name : header) {
    if (name.empty() || name.find_first_of("\r\n") != std::string::npos || can_be_meant_as_number(name))
      throw Error(ErrorKind::usage, "header", fmt::format("{} cannot be the name of a column", excerpt(name)));
    if (!out.empty()) out += ',';
    if (is_plain_name(name)) {
      out += name;
    } else {
      out += '"';
      for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
      out += '"';
    }
  }
  if (!header.empty()) out += '\n';

  const std::size_t width = !header.empty() ? header.size() : rows.empty() ? 0 : rows.front().size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].size() != width)
      throw Error(ErrorKind::usage, "rows", fmt::format("row {} has {} cells, not {}", i, rows[i].size(), width));
    for (std::size_t k = 0; k < width; ++k) {
      if (k > 0) out += ',';
      if (!std::isnan(rows[i][k]))
        fmt::format_to(std::back_inserter(out), "{}", rows[i][k]);
      else if (width == 1)
        out += "\"\"";  // an empty line would not count as a row
    }
    out += '\n';
  }
  return out;
}

}  // namespace implicit_diffusion::io
