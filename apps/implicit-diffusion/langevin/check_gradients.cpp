// The gradient of an experiment's objective at its first theta, in closed form, against what its estimator makes of
// exact samples. One file, though a long one: all terms go through the same comparisons.
//
// The objective and each of its terms, as functions of theta, know nothing of the estimator:
//
//     -lambda E[R]                 R's expectation under the law, a mixture of Gaussians
//     beta KL(reference || pi)     quadrature, or minus the mean log-density of the data
//     beta KL(pi || base)          quadrature
//
// and central differences give their gradients. The estimators are those of a run (make_engine), on its kernels and,
// where the run does both at once, in the pass that also makes the step. They are given populations of independent
// samples of the law: small ones, whose size is not a multiple of the lanes, so that division by n in place of n - 1
// shows. An estimate is random; its mean over many populations has a standard error s, to which come
//
//     3 a / N        what happens less than a few times among all N samples, each time worth a / N, does not show in s
//     r a            rounding in single precision; of a base, of the two energies whose difference is in a
//     2 |q - q'|     two quadratures, one coarser than the other: the most that any parameter shows, in its unit
//
// That the check could fail is shown by the same estimates a tenth too large, or where that is too little to be seen,
// with the opposite sign. Where even that is not seen the gradient vanishes, as that of KL(pi || base) at the base:
// then it is checked a little elsewhere.
//
// Small populations are one block. So an estimate from some blocks, the last not full, is compared with the sums
// written out, sample by sample.
#include "implicit_diffusion/differences.hpp"
#include "langevin/experiment.hpp"
#include "langevin/probe_points.hpp"
#include "langevin/recorder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

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
  const auto add_without = [&](const char* name, auto... terms) {
    parts.push_back({name, c});
    ((parts.back().c.*terms).reset(), ...);
  };
  using C = LangevinConfiguration;
  if (c.reward) add_without("grad -E[R]", &C::reference, &C::base);
  if (c.reference) add_without("grad KL(reference || pi)", &C::reward, &C::base);
  if (c.base) add_without("grad KL(pi || base)", &C::reward, &C::reference);
  if (parts.size() > 1) add_without("grad of the sum");
  return parts;
}

// ---- closed forms

// In 48 nodes an axis a quadrature is exact to 3e-7 (law.hpp). A coarse one has three quarters of them.
std::size_t nodes_per_axis(std::size_t dimension) { return dimension > 2 ? 24 : 48; }

// Logarithms that a quadrature and its differences may take, some 15 ns each.
constexpr double most_logarithms = 2e8;
constexpr const char* too_long = "its quadrature would take too long";
// Divergences that its differences need.
double divergences_needed(const ProbePoints& probes) { return 6 * static_cast<double>(probes.parameters.size()); }

// Why there is no quadrature, if there is none.
std::optional<std::string> no_quadrature(const ProbePoints& probes) {
  const std::size_t d = probes.law->dimension();
  if (d > MixtureDivergence::largest_dimension)
    return fmt::format("no quadrature beyond {} dimensions", MixtureDivergence::largest_dimension);
  const auto n = static_cast<double>(probes.law->weights.size());
  const double cost = n * n * std::pow(static_cast<double>(nodes_per_axis(d)), static_cast<double>(d));
  if (divergences_needed(probes) * cost > most_logarithms) return too_long;
  return std::nullopt;
}

void add(std::vector<double>& sum, const std::vector<double>& part, double factor) {
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += factor * part[k];
}

// The gradient of a term, twice where it is a quadrature; empty where there is no such term, or no closed form.
struct ClosedForm {
  std::vector<double> fine, coarse;
};
struct ClosedForms {
  ClosedForm reward, reference, base;
  std::string why_not;  // there is no closed form of some
};

ClosedForms closed_forms(const LangevinConfiguration& c, const ProbePoints& probes) {
  ClosedForms f;
  const auto law = [&](const std::vector<double>& theta) { return *probes.exact.law(theta); };
  // Of an objective that is a function of the law, not a number where it has no closed form.
  const auto gradient = [&](const char* failure, const std::function<double(const GaussianMixture&)>& objective) {
    std::vector<double> g;
    for (std::size_t k = 0; k < probes.parameters.size(); ++k)
      g.push_back(difference([&](double t) { return objective(law(probes.moved(k, t))); }, probes.unit_theta[k]));
    if (std::ranges::none_of(g, [](double v) { return std::isnan(v); })) return g;
    f.why_not = failure;
    return std::vector<double>();
  };
  if (c.reward)
    f.reward.fine = f.reward.coarse =
        gradient("E[R] has no closed form", [&, reward = c.reward->make<double>()](const GaussianMixture& pi) {
          return -c.reward->lambda * reward.expectation(pi).value_or(unknown);
        });
  const bool has_data = c.reference && c.reference->data;
  if (has_data)
    f.reference.fine = f.reference.coarse =
        gradient("the log-density of the data is not finite",
                 [&, data = &reference_data(c, probes.fast)](const GaussianMixture& pi) {
                   return -c.reference->beta * mean_log_density(*data, pi);
                 });
  if (!c.base && (has_data || !c.reference)) return f;
  if (const auto reason = no_quadrature(probes)) {
    f.why_not = *reason;
    return f;
  }
  const std::size_t nodes = nodes_per_axis(probes.law->dimension());
  // Differences divide an error of the adaptive one by a hundredth of a unit.
  const DivergenceEffort effort{1e-9, most_logarithms / divergences_needed(probes)},
      less{1e-7, effort.most_evaluations};
  for (const auto& [form, count, work] :
       {std::tuple{&ClosedForm::fine, nodes, effort}, {&ClosedForm::coarse, nodes * 3 / 4, less}}) {
    if (c.reference && !has_data)
      f.reference.*form = gradient(
          too_long, [&, divergence = MixtureDivergence(law(c.reference->theta), count, work)](
                        const GaussianMixture& pi) { return c.reference->beta * divergence(pi).value_or(unknown); });
    if (c.base)
      f.base.*form = gradient(too_long, [&, base = law(c.base->theta), n = count, e = work](const GaussianMixture& pi) {
        return c.base->beta * MixtureDivergence(pi, n, e)(base).value_or(unknown);
      });
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
  const auto size = static_cast<double>(n);
  const double shrinks = c.normaliser == Normaliser::n ? (size - 1) / size : 1;
  std::vector<double> fine(probes.parameters.size()), coarse = fine;
  for (const auto& [wanted, form, factor] : {std::tuple{c.reward.has_value(), &f.reward, shrinks},
                                             {c.reference.has_value(), &f.reference, 1.0},
                                             {c.base.has_value(), &f.base, shrinks}}) {
    if (!wanted) continue;
    if (form->fine.empty() || form->coarse.empty()) return std::nullopt;
    add(fine, form->fine, factor);
    add(coarse, form->coarse, factor);
  }
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
  // References are another number, so that division by the one in place of the other shows.
  Batches b{few, c.reference ? others : 0, 0};
  // All of the data, every time, unless that is much.
  if (c.reference && c.reference->data && c.reference->batch == 0)
    if (const std::size_t rows = reference_data(c, probes.fast).size(); rows <= many_rows) b = {few + 2 * rows, 0, 0};
  const std::size_t work = std::max<std::size_t>(8, probes.exact.parameters() * probes.exact.dimension());
  b.count = std::max<std::size_t>(500, (std::size_t{1} << 24) / work / b.particles);
  return b;
}

// The estimate of a population, on its own or in the pass that makes the step.
std::vector<double> estimate(LangevinEngine<float>& engine, const ProbePoints& probes, Population<float>& x,
                             std::int64_t round, bool at_once) {
  std::vector<double> gradient(probes.theta.size());
  if (at_once)
    engine.advance_and_estimate(x, probes.theta, {.round = round}, gradient);
  else
    engine.estimate(x, probes.theta, round, gradient);
  return probes.chosen(gradient);
}

BatchMeans mean_estimate(LangevinConfiguration c, const ProbePoints& probes, const Batches& batches) {
  if (c.reference) c.reference->batch = batches.references;
  LangevinEngine<float> engine = make_engine(c, probes.fast, {.step_size = {c.step_size}, .noise = Noise(c.seed)});
  const MixtureSampler samples(*probes.law, check_noise(c.seed));
  const bool at_once = c.method == Method::implicit && c.order == Order::paper;
  Population<float> x(batches.particles, probes.law->dimension());
  BatchMeans means(probes.parameters.size());
  for (std::size_t b = 0; b < batches.count; ++b) {
    const auto round = static_cast<std::int64_t>(b);
    samples.draw(x, round);
    means.add(estimate(engine, probes, x, round, at_once));
  }
  return means;
}

// a, in units of theta: the largest weight of a sample, before it is divided by the number of samples.
double largest_weight(const LangevinConfiguration& c, const ProbePoints& probes) {
  double weight = 0;
  if (c.reward) weight += std::abs(c.reward->lambda) * probes.height(*c.reward);
  if (c.reference) weight += c.reference->beta;
  if (c.base) {
    std::vector<double> f = values(probes.exact, probes.points);
    add(f, values(prepared(probes.exact, c.base->theta), probes.points), -1);
    const auto [least, greatest] = std::minmax_element(f.begin(), f.end());
    weight += c.base->beta * (*greatest - *least);
  }
  return weight;
}

// The weight of a sample for the base is beta times the difference of two energies, each rounded on its own.
double rounded_energies(const LangevinConfiguration& c, const ProbePoints& probes) {
  if (!c.base) return 0;
  return c.base->beta * (largest(values(probes.exact, probes.points)) +
                         largest(values(prepared(probes.exact, c.base->theta), probes.points)));
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
  const BatchMeans means = mean_estimate(part.c, probes, batches);
  const auto samples = static_cast<double>(batches.count * batches.particles);
  const double weight = largest_weight(part.c, probes);
  const double unseen =  // in units
      3 / samples * weight + probes.rounding * (weight + rounded_energies(part.c, probes)) + known->error;
  std::vector<double> errors = means.standard_error();
  double tenth = 0;  // the largest z of a tenth of the gradient
  for (std::size_t k = 0; k < errors.size(); ++k) {
    errors[k] += unseen / probes.unit_theta[k];
    if (expected[k] != 0) tenth = std::max(tenth, std::abs(0.1 * expected[k]) / errors[k]);
  }
  rows.push_back(compare_means(part.name, expected, means.mean(), errors));

  const auto wrong_by = [&](double factor, const std::string& name) {
    rows.push_back(must_be_off(compare_means(name, expected, scaled(means.mean(), factor), errors)));
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
    const bool has_law = c.reference && !c.reference->data;
    MixtureSampler(*probes.law, check_noise(c.seed)).draw(x, -3);
    MixtureSampler(has_law ? *probes.fast.law(c.reference->theta) : *probes.law, check_noise(c.seed)).draw(y, -4);
  }
};

// The gradient from the first n samples and m references, written out: sum_i w_i dV/dtheta (x_i), with the weights of
// estimator.hpp. The numbers of each sample are those of the kernels, which are checked on their own; left are
// roundings, relative to the same sum without signs. dV/dtheta in units of theta counts at least 1 there: it may be the
// difference of two such.
struct WrittenOut {
  std::vector<double> gradient, without_signs;
  std::vector<double> slopes;  // summed without signs: what weights count that are too small for single precision
};
WrittenOut written_out(const LangevinConfiguration& c, const ProbePoints& probes, const SomeBlocks& some, std::size_t n,
                       std::size_t m) {
  const Potential<float> potential = prepared(probes.fast, probes.theta);
  std::vector<double> f(some.x.size()), sizes = f;
  const auto add_signal = [&](const std::vector<double>& part, double factor) {
    add(f, part, factor);
    for (std::size_t i = 0; i < sizes.size(); ++i) sizes[i] += std::abs(factor * part[i]);
  };
  if (c.reward) add_signal(values(c.reward->make<float>(), some.x), c.reward->lambda);
  if (c.base) {
    add_signal(values(potential, some.x), c.base->beta);
    add_signal(values(prepared(probes.fast, c.base->theta), some.x), -c.base->beta);
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
    double sum = 0, unsigned_sum = 0, slopes = 0;
    const auto add_sample = [&](double weight, double most_weight, double slope) {
      sum += weight * slope;
      unsigned_sum += most_weight * std::max(std::abs(slope), least);
      slopes += std::max(std::abs(slope), least);
    };
    for (std::size_t i = 0; i < n; ++i)
      add_sample((f[i] - mean) / normaliser - beta / size, (most + beta) / size, at_x[k * some.x.size() + i]);
    for (std::size_t i = 0; i < m; ++i) add_sample(beta / others, beta / others, at_y[k * some.y.size() + i]);
    out.gradient.push_back(sum);
    out.without_signs.push_back(unsigned_sum);
    out.slopes.push_back(slopes);
  }
  return out;
}

// What the estimator makes of it.
std::vector<double> of_blocks(const LangevinConfiguration& c, const ProbePoints& probes, SomeBlocks some,
                              bool at_once) {
  LangevinEngine<float> engine =
      make_engine(c, probes.fast, {.step_size = {c.step_size}, .noise = Noise(c.seed)}, &some.y);
  return estimate(engine, probes, some.x, 0, at_once);
}

// All parts, one after the other.
void check_blocks(const LangevinConfiguration& c, const ProbePoints& probes, Rows& rows) {
  constexpr double roundings = 64 * 0x1p-24, smallest = 0x1p-126;  // of single precision, relative and absolute
  const SomeBlocks some(c, probes);
  std::vector<double> expected, alone, at_once, without, allowed;
  for (const Part& part : parts_of(c)) {
    const WrittenOut all = written_out(part.c, probes, some, some.x.size(), some.y.size());
    append(expected, all.gradient);
    append(without, written_out(part.c, probes, some, 2 * block_size, 2 * block_size).gradient);
    append(alone, of_blocks(part.c, probes, some, false));
    append(at_once, of_blocks(part.c, probes, some, true));
    for (std::size_t k = 0; k < all.without_signs.size(); ++k)
      allowed.push_back(roundings * all.without_signs[k] + smallest * all.slopes[k]);
  }
  rows.push_back(compare("three blocks, written out", expected, alone, allowed));
  rows.push_back(compare("three blocks and a step", expected, at_once, allowed));
  const char* const wrong = "  without the last block";
  const CheckRow lost = compare(wrong, expected, without, allowed);
  rows.push_back(lost.error > 2 * lost.allowed ? must_be_off(compare(wrong, without, alone, allowed))
                                               : left_out(wrong, "the gradient is too small to detect it"));
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

}  // namespace

void check_gradients(const LangevinConfiguration& c, const ProbePoints& probes, std::vector<CheckRow>& rows) {
  if (parts_of(c).empty())
    rows.push_back(left_out("grad", "no reward, reference or base is given"));
  else
    check_blocks(c, probes, rows);
  const ClosedForms forms = closed_forms(c, probes);
  std::vector<Part> vanishing;
  for (const Part& part : parts_of(c))
    if (!check_part(part, probes, forms, rows)) vanishing.push_back(part);
  if (vanishing.empty()) return;

  const char* const wrong = "  a wrong gradient";
  const std::vector<double> theta = elsewhere(c, probes);
  if (probes.exact.find_inadmissible(theta)) {
    rows.push_back(left_out(wrong, "the gradient vanishes, and no theta nearby has a distribution"));
    return;
  }
  const ProbePoints nearby(c, theta);
  const ClosedForms forms_nearby = closed_forms(c, nearby);
  for (Part& part : vanishing) {
    part.name += " elsewhere";
    if (!check_part(part, nearby, forms_nearby, rows))
      rows.push_back(left_out(wrong, "the gradient is too small to distinguish from zero"));
  }
}

}  // namespace program
