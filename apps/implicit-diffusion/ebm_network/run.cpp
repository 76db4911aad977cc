#include "ebm_network/energy.hpp"
#include "experiment/checkpoints.hpp"
#include "experiment/recorder.hpp"
#include "experiment/runs.hpp"
#include "experiment/warnings.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/any.hpp"
#include "implicit_diffusion/optimizer/average.hpp"
#include "implicit_diffusion/population_arrays.hpp"
#include "networks/weights.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <array>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

using EbmState = State<TensorSamples, BasicAnyOptimizer<TensorParameters>, TensorParameters>;

// The columns of metrics.csv: figures of the averaged theta but for the last.
const std::vector<std::string> header{"step",           "gradient_evaluations", "seconds",
                                      "reward",         "exact_reward",         "exact_kl",
                                      "log_likelihood", "data_log_likelihood",  "last_theta_kl"};

// N(0, scale^2 I).
struct SpreadStart {
  Noise noise;
  double scale;
  void draw(TensorSamples& x, std::int64_t round) const {
    StandardNormalStart<NetworkEnergy>{noise}.draw(x, round);
    x.x().mul_(scale);
  }
};

class EbmRun {
 public:
  EbmRun(const EbmConfiguration& c, const RunContext& context) : c_(c), context_(context) {
    context.say_if_fewer(workers_.threads());
    context.say_if_too_few_shards(static_cast<std::size_t>((c.particles + c.shard - 1) / c.shard));
    if (const SampleFile* data = c.target.data()) {
      hashes_.add("target.data", *data, 2);
      data_ = to_samples(data->samples(2), static_cast<std::size_t>(c.shard), context.processes);
    }
  }

  FinishedRun run() {
    const Noise noise(c_.seed);
    const SpreadStart start{noise, c_.spread};
    EbmState s{.theta = first_theta(c_, energy_),
               .population = energy_.samples(static_cast<std::size_t>(c_.particles), context_.processes),
               .optimizer = BasicAnyOptimizer<TensorParameters>::make(c_.optimizer, c_.learning_rate)};
    average_ = s.theta;
    start.draw(s.population, 0);
    if (context_.resume)
      checkpoints_.resume(c_.steps, context_.quiet, [&](const io::CheckpointReader& from) {
        restore(from, s);
        return s.step;
      });
    LangevinEngine<NetworkEnergy> engine(
        energy_,
        terms_of(std::make_unique<PointsReference>(c_.target.batches(noise), static_cast<std::size_t>(c_.shard),
                                                   context_.processes)),
        {.step_size = {c_.step_size}, .noise = noise, .workers = &workers_});
    const auto observe = [&](const EbmState& state) { this->observe(state); };
    const Outcome outcome =
        c_.inner_steps == 1 ? single_loop(engine, engine, s, {.steps = c_.steps}, observe, checkpoints_.stop())
                            : nested_loop(engine, engine, start, s, {.steps = c_.steps, .inner_steps = c_.inner_steps},
                                          observe, checkpoints_.stop());
    return finish(s, outcome);
  }

 private:
  void observe(const EbmState& s) {
    rows_.start_clock();
    if (s.step != seen_) {
      if (s.step > 0) update_average(average_, s.theta, s.step - 1, c_.average);
      seen_ = s.step;
    }
    if (rows_.is_due(s.step)) rows_.add(s.step, measure(s), {});
    checkpoints_.write_if_due(s.step, [&](io::CheckpointWriter& to) { return save(to, s); });
    progress_(s.step, figures());
  }

  // The law at theta, and its distance from the target.
  struct Distance {
    double kl = Figures::none, data_log_likelihood = Figures::none;
  };
  Distance distance(const TensorParameters& theta) {
    const std::optional<PlaneEnergy> law = integrate(energy_, theta, &workers_, context_.processes);
    if (!law) return {};
    if (const auto log_density = c_.target.log_density()) {
      const PlaneDivergence d = divergence_from(*law, log_density);
      return {d.kl, d.log_likelihood};
    }
    TensorNumbers v = TensorTiles::numbers(*data_);
    TensorTiles::for_each(&workers_, TensorTiles::tiles(*data_), [&](std::size_t k) {
      energy_.add_values(TensorTiles::tile(*data_, k), 1, TensorTiles::numbers_of(v, k));
    });
    double sum = 0;
    in_turn(data_->tiles(), {&sum, 1}, [&] {
      for (const double e : v.values) sum -= e;
    });
    return {Figures::none, sum / static_cast<double>(data_->total()) - law->log_normaliser};
  }

  std::vector<double> measure(const EbmState& s) {
    const Distance d = distance(average_);
    return {static_cast<double>(s.step),
            static_cast<double>(s.step * c_.inner_steps),
            rows_.seconds(),
            -d.kl,
            Figures::none,
            d.kl,
            Figures::none,
            d.data_log_likelihood,
            average_ == s.theta ? d.kl : distance(s.theta).kl};
  }

  Figures figures() const {
    const std::vector<double>& row = rows_.last_row();
    return {.reward = row[3], .exact_kl = row[5], .data_log_likelihood = row[7]};
  }

  bool save(io::CheckpointWriter& to, const EbmState& s) const {
    if (find_nonfinite(s.population) || first_nonfinite(s.theta) || !all_finite(s.optimizer.memory())) return false;
    implicit_diffusion::save(to, s);
    io::save(to, "average", average_);
    rows_.save(to, "last_step");
    hashes_.save(to);
    return true;
  }
  void restore(const io::CheckpointReader& from, EbmState& s) {
    hashes_.compare(from);
    implicit_diffusion::restore(from, s);
    io::restore(from, "average", average_);
    if (first_nonfinite(average_)) from.refuse("average", "is not finite");
    rows_.restore(from, 0, "last_step");
    seen_ = s.step;
  }

  FinishedRun finish(const EbmState& s, const Outcome& outcome) {
    const bool diverged = outcome.status == Status::diverged;
    if (rows_.needs_last(s.step)) rows_.add_last(measure(s), {});
    Summary summary = summary_of(c_, context_.threads);
    summary.method = c_.inner_steps == 1 ? "implicit" : "nested";
    if (context_.processes) summary.processes = context_.processes->ranks();
    summary.steps = s.step;
    summary.status = to_string(outcome.status);
    summary.figures = figures();
    summary.gradient_evaluations = s.step * c_.inner_steps;
    summary.seconds = rows_.seconds();
    summary.more["parameters"] = s.theta.size();
    summary.more["last_theta_kl"] = json_number(rows_.last_row().back());
    if (outcome.status == Status::completed && !c_.shortened)
      if (auto warning = c_.target.data()
                             ? warn_if_moving("data log-likelihood", rows_.column("data_log_likelihood"), true)
                             : warn_if_moving("KL divergence", rows_.column("exact_kl"), true))
        summary.warnings.push_back(std::move(*warning));
    if (outcome.status == Status::completed)
      if (auto warning = warn_of_step()) summary.warnings.push_back(std::move(*warning));
    write_files(s, diverged);
    context_.write("summary.json", to_json(summary));
    if (!diverged)  // the last, after the files of the run
      checkpoints_.write(s.step, [&](io::CheckpointWriter& to) { return save(to, s); });
    FinishedRun done{summary, closing_table(summary), {}};
    if (diverged)
      done.complaints.push_back(fmt::format(
          "diverged at step {}: {} is not finite; a learning_rate smaller than {} or a step_size smaller than {} may "
          "help",
          outcome.divergence->step,
          outcome.divergence->where == Divergence::Where::sample ? "a sample" : "theta or its gradient",
          c_.learning_rate, c_.step_size));
    return done;
  }

  // Samples of a Gaussian of deviation s are spread by 1 / sqrt(1 - g / (2 s^2)) times as wide.
  std::optional<Warning> warn_of_step() const {
    const std::optional<double> s = c_.target.deviation();
    if (!s || c_.step_size < *s * *s / 2) return {};
    return Warning{
        warning_kind::step_size,
        fmt::format("step_size ({}) is {:.0f} % of the variance of the target's modes ({:.3g}), so that samples "
                    "are spread too wide there; one of {:.3g} or less may help",
                    c_.step_size, 100 * c_.step_size / (*s * *s), *s * *s, *s * *s / 5)};
  }

  std::string closing_table(const Summary& s) const {
    std::string text = fmt::format("{} ({}, seed {}): {}, {} steps in {:.2f} s\n", s.experiment, s.method, s.seed,
                                   s.status, s.steps, s.seconds);
    const auto row = [&](std::string_view label, const std::string& value) {
      text += fmt::format("  {:<29}{}\n", label, value);
    };
    for (const FigureName& f : figure_names)
      if (std::isfinite(s.figures.*f.value) && f.value != &Figures::reward)
        row(f.label, figure_text(s.figures.*f.value, f.digits));
    if (std::isfinite(rows_.last_row().back()))
      row("exact KL of the last theta", figure_text(rows_.last_row().back(), 5));
    row("parameters of the network", fmt::format("{}", elements_of(energy_.network().layout)));
    return text;
  }

  void write_files(const EbmState& s, bool diverged) {
    if (context_.writes()) rows_.write(context_.folder);
    if (!diverged)
      context_.write_pieces("samples.npy",
                            io::npy_header_of_floats(std::array{s.population.total(), s.population.dimension()}),
                            [&](const PieceSink& sink) { give_pieces(s.population, sink); });
    std::vector<float> densities;
    for (const TensorParameters& theta : {first_theta(c_, energy_), average_}) append_log_density(densities, theta);
    context_.write("energy.npy", io::npy_bytes(densities, std::array{std::size_t{2}, ebm_nodes, ebm_nodes}));
    if (context_.writes()) write_model();
  }

  // NaN where the law cannot be integrated.
  void append_log_density(std::vector<float>& to, const TensorParameters& theta) {
    const std::optional<PlaneEnergy> law = integrate(energy_, theta, &workers_, context_.processes);
    const Window w = c_.target.window();
    std::vector<double> nodes;
    const auto node = [](double low, double high, std::size_t i) {
      return low + (high - low) / static_cast<double>(ebm_nodes - 1) * static_cast<double>(i);
    };
    for (std::size_t i = 0; i < ebm_nodes; ++i)
      for (std::size_t j = 0; j < ebm_nodes; ++j) {
        nodes.push_back(node(w.x_min, w.x_max, j));
        nodes.push_back(node(w.y_min, w.y_max, i));
      }
    for (const double v : energies_at(energy_, nodes, &workers_, context_.processes))
      to.push_back(static_cast<float>(law ? -v - law->log_normaliser : Figures::none));
  }

  void write_model() const {
    const Json config{{"_class_name", "MlpEnergy"},
                      {"inputs", 2},
                      {"widths", c_.widths},
                      {"confinement", c_.confinement},
                      {"activation", "silu"}};
    save_network(context_.folder / "model", config, energy_.network().layout, average_);
  }

  const EbmConfiguration& c_;
  const RunContext& context_;
  Workers workers_{context_.threads};
  NetworkEnergy energy_ = make_energy(c_);
  std::optional<TensorSamples> data_;
  TensorParameters average_;
  std::int64_t seen_ = 0;
  SampleHashes hashes_;
  RowRecorder rows_{header, c_.log_every};
  Checkpoints checkpoints_{c_, context_, c_.checkpoint_every};
  Progress::Loop progress_{context_.progress, context_.weight};
};

FinishedRun run_ebm(const EbmConfiguration& c, const RunContext& context) { return EbmRun(c, context).run(); }

}  // namespace

int EbmNetworkExperiment::run(const RunOptions& o) const {
  if (const SampleFile* data = configuration().target.data()) {  // before anything is written
    (void)data->samples(2);
    require_kept("target.data", data->path(), o, configuration());
  }
  return run_or_repeat(configuration(), o, run_ebm, *this);
}

}  // namespace program
