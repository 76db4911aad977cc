#include "run_report.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/report/chart.hpp"
#include "implicit_diffusion/report/density_plot.hpp"
#include "implicit_diffusion/report/histogram.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
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

// In running text the name of the law is not to be broken into lines.
constexpr const char* the_law = "π*\u2060(θ)";

// The name of a run's folder, however it was written.
std::string folder_name(const RunFiles& run) { return (run.folder / "").parent_path().filename().string(); }

// The same, for one of several repeats with the name of the folder that holds them.
std::string run_name(const RunFiles& run, bool with_parent) {
  const std::string name = folder_name(run), parent = run.folder.parent_path().filename().string();
  return with_parent && name.starts_with("seed-") && !parent.empty() ? parent + "/" + name : name;
}

// The name of a coordinate: x, or x₁, x₂, ... where there are several.
std::string coordinate_name(std::size_t j, std::size_t dimension) {
  constexpr std::array digits{"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"};
  std::string name = "x";
  if (dimension > 1)
    for (const char c : fmt::format("{}", j + 1)) name += digits[static_cast<std::size_t>(c - '0')];
  return name;
}

// A number to four significant digits or so, for running text.
std::string rounded(double v) { return minus(fmt::format("{:.4g}", v)); }

// The marginal law of the first d coordinates.
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

  // Nearly all of the points: a few that lie far away would make everything else small.
  void include(const Population<float>& points) {
    if (points.size() == 0) return;
    const auto middle = [&](std::size_t j) {
      std::vector<float> v(points.coordinate(j).begin(), points.coordinate(j).end());
      std::sort(v.begin(), v.end());
      const std::size_t cut = v.size() / 200;
      const auto low = static_cast<double>(v[cut]), high = static_cast<double>(v[v.size() - 1 - cut]);
      const double margin = 0.05 * (high - low);
      return std::pair{low - margin, high + margin};
    };
    const auto [left, right] = middle(0);
    x_min = std::min(x_min, left);
    x_max = std::max(x_max, right);
    if (points.dimension() > 1) {
      const auto [bottom, top] = middle(1);
      y_min = std::min(y_min, bottom);
      y_max = std::max(y_max, top);
    }
  }

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

// What the law is to be like: points of the user's, or some of a reference that is a law itself.
struct Target {
  std::string name;  // data, reference
  Population<float> points;
};

struct LawPicture {
  std::string title, caption;
  GaussianMixture law;                  // in as many coordinates as can be drawn
  const Population<float>* samples;     // or null
  const Target* target;                 // or null
  std::vector<report::Marker> markers;  // in the plane
  bool narrow = false;                  // one of three side by side
  std::string law_name = "π*(θ)";
};

std::vector<double> coordinate(const Population<float>* points, std::size_t j) {
  std::vector<double> values;
  if (points)
    for (const float v : points->coordinate(j)) values.push_back(static_cast<double>(v));
  return values;
}

std::string draw_on_the_line(const LawPicture& picture, const Window& w, const MixtureLogDensity& log_density) {
  report::HistogramPlot plot{
      .title = picture.title, .x_label = "x", .x_min = w.x_min, .x_max = w.x_max, .samples = {}, .curves = {}};
  report::Series curve{"density of " + picture.law_name, {}, {}};
  for (int i = 0; i <= 300; ++i) {
    const double x = w.x_min + (w.x_max - w.x_min) * i / 300;
    curve.x.push_back(x);
    curve.y.push_back(std::exp(log_density(std::array{x})));
  }
  plot.curves.push_back(std::move(curve));
  plot.samples = coordinate(picture.samples, 0);
  if (picture.target) {
    plot.data = coordinate(&picture.target->points, 0);
    plot.data_label = picture.target->name;
  }
  return report::to_svg(plot);
}

std::string draw_in_the_plane(const LawPicture& picture, const Window& w, const MixtureLogDensity& log_density) {
  constexpr std::size_t nodes = 121;
  report::DensityPlot plot{.title = picture.title,
                           .x_min = w.x_min,
                           .x_max = w.x_max,
                           .y_min = w.y_min,
                           .y_max = w.y_max,
                           .columns = nodes,
                           .rows = nodes,
                           .markers = picture.markers,
                           .x_label = coordinate_name(0, 2),
                           .y_label = coordinate_name(1, 2),
                           .narrow = picture.narrow};
  for (std::size_t r = 0; r < nodes; ++r)
    for (std::size_t c = 0; c < nodes; ++c) {
      const double step_x = (w.x_max - w.x_min) / (nodes - 1), step_y = (w.y_max - w.y_min) / (nodes - 1);
      plot.density.push_back(std::exp(log_density(
          std::array{w.x_min + step_x * static_cast<double>(c), w.y_min + step_y * static_cast<double>(r)})));
    }
  plot.point_x = coordinate(picture.samples, 0);
  plot.point_y = coordinate(picture.samples, 1);
  if (picture.target) {
    plot.data_x = coordinate(&picture.target->points, 0);
    plot.data_y = coordinate(&picture.target->points, 1);
    plot.data_label = picture.target->name;
  }
  return report::to_svg(plot);
}

std::vector<double> values_at(const Population<float>& points, const MixtureLogDensity& log_density,
                              std::size_t dimension) {
  std::vector<double> values, x(dimension);
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < dimension; ++j) x[j] = static_cast<double>(points(i, j));
    values.push_back(log_density(x));
  }
  return values;
}

// How many of the points lie where the law has nine tenths of its mass: nine tenths, if they follow it. The level there
// is a quantile over samples of the law, which, unlike one over the nodes of a picture, does not mind how narrow the law
// is; it gives the mass a standard error of 0.3 %.
std::string judge(const LawPicture& picture, const MixtureLogDensity& log_density) {
  const std::size_t d = picture.law.dimension();
  Population<float> exact(10'000, d);
  MixtureSampler(picture.law, Noise(0)).draw(exact, 0);
  std::vector<double> values = values_at(exact, log_density, d);
  const auto tenth = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
  std::nth_element(values.begin(), tenth, values.end());

  const auto share = [&](const Population<float>& points) {
    const std::vector<double> at = values_at(points, log_density, d);
    const auto within = std::count_if(at.begin(), at.end(), [&](double v) { return v >= *tenth; });
    return fmt::format("{:.0f}\u00a0%", 100 * static_cast<double>(within) / static_cast<double>(points.size()));
  };
  std::string text = fmt::format("{} of them", share(*picture.samples));
  if (picture.target) text += fmt::format(" and {} of the {}", share(picture.target->points), picture.target->name);
  return text + fmt::format(" lie where {} has 90\u00a0% of its mass.", the_law);
}

report::Figure draw(const LawPicture& picture, const Window& w) {
  const MixtureLogDensity log_density(picture.law);
  report::Figure figure{picture.law.dimension() == 1 ? draw_on_the_line(picture, w, log_density)
                                                     : draw_in_the_plane(picture, w, log_density),
                        picture.caption};
  if (picture.samples) figure.caption += " " + judge(picture, log_density);
  return figure;
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
    if (c.reference) find_target(*c.reference);
    if (c.reward && shown_ == 2) markers_.push_back({c.reward->centre[0], c.reward->centre[1], "reward"});
  }

  // In the plane the start, the end and the reference stand side by side.
  bool three_in_a_row() const { return shown_ == 2 && has_reference_law(); }

  report::Figure start() const {
    const Configuration& c = run_.configuration;
    Population<float> x(static_cast<std::size_t>(c.particles), potential_.dimension());
    LawPicture picture{
        "π*(θ) at step 0", "The samples before the first step.", law(run_.theta.front()), &x, target(), markers_,
        three_in_a_row()};
    try {
      Start(c.start, x.size(), x.dimension(), Noise(c.seed)).draw(x, 0);
    } catch (const Error&) {
      picture.caption = "The samples it started from are no longer there.";
      picture.samples = nullptr;
    }
    return draw(picture, window_);
  }

  report::Figure end() const {
    return end(fmt::format("π*(θ) at step {:.0f}", run_.columns.front().back()), three_in_a_row());
  }
  report::Figure end(const std::string& title, bool narrow) const {
    const bool none = run_.samples.size() == 0;
    std::string caption = none ? "The run diverged: there are no samples." : "The samples after the last step.";
    if (!none && run_.configuration.method == Method::guided)
      caption += fmt::format(" Guidance moves them away from {}, not θ.", the_law);
    return draw({title, caption, law(run_.theta.back()), none ? nullptr : &run_.samples, target(), markers_, narrow},
                window_);
  }

  // The law to be learnt, where there is one.
  std::optional<report::Figure> reference() const {
    if (!has_reference_law()) return std::nullopt;
    return draw({"The reference",
                 fmt::format("The law to be learnt, and {} points of it.", target_->points.size()),
                 law(run_.configuration.reference->theta),
                 nullptr,
                 target(),
                 {},
                 three_in_a_row(),
                 "the reference"},
                window_);
  }

  std::string text() const {
    std::string text = fmt::format(
        "{} is the law whose density is proportional to exp(−V(x, θ)): what the samples follow once they have had the "
        "time.",
        the_law);
    if (potential_.dimension() > 2) text += " Shown are marginals in the first two coordinates.";
    if (!missing_.empty()) text += " " + missing_;
    return text;
  }

 private:
  static constexpr std::size_t most_points = 1000;  // of a reference that is a law

  GaussianMixture law(std::span<const double> theta) const { return marginal(*potential_.law(theta), shown_); }
  bool has_reference_law() const {
    return run_.configuration.reference && !run_.configuration.reference->theta.empty();
  }
  const Target* target() const { return target_ ? &*target_ : nullptr; }

  void find_target(const ReferenceSpec& reference) {
    if (!reference.theta.empty()) {
      window_.include(law(reference.theta));
      target_ = Target{"reference", Population<float>(std::min(reference.batch, most_points), potential_.dimension())};
      MixtureSampler(*potential_.law(reference.theta), Noise(run_.configuration.seed)).draw(target_->points, 0);
      return;
    }
    try {
      target_ = Target{"data", read_population(reference.data, potential_.dimension())};
      window_.include(target_->points);
    } catch (const Error&) {
      missing_ = "The data are not drawn: their file is no longer there.";
    }
  }

  const RunFiles& run_;
  Potential<float> potential_;
  std::size_t shown_;
  Window window_;
  std::vector<report::Marker> markers_;
  std::optional<Target> target_;
  std::string missing_;
};

bool has_law(const RunFiles& run) {
  return make_potential(run.configuration.potential).law(run.theta.back()).has_value();
}

// The law and the samples at the start and at the end, and the law to be learnt where there is one.
void add_law(report::Page& page, const RunFiles& run, const std::string& more = "") {
  if (!has_law(run)) return;
  const LawPictures pictures(run);
  report::Section section{.heading = "The law and its samples", .text = pictures.text()};
  if (!more.empty()) section.text += " " + more;
  section.figures = {pictures.start(), pictures.end()};
  section.three_in_a_row = pictures.three_in_a_row();
  if (auto reference = pictures.reference()) section.figures.push_back(std::move(*reference));
  page.sections.push_back(std::move(section));
}

struct ChartSpec {
  const char *column, *title, *y_label, *second, *second_label;
  bool log_y;
  const char* meaning;
};
// Which columns of metrics.csv are drawn, and how.
constexpr std::array chart_specs{
    ChartSpec{"reward", "Reward", "reward", "exact_reward", "under π*(θ)", false, "More is better."},
    ChartSpec{"log_likelihood", "Log-likelihood of the samples under θ_opt", "mean of −V(x, θ_opt), nats", nullptr,
              nullptr, false, "How likely the samples are at the parameters θ_opt of the configuration."},
    ChartSpec{"exact_kl", "KL divergence from the reference", "KL(reference ‖ π*(θ)), nats", nullptr, nullptr, true,
              "Less is better; 0 is the reference itself."},
    ChartSpec{"data_log_likelihood", "Log-likelihood of the data", "mean of log π*(θ), nats", nullptr, nullptr, false,
              "More is better."}};

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

// Whether the values still go one way at the end. The mean of the last tenth is compared with that of the tenth before:
// a steady slope moves it by 3.5 standard deviations within a tenth, noise around a level by less than 2. And a move
// below a hundredth of the whole range is none.
bool still_moving(std::vector<double> y, bool log) {
  const std::size_t tenth = y.size() / 10;
  if (tenth < 5) return false;
  if (log)
    for (double& v : y) v = std::log(v);
  const auto [least, greatest] = std::minmax_element(y.begin(), y.end());
  const auto mean = [&](std::size_t from) {
    double sum = 0;
    for (std::size_t i = from; i < from + tenth; ++i) sum += y[i];
    return sum / static_cast<double>(tenth);
  };
  const double last = mean(y.size() - tenth), move = std::abs(last - mean(y.size() - 2 * tenth));
  double square = 0;
  for (std::size_t i = y.size() - tenth; i < y.size(); ++i) square += (y[i] - last) * (y[i] - last);
  const double deviation = std::sqrt(square / static_cast<double>(tenth));
  return move > 2.5 * deviation && move > 0.01 * (*greatest - *least);
}

// From where to where the first curve went, if it is one alone, and what that means.
std::string curve_caption(const report::LineChart& chart, bool alone, const char* meaning) {
  if (!alone) return meaning;
  std::vector<double> y;
  std::copy_if(chart.series.front().y.begin(), chart.series.front().y.end(), std::back_inserter(y),
               [&](double v) { return std::isfinite(v) && (v > 0 || !chart.log_y); });
  if (y.size() < 2) return meaning;
  std::string text = fmt::format("From {} to {}. {}", rounded(y.front()), rounded(y.back()), meaning);
  if (still_moving(y, chart.log_y)) text += " It was still moving at the end: more steps may help.";
  return text;
}

// The log-likelihood that points of the reference have, where it is a law: samples that follow it have the same.
double reference_log_likelihood(Configuration c) {
  if (!c.reference || c.reference->theta.empty() || c.theta_opt.empty()) return Figures::none;
  const Potential<float> potential = make_potential(c.potential);
  Population<float> points(20'000, potential.dimension());
  MixtureSampler(*potential.law(c.reference->theta), Noise(c.seed)).draw(points, 0);
  c.reference.reset();  // nothing of it is needed, and its figures are costly
  return Measures(c, nullptr).log_likelihood(points);
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
    std::string caption = curve_caption(chart, groups.size() == 1, spec.meaning);
    if (chart.series.size() > 1 && groups.size() == 1)
      caption += fmt::format(" Where the samples follow {}, the two agree.", the_law);
    if (std::string_view(spec.column) == "log_likelihood") {
      for (const double t : c.thresholds) chart.levels.push_back({t, minus(written(t))});
      if (!c.thresholds.empty()) caption += " Dotted: its thresholds.";
      if (const double level = reference_log_likelihood(c); groups.size() == 1 && std::isfinite(level))
        chart.levels.push_back({level, "of the reference"});
    }
    section.figures.push_back({report::to_svg(chart), caption});
  }
  if (std::any_of(groups.begin(), groups.end(), [](const Group& g) { return g.runs.size() > 1; }))
    section.text = "Lines are means over the seeds, bands reach from the least to the greatest.";
  if (!section.figures.empty()) page.sections.push_back(std::move(section));
}

// Numbers that share an axis, with their names: parameters, or figures of the law.
struct Quantities {
  std::string title, y_label;
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;  // for each name a value for each row of metrics.csv

  void add(std::string name, std::vector<double> v) {
    names.push_back(std::move(name));
    values.push_back(std::move(v));
  }
};

report::Figure draw(const Quantities& q, const std::vector<double>& step) {
  constexpr std::size_t most = 12;  // curves that can be told apart
  report::LineChart chart{.title = q.title, .x_label = "step", .y_label = q.y_label, .series = {}};
  for (std::size_t i = 0; i < std::min(q.names.size(), most); ++i)
    chart.series.push_back({q.names[i], step, q.values[i]});
  return {report::to_svg(chart), q.names.size() > most ? fmt::format("The first {} of {}.", most, q.names.size()) : ""};
}

bool has_wells(const PotentialSpec& p) {
  return p.kind == PotentialKind::wells || p.kind == PotentialKind::logistic_wells;
}

// The laws at all rows, and their parameters as curves.
std::vector<Quantities> quantities(const RunFiles& run, const std::vector<GaussianMixture>& laws) {
  const PotentialSpec& p = run.configuration.potential;
  const auto over_laws = [&](auto&& figure) {
    std::vector<double> v;
    for (const GaussianMixture& law : laws) v.push_back(figure(law));
    return v;
  };
  std::vector<Quantities> all;
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  if (n > 1) {
    Quantities weights{has_wells(p) ? "Weights of the wells" : "Weights of the components", "weight", {}, {}};
    for (std::size_t i = 0; i < n; ++i)
      weights.add(fmt::format("{} {}", has_wells(p) ? "well" : "weight", i + 1),
                  over_laws([&](const GaussianMixture& law) { return law.weights[i]; }));
    all.push_back(std::move(weights));
  }
  if (has_wells(p)) {  // the centres are fixed
    Quantities theta{"θ, a parameter for each well", "θ", {}, {}};
    for (std::size_t i = 0; i < n; ++i) {
      theta.add(fmt::format("well {}", i + 1), {});
      for (const auto& row : run.theta) theta.values.back().push_back(row[i]);
    }
    all.push_back(std::move(theta));
    return all;
  }
  const auto of = [&](std::size_t i) { return n > 1 ? fmt::format(" {}", i + 1) : ""; };
  Quantities means{n > 1 ? "Means of the components" : "Mean of π*(θ)", "mean", {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < d; ++a)
      means.add(fmt::format("mean{}, {}", of(i), coordinate_name(a, d)),
                over_laws([&](const GaussianMixture& law) { return law.components[i].mean[a]; }));
  all.push_back(std::move(means));
  if (p.kind == PotentialKind::quadratic) return all;  // the covariance is fixed
  Quantities covariances{"Covariances of the components", "variance, covariance", {}, {}};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = a; b < d; ++b)
        covariances.add(a == b ? fmt::format("var{}, {}", of(i), coordinate_name(a, d))
                               : fmt::format("cov{}, {}{}", of(i), coordinate_name(a, d), coordinate_name(b, d)),
                        over_laws([&](const GaussianMixture& law) { return law.components[i].covariance[a * d + b]; }));
  all.push_back(std::move(covariances));
  return all;
}

// Numbers of one column of a table, with the same decimals: four significant digits for the largest.
std::vector<std::string> column_text(const std::vector<double>& values) {
  double largest = 0;
  for (const double v : values)
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  const int decimals = largest > 0 ? std::clamp(3 - static_cast<int>(std::floor(std::log10(largest))), 0, 12) : 0;
  std::vector<std::string> text;
  for (const double v : values) {
    std::string number = std::isfinite(v) ? fmt::format("{:.{}f}", v, decimals) : "";
    if (number.find_first_not_of("-0.") == std::string::npos && number.starts_with('-')) number.erase(0, 1);
    text.push_back(minus(number));
  }
  return text;
}

void add_column(report::Table& table, const std::string& name, const std::vector<double>& values) {
  table.header.push_back(name);
  const std::vector<std::string> text = column_text(values);
  for (std::size_t i = 0; i < text.size(); ++i) table.rows[i].push_back(text[i]);
}

constexpr std::size_t most_components = 30;  // in a table

// A row for each well: where it is, and its parameter and weight at the start and at the end.
report::Table wells_table(const RunFiles& run, const GaussianMixture& start, const GaussianMixture& end,
                          const std::optional<GaussianMixture>& reference) {
  const std::size_t n = std::min(start.weights.size(), most_components),
                    d = std::min<std::size_t>(start.dimension(), 3);
  report::Table table{{"well"}, {}};
  for (std::size_t i = 0; i < n; ++i) table.rows.push_back({fmt::format("{}", i + 1)});
  const auto add = [&](const std::string& name, auto&& value) {
    std::vector<double> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(value(i));
    add_column(table, name, values);
  };
  for (std::size_t a = 0; a < d; ++a)
    add("centre, " + coordinate_name(a, start.dimension()), [&](std::size_t i) { return start.components[i].mean[a]; });
  add("θ at the start", [&](std::size_t i) { return run.theta.front()[i]; });
  add("θ at the end", [&](std::size_t i) { return run.theta.back()[i]; });
  add("weight at the start", [&](std::size_t i) { return start.weights[i]; });
  add("weight at the end", [&](std::size_t i) { return end.weights[i]; });
  if (reference) add("in the reference", [&](std::size_t i) { return reference->weights[i]; });
  return table;
}

// Rows for each component at the start and at the end, then those of the reference.
report::Table components_table(const GaussianMixture& start, const GaussianMixture& end,
                               const std::optional<GaussianMixture>& reference) {
  struct Row {
    const GaussianMixture* law;
    std::size_t component;
  };
  const std::size_t n = start.weights.size(), d = std::min<std::size_t>(start.dimension(), 3);
  std::vector<Row> rows;
  report::Table table{n > 1 ? std::vector<std::string>{"component", ""} : std::vector<std::string>{""}, {}};
  const auto add_row = [&](const char* when, const GaussianMixture& law, std::size_t i) {
    rows.push_back({&law, i});
    table.rows.emplace_back();
    if (n > 1) table.rows.back().push_back(fmt::format("{}", i + 1));
    table.rows.back().emplace_back(when);
  };
  for (std::size_t i = 0; i < std::min(n, most_components); ++i) {
    add_row("start", start, i);
    add_row("end", end, i);
  }
  if (reference)
    for (std::size_t i = 0; i < std::min(n, most_components); ++i) add_row("reference", *reference, i);

  const auto add = [&](const std::string& name, auto&& value) {
    std::vector<double> values;
    for (const Row& row : rows) values.push_back(value(*row.law, row.component));
    add_column(table, name, values);
  };
  const auto x = [&](std::size_t a) { return coordinate_name(a, start.dimension()); };
  if (n > 1) add("weight", [](const GaussianMixture& law, std::size_t i) { return law.weights[i]; });
  for (std::size_t a = 0; a < d; ++a)
    add("mean " + x(a), [&](const GaussianMixture& law, std::size_t i) { return law.components[i].mean[a]; });
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = a; b < d; ++b)
      add(a == b ? "var " + x(a) : "cov " + x(a) + x(b), [&](const GaussianMixture& law, std::size_t i) {
        return law.components[i].covariance[a * law.dimension() + b];
      });
  return table;
}

// Components have no order of their own: to which of the reference each has come nearest.
std::string nearest_components(const GaussianMixture& end, const GaussianMixture& reference) {
  std::string text;
  for (std::size_t i = 0; i < std::min(end.weights.size(), most_components); ++i) {
    std::size_t nearest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < reference.weights.size(); ++k) {
      double square = 0;
      for (std::size_t a = 0; a < end.dimension(); ++a)
        square += std::pow(end.components[i].mean[a] - reference.components[k].mean[a], 2);
      if (square < least) {
        least = square;
        nearest = k;
      }
    }
    text += fmt::format("{}component {} to {}", i ? ", " : "", i + 1, nearest + 1);
  }
  return "Nearest to each other at the end, by their means, in the learnt law and in the reference: " + text + ".";
}

report::Section parameters_section(const RunFiles& run) {
  report::Section section{.heading = "Parameters"};
  const std::vector<double>& step = *column(run, "step");
  if (!has_law(run)) {
    Quantities theta{"θ over the run", "θ", {}, {}};
    for (std::size_t j = 0; j < run.theta.front().size(); ++j) {
      theta.add(fmt::format("θ{}", j + 1), {});
      for (const auto& row : run.theta) theta.values.back().push_back(row[j]);
    }
    section.figures.push_back(draw(theta, step));
    return section;
  }
  const Potential<float> potential = make_potential(run.configuration.potential);
  std::vector<GaussianMixture> laws;
  for (const auto& row : run.theta) laws.push_back(*potential.law(row));
  for (const Quantities& q : quantities(run, laws)) section.figures.push_back(draw(q, step));

  std::optional<GaussianMixture> reference;
  if (const auto& r = run.configuration.reference; r && !r->theta.empty()) reference = potential.law(r->theta);
  if (has_wells(run.configuration.potential)) {
    section.tables.push_back(wells_table(run, laws.front(), laws.back(), reference));
  } else {
    section.tables.push_back(components_table(laws.front(), laws.back(), reference));
    if (reference && reference->weights.size() > 1) section.text = nearest_components(laws.back(), *reference);
  }
  const std::size_t n = laws.front().weights.size(), d = laws.front().dimension();
  std::string shortened;
  if (n > most_components) shortened = fmt::format("the first {} of {} components", most_components, n);
  if (d > 3) shortened += fmt::format("{}the first three of {} coordinates", shortened.empty() ? "" : ", ", d);
  if (!shortened.empty()) section.text += (section.text.empty() ? "" : " ") + ("The table has " + shortened + ".");
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
  add(s.figures.exact_kl, "KL divergence", 5, "nats, from the reference, by quadrature");
  add(s.figures.log_likelihood, "Log-likelihood", 3, "nats, mean of −V(x,\u00a0θ_opt)");
  add(s.figures.data_log_likelihood, "Data log-likelihood", 4, "nats, mean of log π*(θ)");
  for (const Reached& r : s.reached)
    f.push_back({"Reached " + minus(r.threshold), r.step ? fmt::format("step {}", *r.step) : "never",
                 "log-likelihood, mean of 20 steps"});
  return f;
}

// A word as a shell takes it.
std::string shell_word(const std::string& text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+,:@%";
  if (!text.empty() && text.find_first_not_of(plain) == std::string::npos) return text;
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

report::Section repeat_section(const RunFiles& run, const std::filesystem::path& folder, const std::string& options) {
  const std::filesystem::path file = folder / "config.toml";
  std::string text = "The same configuration and seed give the same bits, whatever the number of threads.\n\n";
  if (file.is_relative()) text += "The command is for the folder in which this report was made. ";
  text +=
      "Where the shell does not find implicit-diffusion, give its path instead: the build leaves it at "
      "build/release/implicit-diffusion.";
  return {.heading = "To repeat it",
          .text = text,
          .figures = {},
          .tables = {},
          .code = {{"Command",
                    fmt::format("implicit-diffusion run {}{} --output again", shell_word(file.string()), options)},
                   {"config.toml", run.configuration.resolved}}};
}

// What is to be known of a run that did not come to its end; empty where it did.
std::string notice(const RunFiles& run) {
  const Configuration& c = run.configuration;
  const Summary& s = run.summary;
  if (s.status == "interrupted")
    return fmt::format("Interrupted after step {} of {}: what follows is the state at that step.", s.steps, c.steps);
  if (s.status != "diverged") return {};
  std::string text = fmt::format(
      "Diverged at step {} of {}: a sample or the gradient was no longer finite, or θ left the domain of the "
      "potential. "
      "What follows is the last θ before it; there are no samples.",
      s.steps + 1, c.steps);
  Potential<float> potential = make_potential(c.potential);
  potential.prepare(run.theta.back());
  const auto stable = potential.largest_stable_step();
  if (stable && c.step_size >= *stable)
    return text + fmt::format(" The step_size is {}, and at this θ the chain is stable below {:.4g} only.", c.step_size,
                              *stable);
  return text + fmt::format(" A step_size smaller than {} or a learning_rate smaller than {} may help.", c.step_size,
                            c.learning_rate);
}

// The same for several: which of them did not come to their end.
std::string notice(const std::vector<RunFiles>& runs, bool with_parents) {
  std::string text;
  for (const char* status : {"diverged", "interrupted"}) {
    std::string names;
    std::size_t count = 0;
    for (const RunFiles& run : runs) {
      if (run.summary.status != status) continue;
      names += (count++ ? ", " : "") + run_name(run, with_parents) + fmt::format(" after step {}", run.summary.steps);
    }
    if (count)
      text += fmt::format("{}{} of {} runs {}: {}.", text.empty() ? "" : " ", count, runs.size(), status, names);
  }
  return text;
}

// Whether there would have been more repeats: one that never began has no folder, so only the summary over all knows.
bool repeats_are_missing(const std::vector<RunFiles>& runs) {
  const std::filesystem::path file = runs.front().folder.parent_path() / "summary.json";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return false;
  const auto over = nlohmann::json::parse(io::read_file(file), nullptr, false);
  const bool interrupted = over.is_object() && over.contains("status") && over["status"] == "interrupted";
  return interrupted &&
         std::all_of(runs.begin(), runs.end(), [](const RunFiles& r) { return r.summary.status == "completed"; });
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
report::Section table_section(const std::vector<RunFiles>& runs, bool with_parents) {
  report::Table t{{"run", "method", "seed", "status", "steps"}, {}};
  for (const RunFiles& run : runs)
    t.rows.push_back({run_name(run, with_parents), std::string(to_string(run.configuration.method)),
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
      return std::isfinite(s.figures.*figure) ? minus(shown(s.figures.*figure, digits)) : std::string();
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
                    .notice = notice(run),
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
                    .notice = notice(runs, false),
                    .facts = {},
                    .sections = {},
                    .footer = footer};
  if (repeats_are_missing(runs)) page.notice = "Interrupted: further seeds were not run.";
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
  page.sections.push_back(table_section(runs, false));
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
                    .notice = notice(runs, true),
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
      g.label += fmt::format(" ({})", folder_name(*g.runs.front()));
  add_curves(page, groups);
  const auto cost = [](const Group& g) { return gradient_evaluations_per_step(g.runs.front()->configuration); };
  if (std::any_of(groups.begin(), groups.end(), [&](const Group& g) { return cost(g) != cost(groups.front()); }))
    add_curves(page, groups, Axis::gradient_evaluations);
  page.sections.push_back(table_section(runs, true));
  report::Section laws{.heading = "The laws and their samples at the end"};
  for (const Group& g : groups) {
    if (!has_law(*g.runs.front())) continue;
    const LawPictures pictures(*g.runs.front());
    std::string title = g.label;
    if (g.runs.size() > 1) title += fmt::format(", seed {}", g.runs.front()->configuration.seed);
    laws.figures.push_back(pictures.end(title, false));
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
