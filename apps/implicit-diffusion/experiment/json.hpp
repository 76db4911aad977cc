// JSON: numbers that may not be there, to and from summary.json.
#pragma once

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>

namespace program {

using Json = nlohmann::ordered_json;

// Null where it is not finite, or not there.
Json json_number(double v);
template <class T>
Json json_number(const std::optional<T>& v) {
  return v ? Json(*v) : Json(nullptr);
}

// NaN where a row has no such number.
double number_or_nan(const Json& row, const char* key);

// summary.json of a finished run, for its report. Each throws a data Error that names the file.
class SummaryFile {
 public:
  explicit SummaryFile(const std::filesystem::path& file);

  const Json& json() const { return json_; }
  const Json& rows(const char* key) const;                // an array
  double number(const Json& row, const char* key) const;  // of an object
  std::vector<double> numbers(const Json& row, const char* key) const;

 private:
  [[noreturn]] void refuse(const std::string& what) const;

  std::string where_;
  Json json_;
};

}  // namespace program
