#include "implicit_diffusion/report/density_plot.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "implicit_diffusion/error.hpp"
#include "report/xml.hpp"

namespace implicit_diffusion::report {
namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

DensityPlot gaussian(double variance, std::size_t n = 61) {
  DensityPlot plot{.title = "p", .x_min = -3, .x_max = 3, .y_min = -3, .y_max = 3, .columns = n, .rows = n};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const auto at = [&](std::size_t k) { return -3 + 6 * static_cast<double>(k) / static_cast<double>(n - 1); };
      plot.density.push_back(std::exp(-0.5 * (at(i) * at(i) + at(j) * at(j)) / variance));
    }
  return plot;
}

Xml checked_plot(const std::string& svg) {
  Xml xml = parse_xml(svg);
  EXPECT_EQ(xml.error, "");
  EXPECT_FALSE(has_bad_number(xml)) << svg;
  return xml;
}

std::size_t dots(const Xml& xml) {
  std::size_t count = 0;
  for (const XmlElement& layer : xml.with_class("dots")) count += path_points(layer.attributes.at("d")).size();
  return count;
}

TEST(DensityPlot, HasSixRoundContoursOnEqualScales) {
  const Xml xml = checked_plot(to_svg(gaussian(0.3)));
  const auto contours = xml.with_class("contour");
  ASSERT_EQ(contours.size(), 6U);
  for (const XmlElement& contour : contours) {
    double left = 1e9, right = -1e9, top = 1e9, bottom = -1e9;
    for (const PathPoint& p : path_points(contour.attributes.at("d"))) {
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
    EXPECT_NEAR(right - left, bottom - top, 0.3);
  }
}

// Contours that leave the window are open lines over regions that follow the border.
TEST(DensityPlot, FlatLawsMeetTheBorder) {
  const Xml xml = checked_plot(to_svg(gaussian(30)));
  EXPECT_EQ(xml.with_class("region").size(), 6U);
  const auto contours = xml.with_class("contour");
  bool open = false;
  for (const XmlElement& contour : contours) open = open || contour.attributes.at("d").find('z') == std::string::npos;
  EXPECT_TRUE(open);
}

TEST(DensityPlot, UniformPeakedEmptyAndBrokenDensities) {
  DensityPlot plot = gaussian(1, 3);
  plot.density.assign(9, 1.0);
  EXPECT_EQ(checked_plot(to_svg(plot)).with_class("region").size(), 1U);
  plot.density.assign(9, 0.0);
  EXPECT_EQ(checked_plot(to_svg(plot)).with_class("region").size(), 0U);
  plot.density[4] = 1;
  EXPECT_EQ(checked_plot(to_svg(plot)).with_class("contour").size(), 1U);
  plot.density = {no_value, 1, std::numeric_limits<double>::infinity(), -1, 2, 3, 1e308, 1e308, 5e-324};
  checked_plot(to_svg(plot));
}

TEST(DensityPlot, CountsWhatItLeavesOut) {
  DensityPlot plot = gaussian(1);
  for (int i = 0; i < 5000; ++i) {
    plot.point_x.push_back(std::sin(i));
    plot.point_y.push_back(std::cos(i));
  }
  plot.point_x.insert(plot.point_x.end(), {10, no_value, 0});
  plot.point_y.insert(plot.point_y.end(), {0, 0, no_value});
  plot.markers = {{0, 0, "<centre>"}, {2.9, 2.9, "in the corner"}, {no_value, 0, "nowhere"}, {9, 9, "outside"}};
  const std::string svg = to_svg(plot);
  const Xml xml = checked_plot(svg);
  EXPECT_EQ(dots(xml), 2000U);
  EXPECT_EQ(xml.with_class("marker").size(), 2U);
  EXPECT_NE(svg.find("5003 samples, 2000 drawn, 3 outside."), std::string::npos);
  EXPECT_NE(svg.find("&lt;centre&gt;"), std::string::npos);
}

TEST(DensityPlot, SamplesAloneAndWindowsThatAreNotSquare) {
  DensityPlot plot{.title = "s", .x_min = 0, .x_max = 4, .y_min = 0, .y_max = 1, .point_x = {0, 4}, .point_y = {0, 1}};
  const Xml xml = checked_plot(to_svg(plot));
  ASSERT_EQ(dots(xml), 2U);
  const auto layers = xml.with_class("dots");
  const PathPoint a = path_points(layers[0].attributes.at("d"))[0], b = path_points(layers[1].attributes.at("d"))[0];
  EXPECT_NEAR(b.x - a.x, 4 * (a.y - b.y), 0.6);
  plot.x_max = 1e6;  // no equal scale could show this
  checked_plot(to_svg(plot));
}

// Two pieces for each cross, at most 1000 crosses, and a legend only where there is something to tell apart.
TEST(DensityPlot, DataAreCrossesWithALegend) {
  DensityPlot plot = gaussian(1);
  plot.point_x = plot.point_y = {0, 1};
  EXPECT_EQ(to_svg(plot).find("-key"), std::string::npos);
  for (int i = 0; i < 1500; ++i) {
    plot.data_x.push_back(std::sin(i));
    plot.data_y.push_back(std::cos(i));
  }
  plot.data_x.push_back(10);
  plot.data_y.push_back(0);
  plot.data_label = "<data>";
  const std::string svg = to_svg(plot);
  const Xml xml = checked_plot(svg);
  EXPECT_EQ(dots(xml), 2U);
  const auto crosses = xml.with_class("crosses");
  ASSERT_EQ(crosses.size(), 1U);
  const auto points = path_points(crosses[0].attributes.at("d"));
  EXPECT_EQ(points.size(), 4 * 1000U);
  EXPECT_EQ(xml.with_class("dot-key").size(), 1U);
  EXPECT_EQ(xml.with_class("cross-key").size(), 1U);
  EXPECT_NE(svg.find(">&lt;data&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find("1501 points of the &lt;data&gt;, 1000 drawn, 1 outside."), std::string::npos);

  // The first point, (0, 1), is where a sample at the same place is.
  plot.point_x = {0};
  plot.point_y = {1};
  const PathPoint dot = path_points(checked_plot(to_svg(plot)).with_class("dots")[0].attributes.at("d"))[0];
  EXPECT_NEAR(0.5 * (points[0].x + points[1].x), dot.x, 0.11);
  EXPECT_NEAR(0.5 * (points[0].y + points[1].y), dot.y, 0.11);

  plot.data_x.pop_back();
  EXPECT_THROW(to_svg(plot), Error);
}

// Five to one, on scales of their own: the corners of the window are those of a square.
TEST(DensityPlot, LongWindowsHaveScalesOfTheirOwn) {
  for (const bool tall : {false, true}) {
    DensityPlot plot{
        .title = "s", .x_min = 0, .x_max = 5, .y_min = 0, .y_max = 1, .point_x = {0, 5}, .point_y = {0, 1}};
    if (tall) {
      std::swap(plot.x_max, plot.y_max);
      std::swap(plot.point_x, plot.point_y);
    }
    const auto layers = checked_plot(to_svg(plot)).with_class("dots");
    ASSERT_EQ(layers.size(), 2U);
    const PathPoint a = path_points(layers[0].attributes.at("d"))[0], b = path_points(layers[1].attributes.at("d"))[0];
    EXPECT_NEAR(b.x - a.x, a.y - b.y, 0.3);
    EXPECT_GT(b.x - a.x, 300);
  }
}

TEST(DensityPlot, RejectsWrongShapes) {
  DensityPlot plot = gaussian(1);
  plot.rows = 60;
  EXPECT_THROW(to_svg(plot), Error);
  plot = gaussian(1);
  plot.x_max = plot.x_min;
  EXPECT_THROW(to_svg(plot), Error);
  plot = gaussian(1);
  plot.point_x = {1};
  EXPECT_THROW(to_svg(plot), Error);
}

}  // namespace
}  // namespace implicit_diffusion::report
