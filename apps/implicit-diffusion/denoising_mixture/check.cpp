// A diffusion of a mixture: products of its score, the adjoint of its chain, the path KL against the likelihoods of its
// steps, and whether the gradient of a batch can be trusted: how heavy its tails are, and on the line the mean of many
// batches against the exact gradient.
#include "denoising_mixture/exact_gradient.hpp"
#include "denoising_mixture/results.hpp"
#include "denoising_mixture/tails.hpp"

#include "implicit_diffusion/denoising/check.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;

// The chain of an experiment on fewer steps, between the base and a theta that is not its own.
template <class Real>
struct Chain {
  const DenoisingConfiguration& c;
  Dynamics dynamics = Dynamics::euler_sde;
  MixtureModel model = c.model();
  std::vector<double> base = model.parameters_of(c.base), theta = away_from(model.parameters_of(c.tilted()));
  ReverseChain<Real> chain{model.template score<Real>(),
                           c.grid(32),
                           {.dynamics = dynamics, .normals = normals_of<Real>(Noise(c.seed))},
                           std::pair{model.template score<Real>(), base}};
  LinearReward reward{c.direction};

  // Near the optimum, and away from the base where that is the optimum: there nothing could be off.
  static std::vector<double> away_from(std::vector<double> optimum) {
    for (std::size_t j = 0; j < optimum.size(); ++j) optimum[j] += 0.1 * std::sin(static_cast<double>(j + 1));
    return optimum;
  }
  // From starts that are so much larger.
  PathBatch<Real> sample(const std::vector<double>& at, std::size_t n, double larger = 0) {
    PathBatch<Real> b;
    b.points = Population<Real>(n, model.dimension());
    DenoisingStart<Real>{Noise(c.seed)}.draw(b, 0);
    if (larger != 0)
      for (std::size_t j = 0; j < model.dimension(); ++j)
        for (Real& y : b.points.coordinate(j)) y *= static_cast<Real>(1 + larger);
    DenoisingSampler<Real>(chain).advance(b, at, {});
    return b;
  }
  std::vector<double> gradient(const PathBatch<Real>& b, double beta) {
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

// On the chain of a run, or of 256 steps where that has more.
void check_gradient_of_batches(const DenoisingConfiguration& c, const std::vector<double>& theta,
                               std::vector<CheckRow>& rows) {
  const std::size_t steps = std::min<std::size_t>(256, static_cast<std::size_t>(c.steps_per_sample));
  const std::vector zero{0.0};
  const double share = gradient_concentration(c, theta, steps, 1000).tail_share;
  rows.push_back(compare("gradient, share of its largest 1 %", zero, std::vector{share}, largest_tail_share));

  const char* const what = "gradient of 100 batches, exact density";
  if (c.base.dimension() != 1) return;
  if (c.dynamics != Dynamics::euler_sde) {
    rows.push_back(left_out(what, "the ODE has no density to propagate"));
    return;
  }
  if (share > largest_tail_share) {  // any mean would do
    rows.push_back(left_out(what, "batches do not show their standard error"));
    return;
  }
  const TimeGrid grid = c.grid(steps);
  const std::optional<std::vector<double>> exact = exact_gradient(c, grid, theta);
  if (!exact) {
    rows.push_back(left_out(what, "components pass into one another too narrowly for a grid"));
    return;
  }
  constexpr std::size_t batches = 100, size = 500;
  const Noise noise(c.seed);
  const MixtureModel model = c.model();
  ReverseChain<float> chain(model.score<float>(), grid, {.normals = normals_of<float>(noise)},
                            std::pair{model.score<float>(), model.parameters_of(c.base)});
  PathGradient<float> gradient(chain, LinearReward{c.direction}, {c.lambda, c.beta});
  PathBatch<float> b = PathBatch<float>::of(Population<float>(size, 1));
  BatchMeans means(theta.size());
  std::vector<double> g(theta.size());
  for (std::size_t k = 0; k < batches; ++k) {
    DenoisingStart<float>{noise}.draw(b, static_cast<std::int64_t>(k));
    gradient.sample_and_estimate(b, theta, {}, g);
    means.add(g);
  }
  const std::vector<double> errors = means.standard_error();
  rows.push_back(compare_means(what, *exact, means.mean(), errors));
  const char* const wrong = "  1.1 times the estimate";
  std::vector<double> more = means.mean();
  double seen = 0;
  for (std::size_t j = 0; j < more.size(); ++j) {
    seen = std::max(seen, 0.1 * std::abs((*exact)[j]) / errors[j]);
    more[j] *= 1.1;
  }
  rows.push_back(seen > 2 * largest_z ? must_be_off(compare_means(wrong, *exact, more, errors))
                                      : left_out(wrong, "a tenth is too little to be seen"));
}

// A central difference, and how far off it may be.
struct Quotient {
  double value, error;
};

// A path that passes near the border between two modes depends on theta so much that no step suits all: steps are
// halved while that brings quotients together. Two of them, of second order, give one of fourth; their distance is more
// than its error, unless rounding is more, or they meet by chance: then the distance of the two before is more than
// four times theirs.
template <class F>
Quotient difference_of_halved_steps(F&& f) {
  constexpr double first = 1e-3;
  constexpr int halvings = 20;
  const auto quotient = [&](double h) { return (f(h) - f(-h)) / (2 * h); };
  Quotient best{0, std::numeric_limits<double>::infinity()};
  double before = quotient(first), apart_before = best.error;
  for (int k = 1; k <= halvings; ++k) {
    const double now = quotient(std::ldexp(first, -k)), apart = std::abs(now - before);
    const double error = std::max(apart, apart_before / 4);
    if (error < best.error) best = {now + (now - before) / 3, error};
    if (error <= 1e-8 * std::abs(now)) break;
    before = now;
    apart_before = apart;
  }
  return best;
}

void check_adjoint(const DenoisingConfiguration& c, Dynamics dynamics, std::vector<CheckRow>& rows) {
  constexpr std::size_t few = 48;
  const std::string name = dynamics == Dynamics::euler_sde ? "SDE" : "ODE";
  Chain<double> chain{c, dynamics};
  const PathBatch<double> b = chain.sample(chain.theta, few);
  const std::vector<double> adjoint = chain.gradient(b, c.beta);
  std::vector<double> differences, allowed;
  double size = 0;
  for (std::size_t j = 0; j < adjoint.size(); ++j) {
    const Quotient q = difference_of_halved_steps([&](double t) {
      std::vector<double> there = chain.theta;
      there[j] += t;
      return objective_of<double>(chain.sample(there, few), chain.reward, {c.lambda, c.beta}).value;
    });
    differences.push_back(q.value);
    allowed.push_back(q.error);
    size = std::max(size, std::abs(q.value));
  }
  for (double& a : allowed) a += 1e-6 * size;
  rows.push_back(compare("adjoint of the " + name + ", differences", differences, adjoint, allowed));
  const char* const half = "  with half of beta";
  const std::vector<double> halved = chain.gradient(b, c.beta / 2);
  const CheckRow lost = compare(half, adjoint, halved, allowed);
  rows.push_back(lost.error > 2 * lost.allowed
                     ? must_be_off(compare(half, differences, halved, allowed))
                     : left_out(half, fmt::format("at beta = {} it is too little to be seen", c.beta)));

  // What a few roundings of the start make of the gradient, each of the steps may do again.
  const std::vector<double> rounded = chain.gradient(chain.sample(chain.theta, few, 0x1p-22), c.beta);
  std::vector<double> of_single;
  for (std::size_t j = 0; j < adjoint.size(); ++j)
    of_single.push_back(1e-4 * size + static_cast<double>(chain.chain.steps()) * std::abs(rounded[j] - adjoint[j]));
  Chain<float> single{c, dynamics};
  rows.push_back(
      compare("  in single precision", adjoint, single.gradient(single.sample(single.theta, few), c.beta), of_single));
}

std::vector<CheckRow> check_denoising_mixture(const DenoisingConfiguration& c) {
  std::vector<CheckRow> rows;
  const std::vector zero{0.0};
  constexpr std::size_t many = 4000;
  Chain<double> noisy{c};

  double state = 0, parameter = 0;
  for (const double tau : {0.02, 0.3, 1.5}) {
    const ScoreCheck check = noisy.model.with([&](const auto& m) { return check_score_model(m, noisy.theta, tau); });
    state = std::max(state, check.state_error);
    parameter = std::max(parameter, check.parameter_error);
  }
  rows.push_back(compare("score, products with states", zero, std::vector{state}, 1e-6));
  rows.push_back(compare("score, products with theta", zero, std::vector{parameter}, 1e-6));

  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode}) check_adjoint(c, dynamics, rows);

  // E log(p / p_base) = E U for the steps with noise.
  const PathBatch<double> b = noisy.sample(noisy.theta, many);
  const std::vector<double> ratios = log_ratios(noisy, b);
  BatchMeans means(1), wrong(1);
  for (std::size_t i = 0; i < many; ++i) {
    means.add(std::array{ratios[i] - b.penalty[i]});
    wrong.add(std::array{ratios[i] - 4 * b.penalty[i]});
  }
  rows.push_back(compare_means("path KL against likelihoods", zero, means.mean(), means.standard_error()));
  const char* const without = "  without the factor 1/4";
  const double bias = std::abs(wrong.mean()[0] - means.mean()[0]) / wrong.standard_error()[0];
  rows.push_back(bias > 2 * largest_z ? must_be_off(compare_means(without, zero, wrong.mean(), wrong.standard_error()))
                                      : left_out(without, "the path KL is too small for it to be seen"));
  check_gradient_of_batches(c, noisy.theta, rows);
  return rows;
}

}  // namespace

std::vector<Problem> DenoisingMixtureExperiment::checks() const {
  if (configuration().single.network) return check_score_network(configuration().single);
  return {{configuration().experiment, [c = configuration().single] { return check_denoising_mixture(c); }}};
}

}  // namespace program
