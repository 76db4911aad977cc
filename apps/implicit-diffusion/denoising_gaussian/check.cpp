// Reverse chains without noise: the laws of their last states, how fast these come to their limits, and the toy
// diffusion's known numbers. And the diffusion that can be solved: known numbers of its theory, and a queue of samples
// against it.
#include "denoising_gaussian/experiment.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/denoising/sampler.hpp"
#include "problems/toy_diffusion.hpp"

#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
using Numbers = std::vector<double>;
using Rows = std::vector<CheckRow>;

// Data N(1.5, 0.25) in one dimension, from N(0, 1) at the horizon 2.
constexpr double data_horizon = 2, data_mean = 1.5, data_variance = .25;

// Mean and variance of the last state.
struct Law {
  double mean, variance;
};

// The score is linear, so that the chain is Y = mean + first y_0 + sum_n share_n xi_n, xi_n its noise: with that at 0
// but for one, which is 1, it tells these numbers itself. `score` multiplies the score, `noise` the variances: what is
// not 1 is wrong on purpose.
Law last_law(Dynamics dynamics, const TimeGrid& grid, double score = 1, double noise = 1) {
  // Sample 0 begins at 0, sample 1 at 1, sample 2 + n at 0 with xi_n = 1.
  const auto one = problems::ToyDiffusion::stand_in(
      [](StepKey at, double i, double) { return i == 2 + static_cast<double>(at.index) ? 1.0 : 0.0; });
  const std::size_t steps = grid.steps();
  ReverseChain<double> chain(MixtureScore<Spread::isotropic>(1, 1), grid, {.dynamics = dynamics, .normals = one});
  PathBatch<double> b;
  b.points = Population<double>(2 + steps, 1);
  b.points(1, 0) = 1;
  const Numbers theta{0, data_mean, std::log(data_variance) / 2};
  if (score == 1) {
    DenoisingSampler<double>(chain).advance(b, theta, {});
  } else {
    chain.prepare(theta);
    for (std::size_t n = 0; n < steps; ++n) {
      StepCoefficients c = chain.coefficients(n);
      c.pull *= score;
      for (std::size_t k = 0; k < b.points.blocks(); ++k) {
        const Block<double> y = b.points.block(k);
        chain.model().score.forward(n, nullptr, {c, {y.data, y.stride, y.size, 1, y.first}, y, nullptr, nullptr});
      }
    }
  }
  const double mean = b.points(0, 0);
  Law law{mean, std::pow(b.points(1, 0) - mean, 2)};
  for (std::size_t n = 0; n < steps; ++n) law.variance += noise * std::pow(b.points(2 + n, 0) - mean, 2);
  return law;
}

// In continuous time, with a = e^-horizon and C the variance at the horizon. The SDE draws the data given the state at
// the horizon, of which the mean is m + (a v / C) (y - a m) and the variance v (1 - a^2) / C; the ODE moves quantiles:
// m + sqrt(v / C) (y - a m).
Law limit(bool noisy) {
  const double a = std::exp(-data_horizon), v = data_variance, c = a * a * v + 1 - a * a,
               slope = noisy ? a * v / c : std::sqrt(v / c);
  return {data_mean - slope * a * data_mean, slope * slope + (noisy ? v * (1 - a * a) / c : 0)};
}

// error(T) / error(2 T), which is 2 + O(1 / T) for order one, at T = 64 and 128 and from these towards infinity. Time
// runs as the cube of the step, so that steps become short where the data are: DDPM and DDIM with equal steps have
// errors of log(T) / T.
Numbers ratios(Dynamics dynamics, bool noisy, double score = 1, double noise = 1) {
  std::vector<Law> errors;
  for (const std::size_t steps : {64, 128, 256}) {
    const TimeGrid grid = schedule_grid([](double t) { return std::exp(-data_horizon * t * t * t); }, 1, steps);
    const Law law = last_law(dynamics, grid, score, noise), exact = limit(noisy);
    errors.push_back({law.mean - exact.mean, law.variance - exact.variance});
  }
  const auto towards = [](double e1, double e2, double e3) { return 2 * e2 / e3 - e1 / e2; };
  const double variance = towards(errors[0].variance, errors[1].variance, errors[2].variance);
  if (dynamics == Dynamics::ddpm) return {variance};  // its mean has no error
  return {towards(errors[0].mean, errors[1].mean, errors[2].mean), variance};
}

void check_orders(Rows& rows) {
  Numbers known{1.46854619, .39862026, 1.32751359, .32805903, 1.49303597, .10020776, 1.43241487, .11084030}, got;
  const TimeGrid sixteen = uniform_grid(data_horizon, 16);
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode, Dynamics::ddpm, Dynamics::ddim}) {
    const Law law = last_law(dynamics, sixteen);
    got.insert(got.end(), {law.mean, law.variance});
  }
  rows.push_back(compare("law after 16 steps, known numbers", known, got, 1e-7));
  rows.push_back(compare("DDPM, mean after 16 steps, exact", Numbers{limit(true).mean}, Numbers{got[4]}, 1e-12));

  // What the extrapolation leaves is below 0.01 for DDPM and 0.0003 for the others.
  constexpr double allowed = 0.02;
  const auto order = [&](const char* name, Dynamics dynamics, const char* mistake, bool noisy) {
    const Numbers right = ratios(dynamics, noisy),
                  wrong = noisy ? ratios(dynamics, noisy, 1, .5) : ratios(dynamics, noisy, 2);
    rows.push_back(compare(std::string("weak order of ") + name, Numbers(right.size(), 2.0), right, allowed));
    rows.push_back(must_be_off(compare(mistake, Numbers(wrong.size(), 2.0), wrong, allowed)));
  };
  order("Euler-Maruyama, SDE", Dynamics::euler_sde, "  with noise sqrt(h) xi", true);
  order("Euler, ODE", Dynamics::euler_ode, "  with the drift of the SDE", false);
  order("DDPM", Dynamics::ddpm, "  with half of the variance", true);
  order("DDIM", Dynamics::ddim, "  with twice the score", false);
}

void check_toy(Rows& rows) {
  const problems::ToyDiffusion toy;
  const problems::ToyDiffusion::Distance reward;
  constexpr double allowed = 1e-10;
  const auto with = [](Numbers v, double last) {
    v.push_back(last);
    return v;
  };
  const auto gradient = [&](Dynamics dynamics, const DenoisingObjective& o = {}) {
    auto chain = toy.chain(dynamics, 4, {.normals = toy.fixed_noise}, o.beta != 0);
    const auto e = toy.estimate(chain, o, toy.theta);
    return with(e.gradient, e.objective.value);
  };
  const DenoisingObjective half{toy.with_kl.lambda, toy.with_kl.beta / 2};
  const Numbers ode = with(toy.ode_gradient, toy.ode_objective), sde = with(toy.sde_gradient, toy.sde_objective),
                kl = with(toy.kl_gradient, toy.kl_objective);
  rows.push_back(compare("toy: adjoint of the ODE, known", ode, gradient(Dynamics::euler_ode), allowed));
  rows.push_back(compare("toy: adjoint of the SDE, known", sde, gradient(Dynamics::euler_sde), allowed));
  rows.push_back(compare("toy: with the path KL, known", kl, gradient(Dynamics::euler_sde, toy.with_kl), allowed));
  rows.push_back(must_be_off(compare("  with half of beta", kl, gradient(Dynamics::euler_sde, half), allowed)));

  const auto append = [](Numbers& to, const Numbers& v) { to.insert(to.end(), v.begin(), v.end()); };
  for (const Dynamics dynamics : {Dynamics::euler_sde, Dynamics::euler_ode}) {
    Numbers known, got, last_step;
    for (const auto& q : toy.queues) {
      if (q.dynamics != dynamics) continue;
      auto chain = toy.chain(dynamics, 4, {.slots = q.slots, .normals = toy.queue_noise});
      PathGradient<double> whole(chain, reward), last(chain, reward, {}, 1);
      append(known, q.theta);
      append(got, toy.run_queue(chain, whole, 5));
      append(last_step, toy.run_queue(chain, last, 5));
    }
    const std::string name = dynamics == Dynamics::euler_sde ? "SDE" : "ODE";
    rows.push_back(compare("toy: queues of the " + name + ", known", known, got, allowed));
    rows.push_back(must_be_off(compare("  with the adjoint of the last step", known, last_step, allowed)));
  }
  Numbers known, got;
  for (const auto& q : toy.reconstructed) {
    auto chain = toy.chain(Dynamics::euler_ode, 4, {.slots = q.slots});
    ReconstructedGradient<double> estimator(chain, reward, {}, q.refinements);
    append(known, q.theta);
    append(got, toy.run_queue(chain, estimator, 5));
  }
  rows.push_back(compare("toy: paths found again, known", known, got, allowed));
  const std::vector<Numbers> twice = toy.run_double_queue(9);
  rows.push_back(compare("toy: double queue, known", toy.double_queue, twice[9], allowed));
  rows.push_back(must_be_off(compare("  a step earlier", toy.double_queue, twice[8], allowed)));
}

Rows check_chains() {
  Rows rows;
  check_orders(rows);
  check_toy(rows);
  return rows;
}

Rows check_denoising_gaussian(const DenoisingGaussianConfiguration& c) {
  Numbers delay;
  for (const double eta : {.05, .25, .5, 2.})
    delay.push_back(delay_solution({.horizon = 3, .eta = eta, .theta_0 = .5, .target = 2}, 6).theta);
  const Numbers known_delay{.9032477948, 1.8128520986, 2.0751255388, 2.0909881146};
  const Numbers known_recursion{1.176904291565, 1.85380858313, 2.353519987953, 2.622302046788};
  const auto recursion = [](double eta) {
    const Numbers all = queue_recursion({.horizon = 2, .eta = eta, .theta_0 = .5, .target = 2}, 4, 8);
    return Numbers(all.begin() + 5, all.end());
  };

  // The queue of samples at one horizon, for each eta of the experiment.
  const int m = c.slots(c.path_horizon);
  Numbers expected, halved, got, error;
  double seen = 0;  // of the missing factor 2, in standard errors
  for (std::size_t e = 0; e < c.etas.size(); ++e) {
    const GaussianDenoising model = c.model(c.etas[e], c.path_horizon);
    expected.push_back(queue_recursion(model, m, 2 * m).back());
    halved.push_back(queue_recursion(c.model(c.etas[e] / 2, c.path_horizon), m, 2 * m).back());
    error.push_back(queue_deviation(model, m, 2 * m, static_cast<std::size_t>(c.batch)).back() /
                    std::sqrt(static_cast<double>(c.repeats)));
    got.push_back(0);
    for (std::size_t r = 0; r < static_cast<std::size_t>(c.repeats); ++r)
      got.back() += sampled_queue(c, model, e, r).theta.back();
    got.back() /= static_cast<double>(c.repeats);
    seen = std::max(seen, std::abs(expected.back() - halved.back()) / error.back());
  }
  Rows rows{compare("delay equation, known numbers", known_delay, delay, 1e-9),
            compare("recursion of means, known numbers", known_recursion, recursion(.5), 1e-11),
            must_be_off(compare("  with half of eta", known_recursion, recursion(.25), 1e-11)),
            compare_means("theta(2T), queue of samples", expected, got, error)};
  const std::string wrong = "  without the reward's factor 2";
  rows.push_back(seen > 2 * largest_z ? must_be_off(compare_means(wrong, halved, got, error))
                                      : left_out(wrong, "too few samples to detect it"));
  return rows;
}

}  // namespace

std::vector<Problem> DenoisingGaussianExperiment::checks() const {
  return {{configuration().experiment, [c = configuration()] { return check_denoising_gaussian(c); }}};
}

std::vector<Problem> DenoisingGaussianExperiment::standard_checks() const {
  return {{"reverse chains", check_chains}, checks().front()};
}

}  // namespace program
