#include "denoising_mixture/denoising_mixture.hpp"
#include "experiment/table_reader.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <map>

#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

const Words<LoopKind> loops{
    {"queue", LoopKind::queue}, {"queue-cold", LoopKind::queue_cold}, {"double-queue", LoopKind::double_queue}};
const Words<Dynamics> dynamics_words{{"sde", Dynamics::euler_sde}, {"ode", Dynamics::euler_ode}};
const Words<NoiseSchedule> schedules{{"ornstein-uhlenbeck", NoiseSchedule::ornstein_uhlenbeck},
                                     {"cosine", NoiseSchedule::cosine}};
const Words<Spread> spreads{
    {"isotropic", Spread::isotropic}, {"diagonal", Spread::diagonal}, {"cholesky", Spread::cholesky}};
const Words<OptimizerKind> optimizers{{"gradient-descent", OptimizerKind::gradient_descent},
                                      {"adam", OptimizerKind::adam}};

// One run, with all the tables of a file but `comparison`.
DenoisingConfiguration read_single(const Document& d) {
  using Sign = Section::Sign;
  DenoisingConfiguration c;
  Section top(d);
  top.text("kind", "denoising-mixture");
  read_common(top, d, c);
  c.loop = top.word("loop", c.loop, loops);
  c.dynamics = top.word("dynamics", c.dynamics, dynamics_words);
  c.schedule = top.word("schedule", c.schedule, schedules);
  const bool cosine = c.schedule == NoiseSchedule::cosine;
  c.horizon = top.number("horizon", cosine ? 0.99 : 3, Sign::positive);
  if (cosine && c.horizon >= 1)
    top.fail("horizon", fmt::format("{} must be below 1, where the cosine schedule has nothing but noise", c.horizon));
  constexpr double longest = 30;
  if (c.horizon > longest) top.fail("horizon", fmt::format("{} must be at most {}", c.horizon, longest));
  constexpr std::int64_t most_steps = 100'000;
  c.steps_per_sample = top.integer("steps_per_sample", c.steps_per_sample, 1, most_steps);
  c.slots = top.integer("slots", std::max<std::int64_t>(1, c.steps_per_sample / 4), 1, most_steps);
  if (c.steps_per_sample % c.slots != 0)
    top.fail("slots", fmt::format("{} does not divide the {} steps of a sample", c.slots, c.steps_per_sample));
  try {
    (void)c.grid();
  } catch (const Error&) {
    top.fail("horizon", fmt::format("{} is too short for {} steps of the schedule", c.horizon, c.steps_per_sample));
  }
  c.keep_every = top.integer("keep_every", 1, 1, most_steps);
  c.batch = top.integer("batch", c.batch, 1);
  c.steps = top.integer("steps", c.steps, 0);
  c.learning_rate = top.number("learning_rate", c.learning_rate, Sign::not_negative);
  c.optimizer = top.word("optimizer", c.optimizer, optimizers);
  c.lambda = top.number("lambda", c.lambda, Sign::any);
  c.beta = top.number("beta", c.beta, Sign::positive);
  c.log_every = top.integer("log_every", c.log_every, 1);
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));
  if (c.loop == LoopKind::double_queue && c.dynamics != Dynamics::euler_ode)
    top.fail("loop", "double-queue is for dynamics ode: samples are followed back without their noise");
  if (c.loop == LoopKind::double_queue && c.slots != c.steps_per_sample)
    top.fail("slots",
             fmt::format("{}: double-queue has one for each of the {} steps of a sample", c.slots, c.steps_per_sample));

  Section base = top.section("base");
  const std::vector<double> weights = base.numbers("weights", {});
  const Matrix means = base.matrix("means");
  std::vector<Matrix> covariances;
  if (base.contains("covariances") && base.contains("deviations"))
    base.fail("deviations", "the covariances are given already");
  const char* spread_key = base.contains("covariances") ? "covariances" : "deviations";
  if (base.contains("covariances")) {
    covariances = base.matrices("covariances");
  } else {
    (void)base.has("covariances");
    const std::vector<double> deviations = base.numbers("deviations", std::vector<double>(means.size(), 1.0));
    for (const double s : deviations) {
      if (!(s >= 1e-3 && s <= 1e3)) base.fail("deviations", fmt::format("{} must be between 0.001 and 1000", s));
      const std::size_t n = means.empty() ? 0 : means.front().size();
      Matrix m(n, std::vector<double>(n, 0.0));
      for (std::size_t j = 0; j < n; ++j) m[j][j] = s * s;
      covariances.push_back(std::move(m));
    }
  }
  c.spread = base.word("spread", base.contains("covariances") ? Spread::cholesky : Spread::isotropic, spreads);
  using Model = MixtureScore<Spread::cholesky>;  // the limits are those of all forms
  if (means.empty() || means.size() > Model::most_components)
    base.fail("means", fmt::format("{} components, there can be 1 to {}", means.size(), Model::most_components));
  const std::size_t n = means.size(), dimension = means.front().size();
  if (dimension == 0 || dimension > Model::largest_dimension)
    base.fail("means", fmt::format("{} coordinates, there can be 1 to {}", dimension, Model::largest_dimension));
  if (weights.size() != n) base.fail("weights", fmt::format("{} given, there are {} means", weights.size(), n));
  if (covariances.size() != n)
    base.fail(spread_key, fmt::format("{} given, there are {} means", covariances.size(), n));
  double sum = 0;
  for (const double w : weights) {
    if (!(w > 0)) base.fail("weights", fmt::format("{} must be positive", w));
    if (!(w >= 1e-12 && w <= 1e12)) base.fail("weights", fmt::format("{} must be between 1e-12 and 1e12", w));
    sum += w;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (means[i].size() != dimension)
      base.fail("means",
                fmt::format("mean {} has {} coordinates, the first has {}", i + 1, means[i].size(), dimension));
    for (const double x : means[i])
      if (std::abs(x) > 1e4) base.fail("means", fmt::format("{} is too far from the origin", x));
    Gaussian g{means[i], {}};
    bool square = covariances[i].size() == dimension;
    for (const auto& row : covariances[i]) {
      square = square && row.size() == dimension;
      g.covariance.insert(g.covariance.end(), row.begin(), row.end());
    }
    if (!square) base.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, dimension, dimension));
    for (std::size_t a = 0; a < dimension; ++a)
      if (const double v = g.covariance[a * dimension + a]; !(v <= 1e6 && (v <= 0 || v >= 1e-6)))
        base.fail(spread_key, fmt::format("matrix {} has a variance of {}, it must be between 1e-6 and 1e6", i + 1, v));
    for (std::size_t a = 0; a < dimension; ++a)
      for (std::size_t b = 0; b < a; ++b)
        if (std::abs(g.covariance[a * dimension + b] - g.covariance[b * dimension + a]) >
            1e-9 * (std::abs(g.covariance[a * dimension + a]) + std::abs(g.covariance[b * dimension + b])))
          base.fail("covariances", fmt::format("matrix {} is not symmetric", i + 1));
    c.base.weights.push_back(weights[i] / sum);
    c.base.components.push_back(std::move(g));
  }
  const auto fits = [](const auto& model, const GaussianMixture& law) -> std::optional<std::string> {
    try {
      (void)model.parameters_of(law);
    } catch (const Error& e) {
      const std::string_view text = e.what();
      return std::string(text.starts_with("law: ") ? text.substr(5) : text);
    }
    return std::nullopt;
  };
  if (const auto why = fits(c.model(), c.base)) base.fail(spread_key, *why);
  for (std::size_t i = 0; i < n; ++i) {  // in every direction, not along the axes alone
    GaussianMixture less{{1.0}, {c.base.components[i]}};
    for (std::size_t a = 0; a < dimension; ++a) less.components[0].covariance[a * (dimension + 1)] -= 0.999e-6;
    if (fits(Model(1, dimension), less))
      base.fail(spread_key, fmt::format("matrix {} has a direction with a variance below 1e-6", i + 1));
  }

  Section reward = top.section("reward");
  c.direction = reward.numbers("direction", {});
  if (c.direction.size() != dimension)
    reward.fail("direction", fmt::format("{} numbers, the means have {} coordinates", c.direction.size(), dimension));
  for (const double v : c.direction)
    if (!(std::abs(v) <= 1e30)) reward.fail("direction", fmt::format("{} is beyond 1e30", v));

  // Every slot comes to have the memory of a whole path. With a checkpoint of them, made in memory, that was 5.1 times half of it at most.
  constexpr double most_bytes = 8e9, copies = 2.6;
  const double states = static_cast<double>(c.slots + 1) *
                        (1 + std::ceil(static_cast<double>(c.steps_per_sample) / static_cast<double>(c.keep_every)));
  if (const double bytes =
          copies * states * static_cast<double>(c.batch) * static_cast<double>(dimension) * sizeof(float);
      bytes > most_bytes)
    top.fail("batch", fmt::format("{} samples on {} slots need {:.3g} GB; a larger keep_every stores fewer states",
                                  c.batch, c.slots, bytes / 1e9));
  finish(c, d, {&top, &base, &reward});
  return c;
}

}  // namespace

std::string_view to_string(LoopKind loop) {
  for (const auto& [name, l] : loops)
    if (l == loop) return name;
  return "";
}
std::string_view to_string(Dynamics dynamics) { return dynamics == Dynamics::euler_ode ? "ode" : "sde"; }

MixtureModel::MixtureModel(Spread form, std::size_t components, std::size_t dimension)
    : model_(MixtureScore<Spread::isotropic>(components, dimension)) {
  if (form == Spread::diagonal) model_ = MixtureScore<Spread::diagonal>(components, dimension);
  if (form == Spread::cholesky) model_ = MixtureScore<Spread::cholesky>(components, dimension);
}
std::size_t MixtureModel::dimension() const {
  return with([](const auto& m) { return m.dimension(); });
}
std::size_t MixtureModel::parameters() const {
  return with([](const auto& m) { return m.parameters(); });
}
GaussianMixture MixtureModel::law(std::span<const double> theta) const {
  return with([&](const auto& m) { return m.law(theta); });
}
std::vector<double> MixtureModel::parameters_of(const GaussianMixture& law) const {
  return with([&](const auto& m) { return m.parameters_of(law); });
}

TimeGrid DenoisingConfiguration::grid() const {
  const auto t = static_cast<std::size_t>(steps_per_sample);
  return schedule == NoiseSchedule::cosine ? cosine_grid(t, horizon) : uniform_grid(horizon, t);
}

GaussianMixture DenoisingConfiguration::tilted() const {
  std::vector<double> t;
  for (const double r : direction) t.push_back(lambda / beta * r);
  return tilted_law(base, t);
}

double DenoisingConfiguration::tilted_reward() const {
  const GaussianMixture law = tilted();
  double sum = 0;
  for (std::size_t i = 0; i < law.weights.size(); ++i)
    for (std::size_t j = 0; j < direction.size(); ++j) sum += law.weights[i] * direction[j] * law.components[i].mean[j];
  return sum;
}

DenoisingExperiment read_denoising(const Document& d) {
  Document shared = d;
  shared.table.erase("comparison");
  DenoisingExperiment e;
  e.single = read_single(shared);
  static_cast<Common&>(e) = e.single;
  Section top(d);
  if (!top.contains("comparison")) return e;
  Section own = top.section("comparison");
  const std::vector<std::string> settings = own.texts("settings", {});
  own.finish({&own});
  e.resolved += own.lines();
  std::map<std::string, std::size_t> named;  // how many settings name a key
  for (const std::string& text : settings) {
    Document one = shared;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = std::min(text.find(' ', at), text.size()), equals = text.find('=', at);
      if (end > at) {
        if (equals == std::string::npos || equals >= end || equals == at)
          own.fail("settings", fmt::format("{} is not of the form key=value ...", io::excerpt(text)));
        ++named[text.substr(at, equals - at)];
        change(one, {text.substr(at, equals - at), text.substr(equals + 1, end - equals - 1),
                     fmt::format("{}: comparison.settings: {}", d.where, text)});
      }
      at = end + 1;
    }
    DenoisingConfiguration c = read_single(one);
    if (c.base.dimension() != e.single.base.dimension() || c.seed != e.seed || c.experiment != e.experiment)
      own.fail("settings", fmt::format("{}: a setting cannot change base, seed or experiment", io::excerpt(text)));
    std::string folder = fmt::format("{}-{}-{}", to_string(c.loop), to_string(c.dynamics), c.slots);
    const auto taken = [&](const std::string& name) {
      return std::any_of(e.settings.begin(), e.settings.end(), [&](const auto& s) { return s.folder == name; });
    };
    if (taken(folder))
      for (int k = 2;; ++k)
        if (const std::string other = fmt::format("{}-{}", folder, k); !taken(other)) {
          folder = other;
          break;
        }
    e.settings.push_back({folder, std::move(c)});
  }
  for (const auto& [key, option] : d.from_command_line)
    if (named.contains(key) && named[key] == settings.size())
      throw Error(
          ErrorKind::usage, option,
          fmt::format("every run of comparison.settings has a {} of its own, so this would have no effect; with --set "
                      "comparison.settings=[] there is one run",
                      key));
  return e;
}

}  // namespace program
