// A diffusion of a mixture: products of its score, the adjoint of its chain, and the path KL against the likelihoods of
// its steps.
#include "denoising_mixture/experiment.hpp"

#include "implicit_diffusion/denoising/check.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

// The chain of an experiment on fewer steps, between the base and a theta that is not its own.
template <class Real>
struct Chain {
  MixtureModel model;
  std::vector<double> base, theta;
  ReverseChain<Real> chain;
  LinearReward reward;

  Chain(const DenoisingConfiguration& c, std::size_t steps)
      : model(c.model()),
        base(model.parameters_of(c.base)),
        theta(model.parameters_of(c.tilted())),
        chain(model.template score<Real>(), c.grid(steps),
              {.dynamics = c.dynamics, .normals = normals_of<Real>(Noise(c.seed))},
              std::pair{model.template score<Real>(), base}),
        reward{c.direction} {
    // Near the optimum, and away from the base where that is the optimum: there nothing could be off.
    for (std::size_t j = 0; j < theta.size(); ++j) theta[j] += 0.1 * std::sin(static_cast<double>(j + 1));
  }

  PathBatch<Real> sample(const DenoisingConfiguration& c, const std::vector<double>& at, std::size_t n) {
    PathBatch<Real> b;
    b.points = Population<Real>(n, model.dimension());
    DenoisingStart<Real>{Noise(c.seed)}.draw(b, 0);
    DenoisingSampler<Real>(chain).advance(b, at, {});
    return b;
  }
  std::vector<double> gradient(const DenoisingConfiguration& c, const PathBatch<Real>& b, double beta) {
    std::vector<double> g(model.parameters());
    PathGradient<Real>(chain, reward, {c.lambda, beta}).estimate(b, theta, 0, g);
    return g;
  }
};

// The log of the ratio of the densities of a sample's steps under theta and under the base, from the steps' means
// alone.
std::vector<double> log_ratios(Chain<double>& x, const PathBatch<double>& b) {
  std::vector<double> ratios(b.points.size(), 0.0);
  ScoreModel<double> frozen = x.model.score<double>();
  frozen.prepare(x.base, x.chain.grid());
  x.chain.prepare(x.theta);
  const std::size_t d = x.model.dimension();
  for (std::size_t n = 0; n < x.chain.steps(); ++n) {
    StepCoefficients c = x.chain.coefficients(n);
    const double variance = c.noise * c.noise;
    c.noise = 0;
    for (std::size_t k = 0; k < b.points.blocks(); ++k) {
      const Block<const double> from = b.path[n].block(k),
                                to = (n + 1 < x.chain.steps() ? b.path[n + 1] : b.points).block(k);
      BlockArray<double> mean(d), other(d);
      x.chain.model().score.forward(n, nullptr,
                                    {c, from, {mean.data(), block_size, from.size, d, from.first}, nullptr, nullptr});
      frozen.forward(n, nullptr, {c, from, {other.data(), block_size, from.size, d, from.first}, nullptr, nullptr});
      for (std::size_t i = 0; i < from.size; ++i)
        for (std::size_t j = 0; j < d; ++j) {
          const double y = to.data[j * to.stride + i], a = y - mean[j * block_size + i],
                       o = y - other[j * block_size + i];
          ratios[from.first + i] += (o * o - a * a) / (2 * variance);
        }
    }
  }
  return ratios;
}

std::vector<CheckRow> check_denoising_mixture(DenoisingConfiguration c) {
  std::vector<CheckRow> rows;
  constexpr std::size_t few_steps = 32, few = 48;
  Chain<double> exact(c, few_steps);

  double state = 0, parameter = 0;
  for (const double tau : {0.02, 0.3, 1.5}) {
    const ScoreCheck check = exact.model.with([&](const auto& m) { return check_score_model(m, exact.theta, tau); });
    state = std::max(state, check.state_error);
    parameter = std::max(parameter, check.parameter_error);
  }
  rows.push_back(compare("score, products with states", std::vector{0.0}, std::vector{state}, 1e-6));
  rows.push_back(compare("score, products with theta", std::vector{0.0}, std::vector{parameter}, 1e-6));

  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode}) {
    c.dynamics = dynamics;
    const std::string name = dynamics == Dynamics::euler_sde ? "SDE" : "ODE";
    Chain<double> chain(c, few_steps);
    const PathBatch<double> b = chain.sample(c, chain.theta, few);
    const std::vector<double> adjoint = chain.gradient(c, b, c.beta);
    std::vector<double> differences;
    double size = 0;
    for (std::size_t j = 0; j < adjoint.size(); ++j) {
      constexpr double h = 1e-5;
      std::vector<double> up = chain.theta, down = chain.theta;
      up[j] += h;
      down[j] -= h;
      const auto value = [&](const std::vector<double>& at) {
        return objective_of<double>(chain.sample(c, at, few), chain.reward, {c.lambda, c.beta}).value;
      };
      differences.push_back((value(up) - value(down)) / (2 * h));
      size = std::max(size, std::abs(differences.back()));
    }
    rows.push_back(compare("adjoint of the " + name + ", differences", differences, adjoint, 1e-6 * size));
    rows.push_back(
        must_be_off(compare("  with half of beta", differences, chain.gradient(c, b, c.beta / 2), 1e-6 * size)));
    Chain<float> single(c, few_steps);
    rows.push_back(compare("  in single precision", adjoint,
                           single.gradient(c, single.sample(c, single.theta, few), c.beta), 1e-4 * size));
  }

  // E log(p / p_base) = E U for the steps with noise, and E (p_base / p) = 1.
  c.dynamics = Dynamics::euler_sde;
  Chain<double> chain(c, few_steps);
  constexpr std::size_t many = 4000;
  const PathBatch<double> b = chain.sample(c, chain.theta, many);
  const std::vector<double> ratios = log_ratios(chain, b);
  BatchMeans means(2), wrong(1);
  for (std::size_t i = 0; i < many; ++i) {
    means.add(std::array{ratios[i] - b.penalty[i], std::exp(-ratios[i])});
    wrong.add(std::array{ratios[i] - 4 * b.penalty[i]});
  }
  rows.push_back(compare_means("path KL against likelihoods", std::vector{0.0}, std::vector{means.mean()[0]},
                               std::vector{means.standard_error()[0]}));
  rows.push_back(
      must_be_off(compare_means("  without the factor 1/4", std::vector{0.0}, wrong.mean(), wrong.standard_error())));
  return rows;
}

}  // namespace

std::vector<Problem> DenoisingMixtureExperiment::checks() const {
  return {{configuration().experiment, [c = configuration().single] { return check_denoising_mixture(c); }}};
}

}  // namespace program
