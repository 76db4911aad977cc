#include "denoising_mixture/loop_run.hpp"
#include "denoising_mixture/tails.hpp"
#include "experiment/console.hpp"
#include "experiment/interrupt.hpp"
#include "experiment/launch.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/population_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// The exact score of a mixture: theta is the mixture itself.
class MixtureSubject {
 public:
  using Engine = float;
  using Theta = std::vector<double>;

  MixtureSubject(const DenoisingConfiguration& c, const RunContext& context) : c_(c), processes_(context.processes) {
    if (c.base.dimension() <= MixtureDivergence::largest_dimension) divergence_.emplace(tilted_);
  }

  Theta start() const { return model_.parameters_of(c_.base); }
  Population<float> samples() const { return {static_cast<std::size_t>(c_.batch), c_.base.dimension(), processes_}; }
  ReverseChain<float> chain(Workers* workers) const {
    return {model_.score<float>(),
            c_.grid(static_cast<std::size_t>(c_.steps_per_sample)),
            {.dynamics = c_.dynamics,
             .slots = static_cast<std::size_t>(c_.slots),
             .keep_every = static_cast<std::size_t>(c_.keep_every),
             .normals = normals_of<float>(Noise(c_.seed)),
             .workers = workers},
            std::pair{model_.score<float>(), model_.parameters_of(c_.base)}};
  }
  Reward<float> reward() const { return LinearReward{c_.direction}; }

  LawFigures figures(const Theta& theta) const {
    const GaussianMixture law = model_.law(theta);
    return {law, distance(law, tilted_), c_.mean_reward(law),
            divergence_ ? (*divergence_)(law).value_or(Figures::none) : Figures::none};
  }
  LawFigures figures_at_end(const Theta& theta) const {
    const GaussianMixture law = model_.law(theta);
    return {law, distance(law, tilted_)};
  }
  LawFigures figures_when_stopped(const Theta& theta) const { return figures(theta); }
  static const Theta& columns(const Theta& theta) { return theta; }
  static void write(const RunContext& context, const Theta&, const Population<float>* samples) {
    if (samples) context.write_samples("samples.npy", *samples);
  }

  // One if the gradient at the end rests on a few of the samples, which are drawn for this alone.
  std::vector<Warning> warnings(const Theta& theta) const {
    // It takes a tenth of the time of the run at most.
    constexpr std::int64_t most = 1000, fewest = 200, samples = 16, share = 10, longest = 100'000;
    const std::int64_t groups = std::min(most, c_.steps * c_.batch / (samples * share));
    if (groups < fewest || c_.steps_per_sample * static_cast<std::int64_t>(c_.base.dimension()) > longest) return {};
    const Concentration found = gradient_concentration(c_, theta, static_cast<std::size_t>(c_.steps_per_sample),
                                                       static_cast<std::size_t>(groups));
    if (found.tail_share <= largest_tail_share) return {};
    return {
        {warning_kind::heavy_tails,
         fmt::format(
             "the gradient rests on a few samples: among {} groups of {} the largest 1 % have {:.0f} % of its "
             "variance (8 % would be normal), so most batches of {} contain none of the samples that matter, and theta "
             "may have stopped short or gone astray. The modes of the base are too far apart for gradients along "
             "paths: bring them closer together; a larger batch helps little",
             groups, samples, 100 * found.tail_share, c_.batch)}};
  }

 private:
  const DenoisingConfiguration& c_;
  Processes* processes_;
  const MixtureModel model_ = c_.model();
  const GaussianMixture tilted_ = c_.tilted();
  std::optional<MixtureDivergence> divergence_;
};

// A run of one model or the other; of a network, that which was trained in a folder.
DenoisingRow run_loop(const DenoisingConfiguration& c, const RunContext& context, const fs::path& training) {
  if (c.network) return run_score_network(c, context, training);
  Workers workers(context.threads);
  MixtureSubject subject(c, context);
  return LoopRun(c, context, subject, workers).run();
}

// What a run leaves whose network was not trained to the end.
DenoisingRow without_network(const DenoisingConfiguration& c, const RunContext& context, const std::string& status) {
  RowRecorder rows({denoising_header.begin(), denoising_header.end()}, c.log_every);
  std::vector<double> empty(denoising_header.size(), Figures::none);
  std::fill_n(empty.begin(), 3, 0.0);
  rows.add(0, empty, {});
  if (context.writes()) rows.write(context.folder);
  return {.configuration = &c,
          .status = status,
          .law = c.base,
          .off = {Figures::none, Figures::none},
          .path_kl = Figures::none,
          .trained = false};
}

FinishedRun run_single(const DenoisingConfiguration& c, const RunContext& context) {
  const fs::path training = context.folder / "training";
  const std::string trained = c.network ? train_score_network(c, context, training) : "completed";
  const DenoisingRows rows{trained == "completed" ? run_loop(c, context, training)
                                                  : without_network(c, context, trained)};
  const DenoisingRow& row = *rows.front();
  FinishedRun done{summary_of(c, rows, context.threads), {}, {}};
  done.summary.more["peak_memory_bytes"] = peak_memory_bytes();
  if (context.processes) done.summary.processes = context.processes->ranks();
  context.write("summary.json", to_json(done.summary));
  const DenoisingComparison::Setting alone{"the run", c};
  done.table = closing_table(c, {&alone, 1}, rows, row.status, row.seconds);
  if (row.status == "diverged") done.complaints.push_back(describe_divergence(row));
  return done;
}

int run_settings(const DenoisingMixtureExperiment& experiment, const RunOptions& o) {
  const DenoisingComparison& e = experiment.configuration();
  const std::size_t threads = thread_count(o);
  const Interrupt interrupt;
  const OpenFolder folder(o, e);
  const auto begin = std::chrono::steady_clock::now();
  const double before = o.resume ? seconds_so_far(folder.path) : 0;

  const auto step_work = [&](std::size_t i) {
    const DenoisingConfiguration& c = e.settings[i].configuration;
    return static_cast<double>(c.steps_per_sample * c.batch * (c.keep_every > 1 ? 3 : 2));
  };
  const auto work_of = [&](std::size_t i) {
    return step_work(i) * static_cast<double>(e.settings[i].configuration.steps);
  };
  const std::vector<std::size_t> order = longest_first(e.settings.size(), work_of);
  std::vector<FolderRun> folders;
  double work = 0;
  for (const std::size_t i : order) {
    const auto& s = e.settings[i];
    folders.push_back({&s.configuration, folder.path / "settings" / s.folder, step_work(i)});
    work += work_of(i);
  }
  const double step = step_work(0), training_steps = training_work(e.settings[0].configuration);
  Progress progress(e.experiment, e.settings.size(), work + training_steps * step, o.quiet);
  if (o.resume) {
    std::error_code none;
    const auto begun =
        std::ranges::count_if(folders, [&](const FolderRun& f) { return fs::exists(f.folder / "checkpoints", none); });
    progress.say(fmt::format("{} of {} runs have a checkpoint and continue from it", begun, e.settings.size()));
  }
  DenoisingRows rows(e.settings.size());
  const fs::path training = folder.path / "training";
  const std::string trained = e.single.network ? train_score_network(e.single,
                                                                     {.folder = folder.path,
                                                                      .threads = threads,
                                                                      .resume = o.resume,
                                                                      .stop = interrupt.token(),
                                                                      .progress = &progress,
                                                                      .weight = step,
                                                                      .processes = processes()},
                                                                     training)
                                               : "completed";
  if (trained == "completed")
    run_in_folders(folders, threads, o.resume, interrupt.token(), &progress,
                   [&](std::size_t k, const RunContext& context) {
                     const auto& setting = e.settings[order[k]];
                     const DenoisingRow& r = rows[order[k]].emplace(run_loop(setting.configuration, context, training));
                     io::write_file(context.folder / "summary.json",
                                    to_json(summary_of(setting.configuration, {r}, context.threads)));
                     progress.say(fmt::format("{} {} after {} steps", setting.folder,
                                              r.status == "completed" ? "done" : r.status, r.steps));
                   },
                   {[&](std::size_t k) { return pack(*rows[order[k]]); },
                    [&](std::size_t k, const std::string& message) {
                      rows[order[k]] = unpack_row(e.settings[order[k]].configuration, message);
                    }});
  progress.finish();
  const int signal = interrupt.signal(processes());
  if (!is_first()) return 0;
  if (o.resume) write_configuration(folder.path, e);

  Summary s = summary_of(e.single, rows, threads);
  if (processes()) s.processes = processes()->ranks();
  s.status = "completed";
  s.seconds = before + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const DenoisingRow* diverged = nullptr;
  for (const auto& r : rows) {
    if (!r || (r->status != "completed" && s.status != "diverged")) s.status = r ? r->status : "interrupted";
    if (r && r->status == "diverged" && !diverged) diverged = &*r;
  }
  if (trained == "diverged") s.status = trained;
  s.more["peak_memory_bytes"] = peak_memory_bytes();
  io::write_file(folder.path / "summary.json", to_json(s));

  const int code = exit_code(s.status, signal);
  if (trained == "diverged") {
    complain(fmt::format("{}: {}", e.experiment, describe_divergence({.configuration = &e.single, .trained = false})));
    return code;
  }
  if (s.more["results"].empty()) {
    print(fmt::format("{}: interrupted before a run had started; continue with --resume\n", e.experiment));
    return code;
  }
  close_run(folder.path, closing_table(e.single, e.settings, rows, s.status, s.seconds), o, experiment);
  print_warnings(s.warnings);
  if (code == exit_diverged && diverged) complain(fmt::format("{}: {}", e.experiment, describe_divergence(*diverged)));
  return code;
}

}  // namespace

std::unique_ptr<Experiment> read_denoising_mixture(const Document& d) {
  return std::make_unique<DenoisingMixtureExperiment>(read_denoising_configuration(d));
}

int DenoisingMixtureExperiment::run(const RunOptions& o) const {
  return configuration().settings.empty()
             ? run_or_repeat(configuration().single, o, run_single, *this, training_work(configuration().single))
             : run_settings(*this, o);
}

Experiment::Repeats DenoisingMixtureExperiment::repeats() const {
  if (configuration().settings.empty()) return {};
  return {"", "a comparison runs each setting once; use --set comparison.settings=[] to repeat a single run"};
}

}  // namespace program
