// The denoising diffusion that can be solved: known numbers of its theory, and a queue of samples against it.
#include "denoising_gaussian/experiment.hpp"

namespace program {
namespace {

using namespace implicit_diffusion;

std::vector<CheckRow> check_denoising_gaussian(const DenoisingGaussianConfiguration& c) {
  std::vector<double> delay;
  for (const double eta : {.05, .25, .5, 2.})
    delay.push_back(delay_solution({.horizon = 3, .eta = eta, .theta_0 = .5, .target = 2}, 6).theta);
  const std::vector<double> known_delay{.9032477948, 1.8128520986, 2.0751255388, 2.0909881146};
  const std::vector<double> known_recursion{1.176904291565, 1.85380858313, 2.353519987953, 2.622302046788};
  const auto recursion = [](double eta) {
    const std::vector<double> all = queue_recursion({.horizon = 2, .eta = eta, .theta_0 = .5, .target = 2}, 4, 8);
    return std::vector<double>(all.begin() + 5, all.end());
  };

  // The queue of samples at one horizon, for each eta of the experiment.
  const int m = c.slots(c.path_horizon);
  std::vector<double> expected, halved, got, error;
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
  std::vector<CheckRow> rows{compare("delay equation, known numbers", known_delay, delay, 1e-9),
                             compare("recursion of means, known numbers", known_recursion, recursion(.5), 1e-11),
                             must_be_off(compare("  with half of eta", known_recursion, recursion(.25), 1e-11)),
                             compare_means("theta(2T), queue of samples", expected, got, error)};
  const std::string wrong = "  without the reward's factor 2";
  rows.push_back(seen > 2 * largest_z ? must_be_off(compare_means(wrong, halved, got, error))
                                      : left_out(wrong, "too few samples to see it"));
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
