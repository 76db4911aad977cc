#include "experiment/check_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cassert>
#include <cmath>
#include <map>
#include <numbers>
#include <utility>

namespace program {
namespace {

// Larger is further off; what is not a number is furthest.
bool further(double a, double b) { return !std::isnan(b) && (std::isnan(a) || a > b); }

// The coordinate that is furthest off in its unit, with the distance in units as z and the unit as the error.
CheckRow furthest(std::string what, std::span<const double> expected, std::span<const double> got,
                  std::span<const double> unit) {
  const std::size_t n = expected.size();
  assert(got.size() == n && unit.size() == n && n > 0);
  // Nothing is too far from itself, whatever is allowed.
  const auto z = [&](std::size_t j) { return got[j] - expected[j] == 0 ? 0 : (got[j] - expected[j]) / unit[j]; };
  std::size_t worst = 0;
  for (std::size_t j = 1; j < n; ++j)
    if (further(std::abs(z(j)), std::abs(z(worst)))) worst = j;
  return {.what = n == 1 ? std::move(what) : fmt::format("{} [{}]", what, worst + 1),
          .expected = expected[worst],
          .got = got[worst],
          .error = unit[worst],
          .z = z(worst)};
}

constexpr std::array verdict_names{"ok", "OFF", "caught", "left out"};

std::string row_text(const std::string& problem, const CheckRow& r) {
  const std::string begin = fmt::format("{:<18.18} {:<39.39}", problem, r.what);
  const char* verdict = verdict_names[static_cast<std::size_t>(r.verdict)];
  if (r.verdict == Verdict::left_out) return fmt::format("{} {}: {}\n", begin, verdict, r.reason);
  const std::string z = r.z ? fmt::format("{:.2f}", *r.z) : "";
  const std::string allowed = r.z ? fmt::format("{:.1f}", r.allowed) : fmt::format("{:.0e}", r.allowed);
  return fmt::format("{}{:>13.6g}{:>13.6g}{:>9.1e}{:>9}{:>8} {}\n", begin, r.expected, r.got, r.error, z, allowed,
                     verdict);
}

}  // namespace

CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got,
                 std::span<const double> allowed) {
  CheckRow row = furthest(std::move(what), expected, got, allowed);
  row.verdict = std::abs(*row.z) <= 1 ? Verdict::ok : Verdict::off;
  row.z.reset();
  row.allowed = row.error;
  row.error = std::abs(row.got - row.expected);
  return row;
}

CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got, double allowed) {
  return compare(std::move(what), expected, got, std::vector<double>(expected.size(), allowed));
}

CheckRow compare_means(std::string what, std::span<const double> expected, std::span<const double> got,
                       std::span<const double> standard_errors) {
  CheckRow row = furthest(std::move(what), expected, got, standard_errors);
  row.allowed = largest_z;
  row.verdict = std::abs(*row.z) <= largest_z ? Verdict::ok : Verdict::off;
  row.by_chance = expected.size();
  return row;
}

CheckRow must_be_off(CheckRow row) {
  row.verdict = row.verdict == Verdict::off && std::isfinite(row.got) ? Verdict::caught : Verdict::off;
  row.by_chance = 0;
  return row;
}

CheckRow left_out(std::string what, std::string reason) {
  return {.what = std::move(what), .verdict = Verdict::left_out, .reason = std::move(reason)};
}

std::string check_table(std::span<const CheckedProblem> problems) {
  std::string text = fmt::format("{:<18} {:<39}{:>13}{:>13}{:>9}{:>9}{:>8} {}\n", "problem", "check", "expected", "got",
                                 "error", "z", "allowed", "verdict");
  std::map<Verdict, std::size_t> count;
  std::size_t random = 0;
  for (const CheckedProblem& problem : problems)
    for (const CheckRow& row : problem.rows) {
      text += row_text(problem.name, row);
      ++count[row.verdict];
      random += row.by_chance;
    }
  text +=
      fmt::format("{} ok, {} OFF, {} deliberate error{} caught, {} left out", count[Verdict::ok], count[Verdict::off],
                  count[Verdict::caught], count[Verdict::caught] == 1 ? "" : "s", count[Verdict::left_out]);
  if (random > 0)
    text += fmt::format("; chance alone puts one of the {} random values off for about one seed in {:.0f}", random,
                        1 / (static_cast<double>(random) * std::erfc(largest_z / std::numbers::sqrt2)));
  return text + "\n";
}

std::optional<std::string> what_is_off(std::span<const CheckedProblem> problems) {
  std::size_t checks = 0;
  std::vector<std::string> off;
  for (const CheckedProblem& problem : problems)
    for (const CheckRow& row : problem.rows) {
      if (row.verdict != Verdict::left_out) ++checks;
      if (row.verdict == Verdict::off)
        off.push_back(fmt::format("{} ({})", problem.name, row.what.substr(row.what.find_first_not_of(' '))));
    }
  if (off.empty()) return std::nullopt;
  return fmt::format("{} of {} checks {} off: {}", off.size(), checks, off.size() == 1 ? "is" : "are",
                     fmt::join(off, ", "));
}

void BatchMeans::add(std::span<const double> batch) {
  assert(batch.size() == mean_.size());
  ++batches_;
  for (std::size_t j = 0; j < mean_.size(); ++j) {
    const double before = batch[j] - mean_[j];
    mean_[j] += before / static_cast<double>(batches_);
    squares_[j] += before * (batch[j] - mean_[j]);
  }
}

std::vector<double> BatchMeans::standard_error() const {
  const auto n = static_cast<double>(batches_);
  std::vector<double> errors;
  for (const double s : squares_) errors.push_back(std::sqrt(s / (n - 1) / n));
  return errors;
}

std::uint64_t problem_seed(std::uint64_t seed, std::string_view problem) {
  std::uint64_t mixed = 0xcbf29ce484222325 ^ seed;
  for (const char letter : problem) mixed = (mixed ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return mixed >> 1;
}

}  // namespace program
