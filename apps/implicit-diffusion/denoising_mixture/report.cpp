// The report of a run and of a comparison, of the exact score and of a network. One file, though a long one: all of
// them are made of the same pictures and tables.
#include "denoising_mixture/results.hpp"
#include "experiment/warnings.hpp"
#include "figures/law_pictures.hpp"
#include "figures/opening.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/denoising/sampler.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "langevin/samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

// One run, as its folder has it.
struct Files {
  std::string label, folder;
  const DenoisingConfiguration* configuration;
  io::CsvTable metrics;
  std::vector<double> theta;  // the last; none of a network
  Population<float> samples;
  Json result = Json::object();  // what summary.json has of it

  const std::vector<double>& column(std::string_view name) const {
    const auto at = std::ranges::find(metrics.header, name) - metrics.header.begin();
    return metrics.columns[static_cast<std::size_t>(at)];
  }
};

Files read_files(const DenoisingConfiguration& c, const fs::path& folder, const std::string& label) {
  Files f{label, folder.filename().string(), &c, io::read_csv(folder / "metrics.csv", io::EmptyCell::nan), {}, {}};
  for (const char* name : denoising_header)
    if (std::ranges::count(f.metrics.header, name) == 0)
      throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), fmt::format("has no column {}", name));
  if (!c.network) {
    const std::size_t p = c.model().parameters();
    const io::Array theta = io::read_npy(folder / "theta.npy");
    if (theta.shape.size() != 2 || theta.shape[1] != p || theta.shape[0] == 0)
      throw Error(ErrorKind::data, io::display(folder / "theta.npy"), "has another shape than config.toml says");
    f.theta.assign(theta.values.end() - static_cast<std::ptrdiff_t>(p), theta.values.end());
  }
  std::error_code none;
  if (fs::exists(folder / "samples.npy", none)) f.samples = read_population(folder / "samples.npy", c.base.dimension());
  return f;
}

std::string label_of(const DenoisingConfiguration& c, const DenoisingConfiguration& usual) {
  std::string label = c.loop == LoopKind::queue ? "" : std::string(to_string(c.loop)) + " ";
  label += c.dynamics == Dynamics::euler_ode ? "ODE" : "SDE";
  label += fmt::format(" M={}", c.slots);
  if (c.steps_per_sample != usual.steps_per_sample) label += fmt::format(" T={}", c.steps_per_sample);
  return label;
}

// How the runs ended, where that is not at their end.
std::string notice_of(const Json& results, const std::vector<Files>& runs, std::size_t wanted) {
  std::string text;
  const auto add = [&](const std::string& sentence) { text += (text.empty() ? "" : " ") + sentence; };
  if (runs.size() < wanted)
    add(fmt::format("The comparison was interrupted: the report covers {} of {} runs.", runs.size(), wanted));
  for (std::size_t k = 0; k < std::min(runs.size(), results.size()); ++k) {
    const Json& r = results[k];
    const std::string status = r.is_object() ? r.value("status", "") : "";
    if (status == "diverged" || status == "interrupted")
      add(fmt::format("{} {} after {} of {} steps.", runs[k].label,
                      status == "diverged" ? "diverged" : "was interrupted", r.value("steps", std::int64_t{0}),
                      runs[k].configuration->steps));
  }
  return text;
}

// Whether the samples of each run follow the mixture that it learnt, by their mean reward. A chain forgets that it
// began as N(0, I) only over a long horizon, and its steps are finite.
std::string judge_samples(const std::vector<Files>& runs) {
  constexpr double standard_errors = 4, much = 0.1;  // of a deviation of the reward
  std::string furthest;
  double most = 0;
  std::size_t known = 0, off = 0;
  for (const Files& run : runs) {
    const DenoisingConfiguration& c = *run.configuration;
    const std::size_t n = run.samples.size();
    if (n < 2 || c.network) continue;
    const GaussianMixture law = c.model().law(run.theta);
    const double exact = c.mean_reward(law);
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double r = 0;
      for (std::size_t j = 0; j < c.direction.size(); ++j) r += c.direction[j] * static_cast<double>(run.samples(i, j));
      sum += r;
      squares += r * r;
    }
    const double mean = sum / static_cast<double>(n);
    const double deviation = std::sqrt(std::max(squares / static_cast<double>(n) - mean * mean, 0.0));
    const double error = deviation / std::sqrt(static_cast<double>(n - 1)), apart = std::abs(mean - exact);
    ++known;
    if (apart > standard_errors * error && apart > much * deviation) ++off;
    if (furthest.empty() || apart > most * error) {
      most = apart / error;
      furthest = fmt::format("{}a mean reward of {}, with a standard error of {}, and the mixture has {}",
                             runs.size() == 1 ? "" : fmt::format("in {}, ", run.label), four_digits(mean),
                             minus(fmt::format("{:.2g}", error)), four_digits(exact));
    }
  }
  if (known == 0) return {};
  if (runs.size() == 1)
    return fmt::format(
        "{}: they have {}.{}",
        off > 0 ? "The samples do not follow the learnt mixture" : "The samples follow the learnt mixture", furthest,
        off > 0 ? " A longer horizon or more steps per sample may help." : "");
  if (off == 0) return fmt::format("The samples follow the learnt mixtures; furthest from them {}.", furthest);
  return fmt::format(
      "The samples of {} of the {} runs do not follow the learnt mixture; furthest from it, {}. A longer horizon or "
      "more "
      "steps per sample may help.",
      off, known, furthest);
}

// The errors of the last theta. Those of a network are in its result by more samples than in a row.
LawDistance errors_of(const Files& run) {
  if (!run.configuration->network) return {run.column("weight_error").back(), run.column("mean_error").back()};
  return {number_or_nan(run.result, "weights_off"), number_or_nan(run.result, "means_off")};
}

// The same of networks, whose law is known by its samples alone.
std::string network_opening(const std::vector<Files>& runs) {
  // What finetuning leaves where it works: half of a tenth of the mass, and steps of a chain shift the means.
  constexpr double few = 0.05, near = 0.15;
  const Files& first = runs.front();
  const DenoisingConfiguration& c = *first.configuration;
  const bool one = runs.size() == 1;
  std::vector<std::string> text{fmt::format(
      "A network learnt the score of {} from samples of them, in {} steps of denoising score matching. {} finetuned it "
      "towards a linear reward, with a penalty on leaving what it had learnt.",
      c.base.weights.size() == 1 ? "a Gaussian" : fmt::format("{} Gaussians", c.base.weights.size()),
      c.network->training.steps, one ? "This run then" : fmt::format("{} runs then", runs.size()))};
  const auto status = [](const Files& f) { return f.result.value("status", ""); };
  if (one) text.push_back(how_it_ended(status(first), first.result.value("steps", std::int64_t{0}), c.steps));
  std::size_t worked = 0, known = 0;
  for (const Files& run : runs) {
    const LawDistance off = errors_of(run);
    if (!std::isfinite(off.weights)) continue;
    ++known;
    if (off.weights <= few && off.means <= near && status(run) == "completed") ++worked;
  }
  const LawDistance off = errors_of(first);
  if (known == 0) {
    text.emplace_back("There are no samples to judge it by.");
  } else if (one) {
    text.push_back(fmt::format(
        "{}: the best distribution is known, and {} samples of the network have the shares of its components to "
        "within {} and their means to within {}; before finetuning it was {} and {}, and up to {} and {} counts as "
        "success.",
        worked == 1 ? "It worked" : "It did not come close", c.network->samples, fixed(off.weights, 3),
        fixed(off.means, 3), fixed(first.column("weight_error").front(), 3),
        fixed(first.column("mean_error").front(), 3), few, near));
  } else {
    text.push_back(
        fmt::format("The best distribution is known, and the samples of {} of {} networks have the shares "
                    "of its components to within {} and their means to within {}.",
                    worked, known, few, near));
  }
  text.emplace_back(
      "A sample is counted to the component that most likely made it; exact samples, counted in the same way, stand "
      "beside it.");
  return paragraph(text);
}

// What was done, whether it worked, and how one can tell.
std::string mixture_opening(const std::vector<Files>& runs, const Json& results) {
  const Files& first = runs.front();
  const DenoisingConfiguration& c = *first.configuration;
  if (c.network) return network_opening(runs);
  const bool one = runs.size() == 1;
  const auto rose = ends_of(&first.column("exact_reward"));
  const GaussianMixture tilted = c.tilted();
  std::vector<std::string> text{
      fmt::format("{} a denoising diffusion of {} towards a linear reward, with a penalty on leaving the base model.",
                  one ? "This run finetuned" : fmt::format("These {} runs finetuned", runs.size()),
                  c.base.weights.size() == 1 ? "a Gaussian" : fmt::format("{} Gaussians", c.base.weights.size()))};
  // The share of the way to the best distribution that each run went, by KL.
  double least = 1, most = -std::numeric_limits<double>::infinity();
  std::size_t worked = 0, known = 0;
  for (const Files& run : runs) {
    const auto kl = ends_of(&run.column("exact_kl"), true);
    if (!kl || !(kl->first > 0)) continue;
    const double share = share_of_way(kl->first, kl->last, 0);
    least = std::min(least, share);
    most = std::max(most, share);
    ++known;
    if (verdict_of_divergence(kl->first, kl->last) == verdict_of(1)) ++worked;
  }
  std::size_t completed = 0;
  for (const Json& r : results)
    if (r.is_object() && r.value("status", "") == "completed") ++completed;
  if (one && !results.empty() && results[0].is_object())
    text.push_back(how_it_ended(results[0].value("status", ""), results[0].value("steps", std::int64_t{0}), c.steps));
  else if (completed < runs.size())
    text.push_back(completed == 0 ? std::string("None of them completed its steps.")
                                  : fmt::format("Only {} of them completed their steps.", completed));
  if (const auto kl = ends_of(&first.column("exact_kl"), true); one && known == 1 && kl)
    text.push_back(fmt::format(
        "{}: the best distribution is known, and the KL divergence from it to the learnt one {} nats; the run removed "
        "{} of it.",
        verdict_of_divergence(kl->first, kl->last), change_text(*kl), percent(std::max(least, 0.0))));
  else if (known > 0)
    text.push_back(fmt::format(
        "{}: the best distribution is known, and {} of the {} runs removed at least 95 % of the KL divergence from it, "
        "with no more than 0.5 nats left. "
        "The best run removed {}, the worst {}.",
        worked == known ? "All of them worked" : (worked > 0 ? "Some of them worked" : "None of them worked"), worked,
        known, percent(most), percent(least)));
  else
    text.push_back(
        fmt::format("There is no KL divergence in {} dimensions, so judge by the weights and means: they are "
                    "off by at most {} and {}.",
                    c.base.dimension(), fixed(errors_of(first).weights, 4), fixed(errors_of(first).means, 4)));
  if (rose)
    text.push_back(fmt::format("{} the mean reward of the learnt mixture {}; the best distribution has {}.",
                               one ? "Meanwhile" : fmt::format("In the first run, {},", first.label),
                               change_text(*rose), four_digits(c.mean_reward(tilted))));
  text.emplace_back("These figures follow from the learnt parameters without sampling noise.");
  text.push_back(judge_samples(runs));
  return paragraph(text);
}

// The first coordinate of a few samples on their way, with the same noise at two thetas, on the same axes.
std::vector<report::Figure> draw_paths(const DenoisingConfiguration& c, const std::vector<double>& before,
                                       const std::vector<double>& after) {
  constexpr std::size_t few = 6;
  ReverseChain<float> reverse(c.model().score<float>(), c.grid(static_cast<std::size_t>(c.steps_per_sample)),
                              {.dynamics = c.dynamics, .normals = normals_of<float>(Noise(c.seed))});
  const TimeGrid grid = reverse.grid();
  std::array charts{report::LineChart{.title = "Before", .x_label = "time", .y_label = "x₁"},
                    report::LineChart{.title = "After", .x_label = "time", .y_label = "x₁"}};
  std::vector<double> all;
  for (const auto& [chart, theta] : {std::pair{&charts[0], &before}, std::pair{&charts[1], &after}}) {
    PathBatch<float> b;
    b.points = Population<float>(few, c.base.dimension());
    DenoisingStart<float>{Noise(c.seed)}.draw(b, 0);
    DenoisingSampler<float>(reverse).advance(b, *theta, {});
    for (std::size_t i = 0; i < few; ++i) {
      report::Series s{fmt::format("sample {}", i + 1)};
      for (std::size_t n = 0; n < grid.steps(); ++n)
        s.add(grid.tau.front() - grid.tau[n], static_cast<double>(b.path[n](i, 0)));
      s.add(grid.tau.front(), static_cast<double>(b.points(i, 0)));
      all.insert(all.end(), s.y.begin(), s.y.end());
      chart->series.push_back(std::move(s));
    }
  }
  for (report::LineChart& chart : charts) chart.also_y = all;
  return {{report::to_svg(charts[0]), "Paths from noise to data, with the base model."},
          {report::to_svg(charts[1]), "Paths from the same noise, with the learnt model."}};
}

// Runs of different lengths are shown over their share of the steps.
void add_chart(report::Section& section, const std::vector<Files>& runs, const char* name, const std::string& title,
               const std::string& y_label, bool log_y, const std::string& caption,
               const std::vector<report::ReferenceLine>& lines = {}) {
  const bool alike = std::all_of(runs.begin(), runs.end(), [&](const Files& f) {
    return f.configuration->steps == runs.front().configuration->steps;
  });
  report::LineChart chart{.title = title,
                          .x_label = alike ? "step" : "fraction of the steps",
                          .y_label = y_label,
                          .reference_lines = lines,
                          .log_y = log_y};
  for (const Files& f : runs) {
    const std::vector<double>& y = f.column(name);
    if (std::none_of(y.begin(), y.end(), [](double v) { return std::isfinite(v); })) continue;
    std::vector<double> x = f.column("step");
    if (!alike)
      for (double& step : x) step /= static_cast<double>(f.configuration->steps);
    chart.series.push_back({runs.size() > 1 ? f.label : "", std::move(x), y});
  }
  if (!chart.series.empty()) section.figures.push_back({report::to_svg(chart), caption});
}

// Weights and means of mixtures, component by component.
report::Table compare_laws(const std::vector<std::pair<std::string, const GaussianMixture*>>& laws) {
  report::Table table{{"component"}};
  for (const char* what : {"weight", "mean"})
    for (const auto& [name, law] : laws) table.header.push_back(fmt::format("{}, {}", what, name));
  for (std::size_t i = 0; i < laws.front().second->weights.size(); ++i) {
    std::vector<std::string> cells{fmt::format("{}", i + 1)};
    for (const auto& [name, law] : laws) cells.push_back(fixed(law->weights[i], 4));
    for (const auto& [name, law] : laws) {
      std::string& text = cells.emplace_back();
      for (const double v : law->components[i].mean) text += (text.empty() ? "" : ", ") + fixed(v, 3);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

// The paths of a few samples, and the parameters.
void add_mixture_sections(report::Page& page, const Files& first) {
  const DenoisingConfiguration& c = *first.configuration;
  const GaussianMixture tilted = c.tilted();
  page.sections.push_back(
      {.heading = "Paths of a few samples",
       .text = "The noise is the same before and after finetuning, so the difference is due to θ alone.",
       .figures = draw_paths(c, c.model().parameters_of(c.base), first.theta)});
  const GaussianMixture learnt = c.model().law(first.theta);
  page.sections.push_back({.heading = "The learnt distribution",
                           .text = fmt::format("These are the parameters of {}.", first.label),
                           .tables = {compare_laws({{"base", &c.base}, {"learnt", &learnt}, {"tilted", &tilted}})}});
}

// The training of a network, and its samples as they are counted.
void add_network_sections(report::Page& page, const fs::path& folder, const Files& first) {
  const DenoisingConfiguration& c = *first.configuration;
  const fs::path metrics = folder / "training/metrics.csv";
  if (std::error_code none; fs::exists(metrics, none)) {
    const io::CsvTable table = io::read_csv(metrics, io::EmptyCell::nan);
    const auto column = [&](std::string_view name) {
      const auto at = std::ranges::find(table.header, name) - table.header.begin();
      if (at == static_cast<std::ptrdiff_t>(table.header.size()))
        throw Error(ErrorKind::data, io::display(metrics), fmt::format("has no column {}", name));
      return table.columns[static_cast<std::size_t>(at)];
    };
    report::LineChart chart{.title = "Loss of the training", .x_label = "step", .y_label = "mean over the batches"};
    chart.series.push_back({"", column("step"), column("loss")});
    page.sections.push_back(
        {.heading = "Training",
         .text = "Before finetuning, the network learnt to predict the noise in noisy samples of the base. The loss "
                 "cannot fall to 0: even the exact score leaves the variance of the noise given the noisy sample.",
         .figures = {{report::to_svg(chart), "The mean squared error of the predicted noise, per coordinate."}}});
  }
  const Json &weights = first.result["weights"], &means = first.result["means"];
  const std::size_t n = c.base.weights.size();
  if (!std::isfinite(errors_of(first).weights) || weights.size() != n || means.size() != n) return;
  GaussianMixture learnt = c.base;
  for (std::size_t i = 0; i < n; ++i) {
    learnt.weights[i] = weights[i].get<double>();
    learnt.components[i].mean = means[i].get<std::vector<double>>();
  }
  const GaussianMixture exact = counted_tilted(c);
  page.sections.push_back(
      {.heading = "The learnt distribution",
       .text = fmt::format("These are the shares and means of {} samples of {}, each counted to the component of the "
                           "tilted law that most likely made it, beside those of exact samples under the same rule.",
                           c.network->samples, first.label),
       .tables = {compare_laws({{"learnt", &learnt}, {"tilted", &exact}})}});
}

}  // namespace

std::string DenoisingMixtureExperiment::report(const fs::path& folder) const {
  const DenoisingComparison& e = configuration();
  if (!repeats_of(folder).empty()) return repeats_report(e, folder);
  std::vector<Files> runs;
  if (e.settings.empty()) runs.push_back(read_files(e.single, folder, label_of(e.single, e.single)));
  for (const auto& [name, c] : e.settings)
    if (std::error_code none; fs::exists(folder / "settings" / name / "metrics.csv", none))
      runs.push_back(read_files(c, folder / "settings" / name, label_of(c, e.single)));
  for (Files& f : runs)  // settings that differ in something else go by their folder
    if (std::ranges::count(runs, f.label, &Files::label) > 1) f.label = f.folder;
  if (runs.empty()) throw Error(ErrorKind::missing, io::display(folder), "has no run to report");
  const GaussianMixture tilted = e.single.tilted();
  const Files& first = runs.front();
  const DenoisingConfiguration& c = *first.configuration;
  const double best = e.single.mean_reward(tilted);

  const Json j = Json::parse(io::read_file(folder / "summary.json"), nullptr, false),
             results = j.is_object() && j.contains("results") && j["results"].is_array() ? j["results"] : Json::array();
  for (std::size_t k = 0; k < std::min(runs.size(), results.size()); ++k)
    if (results[k].is_object()) runs[k].result = results[k];
  report::Page page{
      .title = e.title,
      .subtitle = fmt::format("{}, seed {}: {} run{}", e.experiment, e.seed, runs.size(), runs.size() == 1 ? "" : "s"),
      .notice = notice_of(results, runs, std::max<std::size_t>(1, e.settings.size())),
      .warnings = messages_of(read_warnings(j)),
      .opening = mixture_opening(runs, results),
      .footer = footer};
  const LawDistance off = errors_of(first);
  if (!c.network)
    page.facts.push_back({"KL", figure_text(first.column("exact_kl").back(), 4),
                          "from the best distribution to the learnt one, in nats"});
  const std::vector<report::Fact> others{
      {"Weights", figure_text(off.weights, 4), "largest error of a weight"},
      {"Means", figure_text(off.means, 4), "largest error of a coordinate"},
      {"Reward", minus(figure_text(first.column("reward").back(), 4)), "mean over the samples"},
      {c.dynamics == Dynamics::euler_ode ? "Penalty" : "Path KL", figure_text(first.column("path_kl").back(), 4),
       c.dynamics == Dynamics::euler_ode ? "that of the SDE, along the paths of the ODE" : "from the base, in nats"}};
  page.facts.insert(page.facts.end(), others.begin(), others.end());

  report::Section laws{
      .heading = "The distribution and its samples",
      .text =
          "Finetuning minimises −λ E[R] + β KL, where KL is the divergence of the paths from those of the base. The "
          "best "
          "distribution is known: it is the tilted law, the base times exp(λR/β). For a linear reward it is a mixture "
          "with the same covariances, shifted means and other weights. " +
          fmt::format("Its mean reward is {:.4f}. ", best) +
          "A chain of finite horizon only comes near it, because it starts from N(0, I) instead of the noised "
          "distribution of the data. The SDE forgets most of this difference. The ODE keeps it, so its parameters have "
          "to compensate for it."};
  const std::size_t shown_coordinates = std::min<std::size_t>(2, c.base.dimension());
  const bool plane = shown_coordinates == 2;
  laws.three_in_a_row = plane;
  laws.text += plane ? " The contours show the tilted law."
                     : " The curve is the density of the tilted law; it passes through the tops of the bars if the "
                       "samples follow it.";
  if (c.base.dimension() > 2) laws.text += " The pictures show the first two coordinates.";
  Window w;
  w.include(marginal(c.base, shown_coordinates));
  w.include(marginal(tilted, shown_coordinates));
  const auto add_picture = [&](const std::string& title, const std::string& caption, const GaussianMixture& law,
                               const Population<float>& samples) {
    laws.figures.push_back(
        draw({title, caption, marginal(law, shown_coordinates), &samples, nullptr, {}, plane, "the tilted law"}, w));
  };
  Population<float> before(static_cast<std::size_t>(c.batch), c.base.dimension());
  const fs::path trained = folder / "training/samples.npy";
  if (std::error_code none; !c.network)
    MixtureSampler(c.base, Noise(c.seed)).draw(before, 0);
  else
    before = fs::exists(trained, none) ? read_population(trained, c.base.dimension()) : Population<float>();
  if (before.size() > 0)
    add_picture("The base", c.network ? "Samples of the trained network." : "Samples of the base model.", tilted,
                before);
  constexpr std::size_t most = 11;
  for (std::size_t k = 0; k < std::min(runs.size(), most); ++k)
    if (runs[k].samples.size() > 0)
      add_picture(runs[k].label, "Samples at the end of the run.", runs[k].configuration->tilted(), runs[k].samples);
  page.sections.push_back(std::move(laws));

  report::Section curves{.heading = "Curves"};
  add_chart(curves, runs, "reward", "Reward", "mean of R over a finished batch", false,
            "Larger is better, but it costs path KL.", {{best, "tilted law"}});
  add_chart(curves, runs, "path_kl", "Path KL to the base", "nats", false,
            "The price of the reward. The ODE has no noise; its value is the same penalty along its paths.");
  add_chart(curves, runs, "exact_kl", "Distance from the tilted law", "KL(tilted ‖ model), nats", true,
            "The divergence of the mixture that the parameters describe, by quadrature. Smaller is better.");
  add_chart(curves, runs, "mean_error", "Largest error of a mean", "distance of a coordinate", true,
            "Euler steps leave a bias of about (λ/β)|∇R| horizon/T. A component with a small weight is learnt last.");
  add_chart(curves, runs, "weight_error", "Largest error of a weight", "distance", true, "");
  page.sections.push_back(std::move(curves));

  if (c.network)
    add_network_sections(page, folder, first);
  else
    add_mixture_sections(page, first);

  report::Section all{
      .heading = "All runs",
      .text =
          "A sample takes T steps. A queue has M slots, each with a batch at another stage, and for every step of θ "
          "each "
          "slot advances by T/M steps; with M = T this is one step of the chain for one step of θ, as in the single "
          "loop. The nested loop (M = 1) makes complete samples before each step of θ and stores no paths. The column "
          "“steps” counts steps of θ, each with a gradient from one batch. Memory includes the populations, the queue "
          "and its paths. "};
  report::Section costs{
      .heading = "What it cost",
      .text =
          "The tables count calls of the models, each for a whole batch. An evaluation computes a score. A sample "
          "takes "
          "T evaluations, and states that were not stored are evaluated again for the gradient. A product is a step of "
          "the adjoint, the derivatives of the score times a vector; a gradient takes T products. The frozen model is "
          "the base, which the path KL needs at every point."};
  report::Table table{{"run", "T", "steps", "KL", "weights off", "means off", "reward", "path KL", "seconds", "MB"}};
  for (const char* of : {"the last step", "all steps"})
    costs.tables.push_back({{of, "evaluations", "products", "evaluations, frozen", "products, frozen"}});
  for (std::size_t k = 0; k < std::min(runs.size(), results.size()); ++k) {
    const Json& r = results[k];
    const Files& run = runs[k];
    const auto value = [&](const char* key) { return number_or_nan(r, key); };
    table.rows.push_back({run.label, fmt::format("{:.0f}", value("steps_per_sample")),
                          fmt::format("{:.0f}", value("steps")), figure_text(run.column("exact_kl").back(), 4),
                          figure_text(errors_of(run).weights, 4), figure_text(errors_of(run).means, 4),
                          minus(figure_text(value("reward"), 4)), figure_text(value("path_kl"), 4),
                          figure_text(value("seconds"), 2), fmt::format("{:.1f}", value("memory_bytes") / 1e6)});
    const Json step = r.is_object() && r.contains("last_step") ? r["last_step"] : Json::object();
    for (const auto& [from, to] : {std::pair{&step, 0U}, std::pair{&r, 1U}}) {
      std::vector<std::string> cells{run.label};
      for (const char* key : {"model_evaluations", "products", "frozen_evaluations", "frozen_products"}) {
        const double count = number_or_nan(*from, key);
        cells.push_back(std::isfinite(count) ? fmt::format("{:.0f}", count) : "");
      }
      costs.tables[to].rows.push_back(std::move(cells));
    }
  }
  if (const double bytes = number_or_nan(j, "peak_memory_bytes"); std::isfinite(bytes))
    costs.text += fmt::format(" The peak memory of the program, for all runs together, was {:.0f} MB.", bytes / 1e6);
  all.tables.push_back(std::move(table));
  page.sections.push_back(std::move(all));
  page.sections.push_back(std::move(costs));
  page.sections.push_back(repeat_section(e.resolved.text(), folder, ""));
  return report::to_html(page);
}

}  // namespace program
