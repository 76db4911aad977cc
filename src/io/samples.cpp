#include "implicit_diffusion/io/samples.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

namespace implicit_diffusion::io {
namespace {

Array rows_of(const CsvTable& table) {
  const std::size_t d = table.columns.size();
  const std::size_t n = d == 0 ? 0 : table.columns.front().size();
  Array array{{n, d}, {}};
  array.values.reserve(n * d);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < d; ++j) array.values.push_back(table.columns[j][i]);
  return array;
}

}  // namespace

Array read_samples(const std::filesystem::path& path) {
  const std::string where = display(path);
  std::string extension = path.extension().native();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');

  Array array;
  if (extension == ".npy") {
    array = read_npy(path);
    if (array.shape.size() == 1) array.shape.push_back(1);
    if (array.shape.size() != 2)
      throw Error(ErrorKind::data, where,
                  fmt::format("shape ({}) is not that of samples, (n, d)", fmt::join(array.shape, ", ")));
  } else if (extension == ".csv" || extension == ".tsv" || extension == ".txt" || extension == ".dat") {
    array = rows_of(read_csv(path));
  } else {
    (void)FileReader(path);  // one that is missing is said to be that
    throw Error(ErrorKind::usage, where, "the name of a file of samples ends in .npy or .csv");
  }

  if (array.values.empty())
    throw Error(ErrorKind::data, where, fmt::format("no samples: shape ({})", fmt::join(array.shape, ", ")));
  if (const auto at = find_nonfinite(array)) {
    const std::size_t d = array.shape[1];
    throw Error(ErrorKind::data, where,
                fmt::format("row {}, column {} (counted from 1): {} is not finite", *at / d + 1, *at % d + 1,
                            array.values[*at]));
  }
  return array;
}

}  // namespace implicit_diffusion::io
