// Denoising score matching: a network learns to undo noise, and with that the score of noisy data at all levels.
//
//     x_tau = a x_0 + s eps,     a = e^-tau,     s^2 = 1 - e^-2tau
//
//     loss = |network(x_tau, t(tau)) - target|^2 / d,     target = eps, a eps - s x_0 (v), or -eps / s times s (score)
//
// A network that predicts the score itself is weighted by s^2, |s network + eps|^2 / d, so that every level counts as
// with eps. The minimum over all functions is the conditional mean of the target given x_tau, which is the score but
// for factors (torch/steps.hpp).
//
// Levels follow one of two laws, u uniform in (0, 1):
//
//     cosine      tau = -ln cos(u acos e^-horizon)       the angle of (a, s) is uniform
//     uniform     tau = u horizon                        the Ornstein-Uhlenbeck clock itself
//
// and u is stratified over the batch: sample i of B has u in (i / B, (i + 1) / B). All of it by key: eps from
// (Stream::sampling, round = step), u from (Stream::component, round = step). A source of batches that draws from these
// streams too, as MixtureSampler does, must have another seed: else levels and data are not independent.
#pragma once

#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/torch/steps.hpp"
#include "implicit_diffusion/torch/training.hpp"

#include <functional>

namespace implicit_diffusion {

enum class LevelLaw { cosine, uniform };

struct ScoreMatchingOptions {
  Prediction prediction = Prediction::v;
  LevelLaw law = LevelLaw::cosine;
  double horizon = 4;                           // the largest tau
  std::function<double(double tau)> time = {};  // what the network is told at noise level tau; none: tau
  Noise noise{};
};

// The noise level of u in (0, 1); at least 1e-5, where a prediction still is a score.
double level_at(LevelLaw law, double horizon, double u);

// Throws a usage Error unless the horizon is positive.
SampleLoss score_matching_loss(const ScoreMatchingOptions& options = {});

}  // namespace implicit_diffusion
