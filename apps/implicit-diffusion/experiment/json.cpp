#include "experiment/json.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace program {

Json json_number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

double number_or_nan(const Json& row, const char* key) {
  if (!row.is_object()) return std::numeric_limits<double>::quiet_NaN();
  const auto at = row.find(key);
  return at != row.end() && at->is_number() ? at->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

SummaryFile::SummaryFile(const std::filesystem::path& file)
    : where_(implicit_diffusion::io::display(file)),
      json_(Json::parse(implicit_diffusion::io::read_file(file), nullptr, false)) {
  if (!json_.is_object()) refuse(json_.is_discarded() ? "not JSON" : "not a JSON object");
}

const Json& SummaryFile::rows(const char* key) const {
  const auto at = json_.find(key);
  if (at == json_.end() || !at->is_array()) refuse(fmt::format("{}: missing, or not an array", key));
  return *at;
}

double SummaryFile::number(const Json& row, const char* key) const {
  if (!row.is_object() || !row.contains(key) || !row[key].is_number())
    refuse(fmt::format("a row has no number {}", key));
  return row[key].get<double>();
}

std::vector<double> SummaryFile::numbers(const Json& row, const char* key) const {
  if (!row.is_object() || !row.contains(key) || !row[key].is_array()) refuse(fmt::format("a row has no array {}", key));
  std::vector<double> v;
  for (const Json& x : row[key]) {
    if (!x.is_number()) refuse(fmt::format("{} has something that is not a number", key));
    v.push_back(x.get<double>());
  }
  return v;
}

void SummaryFile::refuse(const std::string& what) const {
  throw implicit_diffusion::Error(implicit_diffusion::ErrorKind::data, where_, what);
}

}  // namespace program
