// What `check` compares, a function for each family of problems. Every row is a comparison (check_rows.hpp); all noise is a function of
// the seed.
#pragma once

#include "denoising_gaussian/denoising_gaussian.hpp"
#include "denoising_mixture/denoising_mixture.hpp"
#include "experiment/check_rows.hpp"
#include "finite_state/finite_state.hpp"
#include "langevin/configuration.hpp"

#include <cstdint>
#include <vector>

namespace program {

// A Langevin experiment: derivatives, the sampling step, the gradient estimators of its objective, its baselines. Reads the files the
// experiment names, and throws the Error that a run would.
std::vector<CheckRow> check_langevin(const Configuration& c);

// The gradient estimators of its objective alone.
std::vector<CheckRow> check_gradients(const Configuration& c);

// Fixed problems on finite sets.
std::vector<CheckRow> check_gibbs(std::uint64_t seed);
std::vector<CheckRow> check_softmax_chain(std::uint64_t seed);
std::vector<CheckRow> check_ring(std::uint64_t seed);

// The ring of a finite-state experiment, at its first theta.
std::vector<CheckRow> check_finite_state(const FiniteStateConfiguration& c);

// The mean-field recursion that the rates of the theorems are measured on.
std::vector<CheckRow> check_rates();

// Reverse chains: the order of each kind of step, and a small diffusion with all its numbers.
std::vector<CheckRow> check_chains();

// A queue of samples on the denoising diffusion that can be solved.
std::vector<CheckRow> check_denoising_gaussian(const DenoisingGaussianConfiguration& c);

// A diffusion of a mixture, at the parameters of its tilted law.
std::vector<CheckRow> check_denoising_mixture(const DenoisingExperiment& e);

}  // namespace program
