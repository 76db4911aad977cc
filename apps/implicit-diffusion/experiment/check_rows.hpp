// Comparisons: what was expected, what was got, and a verdict. There are two kinds.
//
// Numbers that may differ by rounding and truncation alone are allowed a distance:
//
//     |got - expected| <= allowed
//
// Means of random numbers have a standard error s, and are allowed 4.5 of it, either way:
//
//     z = (got - expected) / s,    |z| <= 4.5        a right one is off for one seed in 150,000
//
// A check that cannot fail says nothing. So something that is known to be wrong is compared too, and must be off.
//
// Of a vector the coordinate that is furthest off is shown. What is not a number is off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace program {

enum class Verdict { ok, off, caught, left_out };

struct CheckRow {
  std::string what;
  double expected = 0, got = 0;
  double error = 0;           // |got - expected|, or the standard error of what was got
  std::optional<double> z{};  // of a mean
  double allowed = 0;         // for the error, or for |z|
  Verdict verdict = Verdict::ok;
  std::string reason{};       // for leaving it out
  std::size_t by_chance = 0;  // random numbers that might be off though right
};

// One seed in 150,000, two-sided.
inline constexpr double largest_z = 4.5;

CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got,
                 std::span<const double> allowed);
CheckRow compare(std::string what, std::span<const double> expected, std::span<const double> got, double allowed);
CheckRow compare_means(std::string what, std::span<const double> expected, std::span<const double> got,
                       std::span<const double> standard_errors);

// The comparison of something wrong: off becomes caught, ok becomes off.
CheckRow must_be_off(CheckRow row);

CheckRow left_out(std::string what, std::string reason);

// The rows of a problem.
struct CheckedProblem {
  std::string name;
  std::vector<CheckRow> rows;
};

// All rows, a line each, below a heading; and a line that counts them, with the share of seeds for which some are off
// by chance.
std::string check_table(std::span<const CheckedProblem> problems);
// How many are off, and which; nothing where none is.
std::optional<std::string> what_is_off(std::span<const CheckedProblem> problems);

// The noise of each problem is its own, so that rows of different problems are independent.
std::uint64_t problem_seed(std::uint64_t seed, std::string_view problem);

// Means of a few numbers over batches that are independent of each other, and their standard errors.
class BatchMeans {
 public:
  explicit BatchMeans(std::size_t numbers) : mean_(numbers), squares_(numbers) {}

  void add(std::span<const double> batch);
  const std::vector<double>& mean() const { return mean_; }
  std::vector<double> standard_error() const;

 private:
  std::size_t batches_ = 0;
  std::vector<double> mean_, squares_;  // squares of deviations from the mean, summed
};

}  // namespace program
