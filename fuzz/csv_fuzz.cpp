#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/csv.hpp"

#include <cmath>

namespace io = implicit_diffusion::io;

std::vector<std::string> fuzz::seeds() {
  return {"a,b\n1,2\n-3e5,inf\n", "1 2 3\n4 5 6\n", "x;y\r\n# no\r\n1.5;\r\n", "\"a \"\"b\"\"\",c\n,nan\n",
          std::string("\xEF\xBB\xBF") + "1\t2\n\n3\t4"};
}

// Accepted or refused, without a crash; and what was accepted, written again, reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  io::CsvTable a;
  try {
    (void)io::parse_csv(fuzz::text(data, size), "input");
  } catch (const implicit_diffusion::Error&) {
    // perhaps an empty cell
  }
  try {
    a = io::parse_csv(fuzz::text(data, size), "input", io::EmptyCell::nan);
  } catch (const implicit_diffusion::Error& e) {
    fuzz::require(e.kind() == implicit_diffusion::ErrorKind::data, "a refusal is a data Error");
    return 0;
  }
  std::vector<std::vector<double>> rows(a.columns.empty() ? 0 : a.columns.front().size());
  for (const std::vector<double>& column : a.columns) {
    fuzz::require(column.size() == rows.size(), "columns are of the same length");
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(column[i]);
  }
  for (const std::string& name : a.header)
    if (name.empty() || name.find('\r') != std::string::npos) return 0;  // not to be written
  const io::CsvTable b = io::parse_csv(io::csv_bytes(a.header, rows), "written", io::EmptyCell::nan);
  fuzz::require(a.header == b.header && a.columns.size() == b.columns.size(), "the names read back the same");
  for (std::size_t k = 0; k < a.columns.size(); ++k)
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const double x = a.columns[k][i], y = b.columns[k][i];
      fuzz::require((std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y)),
                    "the numbers read back the same");
    }
  return 0;
}
