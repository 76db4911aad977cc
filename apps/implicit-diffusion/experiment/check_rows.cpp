#include "experiment/check_rows.hpp"

#include <fmt/format.h>

#include <fmt/ranges.h>
#include <algorithm>

#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

namespace program {
namespace {

// Larger is further off; what is not a number is furthest.
bool further(double a, double b) { return !std::isnan(b) && (std::isnan(a) || a > b); }

// The coordinate with the largest distance(j).
template <class Distance>
std::size_t furthest(std::size_t n, Distance&& distance) {
  std::size_t worst = 0;
  for (std::size_t j = 1; j < n; ++j)
    if (further(distance(j), distance(worst))) worst = j;
  return worst;
}

std::string with_coordinate(std::string what, std::size_t j, std::size_t n) {
  return n == 1 ? std::move(what) : fmt::format("{} [{}]", what, j + 1);
}

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::ok:
      return "ok";
    case Verdict::off:
      return "OFF";
    case Verdict::caught:
      return "caught";
    case Verdict::left_out:
      return "left out";
  }
  return "";
}

std::string row_text(const std::string& problem, const CheckRow& r) {
  const std::string begin = fmt::format("{:<18.18} {:<39.39}", problem, r.what);
  if (r.verdict == Verdict::left_out) return fmt::format("{} {}: {}\n", begin, to_string(r.verdict), r.reason);
  const std::string z = r.z ? fmt::format("{:.2f}", *r.z) : "";
  const std::string allowed = r.z ? fmt::format("{:.1f}", r.allowed) : fmt::format("{:.0e}", r.allowed);
  return fmt::format("{}{:>13.6g}{:>13.6g}{:>9.1e}{:>9}{:>8} {}\n", begin, r.expected, r.got, r.error, z, allowed,
                     to_string(r.verdict));
}

// Nothing is too far from itself, whatever is allowed.
double ratio(double distance, double unit) { return distance == 0 ? 0 : distance / unit; }

}  // namespace

CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got,
                 std::span<const double> allowed) {
  const std::size_t n = expected.size();
  assert(got.size() == n && allowed.size() == n && n > 0);
  const auto excess = [&](std::size_t j) { return ratio(std::abs(got[j] - expected[j]), allowed[j]); };
  const std::size_t j = furthest(n, excess);
  return {.what = with_coordinate(std::move(what), j, n),
          .expected = expected[j],
          .got = got[j],
          .error = std::abs(got[j] - expected[j]),
          .z = std::nullopt,
          .allowed = allowed[j],
          .verdict = excess(j) <= 1 ? Verdict::ok : Verdict::off};
}

CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got, double allowed) {
  return compare(std::move(what), expected, got, std::vector<double>(expected.size(), allowed));
}

CheckRow compare_means(std::string what, std::span<const double> expected, std::span<const double> got,
                       std::span<const double> standard_errors) {
  const std::size_t n = expected.size();
  assert(got.size() == n && standard_errors.size() == n && n > 0);
  const auto z = [&](std::size_t j) { return ratio(got[j] - expected[j], standard_errors[j]); };
  const std::size_t j = furthest(n, [&](std::size_t i) { return std::abs(z(i)); });
  return {.what = with_coordinate(std::move(what), j, n),
          .expected = expected[j],
          .got = got[j],
          .error = standard_errors[j],
          .z = z(j),
          .allowed = largest_z,
          .verdict = std::abs(z(j)) <= largest_z ? Verdict::ok : Verdict::off,
          .reason = {},
          .by_chance = n};
}

CheckRow must_be_off(CheckRow row) {
  row.verdict = row.verdict == Verdict::off && std::isfinite(row.got) ? Verdict::caught : Verdict::off;
  row.by_chance = 0;
  return row;
}

CheckRow left_out(std::string what, std::string reason) {
  CheckRow row;
  row.what = std::move(what);
  row.verdict = Verdict::left_out;
  row.reason = std::move(reason);
  return row;
}

std::string check_table(std::span<const CheckedProblem> problems) {
  std::string text = fmt::format("{:<18} {:<39}{:>13}{:>13}{:>9}{:>9}{:>8} {}\n", "problem", "check", "expected", "got",
                                 "error", "z", "allowed", "verdict");
  for (const CheckedProblem& problem : problems)
    for (const CheckRow& row : problem.rows) text += row_text(problem.name, row);

  const auto count = [&](Verdict verdict) {
    std::ptrdiff_t sum = 0;
    for (const CheckedProblem& problem : problems) sum += std::ranges::count(problem.rows, verdict, &CheckRow::verdict);
    return sum;
  };
  std::size_t random = 0;
  for (const CheckedProblem& problem : problems)
    for (const CheckRow& row : problem.rows) random += row.by_chance;
  text += fmt::format("{} ok, {} OFF, {} wrong caught, {} left out", count(Verdict::ok), count(Verdict::off),
                      count(Verdict::caught), count(Verdict::left_out));
  if (random > 0)
    text += fmt::format("; {} random numbers: one seed in {:.0f} has one off by chance", random,
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
  return fmt::format("{} of {} are off: {}", off.size(), checks, fmt::join(off, ", "));
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
