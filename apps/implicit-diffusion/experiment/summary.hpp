// The figures of a run at its end, and summary.json, which holds them: JSON, with numbers that may not be there.
#pragma once

#include "experiment/common.hpp"

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace program {

using Json = nlohmann::ordered_json;

// Null where it is not finite, or not there.
Json json_number(double v);
// The memory that this process took at most.
double peak_memory_bytes();
template <class T>
Json json_number(const std::optional<T>& v) {
  return v ? Json(*v) : Json(nullptr);
}

// NaN where a row has no such number.
double number_or_nan(const Json& row, const char* key);

// The figures of one state, each NaN where it has no meaning.
struct Figures {
  static constexpr double none = std::numeric_limits<double>::quiet_NaN();

  double reward = none;               // mean over the population; -exact_kl where the objective is a reference alone
  double exact_reward = none;         // E R under pi*(theta)
  double exact_kl = none;             // KL(reference || pi*(theta))
  double log_likelihood = none;       // mean of -V(x, theta_opt)
  double base_kl = none;              // KL(pi*(theta) || base)
  double data_log_likelihood = none;  // mean of log pi*(theta) over reference data
};

// What files, tables and reports call the figures, the decimals they have there, and what they are. One of a part that
// few objectives have is in metrics.csv only where the part is, and in summary.json only where it is a number.
struct FigureName {
  double Figures::*value;
  const char *key, *label, *title;
  int digits;
  const char* note;
  bool of_a_part = false;
};
inline constexpr FigureName figure_names[] = {
    {&Figures::reward, "reward", "reward", "Reward", 4, "mean over the samples"},
    {&Figures::exact_reward, "exact_reward", "exact reward", "Exact reward", 4, "mean under π*(θ), in closed form"},
    {&Figures::exact_kl, "exact_kl", "exact KL", "KL divergence", 5, "from the reference, in nats, by quadrature"},
    {&Figures::log_likelihood, "log_likelihood", "log-likelihood", "Log-likelihood", 3,
     "mean of −V(x,\u00a0θ_opt), in nats"},
    {&Figures::base_kl, "base_kl", "KL to the base", "KL divergence to the base", 5,
     "of π*(θ) from the base, in nats, by quadrature", true},
    {&Figures::data_log_likelihood, "data_log_likelihood", "data log-likelihood", "Data log-likelihood", 4,
     "mean of log π*(θ), in nats", true}};

// When the log-likelihood reached a threshold; none: never.
struct Reached {
  std::string threshold;
  std::optional<std::int64_t> step, gradient_evaluations;
};

// A reason not to trust the result of a run that came to its end (experiment/warnings.hpp).
struct Warning {
  std::string kind, message;
};

struct Summary {
  std::string experiment, method;
  std::uint64_t seed = 0;
  std::int64_t steps = 0;
  std::string status;  // completed, interrupted, diverged
  std::vector<double> theta;
  Figures figures;
  std::vector<Reached> reached;  // in the order of the configuration
  std::int64_t gradient_evaluations = 0;
  double seconds = 0;
  std::uint64_t threads = 1, processes = 1;
  std::string isa;                                      // the level of the kernels
  std::optional<std::vector<std::size_t>> permutation;  // learnt components of a mixture to those of the target
  std::vector<Warning> warnings;
  Json more = Json::object();  // keys of the experiment's own
};

// The beginning of one: experiment, seed, and what it runs on.
Summary summary_of(const Common& c, std::size_t threads);

// The summary over repeats: means of the figures, sums of the work, the first status that is not `completed` (or
// `diverged`, if there is one). What belongs to a single run is empty.
Summary summary_over(const std::vector<Summary>& runs);

// summary.json of one run, and of repeats: the summary over them, the seeds, and the summary of each.
std::string to_json(const Summary& s);
std::string to_json(const Summary& over, const std::vector<Summary>& runs);

// The warnings of a summary; none where it has no list of them.
std::vector<Warning> read_warnings(const Json& summary);

// What reports need of the summary.json of one run. Throws a data Error that begins with `where` unless it is an object
// with a status; figures that are missing are NaN, and texts empty.
Summary read_summary(const std::string& text, const std::string& where);

// A summary as a message to another process, and back: all of it.
std::string pack(const Summary& s);
Summary unpack_summary(const std::string& message);

// The seconds of a run that was interrupted, from its folder; 0 where there is no telling.
double seconds_so_far(const std::filesystem::path& folder);

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

// A figure as people read it: with an exponent where it is huge, "-" where there is none.
std::string figure_text(double v, int digits);

}  // namespace program
