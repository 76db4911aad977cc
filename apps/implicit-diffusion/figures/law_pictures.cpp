#include "figures/law_pictures.hpp"

#include "implicit_diffusion/report/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace program {

using namespace implicit_diffusion;

std::string coordinate_name(std::size_t j, std::size_t dimension) {
  constexpr std::array digits{"₀", "₁", "₂", "₃", "₄", "₅", "₆", "₇", "₈", "₉"};
  std::string name = "x";
  if (dimension > 1)
    for (const char c : fmt::format("{}", j + 1)) name += digits[static_cast<std::size_t>(c - '0')];
  return name;
}

void Window::include(const Population<float>& points) {
  for (std::size_t j = 0; j < std::min<std::size_t>(2, points.dimension()) && points.size() > 0; ++j) {
    std::vector<float> v(points.coordinate(j).begin(), points.coordinate(j).end());
    std::sort(v.begin(), v.end());
    const std::size_t cut = v.size() / 200;
    const auto low = static_cast<double>(v[cut]), high = static_cast<double>(v[v.size() - 1 - cut]);
    const double margin = 0.05 * (high - low);
    include(j, low - margin, high + margin);
  }
}

void Window::include(const GaussianMixture& m) {
  constexpr double reach = 3.7;  // standard deviations: the contour of 99 % lies within
  for (std::size_t i = 0; i < m.components.size(); ++i) {
    const Gaussian& g = m.components[i];
    if (m.weights[i] < 1e-9) continue;
    for (std::size_t j = 0; j < std::min<std::size_t>(2, m.dimension()); ++j) {
      // However far away a component is, a window around it has two ends.
      const double half =
          std::max(reach * std::sqrt(g.covariance[j * (m.dimension() + 1)]), 1e-9 * std::abs(g.mean[j]));
      include(j, g.mean[j] - half, g.mean[j] + half);
    }
  }
}

void Window::include(std::size_t axis, double low, double high) {
  double &least = axis == 0 ? x_min : y_min, &greatest = axis == 0 ? x_max : y_max;
  least = std::min(least, low);
  greatest = std::max(greatest, high);
}

GaussianMixture marginal(const GaussianMixture& m, std::size_t d) {
  GaussianMixture out{m.weights, {}};
  for (const Gaussian& g : m.components) {
    Gaussian part{{g.mean.begin(), g.mean.begin() + static_cast<std::ptrdiff_t>(d)}, {}};
    for (std::size_t a = 0; a < d; ++a)
      for (std::size_t b = 0; b < d; ++b) part.covariance.push_back(g.covariance[a * g.mean.size() + b]);
    out.components.push_back(std::move(part));
  }
  return out;
}

namespace {

std::vector<double> coordinate(const Population<float>* points, std::size_t j) {
  std::vector<double> values;
  if (points)
    for (const float v : points->coordinate(j)) values.push_back(static_cast<double>(v));
  return values;
}

const Population<float>* points_of(const Target* target) { return target ? &target->points : nullptr; }

std::string draw_on_the_line(const LawPicture& picture, const Window& w, const MixtureLogDensity& log_density) {
  report::HistogramPlot plot{.title = picture.title,
                             .x_label = "x",
                             .x_min = w.x_min,
                             .x_max = w.x_max,
                             .samples = coordinate(picture.samples, 0),
                             .data = coordinate(points_of(picture.target), 0),
                             .data_label = picture.target ? picture.target->name : ""};
  report::Series curve{"density of " + picture.law_name, {}, {}};
  for (int i = 0; i <= 300; ++i) {
    const double x = w.x_min + (w.x_max - w.x_min) * i / 300;
    curve.x.push_back(x);
    curve.y.push_back(std::exp(log_density(std::array{x})));
  }
  plot.curves.push_back(std::move(curve));
  return report::to_svg(plot);
}

report::DensityPlot plane_plot(const LawPicture& picture, const Window& w, const MixtureLogDensity& log_density,
                               std::size_t nodes) {
  report::DensityPlot plot{.title = picture.title,
                           .x_min = w.x_min,
                           .x_max = w.x_max,
                           .y_min = w.y_min,
                           .y_max = w.y_max,
                           .columns = nodes,
                           .rows = nodes,
                           .point_x = coordinate(picture.samples, 0),
                           .point_y = coordinate(picture.samples, 1),
                           .data_x = coordinate(points_of(picture.target), 0),
                           .data_y = coordinate(points_of(picture.target), 1),
                           .data_label = picture.target ? picture.target->name : "",
                           .markers = picture.markers,
                           .x_label = coordinate_name(0, 2),
                           .y_label = coordinate_name(1, 2),
                           .narrow = picture.narrow};
  const auto node = [nodes](double low, double high, std::size_t i) {
    return low + (high - low) / static_cast<double>(nodes - 1) * static_cast<double>(i);
  };
  for (std::size_t r = 0; r < nodes; ++r)
    for (std::size_t c = 0; c < nodes; ++c)
      plot.density.push_back(std::exp(log_density(std::array{node(w.x_min, w.x_max, c), node(w.y_min, w.y_max, r)})));
  return plot;
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
// is a quantile over samples of the law, which, unlike one over the nodes of a picture, does not mind how narrow the
// law is; it gives the mass a standard error of 0.3 %.
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
  std::string text = fmt::format("{} of the samples", share(*picture.samples));
  if (picture.target) text += fmt::format(" and {} of the {}", share(picture.target->points), picture.target->name);
  return text + fmt::format(" lie where {} has 90\u00a0% of its mass.",
                            picture.law_name == "π*(θ)" ? the_law : picture.law_name);
}

}  // namespace

report::Figure draw(const LawPicture& picture, const Window& w) {
  const MixtureLogDensity log_density(picture.law);
  report::Figure figure{picture.law.dimension() == 1 ? draw_on_the_line(picture, w, log_density)
                                                     : report::to_svg(plane_plot(picture, w, log_density, 121)),
                        picture.caption};
  if (picture.samples) figure.caption += " " + judge(picture, log_density);
  return figure;
}

std::string draw_thumbnail(const LawPicture& picture, const Window& w) {
  return report::to_thumbnail(plane_plot(picture, w, MixtureLogDensity(picture.law), 61));
}

}  // namespace program
