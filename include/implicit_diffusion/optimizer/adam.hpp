// Adam (Kingma and Ba, 2015), with its bias corrections:
//
//     m <- b1 m + (1 - b1) g          v <- b2 v + (1 - b2) g^2
//     theta <- theta - eta_k (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps),     t = 1, 2, ...
//
// Its first step is eta_0 sign(g) whatever the size of g. The moments belong to the state of a run.
#pragma once

#include "implicit_diffusion/optimizer/schedule.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct AdamOptions {
  Schedule rate{.scale = 1e-3};
  double first_decay = 0.9;     // b1
  double second_decay = 0.999;  // b2
  double epsilon = 1e-8;        // keeps a coordinate whose gradient vanishes from dividing by zero
};

class Adam {
 public:
  explicit Adam(AdamOptions options = {}) : options_(options) {}

  void update(std::span<double> theta, std::span<const double> gradient, std::int64_t step) {
    first_.resize(theta.size());  // allocates on the first call only
    second_.resize(theta.size());
    first_power_ *= options_.first_decay;
    second_power_ *= options_.second_decay;
    const double eta = options_.rate(step);
    for (std::size_t j = 0; j < theta.size(); ++j) {
      first_[j] = options_.first_decay * first_[j] + (1.0 - options_.first_decay) * gradient[j];
      second_[j] = options_.second_decay * second_[j] + (1.0 - options_.second_decay) * gradient[j] * gradient[j];
      const double mean = first_[j] / (1.0 - first_power_);
      const double scale = std::sqrt(second_[j] / (1.0 - second_power_)) + options_.epsilon;
      theta[j] -= eta * mean / scale;
    }
  }

  // All that it remembers, for a checkpoint: b1^t, b2^t, m, v.
  std::vector<double> memory() const {
    std::vector<double> numbers{first_power_, second_power_};
    numbers.insert(numbers.end(), first_.begin(), first_.end());
    numbers.insert(numbers.end(), second_.begin(), second_.end());
    return numbers;
  }
  // False where the numbers are not of this kind, for p parameters.
  bool restore(std::span<const double> numbers, std::size_t p) {
    if (numbers.size() != 2 && numbers.size() != 2 + 2 * p) return false;
    first_power_ = numbers[0];
    second_power_ = numbers[1];
    const auto moments = numbers.subspan(2);
    first_.assign(moments.begin(), moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 2));
    second_.assign(moments.begin() + static_cast<std::ptrdiff_t>(moments.size() / 2), moments.end());
    return true;
  }

 private:
  AdamOptions options_;
  std::vector<double> first_, second_;             // m and v, zero at the start
  double first_power_ = 1.0, second_power_ = 1.0;  // b1^t and b2^t
};

}  // namespace implicit_diffusion
