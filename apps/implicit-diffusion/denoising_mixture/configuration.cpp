#include "denoising_mixture/experiment.hpp"

#include "experiment/limits.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/optimizer/any.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<LoopKind> loops{{"nested", LoopKind::nested},
                                {"queue", LoopKind::queue},
                                {"queue-cold", LoopKind::queue_cold},
                                {"double-queue", LoopKind::double_queue}};
const EnumNames<Dynamics> dynamics_words{{"sde", Dynamics::euler_sde}, {"ode", Dynamics::euler_ode}};
const EnumNames<NoiseSchedule> schedules{{"ornstein-uhlenbeck", NoiseSchedule::ornstein_uhlenbeck},
                                         {"cosine", NoiseSchedule::cosine}};
const EnumNames<Spread> spreads{
    {"isotropic", Spread::isotropic}, {"diagonal", Spread::diagonal}, {"cholesky", Spread::cholesky}};

// The table `base`: a mixture, with weights, means, and covariances or deviations.
void read_base(TableReader& t, DenoisingConfiguration& c) {
  const std::vector<double> weights = t.numbers("weights", {});
  const Matrix means = t.matrix("means");
  std::vector<Matrix> covariances;
  const bool full = t.has("covariances");
  if (full && t.contains("deviations")) t.fail("deviations", "the covariances are given already");
  const char* spread_key = full ? "covariances" : "deviations";
  if (full) {
    covariances = t.matrices("covariances");
  } else {
    const std::vector<double> deviations = t.numbers("deviations", std::vector<double>(means.size(), 1.0));
    for (const double s : deviations) {
      if (!(s >= 1e-3 && s <= 1e3)) t.fail("deviations", fmt::format("{} must be between 0.001 and 1000", s));
      const std::size_t n = means.empty() ? 0 : means.front().size();
      Matrix m(n, std::vector<double>(n, 0.0));
      for (std::size_t j = 0; j < n; ++j) m[j][j] = s * s;
      covariances.push_back(std::move(m));
    }
  }
  c.spread = full ? Spread::cholesky : Spread::isotropic;
  if (!c.network) c.spread = t.choice("spread", c.spread, spreads);  // a network has none
  using Model = MixtureScore<Spread::cholesky>;                      // the limits are those of all forms
  if (means.empty() || means.size() > Model::most_components)
    t.fail("means", fmt::format("{} components, there can be 1 to {}", means.size(), Model::most_components));
  const std::size_t n = means.size(), dimension = means.front().size();
  if (dimension == 0 || dimension > Model::largest_dimension)
    t.fail("means", fmt::format("{} coordinates, there can be 1 to {}", dimension, Model::largest_dimension));
  if (weights.size() != n) t.fail("weights", fmt::format("{} given, there are {} means", weights.size(), n));
  if (covariances.size() != n) t.fail(spread_key, fmt::format("{} given, there are {} means", covariances.size(), n));
  double sum = 0;
  for (const double w : weights) {
    if (!(w > 0)) t.fail("weights", fmt::format("{} must be positive", w));
    if (!(w >= 1e-12 && w <= 1e12)) t.fail("weights", fmt::format("{} must be between 1e-12 and 1e12", w));
    sum += w;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (means[i].size() != dimension)
      t.fail("means", fmt::format("mean {} has {} coordinates, the first has {}", i + 1, means[i].size(), dimension));
    for (const double x : means[i])
      if (std::abs(x) > 1e4) t.fail("means", fmt::format("{} is too far from the origin", x));
    Gaussian g{means[i], {}};
    bool square = covariances[i].size() == dimension;
    for (const auto& row : covariances[i]) {
      square = square && row.size() == dimension;
      g.covariance.insert(g.covariance.end(), row.begin(), row.end());
    }
    if (!square) t.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, dimension, dimension));
    for (std::size_t a = 0; a < dimension; ++a)
      if (const double v = g.covariance[a * dimension + a]; !(v <= 1e6 && (v <= 0 || v >= 1e-6)))
        t.fail(spread_key, fmt::format("matrix {} has a variance of {}, it must be between 1e-6 and 1e6", i + 1, v));
    if (const auto what = find_asymmetry(g.covariance, dimension))
      t.fail("covariances", fmt::format("matrix {} is not symmetric: {}", i + 1, *what));
    c.base.weights.push_back(weights[i] / sum);
    c.base.components.push_back(std::move(g));
  }
  const auto find_misfit = [](const auto& model, const GaussianMixture& given) -> std::optional<std::string> {
    try {
      (void)model.parameters_of(given);
    } catch (const Error& e) {
      return e.reason();
    }
    return std::nullopt;
  };
  if (const auto why = find_misfit(c.model(), c.base)) t.fail(spread_key, *why);
  for (std::size_t i = 0; i < n; ++i) {  // in every direction, not along the axes alone
    GaussianMixture less{{1.0}, {c.base.components[i]}};
    for (std::size_t a = 0; a < dimension; ++a) less.components[0].covariance[a * (dimension + 1)] -= 0.999e-6;
    if (find_misfit(Model(1, dimension), less))
      t.fail(spread_key, fmt::format("matrix {} has a direction with a variance below 1e-6", i + 1));
  }
}

// The tables `network` and `training`.
void read_network(TableReader& t, TableReader& training, ScoreNetworkKeys& n) {
  n.widths = t.integers("widths", n.widths, 1, 4096);
  if (n.widths.empty() || n.widths.size() > 32)
    t.fail("widths", fmt::format("{} layers, there can be 1 to 32", n.widths.size()));
  n.time_features = t.integer("time_features", n.time_features, 2, 4096);
  if (n.time_features % 2 != 0) t.fail("time_features", fmt::format("{} must be even", n.time_features));
  n.shard = t.integer("shard", n.shard, 1, 1'000'000);
  n.samples = t.integer("samples", n.samples, 1, 10'000'000);
  read_training(training, n.training, true);
}

// One run, with all the tables of a file but `comparison`.
DenoisingConfiguration read_single(const Document& d) {
  using Sign = TableReader::Sign;
  DenoisingConfiguration c;
  TableReader top(d);
  top.text("kind", "denoising-mixture");
  (void)top.has("comparison");  // a table of its own
  read_common(top, d, c);
  static const EnumNames<bool> models{{"mixture", false}, {"mlp", true}};
  if (top.choice("model", false, models)) c.network.emplace();
  c.loop = top.choice("loop", c.loop, loops);
  c.dynamics = top.choice("dynamics", c.dynamics, dynamics_words);
  c.schedule = top.choice("schedule", c.schedule, schedules);
  const bool cosine = c.schedule == NoiseSchedule::cosine;
  c.horizon = top.number("horizon", cosine ? 0.99 : 3, Sign::positive);
  if (cosine && c.horizon >= 1)
    top.fail("horizon", fmt::format("{} must be below 1, where the cosine schedule has nothing but noise", c.horizon));
  constexpr double longest = 30;
  if (c.horizon > longest) top.fail("horizon", fmt::format("{} must be at most {}", c.horizon, longest));
  constexpr std::int64_t most_steps = 100'000;
  c.steps_per_sample = top.integer("steps_per_sample", c.steps_per_sample, 1, most_steps);
  const std::int64_t usual_slots = c.loop == LoopKind::nested ? 1 : std::max<std::int64_t>(1, c.steps_per_sample / 4);
  c.slots = top.integer("slots", usual_slots, 1, most_steps);
  if (c.loop == LoopKind::nested && c.slots != 1)
    top.fail("slots",
             fmt::format("{}: the nested loop takes a batch all the way at once, which is slots = 1", c.slots));
  if (c.slots == 1 && c.loop != LoopKind::double_queue) {
    c.loop = LoopKind::nested;
    top.record("loop", toml_string(to_string(c.loop)));
  }
  if (c.steps_per_sample % c.slots != 0)
    top.fail("slots", fmt::format("{} does not divide the {} steps of a sample", c.slots, c.steps_per_sample));
  try {
    (void)c.grid(static_cast<std::size_t>(c.steps_per_sample));
  } catch (const Error&) {
    top.fail("horizon", fmt::format("{} is too short for {} steps of the schedule", c.horizon, c.steps_per_sample));
  }
  c.keep_every = top.integer("keep_every", 1, 1, most_steps);
  if (c.loop == LoopKind::nested && c.keep_every != 1)
    top.fail("keep_every",
             fmt::format("{} has no effect on the nested loop (slots = 1), which keeps no path", c.keep_every));
  c.batch = top.integer("batch", c.batch, 1);
  c.steps = top.integer("steps", c.steps, 0);
  c.learning_rate = top.number("learning_rate", c.network ? 1e-3 : c.learning_rate, Sign::not_negative);
  const std::vector<std::string> optimizers = AnyOptimizer::names();
  const auto usual = std::find(optimizers.begin(), optimizers.end(), c.optimizer) - optimizers.begin();
  c.optimizer = optimizers[top.choice("optimizer", static_cast<std::size_t>(usual), optimizers)];
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

  TableReader base = top.table("base");
  read_base(base, c);
  const std::size_t dimension = c.base.dimension();

  std::optional<TableReader> network, training;
  for (const char* table : {"network", "training"})
    if (!c.network && top.contains(table)) top.fail(table, "it is for model = \"mlp\"; the exact score has none");
  if (c.network) {
    network.emplace(top.table("network"));
    training.emplace(top.table("training"));
    read_network(*network, *training, *c.network);
  }

  TableReader reward = top.table("reward");
  c.direction = reward.numbers("direction", {});
  if (c.direction.size() != dimension)
    reward.fail("direction", fmt::format("{} numbers, the means have {} coordinates", c.direction.size(), dimension));
  for (const double v : c.direction)
    if (!(std::abs(v) <= 1e30)) reward.fail("direction", fmt::format("{} is beyond 1e30", v));

  // Every slot comes to have the memory of a whole path. With a checkpoint of them, made in memory, that was 5.1 times
  // half of it at most.
  constexpr double most_bytes = 8e9, copies = 2.6;
  const double kept = std::ceil(static_cast<double>(c.steps_per_sample) / static_cast<double>(c.keep_every)),
               states = c.loop == LoopKind::nested ? 1 : static_cast<double>(c.slots + 1) * (1 + kept),
               bytes = copies * states * static_cast<double>(c.batch) * static_cast<double>(dimension) * sizeof(float);
  if (bytes > most_bytes)
    top.fail("batch", fmt::format("{} samples on {} slots need {:.3g} GB; a larger keep_every stores fewer states",
                                  c.batch, c.slots, bytes / 1e9));
  if (c.network)
    finish(c, d, {&top, &base, &reward, &*network, &*training});
  else
    finish(c, d, {&top, &base, &reward});
  return c;
}

}  // namespace

std::string_view to_string(LoopKind loop) { return name_of(loop, loops); }
std::string_view to_string(Dynamics dynamics) { return name_of(dynamics, dynamics_words); }

TimeGrid DenoisingConfiguration::grid(std::size_t times) const {
  return schedule == NoiseSchedule::cosine ? cosine_grid(times, horizon) : uniform_grid(horizon, times);
}

GaussianMixture DenoisingConfiguration::tilted() const {
  std::vector<double> t;
  for (const double r : direction) t.push_back(lambda / beta * r);
  return tilted_law(base, t);
}

double DenoisingConfiguration::mean_reward(const GaussianMixture& law) const {
  double sum = 0;
  for (std::size_t i = 0; i < law.weights.size(); ++i)
    for (std::size_t j = 0; j < direction.size(); ++j) sum += law.weights[i] * law.components[i].mean[j] * direction[j];
  return sum;
}

DenoisingComparison read_denoising_configuration(const Document& d) {
  Document shared = d;
  shared.table.erase("comparison");
  DenoisingComparison e;
  e.single = read_single(shared);
  static_cast<Common&>(e) = e.single;
  TableReader top(d);
  if (!top.contains("comparison")) return e;
  TableReader own = top.table("comparison");
  const std::vector<std::string> settings = own.texts("settings", {});
  own.finish({&own});
  own.append_to(e.resolved);
  if (settings.empty()) e.single.resolved = e.resolved;
  std::map<std::string, std::size_t> named;  // how many settings name a key
  const auto refuse = [&](const std::string& change) {
    own.fail("settings", fmt::format("{} is not of the form key=value", io::excerpt(change)));
  };
  for (const std::string& text : settings) {
    Document one = shared;
    for (Override& o : read_changes(text, refuse)) {
      ++named[o.key];
      o.option = fmt::format("{}: comparison.settings: {}", d.where, text);
      change(one, o);
    }
    DenoisingConfiguration c = read_single(one);
    if (one.table["kind"].value<std::string>() != shared.table["kind"].value<std::string>())
      own.fail("settings", fmt::format("{}: a setting cannot change kind", io::excerpt(text)));
    if (c.base.dimension() != e.single.base.dimension() || c.seed != e.seed || c.experiment != e.experiment)
      own.fail("settings", fmt::format("{}: a setting cannot change base, seed or experiment", io::excerpt(text)));
    // All of them begin with one trained network.
    if (c.network.has_value() != e.single.network.has_value())
      own.fail("settings", fmt::format("{}: a setting cannot change the model", io::excerpt(text)));
    if (c.network && std::ranges::any_of(named, [](const auto& n) {
          return n.first.starts_with("network.") || n.first.starts_with("training.") || n.first.starts_with("base.");
        }))
      own.fail("settings",
               fmt::format("{}: a setting cannot change the network, its training or the base", io::excerpt(text)));
    const std::string name = fmt::format("{}-{}-{}", to_string(c.loop), to_string(c.dynamics), c.slots);
    std::string folder = name;
    for (int k = 2; std::ranges::count(e.settings, folder, &DenoisingComparison::Setting::folder) > 0; ++k)
      folder = fmt::format("{}-{}", name, k);
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
