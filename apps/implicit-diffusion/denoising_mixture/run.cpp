#include "denoising_mixture/denoising_mixture.hpp"

#include "denoising_mixture/files.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "langevin/checkpoints.hpp"
#include "langevin/problem.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <exception>
#include <fstream>
#include <mutex>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;
using Json = nlohmann::ordered_json;
using Batch = PathBatch<float>;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

// How far a law is from the tilted one: the largest differences of its weights and of the coordinates of its means.
struct Distance {
  double weights = 0, means = 0;
};
Distance distance(const GaussianMixture& a, const GaussianMixture& b) {
  Distance d;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    d.weights = std::max(d.weights, std::abs(a.weights[i] - b.weights[i]));
    for (std::size_t j = 0; j < a.dimension(); ++j)
      d.means = std::max(d.means, std::abs(a.components[i].mean[j] - b.components[i].mean[j]));
  }
  return d;
}

// A batch to and from a checkpoint.
void save(io::Checkpoint& c, const std::string& name, const Batch& b, std::size_t keep) {
  const auto numbers = [](const Population<float>& x) {
    std::vector<float> all;
    for (std::size_t j = 0; j < x.dimension(); ++j)
      all.insert(all.end(), x.coordinate(j).begin(), x.coordinate(j).end());
    return all;
  };
  c.put_number(name + ".birth", b.birth);
  c.put_number(name + ".step", static_cast<std::uint64_t>(b.step));
  c.put_numbers(name + ".points", numbers(b.points));
  std::vector<float> path;
  for (std::size_t k = 0; k * keep < b.step; ++k) {
    const std::vector<float> state = numbers(b.path[k]);
    path.insert(path.end(), state.begin(), state.end());
  }
  c.put_numbers(name + ".path", path);
  c.put_numbers(name + ".penalty", b.penalty);
  std::vector<double> thetas;
  for (const auto& s : b.thetas) {
    thetas.push_back(static_cast<double>(s.until));
    thetas.insert(thetas.end(), s.theta->begin(), s.theta->end());
  }
  c.put_numbers(name + ".thetas", thetas);
}

void restore(const io::Checkpoint& c, const std::string& name, Batch& b, std::size_t keep, std::size_t steps,
             std::size_t parameters) {
  const std::size_t n = b.points.size(), d = b.points.dimension();
  const auto fill = [&](Population<float>& x, const float* from) {
    for (std::size_t j = 0; j < d; ++j) std::copy_n(from + j * n, n, x.coordinate(j).begin());
  };
  b.birth = c.number<std::int64_t>(name + ".birth");
  b.step = static_cast<std::size_t>(c.number<std::uint64_t>(name + ".step"));
  const auto points = c.numbers<float>(name + ".points"), path = c.numbers<float>(name + ".path");
  const std::size_t kept = b.step > steps ? 0 : (b.step + keep - 1) / keep;
  if (b.step > steps) c.refuse(name + ".step", "is beyond the last step");
  if (points.size() != n * d) c.refuse(name + ".points", "has another size");
  if (path.size() != kept * n * d) c.refuse(name + ".path", "has another size");
  fill(b.points, points.data());
  b.path.assign(kept, Population<float>(n, d));
  for (std::size_t k = 0; k < kept; ++k) fill(b.path[k], path.data() + k * n * d);
  b.penalty = c.numbers<float>(name + ".penalty");
  if (!b.penalty.empty() && b.penalty.size() != b.points.blocks() * block_size)
    c.refuse(name + ".penalty", "has another size");
  const auto thetas = c.numbers<double>(name + ".thetas");
  if (thetas.size() % (1 + parameters) != 0) c.refuse(name + ".thetas", "is not made of whole rows");
  b.thetas.clear();
  for (std::size_t at = 0; at < thetas.size(); at += 1 + parameters) {
    const std::size_t before = b.thetas.empty() ? 0 : b.thetas.back().until;
    if (!(thetas[at] > static_cast<double>(before) && thetas[at] <= static_cast<double>(steps)))
      c.refuse(name + ".thetas", "has a step that is not one");
    const auto row = thetas.begin() + static_cast<std::ptrdiff_t>(at);
    b.thetas.push_back(
        {static_cast<std::size_t>(thetas[at]),
         std::make_shared<const std::vector<double>>(row + 1, row + 1 + static_cast<std::ptrdiff_t>(parameters))});
  }
  if (keep > 1 && b.step > 0 && (b.thetas.empty() || b.thetas.back().until != b.step))
    c.refuse(name + ".thetas", "does not tell all steps");
}

// One run: its loop, what is written down of it, and its checkpoints.
class Run {
 public:
  Run(const DenoisingConfiguration& c, const fs::path& folder, std::size_t threads)
      : c_(c),
        folder_(folder),
        workers_(threads),
        model_(c.model()),
        tilted_(c.tilted()),
        reward_(LinearReward{c.direction}),
        start_{Noise(c.seed)},
        chain_(model_.score<float>(), c.grid(),
               {.dynamics = c.dynamics,
                .slots = static_cast<std::size_t>(c.slots),
                .keep_every = static_cast<std::size_t>(c.keep_every),
                .normals = normals_of<float>(Noise(c.seed)),
                .workers = &workers_},
               std::pair{model_.score<float>(), model_.parameters_of(c.base)}),
        sampler_(chain_),
        gradient_(chain_, reward_, {c.lambda, c.beta}) {
    if (c.base.dimension() <= MixtureDivergence::largest_dimension) divergence_.emplace(tilted_);
  }

  DenoisingRow go(bool resume, bool quiet, std::stop_token stop) {
    Batch empty;
    empty.points = Population<float>(static_cast<std::size_t>(c_.batch), c_.base.dimension());
    const std::vector<double> theta = model_.parameters_of(c_.base);
    const AnyOptimizer optimizer = c_.optimizer == OptimizerKind::adam
                                       ? AnyOptimizer{Adam(AdamOptions{.rate = {.scale = c_.learning_rate}})}
                                       : AnyOptimizer{GradientDescent{{.scale = c_.learning_rate}}};
    QueueState<Batch, AnyOptimizer> s{0, theta, {}, optimizer};
    const QueueOptions options{.steps = c_.steps, .slots = c_.slots, .warm_start = c_.loop != LoopKind::queue_cold};
    const auto begin_queue = [&] { start_queue(sampler_, start_, s, options, empty); };
    begin_ = Clock::now();
    if (c_.loop == LoopKind::double_queue) {
      begin_queue();
      DoubleQueueState<Batch, BackwardBatch<float>, AnyOptimizer> both{0, theta, std::move(s.slots), {}, optimizer};
      both.back.resize(static_cast<std::size_t>(c_.slots) + 1);
      if (resume) take_up(both, quiet);
      backward_.emplace(chain_, reward_, DenoisingObjective{c_.lambda, c_.beta});
      outcome_ = double_queue_loop(
          sampler_, *backward_, start_, both, c_.steps, [&](const auto& state) { observe(state); }, stop);
      return finish(both);
    }
    bool found = false;
    if (resume) {
      s.slots.assign(1, empty);
      found = take_up(s, quiet);
    }
    if (!found) begin_queue();
    outcome_ = queue_loop(
        sampler_, gradient_, start_, s, options, [&](const auto& state) { observe(state); }, stop);
    return finish(s);
  }

 private:
  double seconds() const { return before_ + std::chrono::duration<double>(Clock::now() - begin_).count(); }

  template <class State>
  void observe(const State& s) {
    if (s.step > counted_) step_cost_ = cost() - counted_cost_;
    counted_ = s.step;
    counted_cost_ = cost();
    if (s.step != last_row_ && s.step % c_.log_every == 0) add_row(s);
    if (s.step == 0 || s.step == last_checkpoint_) return;
    const bool due = c_.checkpoint_every > 0 ? s.step % c_.checkpoint_every == 0
                                             : Clock::now() - checkpointed_ > std::chrono::seconds(10);
    if (due) write_checkpoint(s);
  }

  // The newest batch that has come to its end, or null.
  template <class State>
  const Batch* finished(const State& s) const {
    return s.slots.size() == static_cast<std::size_t>(c_.slots) + 1 ? &s.slots.back() : nullptr;
  }

  template <class State>
  void add_row(const State& s) {
    last_row_ = s.step;
    const GaussianMixture law = model_.law(s.theta);
    const Distance d = distance(law, tilted_);
    BatchObjective o{Figures::none, Figures::none, Figures::none};
    if (const Batch* b = finished(s)) o = objective_of<float>(*b, reward_, {c_.lambda, c_.beta});
    double exact = 0;
    for (std::size_t i = 0; i < law.weights.size(); ++i)
      for (std::size_t j = 0; j < c_.direction.size(); ++j)
        exact += law.weights[i] * law.components[i].mean[j] * c_.direction[j];
    const double kl = divergence_ ? (*divergence_)(law).value_or(Figures::none) : Figures::none;
    rows_.push_back({static_cast<double>(s.step), static_cast<double>(cost().evaluations), seconds(), o.reward, exact,
                     kl, Figures::none, o.path_kl, o.value, d.weights, d.means});
    thetas_.insert(thetas_.end(), s.theta.begin(), s.theta.end());
    memory_ = std::max(memory_, memory_of(s));
  }

  template <class State>
  static std::size_t memory_of(const State& s) {
    std::size_t bytes = 0;
    for (const Batch& b : s.slots) bytes += b.bytes();
    if constexpr (requires { s.back; })
      for (const auto& b : s.back)
        if (b)
          bytes += b->points.size() * b->points.dimension() * sizeof(float) + b->adjoint.size() * sizeof(float) +
                   b->gradients.size() * sizeof(double);
    return bytes;
  }

  DenoisingCost cost() const {
    return cost_before_ + sampler_.cost() + gradient_.cost() + (backward_ ? backward_->cost() : DenoisingCost{});
  }

  template <class State>
  bool all_finite(const State& s) const {
    for (const Batch& b : s.slots)
      if (find_nonfinite(b)) return false;
    return std::all_of(s.theta.begin(), s.theta.end(), [](double t) { return std::isfinite(t); });
  }

  template <class State>
  std::optional<io::Checkpoint> make_checkpoint(const State& s) const {
    if (!all_finite(s)) return std::nullopt;
    io::Checkpoint c;
    c.put("configuration", without_steps(c_.resolved));
    c.put_number("step", s.step);
    c.put_numbers("theta", s.theta);
    c.put_numbers("optimizer", s.optimizer.memory());
    c.put_number("slots", static_cast<std::uint64_t>(s.slots.size()));
    for (std::size_t m = 0; m < s.slots.size(); ++m)
      save(c, fmt::format("slot-{}", m), s.slots[m], static_cast<std::size_t>(c_.keep_every));
    if constexpr (requires { s.back; })
      for (std::size_t m = 0; m < s.back.size(); ++m) {
        if (!s.back[m]) continue;
        std::vector<float> points;
        for (std::size_t j = 0; j < s.back[m]->points.dimension(); ++j)
          points.insert(points.end(), s.back[m]->points.coordinate(j).begin(), s.back[m]->points.coordinate(j).end());
        c.put_numbers(fmt::format("back-{}.points", m), points);
        c.put_numbers(fmt::format("back-{}.adjoint", m), s.back[m]->adjoint);
        c.put_numbers(fmt::format("back-{}.gradients", m), s.back[m]->gradients);
      }
    if constexpr (requires { s.back; }) {
      std::vector<std::uint8_t> there;
      for (const auto& b : s.back) there.push_back(b ? 1 : 0);
      c.put_numbers("back", there);
    }
    std::vector<double> rows;
    for (const auto& row : rows_) rows.insert(rows.end(), row.begin(), row.end());
    c.put_numbers("rows", rows);
    c.put_numbers("row_theta", thetas_);
    c.put_number("last_row", last_row_);
    c.put_number("seconds", seconds());
    std::vector<std::uint64_t> costs;
    for (const DenoisingCost& x : {cost(), step_cost_})
      costs.insert(costs.end(), {x.evaluations, x.products, x.frozen_evaluations, x.frozen_products});
    c.put_numbers("costs", costs);
    c.put_number("memory", static_cast<std::uint64_t>(memory_));
    return c;
  }

  template <class State>
  void write_checkpoint(const State& s) {
    if (s.step == last_checkpoint_) return;
    if (const auto c = make_checkpoint(s)) io::save_checkpoint(folder_ / "checkpoints", s.step, *c);
    last_checkpoint_ = s.step;
    checkpointed_ = Clock::now();
  }

  // Puts the newest whole checkpoint in the place of the start; false where there is none.
  template <class State>
  bool take_up(State& s, bool quiet) {
    const std::optional<io::Checkpoint> c = io::newest_checkpoint(
        folder_ / "checkpoints", [](const std::string& why) { complain(why + "; an older one is tried"); });
    if (!quiet && !c) print_error(fmt::format("{}: there is no checkpoint, begins at step 0\n", c_.experiment));
    if (!c) return false;
    if (c->get("configuration") != without_steps(c_.resolved)) c->refuse("configuration", "is not that of this run");
    const std::size_t p = model_.parameters(), keep = static_cast<std::size_t>(c_.keep_every);
    const auto theta = c->numbers<double>("theta");
    if (theta.size() != p) c->refuse("theta", "has another size");
    s.theta = theta;
    s.step = c->number<std::int64_t>("step");
    if (s.step < 0) c->refuse("step", "is negative");
    if (s.step > c_.steps)
      throw Error(ErrorKind::usage, "steps",
                  fmt::format("{}: {} has done {} already", c_.steps, io::display(folder_), s.step));
    if (!s.optimizer.restore(c->numbers<double>("optimizer"), p)) c->refuse("optimizer", "is of another kind");
    const auto slots = c->number<std::uint64_t>("slots");
    if (slots < 1 || slots > static_cast<std::uint64_t>(c_.slots) + 1) c->refuse("slots", "is not a number of slots");
    Batch empty;
    empty.points = Population<float>(static_cast<std::size_t>(c_.batch), c_.base.dimension());
    s.slots.assign(static_cast<std::size_t>(slots), empty);
    for (std::size_t m = 0; m < s.slots.size(); ++m)
      restore(*c, fmt::format("slot-{}", m), s.slots[m], keep, chain_.steps(), p);
    if constexpr (requires { s.back; }) {
      const auto there = c->numbers<std::uint8_t>("back");
      if (there.size() != s.back.size()) c->refuse("back", "has another size");
      const std::size_t n = empty.points.size(), d = empty.points.dimension(), blocks = empty.points.blocks();
      for (std::size_t m = 0; m < there.size(); ++m) {
        if (!there[m]) continue;
        const auto points = c->numbers<float>(fmt::format("back-{}.points", m));
        BackwardBatch<float> b{empty.points, c->numbers<float>(fmt::format("back-{}.adjoint", m)),
                               c->numbers<double>(fmt::format("back-{}.gradients", m))};
        b.step = m;
        if (points.size() != n * d || b.adjoint.size() != blocks * d * block_size || b.gradients.size() != blocks * p)
          c->refuse(fmt::format("back-{}.points", m), "has another size");
        for (std::size_t j = 0; j < d; ++j)
          std::copy_n(points.begin() + static_cast<std::ptrdiff_t>(j * n), n, b.points.coordinate(j).begin());
        s.back[m] = std::move(b);
      }
    }
    if (!all_finite(s)) c->refuse("slots", "holds a number that is not finite");
    const auto rows = c->numbers<double>("rows");
    const std::size_t width = denoising_header.size();
    if (rows.size() % width != 0) c->refuse("rows", "is not made of whole rows");
    for (auto row = rows.begin(); row != rows.end(); row += static_cast<std::ptrdiff_t>(width))
      rows_.emplace_back(row, row + static_cast<std::ptrdiff_t>(width));
    thetas_ = c->numbers<double>("row_theta");
    if (thetas_.size() != rows_.size() * p) c->refuse("row_theta", "has another size");
    last_row_ = c->number<std::int64_t>("last_row");
    before_ = c->number<double>("seconds");
    const auto costs = c->numbers<std::uint64_t>("costs");
    if (costs.size() != 8) c->refuse("costs", "has another size");
    cost_before_ = {costs[0], costs[1], costs[2], costs[3]};
    step_cost_ = {costs[4], costs[5], costs[6], costs[7]};
    counted_ = s.step;
    memory_ = static_cast<std::size_t>(c->number<std::uint64_t>("memory"));
    last_checkpoint_ = s.step;
    begin_ = checkpointed_ = Clock::now();
    if (!quiet) print_error(fmt::format("{}: goes on at step {}\n", c_.experiment, s.step));
    write_configuration(folder_, c_);
    // What the warm start of this process has cost is counted there already.
    cost_before_ = cost_before_ - sampler_.cost();
    return true;
  }

  template <class State>
  DenoisingRow finish(const State& s) {
    const auto last = outcome_.status == Status::diverged ? std::nullopt : make_checkpoint(s);
    if (last_row_ != s.step) add_row(s);
    DenoisingRow row{.loop = std::string(to_string(c_.loop)),
                     .dynamics = std::string(to_string(c_.dynamics)),
                     .status = std::string(to_string(outcome_.status)),
                     .slots = c_.slots,
                     .steps_per_sample = c_.steps_per_sample,
                     .steps = s.step,
                     .law = model_.law(s.theta),
                     .theta = s.theta,
                     .reward = rows_.back()[3],
                     .exact_reward = rows_.back()[4],
                     .exact_kl = rows_.back()[5],
                     .path_kl = rows_.back()[7],
                     .seconds = seconds(),
                     .cost = cost(),
                     .step_cost = step_cost_,
                     .memory_bytes = memory_};
    io::write_file(folder_ / "metrics.csv",
                   io::csv_bytes(std::vector<std::string>(denoising_header.begin(), denoising_header.end()), rows_));
    io::write_file(folder_ / "theta.npy",
                   io::npy_bytes(thetas_, std::array{rows_.size(), static_cast<std::size_t>(s.theta.size())}));
    if (const Batch* b = finished(s); b && outcome_.status != Status::diverged) {
      std::vector<float> samples;
      for (std::size_t i = 0; i < b->points.size(); ++i)
        for (std::size_t j = 0; j < b->points.dimension(); ++j) samples.push_back(b->points(i, j));
      io::write_file(folder_ / "samples.npy",
                     io::npy_bytes(samples, std::array{b->points.size(), b->points.dimension()}));
    }
    if (last && s.step != last_checkpoint_) io::save_checkpoint(folder_ / "checkpoints", s.step, *last);
    return row;
  }

  const DenoisingConfiguration& c_;
  fs::path folder_;
  Workers workers_;
  MixtureModel model_;
  GaussianMixture tilted_;
  std::optional<MixtureDivergence> divergence_;
  Reward<float> reward_;
  DenoisingStart<float> start_;
  ReverseChain<float> chain_;
  DenoisingSampler<float> sampler_;
  PathGradient<float> gradient_;
  std::optional<DenoisingBackward<float>> backward_;
  Outcome outcome_;
  std::vector<std::vector<double>> rows_;
  std::vector<double> thetas_;
  std::int64_t last_row_ = -1, last_checkpoint_ = -1;
  double before_ = 0;
  DenoisingCost cost_before_, counted_cost_, step_cost_;  // of runs before; up to the step counted_; of that step
  std::int64_t counted_ = 0;
  std::size_t memory_ = 0;
  Clock::time_point begin_ = Clock::now(), checkpointed_ = Clock::now();
};

// The summary of one run.
Summary summary_of_row(const DenoisingConfiguration& c, const DenoisingRow& r, std::size_t threads) {
  Summary s = summary_of(c);
  s.method = r.loop;
  s.steps = r.steps;
  s.status = r.status;
  s.theta = r.theta;
  s.figures.reward = r.reward;
  s.figures.exact_reward = r.exact_reward;
  s.figures.exact_kl = r.exact_kl;
  s.gradient_evaluations = static_cast<std::int64_t>(r.cost.evaluations);
  s.seconds = r.seconds;
  s.threads = threads;
  s.isa = to_string(active_level());
  return s;
}

Json tilted_json(const DenoisingConfiguration& c) {
  const GaussianMixture tilted = c.tilted();
  Json means = Json::array();
  for (const Gaussian& g : tilted.components) means.push_back(g.mean);
  return {{"steps_per_sample", c.steps_per_sample}, {"tilted_weights", tilted.weights}, {"tilted_means", means}};
}

// Distances are from the tilted law of the run's own setting.
std::string table_line(const DenoisingRow& r, const DenoisingConfiguration& c) {
  const Distance d = distance(r.law, c.tilted());
  return fmt::format("  {:<13}{:<5}{:>6}{:>6}{:>9.4f}{:>10.4f}{:>10}{:>13.4f}{:>11.4f}{:>9.2f}{:>8.1f}\n", r.loop,
                     r.dynamics, r.slots, r.steps_per_sample, r.reward, r.path_kl, shown(r.exact_kl, 4), d.weights,
                     d.means, r.seconds, static_cast<double>(r.memory_bytes) / 1e6);
}
const std::string table_head =
    fmt::format("  {:<13}{:<5}{:>6}{:>6}{:>9}{:>10}{:>10}{:>13}{:>11}{:>9}{:>8}\n", "loop", "", "slots", "T", "reward",
                "path KL", "KL", "weights off", "means off", "seconds", "MB");

// Calls of the model and of the frozen one, for a batch each.
std::string cost_line(const DenoisingRow& r) {
  const DenoisingCost &s = r.step_cost, &all = r.cost;
  return fmt::format("  {:<13}{:<5}{:>6}{:>13}{:>10}{:>8}{:>10}{:>13}{:>10}{:>9}{:>10}\n", r.loop, r.dynamics, r.slots,
                     s.evaluations, s.products, s.frozen_evaluations, s.frozen_products, all.evaluations, all.products,
                     all.frozen_evaluations, all.frozen_products);
}
const std::string cost_head =
    fmt::format("  {:<24}{:>23}{:>18}{:>23}{:>19}\n  {:<24}{:>13}{:>10}{:>8}{:>10}{:>13}{:>10}{:>9}{:>10}\n",
                "calls, each for a batch", "last step: model", "frozen model", "all steps: model", "frozen model", "",
                "scores", "products", "scores", "products", "scores", "products", "scores", "products");

const DenoisingConfiguration& setting_of(const DenoisingExperiment& e, std::size_t k) {
  return e.settings.empty() ? e.single : e.settings[k].configuration;
}

// What an interrupt left of a comparison or of a run.
std::string left_over(const DenoisingExperiment& e, const std::vector<std::optional<DenoisingRow>>& rows) {
  std::string text;
  std::size_t waiting = 0;
  for (std::size_t k = 0; k < rows.size(); ++k)
    if (!rows[k])
      ++waiting;
    else if (rows[k]->status == "interrupted")
      text += fmt::format("  {} made {} of {} steps\n", e.settings.empty() ? "the run" : e.settings[k].folder,
                          rows[k]->steps, setting_of(e, k).steps);
  if (waiting > 0) text += fmt::format("  {} of {} runs had not begun\n", waiting, rows.size());
  return text.empty() ? "" : text + "  --resume goes on\n";
}

// The most memory that this process has had so far, as the system counts it; 0 where it does not say.
std::uint64_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (std::uint64_t kilobytes = 0; word == "VmHWM:" && status >> kilobytes) return 1024 * kilobytes;
  return 0;
}

// Of a comparison that was interrupted: its wall time so far, 0 where there is no telling.
double seconds_so_far(const fs::path& file) {
  std::error_code none;
  if (!fs::exists(file, none)) return 0;
  const Json j = Json::parse(io::read_file(file), nullptr, false);
  return j.is_object() && j.contains("seconds") && j["seconds"].is_number() ? j["seconds"].get<double>() : 0;
}

}  // namespace

int run_denoising(const DenoisingExperiment& e, const RunOptions& o) {
  const std::size_t threads = thread_count(o);
  const Interrupt interrupt;
  const OpenFolder folder = open_folder(o, e);
  const auto begin = Clock::now();
  const double before = o.resume ? seconds_so_far(folder.path / "summary.json") : 0;
  std::vector<std::optional<DenoisingRow>> rows(std::max<std::size_t>(1, e.settings.size()));
  if (e.settings.empty()) {
    rows[0] = Run(e.single, folder.path, threads).go(o.resume, o.quiet, interrupt.token());
  } else {
    if (o.resume && !o.quiet) {
      const auto begun = std::count_if(e.settings.begin(), e.settings.end(), [&](const auto& s) {
        std::error_code none;
        return fs::exists(folder.path / "settings" / s.folder / "checkpoints", none);
      });
      print_error(fmt::format("{}: {} of {} runs have a checkpoint and go on from it\n", e.experiment, begun,
                              e.settings.size()));
    }
    // Settings are independent: they are spread over the threads, the longest first.
    std::vector<std::size_t> order(e.settings.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto work_in = [&](std::size_t i) {
      const DenoisingConfiguration& c = e.settings[i].configuration;
      return c.steps * c.steps_per_sample * c.batch * (c.keep_every > 1 ? 3 : 2);
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return work_in(a) > work_in(b); });
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::exception_ptr failure;
    const std::size_t at_once = std::min(threads, order.size());
    const auto work = [&] {
      for (std::size_t k = next++; k < order.size() && !interrupt.token().stop_requested(); k = next++) try {
          const auto& setting = e.settings[order[k]];
          const fs::path place = folder.path / "settings" / setting.folder;
          io::make_directory(place);
          if (std::error_code none; !o.resume || !fs::exists(place / "config.toml", none))
            write_configuration(place, setting.configuration);
          rows[order[k]] = Run(setting.configuration, place, threads / at_once).go(o.resume, true, interrupt.token());
          const DenoisingRow& r = *rows[order[k]];
          Summary s = summary_of_row(setting.configuration, r, threads / at_once);
          Json more = tilted_json(setting.configuration);
          more["results"] = Json::array({json_of(r)});
          s.more = more.dump();
          io::write_file(place / "summary.json", to_json(s));
          const std::lock_guard lock(mutex);
          if (!o.quiet)
            print_error(fmt::format("{}: {} {} after {} steps\n", e.experiment, setting.folder,
                                    r.status == "completed" ? "done" : r.status, r.steps));
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failure) failure = std::current_exception();
          next = order.size();
        }
    };
    {
      std::vector<std::jthread> pool;
      for (std::size_t k = 1; k < at_once; ++k) pool.emplace_back(work);
      work();
    }
    if (failure) std::rethrow_exception(failure);
  }

  if (o.resume) write_configuration(folder.path, e);
  std::string status = "completed";
  Json results = Json::array();
  std::string text, costs;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto& r = rows[k];
    if (!r || (r->status != "completed" && status != "diverged")) status = r ? r->status : "interrupted";
    if (!r) continue;
    results.push_back(json_of(*r));
    text += table_line(*r, setting_of(e, k));
    costs += cost_line(*r);
  }
  const DenoisingRow* first = rows.front() ? &*rows.front() : nullptr;
  Summary s = first ? summary_of_row(e.single, *first, threads) : summary_of(e);
  s.status = status;
  s.threads = threads;
  s.isa = to_string(active_level());
  if (!e.settings.empty()) s.seconds = before + std::chrono::duration<double>(Clock::now() - begin).count();
  Json more = tilted_json(e.single);
  more["results"] = std::move(results);
  if (const std::uint64_t bytes = peak_memory()) more["peak_memory_bytes"] = bytes;
  s.more = more.dump();
  io::write_file(folder.path / "summary.json", to_json(s));

  const auto failed =
      std::find_if(rows.begin(), rows.end(), [](const auto& r) { return r && r->status == "diverged"; });
  int code = 0;
  if (status == "interrupted") code = 128 + interrupt.signal();
  if (status == "diverged") code = exit_diverged;
  if (text.empty()) {
    print(fmt::format("{}: interrupted before a run had begun; --resume goes on\n", e.experiment));
    return code;
  }
  const double best = e.single.tilted_reward();
  bool alike = true;  // one optimum for all
  for (std::size_t k = 0; k < rows.size(); ++k) alike = alike && setting_of(e, k).tilted_reward() == best;
  text = fmt::format("{} (seed {}): {} in {:.1f} s\n", e.experiment, e.seed, status, s.seconds) + table_head + text +
         (alike ? fmt::format("  {:<30}{:>9.4f}\n", "the tilted law", best) : "") + cost_head + costs +
         left_over(e, rows);
  close_run(folder.path, text, o, code, [&] { return denoising_report(e, folder.path); });
  if (code == exit_diverged) {
    const std::int64_t steps = (*failed)->steps;
    const DenoisingConfiguration& c = setting_of(e, static_cast<std::size_t>(failed - rows.begin()));
    complain(fmt::format("{}: a run diverged after {} steps: a sample, the gradient or theta was no longer finite; {}",
                         e.experiment, steps,
                         steps == 0 ? fmt::format("lambda = {} or the reward may be too large", c.lambda)
                                    : fmt::format("a learning_rate smaller than {} may help", c.learning_rate)));
  }
  return code;
}

}  // namespace program
