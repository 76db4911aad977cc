#include "langevin/configuration.hpp"

#include "experiment/limits.hpp"
#include "implicit_diffusion/optimizer/any.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<Method> methods{{"implicit", Method::implicit},
                                {"nested", Method::nested},
                                {"unrolled", Method::unrolled},
                                {"guided", Method::guided},
                                {"langevin-initial", Method::langevin_initial},
                                {"langevin-optimised", Method::langevin_optimised}};
const EnumNames<ScheduleKind> schedules{{"constant", ScheduleKind::constant},
                                        {"inverse-sqrt", ScheduleKind::inverse_sqrt},
                                        {"cube-root", ScheduleKind::cube_root}};
const EnumNames<Order> orders{{"paper", Order::paper}, {"authors", Order::authors}};
const EnumNames<Normaliser> normalisers{{"n", Normaliser::n}, {"n-1", Normaliser::n_minus_1}};

std::shared_ptr<const SampleFile> read_sample_file(TableReader& t, std::string_view key,
                                                   const std::filesystem::path& folder) {
  const std::filesystem::path file = t.file(key, folder);
  return file.empty() ? nullptr : std::make_shared<const SampleFile>(file);
}

// Refuses, before anything is allocated, a run that would not fit into this machine's memory.
void check_size(const LangevinConfiguration& c, std::size_t dimension, std::size_t parameters, const TableReader& top,
                const TableReader& reference) {
  const double memory = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  const auto check = [&](const TableReader& t, const char* key, std::int64_t value, double bytes) {
    if (bytes > 0.8 * memory)
      t.fail(key,
             fmt::format("{} needs {:.3g} GB of memory, this machine has {:.3g} GB", value, bytes / 1e9, memory / 1e9));
  };
  const auto d = static_cast<double>(dimension);
  const auto check_samples = [&](const TableReader& t, const char* key, std::int64_t n, double numbers_each) {
    check(t, key, n, static_cast<double>(n) * numbers_each * sizeof(float));
    if (static_cast<double>(n) * d > 0x1p34)
      t.fail(key, fmt::format("{}: at most 2^34 numbers have noise of their own", n));
  };
  // The population twice (the second for a step back), its weights and one more array of its size.
  check_samples(top, "particles", c.particles, 2.0 * d + 3.0);
  if (c.reference) check_samples(reference, "batch", static_cast<std::int64_t>(c.reference->batch), d + 3.0);
  const double rows = static_cast<double>(c.steps) / static_cast<double>(c.log_every);
  check(top, "log_every", c.log_every, rows * (static_cast<double>(parameters) + 16.0) * 2 * sizeof(double));
  // All snapshots are kept to the end, and copied into the bytes of a file.
  const auto kept = std::ranges::upper_bound(c.snapshots, c.steps) - c.snapshots.begin();
  check(top, "snapshots", kept, 2.0 * static_cast<double>(kept) * static_cast<double>(c.particles) * d * sizeof(float));
}

}  // namespace

bool has_inner_steps(Method method) { return method == Method::nested || method == Method::unrolled; }

bool moves_theta(Method method) { return method == Method::implicit || has_inner_steps(method); }

std::int64_t gradient_evaluations_per_step(const LangevinConfiguration& c) {
  return has_inner_steps(c.method) ? c.inner_steps : 1;
}

std::string_view to_string(Method method) { return name_of(method, methods); }

std::vector<Method> read_methods(TableReader& t, std::string_view key) { return t.choices(key, methods); }

LangevinConfiguration read_langevin_configuration(const Document& d, Methods given) {
  LangevinConfiguration c;
  TableReader top(d);
  using Sign = TableReader::Sign;
  (void)top.has("kind");
  read_common(top, d, c);
  c.method = top.choice("method", Method::implicit, methods);
  c.particles = top.integer("particles", 1000, 1);
  c.steps = top.integer("steps", 5000, 0);
  c.step_size = top.number("step_size", 0.2, Sign::positive);
  c.learning_rate = top.number("learning_rate", 0.1, Sign::not_negative);
  c.schedule = top.choice("schedule", ScheduleKind::constant, schedules);
  const std::vector<std::string> optimizers = AnyOptimizer::names();
  c.optimizer = optimizers[top.choice("optimizer", 0, optimizers)];
  c.order = top.choice("order", Order::paper, orders);
  constexpr std::int64_t steps_with_noise_of_their_own = std::int64_t{1} << 32;
  c.inner_steps = top.integer("inner_steps", c.method == Method::nested ? 10 : 1, 1, steps_with_noise_of_their_own);
  if (has_inner_steps(c.method) && c.steps > std::numeric_limits<std::int64_t>::max() / c.inner_steps)
    top.fail("steps", fmt::format("{} with {} inner steps each are more than can be counted", c.steps, c.inner_steps));
  c.warm_start = top.flag("warm_start", true);
  c.normaliser = top.choice("normaliser", Normaliser::n_minus_1, normalisers);
  const bool learns = moves_theta(c.method) && c.method != Method::unrolled;  // by a covariance
  if (learns && c.normaliser == Normaliser::n_minus_1 && c.particles < 2)
    top.fail("particles", "1 particle has no covariance with normaliser n-1");
  c.log_every = top.integer("log_every", 10, 1);
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0);
  c.snapshots = top.integers("snapshots", {}, 0);
  if (!std::ranges::is_sorted(c.snapshots, std::less_equal<>())) top.fail("snapshots", "the steps must ascend");
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));

  TableReader potential = top.table("potential");
  c.potential.read(potential);
  const Potential<float> v = c.potential.make();

  TableReader reward = top.table("reward");
  if (top.has("reward")) c.reward.emplace().read(reward, v.dimension(), 2.5);
  TableReader smooth = top.table("smooth_reward");
  if (top.has("smooth_reward")) {
    const bool guides = c.method == Method::guided;
    // Unrolled, it is in the objective what the reward is that it stands for.
    const double lambda = guides ? 5.0 : c.reward ? c.reward->lambda : 1.0;
    c.smooth_reward = RewardSpec{.part = SmoothRewardSpec(), .centre = {}, .lambda = lambda};
    c.smooth_reward->read(smooth, v.dimension(), guides ? 0.7 : 2.5);
  }
  if (given == Methods::several) {  // what depends on the method is not settled yet
    for (const char* key : {"method", "inner_steps"}) top.drop(key);
    for (const char* key : {"denominator", "lambda"})
      if (!smooth.contains(key)) smooth.drop(key);
  }

  if (c.method == Method::unrolled)
    for (const char* key : {"reference", "base"})
      if (top.contains(key))
        top.fail(key, "unrolled differentiates smooth_reward alone: this part of the objective would have no effect");

  TableReader reference = top.table("reference");
  if (top.has("reference")) {
    ReferenceSpec& r = c.reference.emplace();
    r.theta = read_parameters(reference, c.potential, d.folder);
    if (!r.theta.empty() && !v.law(r.theta))
      reference.fail("theta", "the law of this potential is not known, so it has no exact samples; data is needed");
    if (r.theta.empty()) r.data = read_sample_file(reference, "data", d.folder);
    if (r.theta.empty() && !r.data)
      reference.fail("data", "missing: the reference is samples in a file (data) or a law of the potential (theta)");
    r.batch = static_cast<std::size_t>(reference.integer("batch", r.theta.empty() ? 0 : 1000, r.theta.empty() ? 0 : 1));
    r.beta = reference.number("beta", 1.0, Sign::not_negative);
  }
  TableReader base = top.table("base");
  if (top.has("base")) {
    c.base = BaseSpec{read_parameters(base, c.potential, d.folder)};
    if (c.base->theta.empty()) base.fail("theta", "missing: the law to stay close to");
    c.base->beta = base.number("beta", 1.0, Sign::not_negative);
  }

  TableReader start = top.table("start");
  c.start.theta = read_parameters(start, c.potential, d.folder);
  if (c.start.theta.empty()) start.fail("theta", "missing: where theta starts");
  c.start.samples = read_sample_file(start, "samples", d.folder);
  if (!c.start.samples) {
    c.start.mean = start.numbers("mean", std::vector<double>(v.dimension()));
    if (c.start.mean.size() != v.dimension())
      start.fail("mean", fmt::format("{} numbers, the potential has dimension {}", c.start.mean.size(), v.dimension()));
    c.start.scale = start.number("scale", 1.0, Sign::not_negative);
    check_coordinates(start, "mean", c.start.mean);
  }

  c.theta_opt = top.numbers("theta_opt", c.reference ? c.reference->theta : std::vector<double>{});
  if (!c.theta_opt.empty()) check_parameters(top, "theta_opt", c.potential, c.theta_opt);
  c.thresholds = top.numbers("thresholds", {});
  if (!c.thresholds.empty() && c.theta_opt.empty()) top.fail("thresholds", "a log-likelihood needs theta_opt");
  constexpr std::size_t most_thresholds = 1000;  // each is a line of the closing table
  if (c.thresholds.size() > most_thresholds)
    top.fail("thresholds", fmt::format("{} numbers, there can be at most {}", c.thresholds.size(), most_thresholds));

  if (learns && !c.reward && !c.reference && !c.base)
    top.fail("method", fmt::format("{} needs an objective: a table reward, reference or base", to_string(c.method)));
  if ((c.method == Method::guided || c.method == Method::unrolled) && !c.smooth_reward)
    top.fail("method", fmt::format("{} needs a table smooth_reward", to_string(c.method)));
  if (c.method == Method::langevin_optimised && c.theta_opt.empty())
    top.fail("method", "langevin-optimised needs theta_opt");

  check_size(c, v.dimension(), v.parameters(), top, reference);
  finish(c, d, {&top, &potential, &reward, &smooth, &reference, &base, &start});
  return c;
}

}  // namespace program
