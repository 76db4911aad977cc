// The gradient of an experiment's objective at its first theta, in closed form, against what its estimator makes of
// exact samples.
//
// The objective and each of its terms, as functions of theta, know nothing of the estimator:
//
//     -lambda E[R]                 R's expectation under the law, a mixture of Gaussians
//     beta KL(reference || pi)     Gauss-Hermite quadrature, or minus the mean log-density of the data
//     beta KL(pi || base)          Gauss-Hermite quadrature
//
// and central differences give their gradients. The estimators are those of a run (make_engine), on its kernels and,
// where the run does both at once, in the pass that also makes the step. They are given populations of independent
// samples of the law: small ones, whose size is not a multiple of the lanes, so that division by n in place of n - 1
// shows. An estimate is random; its mean over many populations has a standard error s, to which come
//
//     3 a / N          what happens less than a few times among all N samples, each time worth a / N, does not show in s
//     r a              rounding in single precision
//     2 |q - q'|       two quadratures, one coarser than the other: the most that any parameter shows, in its unit
//
// That the check could fail is shown by the same estimates a tenth too large, or where that is too little to be seen,
// with the opposite sign. Where even that is not seen the gradient vanishes, as that of KL(pi || base) at the base:
// then it is checked a little elsewhere.
//
// Small populations are one block. So an estimate from some blocks, the last not full, is compared with the sums
// written out, sample by sample.
//
// It is one file, though a long one: closed forms, estimates and their errors are about the same numbers.
#include "implicit_diffusion/differences.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "langevin/experiment.hpp"
#include "langevin/probe_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;
using Rows = std::vector<CheckRow>;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// One term of an objective, or their sum: the experiment with this alone.
struct Part {
  std::string name;
  LangevinConfiguration c;
};

std::vector<Part> parts_of(const LangevinConfiguration& c) {
  std::vector<Part> parts;
  const auto keep = [&](std::string name, bool reward, bool reference, bool base) {
    parts.push_back({std::move(name), c});
    if (!reward) parts.back().c.reward.reset();
    if (!reference) parts.back().c.reference.reset();
    if (!base) parts.back().c.base.reset();
  };
  if (c.reward) keep("grad -E[R]", true, false, false);
  if (c.reference) keep("grad KL(reference || pi)", false, true, false);
  if (c.base) keep("grad KL(pi || base)", false, false, true);
  if (parts.size() > 1) keep("grad of the sum", true, true, true);
  return parts;
}

// ---- closed forms

// How fine a quadrature is. In 48 nodes an axis the quadrature is exact to 3e-7 (law.hpp).
enum class Fineness { fine, coarse };
std::size_t nodes_per_axis(std::size_t dimension, Fineness fineness) {
  const std::size_t fine = dimension > 2 ? 24 : 48;
  return fineness == Fineness::fine ? fine : fine * 3 / 4;
}

// Logarithms that the differences of a quadrature take, some 15 ns each.
double cost_of_quadrature(const ProbePoints& probes) {
  const auto n = static_cast<double>(probes.law->weights.size()), p = static_cast<double>(probes.parameters.size());
  const std::size_t d = probes.law->dimension();
  return 6 * p * n * n * std::pow(static_cast<double>(nodes_per_axis(d, Fineness::fine)), static_cast<double>(d));
}
constexpr double highest_cost = 2e8;

double mean_log_density(const Population<float>& data, const GaussianMixture& law) {
  const MixtureLogDensity log_density(law);
  std::vector<double> point(data.dimension());
  double sum = 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    for (std::size_t j = 0; j < point.size(); ++j) point[j] = static_cast<double>(data(i, j));
    sum += log_density(point);
  }
  return sum / static_cast<double>(data.size());
}

// A function of theta, not a number where it has no closed form.
using Objective = std::function<double(const std::vector<double>&)>;

Objective reward_objective(const LangevinConfiguration& c, const ProbePoints& probes) {
  return [&probes, reward = c.reward->make<double>(), lambda = c.reward->lambda](const std::vector<double>& theta) {
    return -lambda * reward.expectation(*probes.exact.law(theta)).value_or(unknown);
  };
}
Objective data_objective(const LangevinConfiguration& c, const ProbePoints& probes) {
  return [&probes, beta = c.reference->beta, data = &reference_data(c, probes.fast)](const std::vector<double>& theta) {
    return -beta * mean_log_density(*data, *probes.exact.law(theta));
  };
}
Objective reference_objective(const LangevinConfiguration& c, const ProbePoints& probes, Fineness fineness) {
  return
      [&probes, beta = c.reference->beta,
       divergence =
           MixtureDivergence(*probes.exact.law(c.reference->theta), nodes_per_axis(probes.law->dimension(), fineness))](
          const std::vector<double>& theta) { return beta * divergence(*probes.exact.law(theta)).value_or(unknown); };
}
Objective base_objective(const LangevinConfiguration& c, const ProbePoints& probes, Fineness fineness) {
  return [&probes, beta = c.base->beta, base = *probes.exact.law(c.base->theta),
          nodes = nodes_per_axis(probes.law->dimension(), fineness)](const std::vector<double>& theta) {
    return beta * MixtureDivergence(*probes.exact.law(theta), nodes)(base).value_or(unknown);
  };
}

std::vector<double> gradient_of(const Objective& objective, const ProbePoints& probes) {
  std::vector<double> gradient;
  for (std::size_t k = 0; k < probes.parameters.size(); ++k)
    gradient.push_back(difference([&](double t) { return objective(probes.moved(k, t)); }, probes.unit_theta[k]));
  return gradient;
}

void add(std::vector<double>& sum, const std::vector<double>& part, double factor) {
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += factor * part[k];
}

// The gradients of the terms, the quadratures twice.
struct ClosedForms {
  std::vector<double> reward, reference, base;  // empty where there is no such term, or no closed form
  std::vector<double> coarse_reference, coarse_base;
  std::string why_not;  // there is no closed form of some
};

std::optional<std::string> no_quadrature(const ProbePoints& probes) {
  if (probes.law->dimension() > MixtureDivergence::largest_dimension)
    return fmt::format("no quadrature beyond {} dimensions", MixtureDivergence::largest_dimension);
  if (cost_of_quadrature(probes) > highest_cost) return "its quadrature would take too long";
  return std::nullopt;
}

ClosedForms closed_forms(const LangevinConfiguration& c, const ProbePoints& probes) {
  ClosedForms f;
  const auto differentiate = [&](const Objective& objective, std::vector<double>& gradient, const char* failure) {
    gradient = gradient_of(objective, probes);
    if (std::none_of(gradient.begin(), gradient.end(), [](double g) { return std::isnan(g); })) return;
    gradient.clear();
    f.why_not = failure;
  };
  const char* const missed = "its quadrature misses a narrow component";
  if (c.reward) differentiate(reward_objective(c, probes), f.reward, "E[R] has no closed form");
  if (c.reference && c.reference->data) {
    differentiate(data_objective(c, probes), f.reference, "the data have no finite log-density");
    f.coarse_reference = f.reference;
  } else if (c.reference) {
    if (const auto reason = no_quadrature(probes)) {
      f.why_not = *reason;
    } else {
      differentiate(reference_objective(c, probes, Fineness::fine), f.reference, missed);
      differentiate(reference_objective(c, probes, Fineness::coarse), f.coarse_reference, missed);
    }
  }
  if (c.base) {
    if (const auto reason = no_quadrature(probes)) {
      f.why_not = *reason;
    } else {
      differentiate(base_objective(c, probes, Fineness::fine), f.base, missed);
      differentiate(base_objective(c, probes, Fineness::coarse), f.coarse_base, missed);
    }
  }
  return f;
}

// What the mean of a part's estimates ought to be, for populations of n, and how far off that may be; nothing without a
// closed form. Covariances with the normaliser n are (n - 1) / n of themselves.
struct Expected {
  std::vector<double> gradient;
  double error = 0;  // in units
};
std::optional<Expected> expected_gradient(const LangevinConfiguration& c, const ClosedForms& f,
                                          const ProbePoints& probes, std::size_t n) {
  if ((c.reward && f.reward.empty()) || (c.reference && (f.reference.empty() || f.coarse_reference.empty())) ||
      (c.base && (f.base.empty() || f.coarse_base.empty())))
    return std::nullopt;
  const auto size = static_cast<double>(n);
  const double shrinks = c.normaliser == Normaliser::n ? (size - 1) / size : 1;
  std::vector<double> fine(probes.parameters.size()), coarse = fine;
  if (c.reward) add(fine, f.reward, shrinks), add(coarse, f.reward, shrinks);
  if (c.reference) add(fine, f.reference, 1), add(coarse, f.coarse_reference, 1);
  if (c.base) add(fine, f.base, shrinks), add(coarse, f.coarse_base, shrinks);
  Expected e{fine};
  for (std::size_t k = 0; k < fine.size(); ++k)
    e.error = std::max(e.error, 2 * std::abs(fine[k] - coarse[k]) * probes.unit_theta[k]);
  return e;
}

// ---- estimates

// Sizes of the populations, and how many.
struct Batches {
  std::size_t particles, references, count;
};
Batches batches_of(const LangevinConfiguration& c, const ProbePoints& probes) {
  constexpr std::size_t few = 50, others = 70, many_rows = 4096;
  Batches b{few, 0, 0};
  if (c.reference) {
    b.references = others;  // not as many, so that division by the one in place of the other shows
    // All of the data, every time, unless that is much.
    if (c.reference->data && c.reference->batch == 0) {
      const std::size_t rows = reference_data(c, probes.fast).size();
      if (rows <= many_rows) {
        b.references = 0;
        b.particles = few + 2 * rows;
      }
    }
  }
  const std::size_t work = std::max<std::size_t>(8, probes.exact.parameters() * probes.exact.dimension());
  b.count = std::max<std::size_t>(500, (std::size_t{1} << 24) / work / b.particles);
  return b;
}

BatchMeans estimate(LangevinConfiguration c, const ProbePoints& probes, const Batches& batches) {
  if (c.reference) c.reference->batch = batches.references;
  LangevinEngine<float> engine = make_engine(c, probes.fast, {.step_size = {c.step_size}, .noise = Noise(c.seed)});
  const MixtureSampler samples(*probes.law, check_noise(c.seed));
  const bool at_once = c.method == Method::implicit && c.order == Order::paper;
  Population<float> x(batches.particles, probes.law->dimension());
  std::vector<double> gradient(probes.theta.size());
  BatchMeans means(probes.parameters.size());
  for (std::size_t b = 0; b < batches.count; ++b) {
    const auto round = static_cast<std::int64_t>(b);
    samples.draw(x, round);
    if (at_once)
      engine.advance_and_estimate(x, probes.theta, {.round = round}, gradient);
    else
      engine.estimate(x, probes.theta, round, gradient);
    means.add(probes.chosen(gradient));
  }
  return means;
}

// The largest |R| at the points and at the reward's centre.
double height(const RewardSpec& spec, const ProbePoints& probes) {
  const Reward<double> reward = spec.make<double>();
  Population<double> centre(1, probes.law->dimension());
  for (std::size_t j = 0; j < centre.dimension(); ++j) centre(0, j) = spec.centre[j];
  return std::max(largest(values(reward, probes.points)), largest(values(reward, centre)));
}

// a, in units of theta: the largest weight of a sample, before it is divided by the number of samples.
double largest_weight(const LangevinConfiguration& c, const ProbePoints& probes) {
  double weight = 0;
  if (c.reward) weight += std::abs(c.reward->lambda) * height(*c.reward, probes);
  if (c.reference) weight += c.reference->beta;
  if (c.base) {
    Potential<double> base = probes.exact;
    base.prepare(c.base->theta);
    std::vector<double> f = values(probes.exact, probes.points);
    add(f, values(base, probes.points), -1);
    weight += c.base->beta * (*std::max_element(f.begin(), f.end()) - *std::min_element(f.begin(), f.end()));
  }
  return weight;
}

// Checks one part at the theta of the landscape. False where its gradient cannot be told from zero.
bool check_part(const Part& part, const ProbePoints& probes, const ClosedForms& forms, Rows& rows) {
  const Batches batches = batches_of(part.c, probes);
  const std::optional<Expected> known = expected_gradient(part.c, forms, probes, batches.particles);
  if (!known) {
    rows.push_back(left_out(part.name, forms.why_not));
    return true;
  }
  const std::vector<double>& expected = known->gradient;
  const BatchMeans means = estimate(part.c, probes, batches);
  const auto samples = static_cast<double>(batches.count * batches.particles);
  const double unseen = (3 / samples + probes.rounding) * largest_weight(part.c, probes) + known->error;  // in units
  std::vector<double> errors = means.standard_error();
  double tenth = 0;  // the largest z of a tenth of the gradient
  for (std::size_t k = 0; k < errors.size(); ++k) {
    errors[k] += unseen / probes.unit_theta[k];
    if (expected[k] != 0) tenth = std::max(tenth, std::abs(0.1 * expected[k]) / errors[k]);
  }
  rows.push_back(compare_means(part.name, expected, means.mean(), errors));

  const auto wrong_by = [&](double factor, const std::string& name) {
    std::vector<double> wrong = means.mean();
    for (double& g : wrong) g *= factor;
    rows.push_back(must_be_off(compare_means(name, expected, wrong, errors)));
  };
  if (tenth > 2 * largest_z)
    wrong_by(1.1, "  1.1 times the estimate");
  else if (20 * tenth > 2 * largest_z)
    wrong_by(-1, "  minus the estimate");
  else
    return false;
  return true;
}

// ---- several blocks

// Two full blocks and part of a third: of the law, and of the reference where there is one.
struct SomeBlocks {
  Population<float> x, y;

  SomeBlocks(const LangevinConfiguration& c, const ProbePoints& probes)
      : x(2 * block_size + 188, probes.law->dimension()), y(2 * block_size + 75, probes.law->dimension()) {
    const Noise noise = check_noise(c.seed);
    MixtureSampler(*probes.law, noise).draw(x, -3);
    if (c.reference && !c.reference->data)
      MixtureSampler(*probes.fast.law(c.reference->theta), noise).draw(y, -4);
    else
      MixtureSampler(*probes.law, noise).draw(y, -4);
  }
};

// The gradient from the first n samples and m references, written out: sum_i w_i dV/dtheta (x_i), with the weights of
// estimator.hpp. The numbers of each sample are those of the kernels, which are checked on their own; left are
// roundings, relative to the same sum without signs. dV/dtheta in units of theta counts at least 1 there: it may be the
// difference of two such.
struct WrittenOut {
  std::vector<double> gradient, without_signs;
};
WrittenOut written_out(const LangevinConfiguration& c, const ProbePoints& probes, const SomeBlocks& some, std::size_t n,
                       std::size_t m) {
  Potential<float> potential = probes.fast;
  potential.prepare(probes.theta);
  std::vector<double> f(some.x.size()), sizes = f;
  const auto add_signal = [&](const std::vector<double>& part, double factor) {
    add(f, part, factor);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += std::abs(factor * part[i]);
  };
  if (c.reward) add_signal(values(c.reward->make<float>(), some.x), c.reward->lambda);
  if (c.base) {
    Potential<float> base = probes.fast;
    base.prepare(c.base->theta);
    add_signal(values(potential, some.x), c.base->beta);
    add_signal(values(base, some.x), -c.base->beta);
  }
  const auto size = static_cast<double>(n), others = static_cast<double>(m);
  const double normaliser = c.normaliser == Normaliser::n ? size : size - 1;
  const double beta = c.reference ? c.reference->beta : 0, most = largest(sizes);
  double mean = 0;
  for (std::size_t i = 0; i < n; ++i) mean += f[i] / size;
  const std::vector<double> at_x = gradients_theta(potential, some.x, probes.parameters),
                            at_y = gradients_theta(potential, some.y, probes.parameters);
  WrittenOut out;
  for (std::size_t k = 0; k < probes.parameters.size(); ++k) {
    const double least = 1 / probes.unit_theta[k];
    double sum = 0, unsigned_sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double slope = at_x[k * some.x.size() + i];
      sum += ((f[i] - mean) / normaliser - beta / size) * slope;
      unsigned_sum += (most + beta) / size * std::max(std::abs(slope), least);
    }
    for (std::size_t i = 0; i < m; ++i) {
      const double slope = at_y[k * some.y.size() + i];
      sum += beta / others * slope;
      unsigned_sum += beta / others * std::max(std::abs(slope), least);
    }
    out.gradient.push_back(sum);
    out.without_signs.push_back(unsigned_sum);
  }
  return out;
}

// What the estimator makes of it, on its own or in the pass that makes the step.
std::vector<double> of_blocks(const LangevinConfiguration& c, const ProbePoints& probes, const SomeBlocks& some,
                              bool at_once) {
  GradientEstimator<float>::Terms terms;
  if (c.reward) terms.push_back(std::make_unique<RewardTerm<float>>(c.reward->make(), c.reward->lambda));
  if (c.reference)
    terms.push_back(
        std::make_unique<ReferenceTerm<float>>(std::make_unique<FixedReference<float>>(some.y), c.reference->beta));
  if (c.base) {
    Potential<float> base = probes.fast;
    base.prepare(c.base->theta);
    terms.push_back(std::make_unique<BaseTerm<float>>(std::move(base), c.base->beta));
  }
  LangevinEngine<float> engine(probes.fast, std::move(terms), {.step_size = {c.step_size}, .noise = Noise(c.seed)},
                               c.normaliser);
  std::vector<double> gradient(probes.theta.size());
  Population<float> x = some.x;
  if (at_once)
    engine.advance_and_estimate(x, probes.theta, {}, gradient);
  else
    engine.estimate(x, probes.theta, 0, gradient);
  return probes.chosen(gradient);
}

// All parts, one after the other.
void check_blocks(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  constexpr double roundings = 64 * 0x1p-24;
  const SomeBlocks some(c, probes);
  std::vector<double> expected, alone, at_once, without, allowed;
  const auto append = [](std::vector<double>& all, const std::vector<double>& part) {
    all.insert(all.end(), part.begin(), part.end());
  };
  for (const Part& part : parts_of(c)) {
    const WrittenOut all = written_out(part.c, probes, some, some.x.size(), some.y.size());
    append(expected, all.gradient);
    append(without, written_out(part.c, probes, some, 2 * block_size, 2 * block_size).gradient);
    append(alone, of_blocks(part.c, probes, some, false));
    append(at_once, of_blocks(part.c, probes, some, true));
    for (const double size : all.without_signs) allowed.push_back(roundings * size);
  }
  rows.push_back(compare("three blocks, written out", expected, alone, allowed));
  rows.push_back(compare("three blocks and a step", expected, at_once, allowed));
  const char* const wrong = "  without the last block";
  if (const CheckRow row = compare(wrong, expected, without, allowed); row.error > 2 * row.allowed)
    rows.push_back(must_be_off(compare(wrong, without, alone, allowed)));
  else
    rows.push_back(left_out(wrong, "the gradient is too small for it to be seen"));
}

// theta moved by half a unit in every parameter, up or down by chance.
std::vector<double> elsewhere(const LangevinConfiguration& c, const ProbePoints& probes) {
  std::vector<double> theta = probes.theta;
  for (std::size_t k = 0; k < probes.parameters.size(); ++k) {
    const bool up = check_noise(c.seed).uniform(Stream::user, {}, 1, k, 0) < 0.5;
    theta[probes.parameters[k]] += (up ? 0.5 : -0.5) * probes.unit_theta[k];
  }
  return theta;
}

// The mean reward of exact samples against the closed form.
void check_expected_reward(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  const Reward<float> reward = c.reward->make<float>();
  const char* const what = "E[R] of exact samples";
  const std::optional<double> exact = reward.expectation(*probes.law);
  if (!exact) {
    rows.push_back(left_out(what, "E[R] has no closed form"));
    return;
  }
  constexpr std::size_t batches = 1000, size = 1000;
  const MixtureSampler samples(*probes.law, check_noise(c.seed));
  Population<float> x(size, probes.law->dimension());
  BatchMeans means(1);
  for (std::size_t b = 0; b < batches; ++b) {
    samples.draw(x, static_cast<std::int64_t>(b));
    const std::vector<double> r = values(reward, x);
    double sum = 0;
    for (const double v : r) sum += v;
    means.add(std::vector<double>{sum / size});
  }
  const double unseen = (3.0 / (batches * size) + probes.rounding) * height(*c.reward, probes);
  const std::vector<double> error{means.standard_error()[0] + unseen};
  rows.push_back(compare_means(what, std::vector<double>{*exact}, means.mean(), error));
}

}  // namespace

std::vector<CheckRow> check_gradients(const LangevinConfiguration& c) {
  Rows rows;
  const ProbePoints probes(c, c.start.theta);
  if (c.reward) check_expected_reward(c, probes, rows);
  if (parts_of(c).empty())
    rows.push_back(left_out("grad", "no reward, reference or base is given"));
  else
    check_blocks(c, probes, rows);
  const ClosedForms forms = closed_forms(c, probes);
  std::vector<Part> vanishing;
  for (const Part& part : parts_of(c))
    if (!check_part(part, probes, forms, rows)) vanishing.push_back(part);
  if (vanishing.empty()) return rows;

  const char* const wrong = "  a wrong gradient";
  const std::vector<double> theta = elsewhere(c, probes);
  if (probes.exact.find_inadmissible(theta)) {
    rows.push_back(left_out(wrong, "the gradient vanishes, and there is no law nearby"));
    return rows;
  }
  const ProbePoints nearby(c, theta);
  const ClosedForms forms_nearby = closed_forms(c, nearby);
  for (Part& part : vanishing) {
    part.name += " elsewhere";
    if (!check_part(part, nearby, forms_nearby, rows))
      rows.push_back(left_out(wrong, "the gradient is too small to be told from zero"));
  }
  return rows;
}

}  // namespace program
