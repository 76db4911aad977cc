// The methods of Langevin experiments: from a configuration to the loop that runs it.
#pragma once

#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/start.hpp"
#include "implicit_diffusion/optimizer/any.hpp"
#include "langevin/configuration.hpp"

#include <functional>
#include <stop_token>

namespace program {

using implicit_diffusion::AnyOptimizer;
using implicit_diffusion::GaussianMixture;
using implicit_diffusion::Noise;
using implicit_diffusion::Outcome;
using implicit_diffusion::Population;
using implicit_diffusion::Potential;
using implicit_diffusion::Reward;
using implicit_diffusion::Workers;

// The potential at a theta.
template <class Real>
Potential<Real> prepared(Potential<Real> potential, std::span<const double> theta) {
  potential.prepare(theta);
  return potential;
}

// Sampler and gradient estimator of the configuration's objective: the sum of its reward, reference and base. Samples
// of the reference are the given ones or, without them, as the configuration says; processes share those that are
// drawn.
implicit_diffusion::LangevinEngine<float> make_engine(const LangevinConfiguration& c, const Potential<float>& potential,
                                                      const implicit_diffusion::LangevinOptions& options,
                                                      const Population<float>* references = nullptr,
                                                      implicit_diffusion::Processes* processes = nullptr);

// Where the chains begin. Throws an Error where the file of the samples is bad.
implicit_diffusion::AnyStart<float> make_start(const LangevinConfiguration& c, std::size_t dimension);

// The data of the reference. Throws an Error where, as a whole, they lie so far from the origin that single precision
// does not resolve the law there.
const Population<float>& reference_data(const LangevinConfiguration& c, const Potential<float>& potential);

// Reads all files that a run needs. Throws an Error where one is bad.
void check_input_files(const LangevinConfiguration& c);

using RunState = implicit_diffusion::State<Population<float>, AnyOptimizer>;
using RunObserver = std::function<void(const RunState&)>;

// How a run ended, and its last state.
struct RunResult {
  RunState state;
  Outcome outcome;
};
// Runs the method of the configuration from its start, or from where `resume` takes the start's state, to its last
// step. Processes share the particles.
RunResult run_method(const LangevinConfiguration& c, Workers* workers, const RunObserver& observe, std::stop_token stop,
                     const std::function<void(RunState&)>& resume = {},
                     implicit_diffusion::Processes* processes = nullptr);

}  // namespace program
