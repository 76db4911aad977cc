// A queue of samples on the denoising diffusion that can be solved.
#pragma once

#include "implicit_diffusion/denoising/gaussian_theory.hpp"
#include "implicit_diffusion/loop/state.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

namespace program {

// One queue of samples without warm start (Algorithm 7), for 2 M steps.
struct SampledQueue {
  std::vector<double> theta;  // after 0, 1, ... steps
  implicit_diffusion::Outcome outcome;
  std::int64_t evaluations = 0;  // of the score, each of a batch
};
SampledQueue sampled_queue(const implicit_diffusion::GaussianDenoising& model, int slots, std::int64_t batch,
                           std::uint64_t seed, std::stop_token stop = {},
                           const std::function<void(std::int64_t step)>& observe = {});
// A seed for each loop of an experiment: loops are independent of each other.
std::uint64_t loop_seed(std::uint64_t seed, std::size_t setting, std::size_t repeat);

}  // namespace program
