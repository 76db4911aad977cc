// Whether numbers can be trusted: what a finite batch and a finite run show of themselves.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// How much of a mean, or of its variance, rests on a few of n contributions. `squares` are their squared norms.
struct Concentration {
  // Of the sum of the squares, the part of the largest hundredth (of one sample at least): 0.01 where all are alike,
  // 0.085 for normal numbers, near 1 where a few are nearly all. Then the mean of a batch is not what it seems:
  // its standard error cannot be told from the batch, and most batches have none of the samples that count.
  double tail_share;
  // (sum)^2 / (sum of their squares): n where all are alike, n / 3 for normal numbers, 1 where one is all.
  double effective_samples;
};
// Both are 0 where there is nothing to share.
Concentration concentration(std::span<const double> squares);
// The squared distances of vectors of one size from their mean.
std::vector<double> squared_deviations(std::span<const std::vector<double>> vectors);

// Whether a series, such as the objective over a run, still goes somewhere at its end. It is cut into tenths.
struct Trend {
  double change;          // from the mean of the last tenth but one to the mean of the last
  double total;           // the largest less the smallest among the first value and the means of the tenths
  double standard_error;  // of the change, if what neighbours scatter by is independent noise
  bool steady;            // the means of the last five tenths rise, or fall, all the way
};
// Nothing for fewer than 20 values that are finite; the others are passed by.
std::optional<Trend> final_trend(std::span<const double> series);

}  // namespace implicit_diffusion
