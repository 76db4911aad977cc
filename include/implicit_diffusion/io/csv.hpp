// Tables of numbers in text files.
//
// Read is what people have: numbers separated by commas, semicolons, tabs or blanks (told from the first line), with or
// without a line of names, comment lines that begin with #, empty lines, CRLF, a UTF-8 byte order mark. A number in
// quotes is a number. The first line holds names if none of its cells, in quotes or not, can be meant as a number: a
// name begins with a letter or an underscore, after any marks, and is not nan, inf, a word for a missing value (NA, na,
// and, in small letters or large, n/a, null, none, nil, missing) or a number with a letter in it (O.5). Decimal commas
// are not read. Errors are of kind data and name the file, the line, the column and the text found.
//
// Written are commas, and each number with the fewest digits that read back as the same double; NaN is an empty cell.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::io {

struct CsvTable {
  std::vector<std::string> header;           // empty if the file has no line of names
  std::vector<std::vector<double>> columns;  // all of the same length
};

enum class EmptyCell { error, nan };

// A file with a zero byte is no text, and no more of it is read than the MiB that has it.
CsvTable read_csv(const std::filesystem::path& path, EmptyCell empty = EmptyCell::error);

// The same from text at hand; where is what messages call it.
CsvTable parse_csv(std::string_view text, const std::string& where, EmptyCell empty = EmptyCell::error);

// The text of a file, for write_file: a line of names, unless there are none, and the rows. read_csv(...,
// EmptyCell::nan) gives it back. Throws a usage Error if a row has not as many cells as there are names, or a name is
// empty, has a line break or can be meant as a number.
std::string csv_bytes(std::span<const std::string> header, std::span<const std::vector<double>> rows);

}  // namespace implicit_diffusion::io
