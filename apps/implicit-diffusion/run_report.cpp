#include "run_report.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/density_plot.hpp"
#include "implicit_diffusion/report/histogram.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace program {
namespace {

using namespace implicit_diffusion;

const std::vector<double>* column(const RunFiles& run, std::string_view name) {
  for (std::size_t i = 0; i < run.header.size(); ++i)
    if (run.header[i] == name) return &run.columns[i];
  return nullptr;
}

// True if there is anything in the column to draw.
bool has(const RunFiles& run, std::string_view name) {
  const auto* c = column(run, name);
  return c && std::any_of(c->begin(), c->end(), [](double v) { return std::isfinite(v); });
}

// With the true minus, as the axes have it.
std::string minus(const std::string& number) { return number.starts_with('-') ? "−" + number.substr(1) : number; }

// The marginal law of the first two coordinates: what a picture in the plane can show.
GaussianMixture marginal(const GaussianMixture& m, std::size_t d) {
  GaussianMixture out{m.weights, {}};
  for (const Gaussian& g : m.components) {
    const std::size_t full = g.mean.size();
    Gaussian part{{g.mean.begin(), g.mean.begin() + static_cast<std::ptrdiff_t>(d)}, {}};
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b < d; ++b) part.covariance.push_back(g.covariance[a * full + b]);
    out.components.push_back(std::move(part));
  }
  return out;
}

struct Window {
  static constexpr double reach = 3.7;  // standard deviations: the contour of 99 % lies within

  double x_min = std::numeric_limits<double>::infinity(), x_max = -x_min, y_min = x_min, y_max = -x_min;

  void include(const GaussianMixture& m) {
    for (std::size_t i = 0; i < m.components.size(); ++i) {
      const Gaussian& g = m.components[i];
      if (m.weights[i] < 1e-9) continue;
      const std::size_t d = g.mean.size();
      const double dx = reach * std::sqrt(g.covariance[0]), dy = d > 1 ? reach * std::sqrt(g.covariance[d + 1]) : 0;
      x_min = std::min(x_min, g.mean[0] - dx);
      x_max = std::max(x_max, g.mean[0] + dx);
      if (d > 1) {
        y_min = std::min(y_min, g.mean[1] - dy);
        y_max = std::max(y_max, g.mean[1] + dy);
      }
    }
  }
};

report::Figure law_figure(const std::string& title, const std::string& caption, const GaussianMixture& law,
                          const Population<float>* samples, const Window& w,
                          const std::vector<report::Marker>& markers) {
  const auto coordinate = [&](std::size_t j) {
    std::vector<double> values;
    if (samples)
      for (const float v : samples->coordinate(j)) values.push_back(static_cast<double>(v));
    return values;
  };
  const MixtureLogDensity log_density(law);
  if (law.dimension() == 1) {
    report::Series curve{"density", {}, {}};
    for (int i = 0; i <= 300; ++i) {
      const double x = w.x_min + (w.x_max - w.x_min) * i / 300;
      curve.x.push_back(x);
      curve.y.push_back(std::exp(log_density(std::array{x})));
    }
    return {report::to_svg(report::HistogramPlot{title, "x", w.x_min, w.x_max, coordinate(0), {curve}}), caption};
  }
  constexpr std::size_t nodes = 121;
  report::DensityPlot plot{.title = title,
                           .x_min = w.x_min,
                           .x_max = w.x_max,
                           .y_min = w.y_min,
                           .y_max = w.y_max,
                           .columns = nodes,
                           .rows = nodes,
                           .markers = markers,
                           .x_label = "x₁",
                           .y_label = "x₂"};
  for (std::size_t r = 0; r < nodes; ++r)
    for (std::size_t c = 0; c < nodes; ++c) {
      const double step_x = (w.x_max - w.x_min) / (nodes - 1), step_y = (w.y_max - w.y_min) / (nodes - 1);
      plot.density.push_back(std::exp(log_density(
          std::array{w.x_min + step_x * static_cast<double>(c), w.y_min + step_y * static_cast<double>(r)})));
    }
  plot.point_x = coordinate(0);
  plot.point_y = coordinate(1);
  return {report::to_svg(plot), caption};
}

// The pictures of a run's law: a window that has room for all of them, and one picture at a time. The laws of its
// potential must have a closed form.
class LawPictures {
 public:
  explicit LawPictures(const RunFiles& run)
      : run_(run),
        potential_(make_potential(run.configuration.potential)),
        shown_(std::min<std::size_t>(2, potential_.dimension())) {
    const Configuration& c = run.configuration;
    window_.include(law(run.theta.front()));
    window_.include(law(run.theta.back()));
    if (c.reference && !c.reference->theta.empty()) window_.include(law(c.reference->theta));
    if (c.reward && shown_ == 2) markers_.push_back({c.reward->centre[0], c.reward->centre[1], "reward"});
  }

  report::Figure start() const {
    const Configuration& c = run_.configuration;
    Population<float> x(static_cast<std::size_t>(c.particles), potential_.dimension());
    const std::string title = "π*(θ) at step 0";
    try {
      Start(c.start, x.size(), x.dimension(), Noise(c.seed)).draw(x, 0);
    } catch (const Error&) {  // the samples it started from are not there any more
      return law_figure(title, "The samples it started from are no longer there.", law(run_.theta.front()), nullptr,
                        window_, markers_);
    }
    return law_figure(title, "The samples before the first step.", law(run_.theta.front()), &x, window_, markers_);
  }

  report::Figure end(std::string title = "") const {
    if (title.empty()) title = fmt::format("π*(θ) at step {:.0f}", run_.columns.front().back());
    const std::string caption = run_.samples.size() == 0 ? "The run diverged: there are no samples."
                                : run_.configuration.method == Method::guided
                                    ? "The samples after the last step. Guidance moves them away from π*(θ), not θ."
                                    : "The samples after the last step.";
    return law_figure(title, caption, law(run_.theta.back()), run_.samples.size() ? &run_.samples : nullptr, window_,
                      markers_);
  }

  // The law to be learnt, where there is one.
  std::optional<report::Figure> reference() const {
    const auto& r = run_.configuration.reference;
    if (!r || r->theta.empty()) return std::nullopt;
    return law_figure("The reference", "The law to be learnt.", law(r->theta), nullptr, window_, {});
  }

  std::string text() const {
    return potential_.dimension() > 2 ? "The marginals of π*(θ) and of the samples in the first two coordinates." : "";
  }

 private:
  GaussianMixture law(std::span<const double> theta) const { return marginal(*potential_.law(theta), shown_); }

  const RunFiles& run_;
  Potential<float> potential_;
  std::size_t shown_;
  Window window_;
  std::vector<report::Marker> markers_;
};

bool has_law(const RunFiles& run) {
  return make_potential(run.configuration.potential).law(run.theta.back()).has_value();
}

// The law and the samples at the start and at the end, and the law to be learnt where there is one.
void add_law(report::Page& page, const RunFiles& run, const std::string& more = "") {
  if (!has_law(run)) return;
  const LawPictures pictures(run);
  report::Section section{.heading = "The law and its samples", .text = pictures.text()};
  section.text += (section.text.empty() || more.empty() ? "" : " ") + more;
  section.figures = {pictures.start(), pictures.end()};
  if (auto reference = pictures.reference()) section.figures.push_back(std::move(*reference));
  page.sections.push_back(std::move(section));
}

struct ChartSpec {
  const char *column, *title, *y_label, *second, *second_label;
  bool log_y;
};
// Which columns of metrics.csv are drawn, and how.
constexpr std::array chart_specs{
    ChartSpec{"reward", "Reward", "reward", "exact_reward", "under π*(θ)", false},
    ChartSpec{"log_likelihood", "Log-likelihood of the samples under θ_opt", "mean of −V(x, θ_opt)", nullptr, nullptr,
              false},
    ChartSpec{"exact_kl", "KL divergence from the reference", "KL(reference ‖ π*(θ))", nullptr, nullptr, true},
    ChartSpec{"data_log_likelihood", "Log-likelihood of the data", "mean of log π*(θ)", nullptr, nullptr, false}};

// A curve for each group of runs: the mean, with a band from the least to the greatest where there are several.
struct Group {
  std::string label;
  std::vector<const RunFiles*> runs;
};

std::optional<report::Series> curve(const Group& group, const std::string& label, std::string_view name,
                                    std::string_view axis) {
  report::Series s{label, {}, {}};
  const RunFiles* longest = nullptr;
  for (const RunFiles* run : group.runs)
    if (has(*run, name) && (!longest || run->columns.front().size() > longest->columns.front().size())) longest = run;
  if (!longest) return std::nullopt;
  s.x = *column(*longest, axis);
  for (std::size_t i = 0; i < s.x.size(); ++i) {
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    std::size_t count = 0;
    for (const RunFiles* run : group.runs) {
      const auto* c = column(*run, name);
      if (!c || i >= c->size() || !std::isfinite((*c)[i])) continue;
      sum += (*c)[i];
      low = std::min(low, (*c)[i]);
      high = std::max(high, (*c)[i]);
      ++count;
    }
    constexpr double gap = std::numeric_limits<double>::quiet_NaN();
    s.y.push_back(count ? sum / static_cast<double>(count) : gap);
    if (group.runs.size() > 1) {
      s.low.push_back(count ? low : gap);
      s.high.push_back(count ? high : gap);
    }
  }
  return s;
}

// Curves over the steps, or over what they cost.
enum class Axis { steps, gradient_evaluations };
void add_curves(report::Page& page, const std::vector<Group>& groups, Axis axis = Axis::steps) {
  const bool cost = axis == Axis::gradient_evaluations;
  report::Section section{.heading = cost ? "Curves over the work" : "Curves"};
  const char* x = cost ? "gradient_evaluations" : "step";
  const Configuration& c = groups.front().runs.front()->configuration;
  for (const ChartSpec& spec : chart_specs) {
    // -KL is the reward of an energy-based model: one picture of it is enough.
    if (std::string_view(spec.column) == "reward" && !c.reward) continue;
    report::LineChart chart{.title = spec.title,
                            .x_label = cost ? "gradient evaluations of a batch" : "step",
                            .y_label = spec.y_label,
                            .series = {},
                            .log_x = cost,
                            .log_y = spec.log_y};
    for (const Group& g : groups) {
      const bool alone = groups.size() == 1;
      if (auto s = curve(g, alone ? (spec.second ? "of the samples" : "") : g.label, spec.column, x))
        chart.series.push_back(std::move(*s));
      if (spec.second && alone)
        if (auto s = curve(g, spec.second_label, spec.second, x)) chart.series.push_back(std::move(*s));
    }
    if (chart.series.empty()) continue;
    if (std::string_view(spec.column) == "log_likelihood")
      for (const double t : c.thresholds) chart.levels.push_back({t, minus(written(t))});
    section.figures.push_back({report::to_svg(chart), ""});
  }
  if (std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.runs.size() > 1; }))
    section.text = "Lines are means over the seeds, bands reach from the least to the greatest.";
  if (!section.figures.empty()) page.sections.push_back(std::move(section));
}

report::Section parameters_section(const RunFiles& run) {
  report::Section section{.heading = "Parameters"};
  const std::vector<double>& step = *column(run, "step");
  constexpr std::size_t most = 12;
  const std::size_t p = std::min(run.theta.front().size(), most);
  report::LineChart theta{.title = "θ over the run", .x_label = "step", .y_label = "θ", .series = {}};
  for (std::size_t j = 0; j < p; ++j) {
    report::Series s{fmt::format("θ{}", j + 1), step, {}};
    for (const auto& row : run.theta) s.y.push_back(row[j]);
    theta.series.push_back(std::move(s));
  }
  section.figures.push_back(
      {report::to_svg(theta),
       run.theta.front().size() > most ? fmt::format("The first {} of {}.", most, run.theta.front().size()) : ""});

  const Potential<float> potential = make_potential(run.configuration.potential);
  if (const auto law = potential.law(run.theta.front()); law && law->weights.size() > 1) {
    report::LineChart weights{
        .title = "Weights of the components of π*(θ)", .x_label = "step", .y_label = "weight", .series = {}};
    for (std::size_t i = 0; i < std::min(law->weights.size(), most); ++i)
      weights.series.push_back({fmt::format("{}", i + 1), step, {}});
    for (const auto& row : run.theta) {
      const auto at = potential.law(row);
      for (std::size_t i = 0; i < weights.series.size(); ++i) weights.series[i].y.push_back(at->weights[i]);
    }
    section.figures.push_back({report::to_svg(weights), ""});
  }
  return section;
}

std::vector<report::Fact> facts(const RunFiles& run) {
  const Summary& s = run.summary;
  std::vector<report::Fact> f;
  const auto add = [&](double value, const char* label, int digits, const char* note) {
    if (std::isfinite(value)) f.push_back({label, minus(shown(value, digits)), note});
  };
  if (run.configuration.reward) add(s.figures.reward, "Reward", 4, "mean over the samples");
  add(s.figures.exact_reward, "Exact reward", 4, "under π*(θ), in closed form");
  add(s.figures.exact_kl, "KL divergence", 5, "from the reference, by quadrature");
  add(s.figures.log_likelihood, "Log-likelihood", 3, "mean of −V(x, θ_opt)");
  add(s.figures.data_log_likelihood, "Data log-likelihood", 4, "mean of log π*(θ)");
  for (const Reached& r : s.reached)
    f.push_back({"Reached " + minus(r.threshold), r.step ? fmt::format("step {}", *r.step) : "never",
                 "log-likelihood, mean of 20 steps"});
  return f;
}

report::Section repeat_section(const RunFiles& run, const std::filesystem::path& folder, const std::string& options) {
  const std::string file = io::display(folder / "config.toml");
  return {.heading = "To repeat it",
          .text = "The same configuration and seed give the same bits, whatever the number of threads.",
          .figures = {},
          .tables = {},
          .code = {{"Command", fmt::format("implicit-diffusion run {}{} --output again", file, options)},
                   {"config.toml", run.configuration.resolved}}};
}

std::string subtitle(const RunFiles& run) {
  const Configuration& c = run.configuration;
  std::string text = fmt::format("{}, method {}, seed {}: {}, {} steps", c.experiment, to_string(c.method), c.seed,
                                 run.summary.status, run.summary.steps);
  if (std::isfinite(run.summary.seconds)) text += fmt::format(" in {:.2f} s", run.summary.seconds);
  return text;
}

const std::string footer = "Made by implicit-diffusion " IMPLICIT_DIFFUSION_VERSION ".";

// A row for each run, with the columns in which one of them has something.
report::Section table_section(const std::vector<RunFiles>& runs) {
  report::Table t{{"run", "method", "seed", "status", "steps"}, {}};
  for (const RunFiles& run : runs)
    t.rows.push_back({run.folder.filename().string(), std::string(to_string(run.configuration.method)),
                      fmt::format("{}", run.configuration.seed), run.summary.status,
                      fmt::format("{}", run.summary.steps)});
  const auto add = [&](const std::string& name, const auto& cell) {
    std::vector<std::string> cells;
    for (const RunFiles& run : runs) cells.push_back(cell(run.summary));
    if (std::all_of(cells.begin(), cells.end(), [](const std::string& c) { return c.empty(); })) return;
    t.header.push_back(name);
    for (std::size_t i = 0; i < cells.size(); ++i) t.rows[i].push_back(std::move(cells[i]));
  };
  const auto add_figure = [&](const char* name, double Figures::*figure, int digits) {
    add(name, [&](const Summary& s) {
      return std::isfinite(s.figures.*figure) ? shown(s.figures.*figure, digits) : std::string();
    });
  };
  add_figure("reward", &Figures::reward, 4);
  add_figure("exact reward", &Figures::exact_reward, 4);
  add_figure("exact KL", &Figures::exact_kl, 5);
  add_figure("log-likelihood", &Figures::log_likelihood, 3);
  add_figure("data log-likelihood", &Figures::data_log_likelihood, 4);
  std::vector<std::string> thresholds;
  for (const RunFiles& run : runs)
    for (const Reached& r : run.summary.reached)
      if (std::find(thresholds.begin(), thresholds.end(), r.threshold) == thresholds.end())
        thresholds.push_back(r.threshold);
  for (const std::string& threshold : thresholds)
    add("at " + minus(threshold), [&](const Summary& s) {
      for (const Reached& r : s.reached)
        if (r.threshold == threshold) return r.step ? fmt::format("{}", *r.step) : "never";
      return std::string();
    });
  add("seconds", [](const Summary& s) { return std::isfinite(s.seconds) ? shown(s.seconds, 2) : std::string(); });
  return {.heading = "All runs",
          .text = thresholds.empty()
                      ? ""
                      : "“At” is the first step at which the log-likelihood, a mean of 20 steps, was there.",
          .figures = {},
          .tables = {t}};
}

}  // namespace

std::string run_report(const RunFiles& run) {
  report::Page page{.title = run.configuration.title,
                    .subtitle = subtitle(run),
                    .facts = facts(run),
                    .sections = {},
                    .footer = footer};
  add_law(page, run);
  add_curves(page, {Group{"", {&run}}});
  page.sections.push_back(parameters_section(run));
  page.sections.push_back(repeat_section(run, run.folder, ""));
  return report::to_html(page);
}

std::string repeats_report(const std::vector<RunFiles>& runs) {
  const Configuration& c = runs.front().configuration;
  report::Page page{.title = c.title,
                    .subtitle = fmt::format("{}, method {}, {} seeds from {}", c.experiment, to_string(c.method),
                                            runs.size(), c.seed),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  Group all{"", {}};
  for (const RunFiles& run : runs) all.runs.push_back(&run);
  for (const auto& [figure, label, digits] : {std::tuple{&Figures::reward, "Reward", 4},
                                              {&Figures::exact_reward, "Exact reward", 4},
                                              {&Figures::exact_kl, "KL divergence", 5},
                                              {&Figures::log_likelihood, "Log-likelihood", 3},
                                              {&Figures::data_log_likelihood, "Data log-likelihood", 4}}) {
    if (figure == &Figures::reward && !c.reward) continue;
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    for (const RunFiles& run : runs) {
      const double v = run.summary.figures.*figure;
      sum += v;
      low = std::min(low, v);
      high = std::max(high, v);
    }
    if (std::isfinite(sum))
      page.facts.push_back({label, minus(shown(sum / static_cast<double>(runs.size()), digits)),
                            fmt::format("mean of {} runs, {} to {}", runs.size(), minus(shown(low, digits)),
                                        minus(shown(high, digits)))});
  }
  add_curves(page, {all});
  add_law(page, runs.front(), fmt::format("These are of seed {}.", c.seed));
  page.sections.push_back(table_section(runs));
  page.sections.push_back(
      repeat_section(runs.front(), runs.front().folder.parent_path(), fmt::format(" --repeats {}", runs.size())));
  return report::to_html(page);
}

std::string comparison_report(const std::vector<RunFiles>& runs) {
  const std::string& experiment = runs.front().configuration.experiment;
  const bool one_experiment = std::all_of(runs.begin(), runs.end(),
                                          [&](const RunFiles& r) { return r.configuration.experiment == experiment; });
  report::Page page{.title = "Comparison of runs",
                    .subtitle = fmt::format("{}{} runs", one_experiment ? experiment + ", " : "", runs.size()),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  // Runs with the same configuration but for the seed are one curve with a band.
  std::vector<Group> groups;
  std::vector<std::string> keys;
  for (const RunFiles& run : runs) {
    const Configuration& c = run.configuration;
    std::string label = one_experiment ? "" : c.experiment + " ";
    label += to_string(c.method);
    if (gradient_evaluations_per_step(c) > 1) label += fmt::format(" T={}", c.inner_steps);
    std::string key = c.resolved;
    if (const auto at = key.find("\nseed = "); at != std::string::npos) key.erase(at, key.find('\n', at + 1) - at);
    const auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      keys.push_back(key);
      groups.push_back({label, {&run}});
    } else {
      groups[static_cast<std::size_t>(known - keys.begin())].runs.push_back(&run);
    }
  }
  // Labels that do not tell groups apart get the folder's name.
  for (Group& g : groups)
    if (std::count_if(groups.begin(), groups.end(), [&](const Group& other) { return other.label == g.label; }) > 1)
      g.label += fmt::format(" ({})", g.runs.front()->folder.filename().string());
  add_curves(page, groups);
  const auto cost = [](const Group& g) { return gradient_evaluations_per_step(g.runs.front()->configuration); };
  if (std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return cost(g) != cost(groups.front()); }))
    add_curves(page, groups, Axis::gradient_evaluations);
  page.sections.push_back(table_section(runs));
  report::Section laws{.heading = "The laws and their samples at the end"};
  for (const Group& g : groups) {
    if (!has_law(*g.runs.front())) continue;
    const LawPictures pictures(*g.runs.front());
    std::string title = g.label;
    if (g.runs.size() > 1) title += fmt::format(", seed {}", g.runs.front()->configuration.seed);
    laws.figures.push_back(pictures.end(title));
  }
  if (!laws.figures.empty()) page.sections.push_back(std::move(laws));
  return report::to_html(page);
}

void write_report(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const auto repeats = repeats_of(folder);
  std::vector<RunFiles> runs;
  for (const auto& r : repeats) runs.push_back(read_run(r));
  io::write_file(file, runs.empty() ? run_report(read_run(folder)) : repeats_report(runs));
}

}  // namespace program
