// Names become types: the parts that a configuration describes, and the loop that its method means.
#pragma once

#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "langevin/configuration.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

namespace program {

using implicit_diffusion::Noise;
using implicit_diffusion::Outcome;
using implicit_diffusion::Population;
using implicit_diffusion::Potential;
using implicit_diffusion::Reward;
using implicit_diffusion::Workers;

// For Real float, which runs use, and double, which they are checked with.
template <class Real = float>
Potential<Real> make_potential(const PotentialSpec& spec);
template <class Real = float>
Reward<Real> make_reward(const RewardSpec& spec);

// Sampler and gradient estimator of the configuration's objective: the sum of its reward, reference and base.
implicit_diffusion::LangevinEngine<float> make_engine(const Configuration& c, const Potential<float>& potential,
                                                      const implicit_diffusion::LangevinOptions& options);

// Calls `refuse` with a key and a reason where the run would not fit into this machine's memory, before anything is
// allocated.
void check_size(const Configuration& c, std::size_t dimension, std::size_t parameters,
                const std::function<void(std::string_view key, const std::string& reason)>& refuse);

// Far from the origin single-precision numbers are far apart: a complaint where that is more, at v, than a hundredth of a
// standard deviation.
std::optional<std::string> too_far(double v, double deviation);

// Where chains begin: a Gaussian, or the samples of a file.
class Start {
 public:
  Start(const StartSpec& spec, std::size_t particles, std::size_t dimension, Noise noise);
  void draw(Population<float>& x, std::int64_t round) const;

 private:
  StartSpec spec_;
  std::optional<Population<float>> samples_;
  Noise noise_;
};

// Samples of a file as a population. Throws an Error unless it has `dimension` columns.
Population<float> read_population(const std::filesystem::path& path, std::size_t dimension);

// The data of a reference. Throws an Error too where, as a whole, it lies so far from the origin that single precision
// does not resolve the law there.
Population<float> read_reference_data(const Configuration& c, const Potential<float>& potential);

// The optimizer a configuration names.
struct AnyOptimizer {
  std::variant<implicit_diffusion::Hold, implicit_diffusion::GradientDescent, implicit_diffusion::Adam> choice;
  void update(std::vector<double>& theta, const std::vector<double>& gradient, std::int64_t step) {
    std::visit([&](auto& o) { o.update(theta, gradient, step); }, choice);
  }
  // What it remembers, for a checkpoint. Restoring says false where the numbers are not its own.
  std::vector<double> memory() const;
  bool restore(std::span<const double> numbers, std::size_t parameters);
};

using RunState = implicit_diffusion::State<Population<float>, AnyOptimizer>;
using RunObserver = std::function<void(const RunState&)>;

// Runs the method of the configuration from its start, or from where `resume` takes the start's state, to its last step.
struct RunResult {
  RunState state;
  Outcome outcome;
};
RunResult run_method(const Configuration& c, Workers* workers, const RunObserver& observe, std::stop_token stop,
                     const std::function<void(RunState&)>& resume = {});

// False for the methods that sample alone.
bool moves_theta(Method method);

// Sampling steps, that is batch evaluations of grad_x V, in one outer step.
std::int64_t gradient_evaluations_per_step(const Configuration& c);

}  // namespace program
