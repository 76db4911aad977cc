// What a denoising diffusion costs: calls of its models, each for a whole batch of samples.
//
// A vector-Jacobian product includes the score at its point, which it is made with; an evaluation is a score alone. In
// T steps, with whole paths kept, samples are made by T evaluations and their gradient by T products; a frozen model
// adds an evaluation at each point for the path KL, and a product for its gradient.
#pragma once

#include <cstdint>

namespace implicit_diffusion {

struct DenoisingCost {
  std::uint64_t evaluations = 0, products = 0;                // of the model
  std::uint64_t frozen_evaluations = 0, frozen_products = 0;  // of the frozen one

  friend bool operator==(const DenoisingCost&, const DenoisingCost&) = default;
  friend DenoisingCost operator+(const DenoisingCost& a, const DenoisingCost& b) {
    return {a.evaluations + b.evaluations, a.products + b.products, a.frozen_evaluations + b.frozen_evaluations,
            a.frozen_products + b.frozen_products};
  }
  // What came after b.
  friend DenoisingCost operator-(const DenoisingCost& a, const DenoisingCost& b) {
    return {a.evaluations - b.evaluations, a.products - b.products, a.frozen_evaluations - b.frozen_evaluations,
            a.frozen_products - b.frozen_products};
  }
};

}  // namespace implicit_diffusion
