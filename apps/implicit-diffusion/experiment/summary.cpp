#include "experiment/summary.hpp"

#include "experiment/warnings.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/simd/isa.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include <sys/resource.h>

namespace program {

using namespace implicit_diffusion;

namespace {

Json json_of(const Summary& s) {
  Json first = Json::object(), evaluations = Json::object();
  for (const Reached& r : s.reached) {
    first[r.threshold] = json_number(r.step);
    evaluations[r.threshold] = json_number(r.gradient_evaluations);
  }
  Json j{{"experiment", s.experiment},
         {"method", s.method.empty() ? Json(nullptr) : Json(s.method)},
         {"seed", s.seed},
         {"steps", s.steps},
         {"status", s.status},
         {"theta", s.theta.empty() ? Json(nullptr) : Json(s.theta)}};
  for (const FigureName& f : figure_names)
    if (!f.of_a_part || std::isfinite(s.figures.*f.value)) j[f.key] = json_number(s.figures.*f.value);
  j["first_step_at"] = std::move(first);
  j["gradient_evaluations_at"] = std::move(evaluations);
  j["gradient_evaluations"] = s.gradient_evaluations < 0 ? Json(nullptr) : Json(s.gradient_evaluations);
  j["seconds"] = s.seconds;
  j["threads"] = s.threads;
  if (s.processes > 1) j["processes"] = s.processes;
  j["isa"] = s.isa;
  j["version"] = IMPLICIT_DIFFUSION_VERSION;
  j["format"] = 1;
  if (s.permutation) j["permutation"] = *s.permutation;
  j["warnings"] = Json::array();
  for (const Warning& w : s.warnings) j["warnings"].push_back({{"kind", w.kind}, {"message", w.message}});
  j.update(s.more);
  return j;
}

// The object that a text holds. Throws a data Error that begins with `where`.
Json parse_object(const std::string& text, const std::string& where) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error(ErrorKind::data, where, json.is_discarded() ? "not JSON" : "not a JSON object");
  return json;
}

// The value of a key; null where there is none, or the row is no object.
const Json* find(const Json& row, const char* key) {
  return row.is_object() && row.contains(key) ? &row[key] : nullptr;
}
// The same, or what stands for one that is missing or of another type.
std::int64_t read_integer(const Json& j, const char* key) {
  const Json* value = find(j, key);
  return value && value->is_number_integer() ? value->get<std::int64_t>() : 0;
}
std::string read_text(const Json& j, const char* key) {
  const Json* value = find(j, key);
  return value && value->is_string() ? value->get<std::string>() : "";
}

}  // namespace

double peak_memory_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return 1024.0 * static_cast<double>(used.ru_maxrss);
}

Json json_number(double v) { return std::isfinite(v) ? Json(v) : Json(nullptr); }

double number_or_nan(const Json& row, const char* key) {
  const Json* number = find(row, key);
  return number && number->is_number() ? number->get<double>() : Figures::none;
}

Summary summary_of(const Common& c, std::size_t threads) {
  Summary s;
  s.experiment = c.experiment;
  s.seed = c.seed;
  s.threads = threads;
  s.isa = to_string(active_isa());
  return s;
}

double seconds_so_far(const std::filesystem::path& folder) {
  std::error_code none;
  if (!std::filesystem::exists(folder / "summary.json", none)) return 0;
  const double seconds = number_or_nan(Json::parse(io::read_file(folder / "summary.json"), nullptr, false), "seconds");
  return std::isfinite(seconds) ? seconds : 0;
}

Summary summary_over(const std::vector<Summary>& runs) {
  Summary over = runs.front();
  over.theta.clear();
  over.reached.clear();
  over.permutation.reset();
  std::vector<NamedWarnings> warnings;
  for (const Summary& r : runs) warnings.push_back({fmt::format("seed {}", r.seed), r.warnings});
  over.warnings = warnings_over(warnings);
  over.gradient_evaluations = 0;
  over.seconds = 0;
  for (const Summary& r : runs) {
    over.gradient_evaluations += r.gradient_evaluations;
    over.seconds += r.seconds;
    if (r.status == "diverged" || over.status == "completed") over.status = r.status;
  }
  for (const FigureName& f : figure_names) {
    double sum = 0;
    for (const Summary& r : runs) sum += r.figures.*f.value;
    over.figures.*f.value = sum / static_cast<double>(runs.size());
  }
  return over;
}

std::string to_json(const Summary& s) { return json_of(s).dump(2) + "\n"; }

std::string to_json(const Summary& over, const std::vector<Summary>& runs) {
  Json j = json_of(over);
  for (const char* key : {"theta", "first_step_at", "gradient_evaluations_at"}) j[key] = nullptr;
  Json seeds = Json::array(), all = Json::array();
  for (const Summary& r : runs) {
    seeds.push_back(r.seed);
    all.push_back(json_of(r));
  }
  j["seeds"] = std::move(seeds);
  j["runs"] = std::move(all);
  return j.dump(2) + "\n";
}

std::vector<Warning> read_warnings(const Json& summary) {
  std::vector<Warning> all;
  if (const Json* warnings = find(summary, "warnings"); warnings && warnings->is_array())
    for (const Json& w : *warnings) all.push_back({read_text(w, "kind"), read_text(w, "message")});
  return all;
}

Summary read_summary(const std::string& text, const std::string& where) {
  const Json j = parse_object(text, where);
  Summary s;
  s.status = read_text(j, "status");
  if (s.status.empty()) throw Error(ErrorKind::data, where, "status: missing, or not a string");
  s.method = read_text(j, "method");
  s.seed = static_cast<std::uint64_t>(read_integer(j, "seed"));
  s.steps = read_integer(j, "steps");
  s.seconds = number_or_nan(j, "seconds");
  for (const FigureName& f : figure_names) s.figures.*f.value = number_or_nan(j, f.key);
  s.warnings = read_warnings(j);
  if (const Json* steps = find(j, "first_step_at")) {
    if (!steps->is_object()) throw Error(ErrorKind::data, where, "first_step_at: not an object");
    for (const auto& [threshold, step] : steps->items())
      s.reached.push_back(
          {threshold, step.is_number_integer() ? std::optional(step.get<std::int64_t>()) : std::nullopt, {}});
  }
  return s;
}

std::string pack(const Summary& s) {
  Summary bare = s;
  bare.more = Json::object();
  return Json{{"summary", json_of(bare)}, {"more", s.more}}.dump();
}

Summary unpack_summary(const std::string& message) {
  const Json all = Json::parse(message);
  const Json& j = all["summary"];
  Summary s = read_summary(j.dump(), "message");
  s.experiment = read_text(j, "experiment");
  if (j["theta"].is_array()) s.theta = j["theta"].get<std::vector<double>>();
  for (Reached& r : s.reached)
    if (const Json& n = j["gradient_evaluations_at"][r.threshold]; n.is_number())
      r.gradient_evaluations = n.get<std::int64_t>();
  s.gradient_evaluations = j["gradient_evaluations"].is_null() ? -1 : j["gradient_evaluations"].get<std::int64_t>();
  s.threads = j["threads"].get<std::uint64_t>();
  s.isa = read_text(j, "isa");
  if (j.contains("permutation")) s.permutation = j["permutation"].get<std::vector<std::size_t>>();
  s.more = all["more"];
  return s;
}

SummaryFile::SummaryFile(const std::filesystem::path& file)
    : where_(io::display(file)), json_(parse_object(io::read_file(file), where_)) {}

const Json& SummaryFile::rows(const char* key) const {
  const Json* rows = find(json_, key);
  if (!rows || !rows->is_array()) refuse(fmt::format("{}: missing, or not an array", key));
  return *rows;
}

double SummaryFile::number(const Json& row, const char* key) const {
  const Json* number = find(row, key);
  if (!number || !number->is_number()) refuse(fmt::format("a row has no number {}", key));
  return number->get<double>();
}

std::vector<double> SummaryFile::numbers(const Json& row, const char* key) const {
  const Json* list = find(row, key);
  if (!list || !list->is_array()) refuse(fmt::format("a row has no array {}", key));
  for (const Json& x : *list)
    if (!x.is_number()) refuse(fmt::format("{} has something that is not a number", key));
  return list->get<std::vector<double>>();
}

void SummaryFile::refuse(const std::string& what) const { throw Error(ErrorKind::data, where_, what); }

std::string figure_text(double v, int digits) {
  if (!std::isfinite(v)) return "-";
  constexpr double longest = 1e9;
  return std::abs(v) < longest ? fmt::format("{:.{}f}", v, digits) : fmt::format("{:.6g}", v);
}

}  // namespace program
