#include "ebm_network/experiment.hpp"
#include "experiment/warnings.hpp"
#include "figures/curves.hpp"
#include "figures/opening.hpp"
#include "figures/run_tables.hpp"
#include "figures/tables.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

const std::array ebm_curves{
    CurveSpec{.column = "exact_kl",
              .title = "KL divergence from the target",
              .y_label = "KL(target ‖ π*(θ)), nats",
              .second = "last_theta_kl",
              .second_label = "of the last θ, not averaged",
              .log_y = true,
              .meaning = "Smaller is better; 0 means that π*(θ) equals the target. θ itself swings widely around its "
                         "moving average, which is the model that is kept.",
              .first_label = "of the averaged θ"},
    CurveSpec{.column = "data_log_likelihood",
              .title = "Log-likelihood of the target’s samples",
              .y_label = "mean of log π*(θ), nats",
              .meaning = "Larger is better."}};

// A run as its files tell it.
struct EbmFiles : RunTable {
  std::vector<std::vector<double>> log_density = {};  // at the beginning and at the end
  Population<float> samples = {};                     // empty where the run diverged
};

EbmFiles read_files(const fs::path& folder) {
  EbmFiles run{read_run_table(folder, {"step", "gradient_evaluations", "seconds", "reward", "exact_kl"})};
  const io::Array a = io::read_npy(folder / "energy.npy");
  if (a.shape != std::vector<std::size_t>{2, ebm_nodes, ebm_nodes})
    throw Error(ErrorKind::data, io::display(folder / "energy.npy"),
                fmt::format("not of shape (2, {}, {})", ebm_nodes, ebm_nodes));
  const auto half = static_cast<std::ptrdiff_t>(ebm_nodes * ebm_nodes);
  run.log_density = {{a.values.begin(), a.values.begin() + half}, {a.values.begin() + half, a.values.end()}};
  std::error_code error;
  if (fs::exists(folder / "samples.npy", error)) run.samples = read_population(folder / "samples.npy", 2);
  return run;
}

// What is to be learnt, as far as it is still there.
struct Shown {
  Window window;
  std::optional<Population<float>> points;
  std::string missing;
};
Shown shown(const EbmConfiguration& c) {
  constexpr std::size_t most_points = 1000;
  try {
    return {c.target.window(), c.target.points(most_points, Noise(c.seed)), ""};
  } catch (const Error&) {
    return {{}, std::nullopt, "There are no pictures, because the file with the data no longer exists."};
  }
}

std::vector<double> coordinate_of(const Population<float>& x, std::size_t j) {
  return x.size() == 0 ? std::vector<double>() : std::vector<double>(x.coordinate(j).begin(), x.coordinate(j).end());
}

report::Figure draw(const std::string& title, const std::string& caption, const Window& w,
                    const std::vector<double>* log_density, const Population<float>& samples,
                    const Population<float>& data) {
  report::DensityPlot plot{.title = title,
                           .x_min = w.x_min,
                           .x_max = w.x_max,
                           .y_min = w.y_min,
                           .y_max = w.y_max,
                           .columns = log_density ? ebm_nodes : 0,
                           .rows = log_density ? ebm_nodes : 0,
                           .point_x = coordinate_of(samples, 0),
                           .point_y = coordinate_of(samples, 1),
                           .data_x = coordinate_of(data, 0),
                           .data_y = coordinate_of(data, 1),
                           .data_label = "target",
                           .x_label = coordinate_name(0, 2),
                           .y_label = coordinate_name(1, 2),
                           .narrow = true};
  if (log_density)
    for (const double v : *log_density) plot.density.push_back(std::exp(v));
  return {report::to_svg(plot), caption};
}

report::Section pictures(const EbmConfiguration& c, const EbmFiles& run) {
  report::Section section{
      .heading = "The distribution and its samples",
      .text = fmt::format("{} is the distribution with a density proportional to exp(−V(x, θ)), where V is the network "
                          "plus a parabola.",
                          the_law),
      .three_in_a_row = true};
  const Shown all = shown(c);
  if (!all.points) {
    section.text += " " + all.missing;
    return section;
  }
  const Population<float> none(0, 2);
  const auto density = [&](std::size_t k) {
    return std::isfinite(run.log_density[k].front()) ? &run.log_density[k] : nullptr;
  };
  section.figures = {
      draw("The target",
           fmt::format("{} points of {}.", std::min<std::size_t>(1000, all.points->size()), c.target.name()),
           all.window, nullptr, none, *all.points),
      draw("π*(θ) at step 0", "The density of the network before the first step.", all.window, density(0), none, none),
      draw(fmt::format("π*(θ) at step {}", run.summary.steps),
           run.samples.size() == 0 ? "The density at the end; the run diverged, so there are no samples."
                                   : "The density at the end, and the samples after the last step.",
           all.window, density(1), run.samples, none)};
  return section;
}

std::string opening(const EbmConfiguration& c, const EbmFiles& run) {
  const Summary& s = run.summary;
  const std::string inner = c.inner_steps == 1 ? "one Langevin step" : fmt::format("{} Langevin steps", c.inner_steps);
  std::vector<std::string> text{
      fmt::format(
          "This run trained a neural energy with layers of {} units to match {}, with the {} loop: in each of {} "
          "steps, {} samples took {}, and θ took one step of {}.",
          fmt::join(c.widths, " and "), c.target.name(), c.inner_steps == 1 ? "single" : "nested", s.steps, c.particles,
          inner, c.optimizer),
      how_it_ended(s.status, s.steps, c.steps)};
  const bool known = !c.target.data();
  const auto ends = ends_of(column(run, known ? "exact_kl" : "data_log_likelihood"), true);
  if (!ends) {
    text.emplace_back("No figure tells whether it worked: judge by the pictures.");
  } else if (known) {
    text.push_back(fmt::format("{}: the KL divergence of {} from the target {} nats.",
                               s.status == "diverged" ? "Until then" : verdict_of_divergence(ends->first, ends->last),
                               the_law, change_text(*ends)));
    text.emplace_back(
        "A perfect match has 0. These figures are computed by quadrature, without the noise of samples, "
        "for the moving average of θ, which is the model that is kept.");
  } else {
    text.push_back(
        fmt::format("The mean log-likelihood of the data under {} {} nats. The best possible value is not "
                    "known here; the pictures below show the samples beside the data.",
                    the_law, change_text(*ends)));
  }
  if (ends && ends->moving) text.emplace_back("It was still changing at the end, so more steps may help.");
  return paragraph(text);
}

std::string run_page(const EbmConfiguration& c, const EbmFiles& run) {
  const Summary& s = run.summary;
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, seed {}: {}, {} steps in {:.2f} s", c.experiment, c.seed, s.status,
                                            s.steps, s.seconds),
                    .warnings = messages_of(s.warnings),
                    .opening = opening(c, run),
                    .footer = footer};
  if (s.status == "interrupted")
    page.notice = fmt::format("The run was interrupted after step {} of {}; this report shows the state at that step.",
                              s.steps, c.steps);
  if (s.status == "diverged")
    page.notice = fmt::format(
        "The run diverged at step {} of {}: a sample, the gradient or θ was no longer finite. Advice: a learning_rate "
        "smaller than {} or a step_size smaller than {} may help.",
        s.steps + 1, c.steps, c.learning_rate, c.step_size);
  if (std::isfinite(s.figures.exact_kl))
    page.facts.push_back({"KL divergence", four_digits(s.figures.exact_kl), "nats, of the averaged θ"});
  if (std::isfinite(s.figures.data_log_likelihood))
    page.facts.push_back(
        {"Log-likelihood", four_digits(s.figures.data_log_likelihood), "nats, of the target’s samples"});
  page.sections.push_back(pictures(c, run));
  add_curves(page, {Group{"", {&run}}}, Axis::steps, ebm_curves);
  page.sections.push_back(repeat_section(c.resolved.text(), run.folder, ""));
  return report::to_html(page);
}

}  // namespace

std::string EbmNetworkExperiment::report(const fs::path& folder) const {
  const EbmConfiguration& c = configuration();
  if (!repeats_of(folder).empty()) return repeats_report(c, folder);
  return run_page(c, read_files(folder));
}

}  // namespace program
