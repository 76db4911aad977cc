#include "experiment/summary.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/simd/level.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace program {
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
    if (f.value != &Figures::data_log_likelihood || std::isfinite(s.figures.*f.value))
      j[f.key] = json_number(s.figures.*f.value);
  j["first_step_at"] = std::move(first);
  j["gradient_evaluations_at"] = std::move(evaluations);
  j["gradient_evaluations"] = s.gradient_evaluations < 0 ? Json(nullptr) : Json(s.gradient_evaluations);
  j["seconds"] = s.seconds;
  j["threads"] = s.threads;
  j["isa"] = s.isa;
  j["version"] = IMPLICIT_DIFFUSION_VERSION;
  j["format"] = 1;
  if (s.permutation) j["permutation"] = *s.permutation;
  j.update(s.more);
  return j;
}

// The value of a key, or what stands for one that is missing or of another type.
std::int64_t read_integer(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at != j.end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
}
std::string read_text(const Json& j, const char* key) {
  const auto at = j.find(key);
  return at != j.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

Summary summary_of(const Common& c, std::size_t threads) {
  Summary s;
  s.experiment = c.experiment;
  s.seed = c.seed;
  s.threads = threads;
  s.isa = implicit_diffusion::to_string(implicit_diffusion::active_level());
  return s;
}

double seconds_so_far(const std::filesystem::path& folder) {
  std::error_code none;
  if (!std::filesystem::exists(folder / "summary.json", none)) return 0;
  const Json j = Json::parse(implicit_diffusion::io::read_file(folder / "summary.json"), nullptr, false);
  const double seconds = number_or_nan(j, "seconds");
  return std::isfinite(seconds) ? seconds : 0;
}

Summary summary_over(const std::vector<Summary>& runs) {
  Summary over = runs.front();
  over.theta.clear();
  over.reached.clear();
  over.permutation.reset();
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

Summary read_summary(const std::string& text, const std::string& where) {
  using implicit_diffusion::Error;
  using implicit_diffusion::ErrorKind;
  const Json j = Json::parse(text, nullptr, false);
  if (j.is_discarded()) throw Error(ErrorKind::data, where, "not JSON");
  if (!j.is_object()) throw Error(ErrorKind::data, where, "not a JSON object");
  Summary s;
  s.status = read_text(j, "status");
  if (s.status.empty()) throw Error(ErrorKind::data, where, "status: missing, or not a string");
  s.experiment = read_text(j, "experiment");
  s.method = read_text(j, "method");
  s.seed = static_cast<std::uint64_t>(read_integer(j, "seed"));
  s.steps = read_integer(j, "steps");
  if (const auto at = j.find("theta"); at != j.end() && at->is_array())
    for (const Json& t : *at) s.theta.push_back(t.is_number() ? t.get<double>() : Figures::none);
  for (const FigureName& f : figure_names) s.figures.*f.value = number_or_nan(j, f.key);
  if (const auto at = j.find("first_step_at"); at != j.end()) {
    if (!at->is_object()) throw Error(ErrorKind::data, where, "first_step_at: not an object");
    for (const auto& [threshold, step] : at->items()) {
      s.reached.push_back({threshold, std::nullopt, std::nullopt});
      if (step.is_number_integer()) s.reached.back().step = step.get<std::int64_t>();
    }
  }
  s.gradient_evaluations = read_integer(j, "gradient_evaluations");
  s.seconds = number_or_nan(j, "seconds");
  s.threads = static_cast<std::uint64_t>(read_integer(j, "threads"));
  s.isa = read_text(j, "isa");
  return s;
}

std::string figure_text(double v, int digits) {
  if (!std::isfinite(v)) return "-";
  constexpr double longest = 1e9;
  return std::abs(v) < longest ? fmt::format("{:.{}f}", v, digits) : fmt::format("{:.6g}", v);
}

}  // namespace program
