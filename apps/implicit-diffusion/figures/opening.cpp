#include "figures/opening.hpp"

#include "experiment/warnings.hpp"
#include "figures/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace program {

std::optional<Ends> ends_of(const std::vector<double>* column, bool in_nats) {
  if (!column) return std::nullopt;
  std::vector<double> finite;
  for (const double v : *column)
    if (std::isfinite(v)) finite.push_back(v);
  if (finite.empty()) return std::nullopt;
  return Ends{finite.front(), finite.back(), still_moving(finite, in_nats).has_value()};
}

std::string change_text(double from, double to) {
  // What rounding leaves of a zero is a zero.
  const double nothing = 1e-9 * std::min(1.0, std::abs(to - from));
  const auto text = [&](double v) { return four_digits(std::abs(v) < nothing ? 0.0 : v); };
  const std::string a = text(from), b = text(to);
  if (a == b) return "stayed at " + a;
  return fmt::format("{} from {} to {}", to > from ? "rose" : "fell", a, b);
}

std::string change_text(const Ends& e) { return change_text(e.first, e.last); }

std::string percent(double share) {
  constexpr double largest = 99.99;
  const double value = 100 * share;
  const double shown = share < 1 ? std::min(value, largest) : value;
  return minus(fmt::format("{:.{}f}", shown, std::abs(shown) > 99 && share < 1 ? 2 : 0)) + "\u00a0%";
}

double share_of_way(double start, double end, double optimum) { return (end - start) / (optimum - start); }

std::string verdict_of(double share) {
  if (share >= 0.95) return "It worked";
  if (share >= 0.5) return "It got most of the way";
  if (share >= 0.05) return "It got part of the way";
  if (share >= -0.01) return "It has not got anywhere yet";
  return "It did not work";
}

std::string verdict_of_divergence(double first, double last) {
  constexpr double much = 0.5;
  const double share = first > 0 ? share_of_way(first, last, 0) : 0;
  return verdict_of(last > much ? std::min(share, 0.9) : share);
}

std::string paragraph(const std::vector<std::string>& sentences) {
  std::string text;
  for (const std::string& s : sentences)
    if (!s.empty()) text += (text.empty() ? "" : " ") + s;
  return text;
}

std::string how_it_ended(const std::string& status, std::int64_t steps, std::int64_t wanted) {
  if (status == "diverged") return fmt::format("It failed: the run diverged at step {} of {}.", steps + 1, wanted);
  if (status == "interrupted") return fmt::format("It was interrupted after {} of {} steps.", steps, wanted);
  if (steps == 0) return "No step was taken, so what follows is the starting point.";
  return {};
}

std::string repeats_opening(std::span<const RunTable* const> runs) {
  std::vector<std::string> text{
      fmt::format("These are {} independent runs of the same experiment, which differ only in "
                  "the seed of their noise.",
                  runs.size())};
  const auto completed =
      std::ranges::count_if(runs, [](const RunTable* r) { return r->summary.status == "completed"; });
  if (completed < std::ssize(runs))
    text.push_back(completed == 0 ? std::string("None of them completed its steps.")
                                  : fmt::format("Only {} of them completed their steps.", completed));
  // The figure that tells most, and whether less of it is better.
  const std::pair<const char*, bool> figures[] = {
      {"exact_kl", true}, {"exact_reward", false}, {"data_log_likelihood", false}, {"reward", false}};
  for (const auto& [key, less] : figures) {
    std::vector<double> start, end;
    std::size_t better = 0;
    for (const RunTable* run : runs)
      if (const auto ends = ends_of(column(*run, key))) {
        start.push_back(ends->first);
        end.push_back(ends->last);
        if (less ? ends->last < ends->first : ends->last > ends->first) ++better;
      }
    if (end.empty()) continue;
    const auto mean = [](const std::vector<double>& v) {
      double sum = 0;
      for (const double x : v) sum += x;
      return sum / static_cast<double>(v.size());
    };
    const auto* name = std::ranges::find(figure_names, std::string_view(key), &FigureName::key);
    text.push_back(fmt::format("On average the {} {}; it improved in {} of {} runs, which ended between {} and {}.",
                               name->label, change_text(mean(start), mean(end)), better, end.size(),
                               four_digits(std::ranges::min(end)), four_digits(std::ranges::max(end))));
    break;
  }
  text.emplace_back("The spread between the runs shows how much of a result is due to chance.");
  return paragraph(text);
}

}  // namespace program
