#include "langevin/configuration.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/samples.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace program {
namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;

const Words<Method> methods{{"implicit", Method::implicit},
                            {"nested", Method::nested},
                            {"unrolled", Method::unrolled},
                            {"guided", Method::guided},
                            {"langevin-initial", Method::langevin_initial},
                            {"langevin-optimised", Method::langevin_optimised}};
const Words<ScheduleKind> schedules{{"constant", ScheduleKind::constant},
                                    {"inverse-sqrt", ScheduleKind::inverse_sqrt},
                                    {"cube-root", ScheduleKind::cube_root}};
const Words<OptimizerKind> optimizers{{"gradient-descent", OptimizerKind::gradient_descent},
                                      {"adam", OptimizerKind::adam}};
const Words<Order> orders{{"paper", Order::paper}, {"authors", Order::authors}};
const Words<Normaliser> normalisers{{"n", Normaliser::n}, {"n-1", Normaliser::n_minus_1}};
const Words<PotentialKind> potentials{{"quadratic", PotentialKind::quadratic},
                                      {"wells", PotentialKind::wells},
                                      {"logistic-wells", PotentialKind::logistic_wells},
                                      {"mixture", PotentialKind::mixture}};
const Words<CovarianceForm> covariances{{"direct", CovarianceForm::direct}, {"cholesky", CovarianceForm::cholesky}};
const Words<RewardKind> rewards{{"hard", RewardKind::hard},
                                {"smooth", RewardKind::smooth},
                                {"quadratic", RewardKind::quadratic},
                                {"bump", RewardKind::bump}};

PotentialSpec read_potential(Section& s) {
  PotentialSpec p;
  p.kind = s.word("kind", PotentialKind::wells, potentials);
  switch (p.kind) {
    case PotentialKind::quadratic:
      p.precision = s.matrix("precision");
      for (std::size_t i = 0; i < p.precision.size(); ++i)
        for (std::size_t j = 0; j < p.precision[i].size(); ++j)
          if (const double v = p.precision[i][j];
              std::abs(v) > Section::largest || (i == j && v > 0 && !Section::fits(v)))
            s.fail("precision", fmt::format("{} does not fit into single precision", v));
      break;
    case PotentialKind::logistic_wells:
      p.centres = s.matrix("centres");
      p.width = s.number("width", 1.0, Section::Sign::positive);
      p.floor = s.number("floor", p.floor, Section::Sign::positive);
      break;
    case PotentialKind::wells:
      p.centres = s.matrix("centres");
      p.width = s.number("width", p.width, Section::Sign::positive);
      break;
    case PotentialKind::mixture:
      p.components = static_cast<std::size_t>(s.integer("components", 2, 1, 10000));
      p.dimension = static_cast<std::size_t>(s.integer("dimension", 2, 1, 32));
      p.covariance = s.word("covariance", CovarianceForm::direct, covariances);
      p.kappa = s.number("kappa", 0.5, Section::Sign::positive);
      break;
  }
  return p;
}

// A point that particles are compared with: squares of distances must be single-precision numbers too.
constexpr double largest_coordinate = 1e18;
void check_coordinates(const Section& s, std::string_view key, std::span<const double> point) {
  for (const double v : point)
    if (std::abs(v) > largest_coordinate) s.fail(key, fmt::format("{} is too large for single precision", v));
}

RewardSpec read_reward(Section& s, RewardKind fallback, double denominator, double lambda, std::size_t dimension) {
  RewardSpec r;
  r.kind = s.word("kind", fallback, rewards);
  r.centre = s.numbers("centre", {});
  if (r.centre.size() != dimension)
    s.fail("centre", fmt::format("{} numbers, the potential has dimension {}", r.centre.size(), dimension));
  check_coordinates(s, "centre", r.centre);
  if (r.kind != RewardKind::quadratic) r.width = s.number("width", 20.0, Section::Sign::positive);
  if (r.kind == RewardKind::hard || r.kind == RewardKind::smooth)
    r.denominator = s.number("denominator", denominator, Section::Sign::positive);
  if (r.kind == RewardKind::smooth) r.softness = s.number("softness", 0.5, Section::Sign::positive);
  r.lambda = s.number("lambda", lambda, Section::Sign::any);
  return r;
}

// The last row of a theta.npy.
std::vector<double> read_theta(const std::filesystem::path& path) {
  const implicit_diffusion::io::Array a = implicit_diffusion::io::read_npy(path);
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::data, implicit_diffusion::io::display(path), what);
  };
  if (a.shape.empty() || a.shape.size() > 2 || a.values.empty())
    fail("not an array of parameters, shape (rows, p) or (p,)");
  const std::size_t p = a.shape.back();
  std::vector<double> theta(a.values.end() - static_cast<std::ptrdiff_t>(p), a.values.end());
  for (std::size_t j = 0; j < p; ++j)
    if (!std::isfinite(theta[j])) fail(fmt::format("column {} of the last row is {}", j + 1, theta[j]));
  return theta;
}

// Where two entries of a matrix that ought to be equal are not, but for rounding.
std::optional<std::string> asymmetry(std::span<const double> m, std::size_t d) {
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const double one = m[a * d + b], other = m[b * d + a], scale = std::sqrt(std::abs(m[a * d + a] * m[b * d + b]));
      if (std::abs(one - other) > 1e-6 * scale)
        return fmt::format("entries {} and {} at ({}, {})", one, other, a + 1, b + 1);
    }
  return std::nullopt;
}

// What is wrong with a law for single precision, and whether it is a mean or a covariance.
struct Misfit {
  enum class Of { mean, covariance } of;
  std::string what;
};
std::optional<Misfit> misfit(const GaussianMixture& law) {
  constexpr double smallest = 1e-37, largest = 1e37;  // the inverse is needed too
  for (const implicit_diffusion::Gaussian& g : law.components)
    for (std::size_t a = 0; a < g.mean.size(); ++a) {
      const double variance = g.covariance[a * g.mean.size() + a];
      if (!(variance >= smallest && variance <= largest))
        return Misfit{Misfit::Of::covariance,
                      fmt::format("a variance of {:.6g} does not fit into single precision", variance)};
      if (const auto what = too_far(g.mean[a], std::sqrt(variance))) return Misfit{Misfit::Of::mean, *what};
    }
  return std::nullopt;
}

// Refuses a theta at which the potential has no law, or none that can be sampled.
void check_parameters(const Section& s, std::string_view key, const PotentialSpec& spec,
                      std::span<const double> theta) {
  const implicit_diffusion::Potential<float> potential = make_potential(spec);
  if (const auto j = potential.find_inadmissible(theta))
    s.fail(key, fmt::format("number {} makes a covariance that is not positive definite", *j + 1));
  if (spec.kind == PotentialKind::mixture && spec.covariance == CovarianceForm::direct) {
    const implicit_diffusion::Mixture mixture(spec.components, spec.dimension, {spec.covariance, spec.kappa});
    for (std::size_t i = 0; i < spec.components; ++i)
      if (const auto what =
              asymmetry(theta.subspan(mixture.covariance_at(i), spec.dimension * spec.dimension), spec.dimension))
        s.fail(key, fmt::format("the covariance of component {} is not symmetric: {}", i + 1, *what));
  }
  if (const auto bad = misfit(*potential.law(theta))) s.fail(key, bad->what);
}

// The parameters of the potential, in whichever way they are given: theta itself, the file of another run, or what a
// mixture is made of. Empty where none is given.
std::vector<double> read_parameters(Section& s, const PotentialSpec& potential, const std::filesystem::path& folder) {
  std::vector<double> theta;
  std::string_view key = "theta";
  for (const char* way : {"theta_file", "data", "means"})
    if (s.has("theta") && s.contains(way)) s.fail(way, "theta is given too; one of them is meant");
  if (s.has("theta")) {
    theta = s.numbers("theta", {});
  } else if (s.has("theta_file")) {
    key = "theta_file";
    theta = read_theta(s.locate("theta_file", folder));
    s.note("theta", written(theta));  // the file may be gone or changed when this run is repeated
  } else if (potential.kind == PotentialKind::mixture && s.has("means")) {
    const implicit_diffusion::Mixture mixture(potential.components, potential.dimension,
                                              {potential.covariance, potential.kappa});
    const std::vector<double> logits = s.numbers("logits", std::vector<double>(potential.components));
    const auto means = s.matrix("means");
    const auto spreads = s.matrices("covariances");
    for (const auto& [given, count] : {std::pair{"logits", logits.size()}, std::pair{"means", means.size()},
                                       std::pair{"covariances", spreads.size()}})
      if (count != potential.components)
        s.fail(given, fmt::format("{} given, the mixture has {} components", count, potential.components));
    std::vector<implicit_diffusion::Gaussian> parts;
    const std::size_t d = potential.dimension;
    for (std::size_t i = 0; i < potential.components; ++i) {
      if (means[i].size() != d)
        s.fail("means", fmt::format("mean {} has {} coordinates, the dimension is {}", i + 1, means[i].size(), d));
      if (spreads[i].size() != d || std::any_of(spreads[i].begin(), spreads[i].end(),
                                                [d](const std::vector<double>& row) { return row.size() != d; }))
        s.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, d, d));
      parts.push_back({means[i], {}});
      for (const std::vector<double>& row : spreads[i])
        parts[i].covariance.insert(parts[i].covariance.end(), row.begin(), row.end());
      if (const auto what = asymmetry(parts[i].covariance, d))
        s.fail("covariances", fmt::format("matrix {} is not symmetric: {}", i + 1, *what));
    }
    try {
      theta = mixture.parameters_of(logits, parts);
    } catch (const Error& e) {
      s.fail("covariances", e.what());
    }
    if (const auto bad = misfit(mixture.law(theta)))
      s.fail(bad->of == Misfit::Of::mean ? "means" : "covariances", bad->what);
    return theta;
  } else {
    return {};
  }
  const std::size_t p = make_potential(potential).parameters();
  if (theta.size() != p) {
    const std::string what = fmt::format("{} numbers, the potential has {} parameters", theta.size(), p);
    if (key == "theta") s.fail(key, what);
    throw Error(ErrorKind::data, implicit_diffusion::io::display(s.locate("theta_file", folder)), what);
  }
  check_parameters(s, key, potential, theta);
  return theta;
}

// The potential; what it complains about as "potential.KEY: ..." is told with the line of that key.
implicit_diffusion::Potential<float> checked_potential(const PotentialSpec& spec, const Section& s) {
  for (const std::vector<double>& c : spec.centres) {
    check_coordinates(s, "centres", c);
    for (const double x : c)
      if (const auto what = too_far(x, std::sqrt(spec.width / 2))) s.fail("centres", *what);
  }
  try {
    return make_potential(spec);
  } catch (const Error& e) {
    const std::string_view what = e.what(), prefix = "potential.";
    const std::size_t colon = what.find(": ");
    if (!what.starts_with(prefix) || colon == std::string_view::npos) throw;
    s.fail(what.substr(prefix.size(), colon - prefix.size()), std::string(what.substr(colon + 2)));
  }
}

}  // namespace

bool has_inner_steps(Method method) { return method == Method::nested || method == Method::unrolled; }

std::string_view to_string(Method method) {
  for (const auto& [name, m] : methods)
    if (m == method) return name;
  return "";
}

Configuration read_configuration(const Document& d, Methods given) {
  Configuration c;
  Section top(d);
  using Sign = Section::Sign;
  (void)top.has("kind");
  read_common(top, d, c);
  const std::filesystem::path& folder = d.folder;
  c.method = top.word("method", Method::implicit, methods);
  c.particles = top.integer("particles", 1000, 1);
  c.steps = top.integer("steps", 5000, 0);
  c.step_size = top.number("step_size", 0.2, Sign::positive);
  c.learning_rate = top.number("learning_rate", 0.1, Sign::not_negative);
  c.schedule = top.word("schedule", ScheduleKind::constant, schedules);
  c.optimizer = top.word("optimizer", OptimizerKind::gradient_descent, optimizers);
  c.order = top.word("order", Order::paper, orders);
  constexpr std::int64_t steps_with_noise_of_their_own = std::int64_t{1} << 32;
  c.inner_steps = top.integer("inner_steps", c.method == Method::nested ? 10 : 1, 1, steps_with_noise_of_their_own);
  c.warm_start = top.flag("warm_start", true);
  c.normaliser = top.word("normaliser", Normaliser::n_minus_1, normalisers);
  const bool learns = c.method == Method::implicit || c.method == Method::nested;  // by a covariance
  if (learns && c.normaliser == Normaliser::n_minus_1 && c.particles < 2)
    top.fail("particles", "1 particle has no covariance with normaliser n-1");
  c.log_every = top.integer("log_every", 10, 1);
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0);
  c.snapshots = top.integers("snapshots", {}, 0);
  if (!std::is_sorted(c.snapshots.begin(), c.snapshots.end(), std::less_equal<>()))
    top.fail("snapshots", "the steps must ascend");
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));

  Section potential = top.section("potential");
  c.potential = read_potential(potential);
  const implicit_diffusion::Potential<float> v = checked_potential(c.potential, potential);

  Section reward = top.section("reward");
  if (top.has("reward")) c.reward = read_reward(reward, RewardKind::hard, 2.5, 1.0, v.dimension());
  Section smooth = top.section("smooth_reward");
  if (top.has("smooth_reward"))
    c.smooth_reward =
        read_reward(smooth, RewardKind::smooth, c.method == Method::guided ? 0.7 : 2.5, 5.0, v.dimension());
  if (given == Methods::several) {  // what depends on the method is not settled yet
    for (const char* key : {"method", "inner_steps"}) top.forget(key);
    if (!smooth.contains("denominator")) smooth.forget("denominator");
  }

  Section reference = top.section("reference");
  if (top.has("reference")) {
    ReferenceSpec r;
    r.theta = read_parameters(reference, c.potential, folder);
    if (r.theta.empty()) r.data = reference.file("data", folder);
    if (r.theta.empty() && r.data.empty())
      reference.fail("data", "missing: the reference is samples in a file (data) or a law of the potential (theta)");
    r.batch = static_cast<std::size_t>(reference.integer("batch", r.theta.empty() ? 0 : 1000, r.theta.empty() ? 0 : 1));
    r.beta = reference.number("beta", 1.0, Sign::not_negative);
    c.reference = r;
  }
  Section base = top.section("base");
  if (top.has("base")) {
    BaseSpec b;
    b.theta = read_parameters(base, c.potential, folder);
    if (b.theta.empty()) base.fail("theta", "missing: the law to stay close to");
    b.beta = base.number("beta", 1.0, Sign::not_negative);
    c.base = b;
  }

  Section start = top.section("start");
  c.start.theta = read_parameters(start, c.potential, folder);
  if (c.start.theta.empty()) start.fail("theta", "missing: where theta starts");
  c.start.samples = start.file("samples", folder);
  if (c.start.samples.empty()) {
    c.start.mean = start.numbers("mean", std::vector<double>(v.dimension()));
    if (c.start.mean.size() != v.dimension())
      start.fail("mean", fmt::format("{} numbers, the potential has dimension {}", c.start.mean.size(), v.dimension()));
    c.start.scale = start.number("scale", 1.0, Sign::not_negative);
    check_coordinates(start, "mean", c.start.mean);
  }

  c.theta_opt = top.numbers("theta_opt", c.reference ? c.reference->theta : std::vector<double>{});
  if (!c.theta_opt.empty() && c.theta_opt.size() != v.parameters())
    top.fail("theta_opt",
             fmt::format("{} numbers, the potential has {} parameters", c.theta_opt.size(), v.parameters()));
  if (!c.theta_opt.empty()) check_parameters(top, "theta_opt", c.potential, c.theta_opt);
  c.thresholds = top.numbers("thresholds", {});
  if (!c.thresholds.empty() && c.theta_opt.empty()) top.fail("thresholds", "a log-likelihood needs theta_opt");

  if (learns && !c.reward && !c.reference && !c.base)
    top.fail("method", fmt::format("{} needs an objective: a table reward, reference or base", to_string(c.method)));
  if ((c.method == Method::guided || c.method == Method::unrolled) && !c.smooth_reward)
    top.fail("method", fmt::format("{} needs a table smooth_reward", to_string(c.method)));
  if (c.method == Method::langevin_optimised && c.theta_opt.empty())
    top.fail("method", "langevin-optimised needs theta_opt");

  check_size(c, v.dimension(), v.parameters(), [&](std::string_view key, const std::string& reason) {
    if (key == "reference.batch") reference.fail("batch", reason);
    top.fail(key, reason);
  });
  finish(c, d, {&top, &potential, &reward, &smooth, &reference, &base, &start});
  return c;
}

Configuration with_seed(Configuration c, std::uint64_t seed) {
  const auto line = [](std::uint64_t s) { return fmt::format("\nseed = {}\n", s); };
  const std::string before = line(c.seed);
  c.resolved.replace(c.resolved.find(before), before.size(), line(seed));
  c.seed = seed;
  return c;
}

Comparison read_comparison(const Document& d) {
  Section top(d), own = top.section("comparison");
  for (const char* key : {"method", "inner_steps"})
    if (top.contains(key))
      top.fail(key, fmt::format("unknown key; did you mean comparison.{}{}?", key,
                                key == std::string_view("method") ? "s" : ""));
  Comparison all;
  const std::vector<Method> chosen = own.words("methods", methods);
  if (chosen.empty()) own.fail("methods", "missing: the methods to compare");
  const std::vector<std::int64_t> inner = own.integers("inner_steps", {1}, 1);
  for (std::size_t i = 0; i < chosen.size(); ++i)
    if (std::count(chosen.begin(), chosen.end(), chosen[i]) > 1)
      own.fail("methods", fmt::format("{} is there twice", to_string(chosen[i])));
  for (const std::int64_t t : inner)
    if (std::count(inner.begin(), inner.end(), t) > 1) own.fail("inner_steps", fmt::format("{} is there twice", t));
  if (inner.empty()) own.fail("inner_steps", "empty: one number of steps at least is needed");
  all.seeds = own.integer("seeds", 10, 1, 100'000);
  const std::vector<std::string> variants = own.texts("variants", {});
  own.finish({&own});

  Document shared = d;
  shared.table.erase("comparison");
  static_cast<Common&>(all) = read_configuration(shared, Methods::several);
  all.resolved = "kind = \"langevin-comparison\"\n" + all.resolved + own.lines();
  if (all.seed + static_cast<std::uint64_t>(all.seeds) - 1 > largest_seed)
    own.fail("seeds", fmt::format("{} runs from seed {} need seeds beyond {}", all.seeds, all.seed, largest_seed));

  // One run of `changes` to the file, each KEY=VALUE.
  const auto add = [&](const std::vector<std::string>& changes, const std::string& variant) {
    Document one = shared;
    one.table.erase("kind");
    for (const std::string& text : changes) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals == 0)
        own.fail("variants", fmt::format("{} is not of the form key=value", implicit_diffusion::io::excerpt(text)));
      for (const std::string_view common : {"seed", "steps", "experiment", "title", "kind", "duration", "quick",
                                            "thresholds", "theta_opt", "snapshots", "log_every", "comparison"})
        if (!variant.empty() && (text.substr(0, equals) == common || text.starts_with(std::string(common) + ".")))
          own.fail("variants", fmt::format("{} is common to all settings", common));
      change(one, {text.substr(0, equals), text.substr(equals + 1), fmt::format("{}: comparison: {}", d.where, text)});
    }
    Setting s{read_configuration(one), variant, std::string()};
    s.folder = to_string(s.configuration.method);
    if (has_inner_steps(s.configuration.method)) s.folder += fmt::format("-{}", s.configuration.inner_steps);
    if (!variant.empty()) s.folder = fmt::format("variant-{}-{}", ++all.variants, s.folder);
    all.settings.push_back(std::move(s));
  };
  for (const Method m : chosen) {
    const std::string method = fmt::format("method={}", to_string(m));
    if (!has_inner_steps(m)) add({method}, "");
    for (const std::int64_t t : inner)
      if (has_inner_steps(m)) add({method, fmt::format("inner_steps={}", t)}, "");
  }
  for (const std::string& variant : variants) {
    std::vector<std::string> changes;
    for (std::size_t at = 0; at < variant.size();) {
      const std::size_t end = std::min(variant.find(' ', at), variant.size());
      if (end > at) changes.push_back(variant.substr(at, end - at));
      at = end + 1;
    }
    add(changes, variant);
  }
  return all;
}

}  // namespace program
