#include "implicit_diffusion/report/chart.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/report/histogram.hpp"
#include "implicit_diffusion/report/theme.hpp"
#include "report/xml.hpp"

namespace implicit_diffusion::report {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Xml checked(const std::string& svg) {
  Xml xml = parse_xml(svg);
  EXPECT_EQ(xml.error, "") << svg;
  EXPECT_FALSE(has_bad_number(xml)) << svg;
  return xml;
}

LineChart chart_of(std::vector<Series> series) { return {"title", "step", "value", std::move(series)}; }

std::vector<PathPoint> only_line(const Xml& xml) {
  const auto lines = xml.with_class("line");
  EXPECT_EQ(lines.size(), 1U);
  return lines.empty() ? std::vector<PathPoint>{} : path_points(lines[0].attributes.at("d"));
}

std::size_t pieces(const std::vector<PathPoint>& points) {
  return static_cast<std::size_t>(
      std::count_if(points.begin(), points.end(), [](const PathPoint& p) { return p.starts_piece; }));
}

TEST(LineChart, IsAnImageWithWords) {
  const Xml xml = checked(to_svg(chart_of({{"reward", {0, 1, 2}, {0.1, 0.2, 0.4}}})));
  const XmlElement& root = xml.elements.front();
  EXPECT_EQ(root.name, "svg");
  EXPECT_EQ(root.attributes.at("role"), "img");
  EXPECT_EQ(root.attributes.at("aria-label"), "title");
  EXPECT_EQ(xml.elements[1].name, "title");
  EXPECT_EQ(xml.elements[2].name, "desc");
  EXPECT_NE(xml.elements[2].text.find("reward: from 0.1 to 0.4, least 0.1, greatest 0.4"), std::string::npos)
      << xml.elements[2].text;
}

TEST(LineChart, DrawsPointsWhereTheAxesSay) {
  const Xml xml = checked(to_svg(chart_of({{"", {0, 5, 10}, {1, 3, 2}}})));
  const auto points = only_line(xml);
  ASSERT_EQ(points.size(), 3U);
  EXPECT_NEAR(points[1].x - points[0].x, points[2].x - points[1].x, 0.11);
  // 2 is halfway between 1 and 3; y goes down on the page.
  EXPECT_NEAR(points[0].y - points[1].y, 2 * (points[2].y - points[1].y), 0.31);
  EXPECT_GT(points[0].y, points[1].y);
}

TEST(LineChart, ReachesWhatAnotherChartHas) {
  LineChart low = chart_of({{"", {0, 1}, {0, 1}}}), high = chart_of({{"", {0, 1}, {0, 10}}});
  low.also_y = high.also_y = {0, 1, 10, nan};
  const auto below = only_line(checked(to_svg(low))), above = only_line(checked(to_svg(high)));
  EXPECT_NEAR(below[0].y, above[0].y, 0.11);
  EXPECT_NEAR(10 * (below[0].y - below[1].y), above[0].y - above[1].y, 1.1);
}

TEST(LineChart, NotANumberIsAGapAndALonePointADot) {
  const Xml xml = checked(to_svg(chart_of({{"a", {0, 1, 2, 3, 4, 5}, {1, 2, nan, 3, inf, 4}}})));
  const auto points = only_line(xml);
  EXPECT_EQ(points.size(), 4U);
  EXPECT_EQ(pieces(points), 3U);
  EXPECT_NE(xml.with_class("line")[0].attributes.at("d").find("h0"), std::string::npos);
}

TEST(LineChart, ThinsButKeepsSpikesAndEnds) {
  Series s{"a", {}, {}};
  for (int i = 0; i < 100'000; ++i) {
    s.x.push_back(i);
    s.y.push_back(std::sin(i * 1e-4));
  }
  s.y[70'123] = 50;
  s.y[20'456] = -50;
  // The last value is neither the lowest nor the highest near it.
  s.y[99'997] = -9;
  s.y[99'998] = 9;
  s.y.back() = 7;
  const auto points = only_line(checked(to_svg(chart_of({s}))));
  EXPECT_LE(points.size(), 604U);
  EXPECT_GE(points.size(), 300U);
  // The axis runs from -54 to 54 with its margins.
  const auto [top, bottom] =
      std::minmax_element(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.y < b.y; });
  const double unit = (bottom->y - top->y) / 100;
  EXPECT_GT(bottom->y - top->y, 180) << "a spike is lost";
  EXPECT_NEAR((bottom->y + top->y) / 2 - points.back().y, 7 * unit, 0.2) << "the last value is lost";
  EXPECT_NEAR((bottom->y + top->y) / 2 - points.front().y, 0, 0.2);
}

TEST(LineChart, ThinnedGapsStayGaps) {
  Series s{"a", {}, {}}, alternating{"a", {}, {}};
  for (int i = 0; i < 10'000; ++i) {
    s.x.push_back(i);
    alternating.x.push_back(i);
    s.y.push_back(i > 4000 && i < 6000 ? nan : i);
    alternating.y.push_back(i % 2 == 0 ? i : nan);
  }
  EXPECT_EQ(pieces(only_line(checked(to_svg(chart_of({s}))))), 2U);
  const auto points = only_line(checked(to_svg(chart_of({alternating}))));
  EXPECT_EQ(pieces(points), 1U) << "gaps narrower than the picture can show are none";
  EXPECT_LE(points.size(), 604U);
}

TEST(LineChart, EmptyConstantAndSinglePoint) {
  for (const LineChart& chart : {chart_of({}), chart_of({{"empty", {}, {}}}),
                                 chart_of({{"all gaps", {0, 1}, {nan, inf}}}), chart_of({{"", {nan, inf}, {0, 1}}})}) {
    const Xml xml = checked(to_svg(chart));
    EXPECT_TRUE(xml.with_class("line").empty());
    EXPECT_NE(to_svg(chart).find("no values"), std::string::npos);
  }
  for (const double value : {0.0, 3.0, -1e-200, 1e300, -2e17}) {
    EXPECT_GE(checked(to_svg(chart_of({{"constant", {0, 1, 2}, {value, value, value}}}))).with_class("tick").size(),
              4U);
    EXPECT_EQ(only_line(checked(to_svg(chart_of({{"one point", {value}, {value}}})))).size(), 1U);
  }
}

TEST(LineChart, HugeTinyAndMixedValuesStayInsideThePicture) {
  for (const bool log : {false, true}) {
    LineChart chart = chart_of({{"a",
                                 {-1, 0, 1e-310, 1, 1e299, inf},
                                 {1e308, -1e300, 1e300, 5e-324, 0, -inf},
                                 {-inf, 0, 1, nan, -5, 0},
                                 {1, inf, 2, 1e300, 5, 0}}});
    chart.reference_lines = {{nan, "none"}, {inf, "none"}, {0, "zero"}, {1, "one"}};
    chart.log_x = chart.log_y = log;
    const Xml xml = checked(to_svg(chart));
    EXPECT_EQ(xml.with_class("level").size(), log ? 1U : 2U);
    for (const auto& element : xml.with_class("line"))
      for (const PathPoint& p : path_points(element.attributes.at("d"))) {
        EXPECT_GE(p.x, 0);
        EXPECT_LE(p.x, 480);
        EXPECT_GE(p.y, 0);
        EXPECT_LE(p.y, 400);
      }
  }
}

TEST(LineChart, LogAxesLeaveOutWhatIsNotPositive) {
  LineChart chart = chart_of({{"a", {1, 10, 100, 1000}, {1, -1, 0, 1e-3}}});
  chart.log_x = chart.log_y = true;
  const auto points = only_line(checked(to_svg(chart)));
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(pieces(points), 2U);
}

TEST(LineChart, TickLabelsDoNotOverlap) {
  for (const double scale : {1.0, 1e-9, 123'456.0, 1e12}) {
    for (const double offset : {0.0, 1000.0}) {
      const Xml xml = checked(to_svg(chart_of({{"name", {offset * scale, (offset + 7) * scale}, {-scale, scale}}})));
      double occupied = -1000;
      for (const XmlElement& tick : xml.with_class("tick")) {
        if (tick.attributes.at("text-anchor") != "middle") continue;
        std::size_t signs = 0;  // code points
        for (const char c : tick.text) signs += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
        const double x = std::stod(tick.attributes.at("x")), half = 0.5 * 7 * static_cast<double>(signs);
        EXPECT_GT(x - half, occupied) << tick.text;
        occupied = x + half;
      }
    }
  }
}

// Six curves that all end at the same value.
TEST(LineChart, NamesAtTheEndKeepApart) {
  std::vector<Series> series;
  for (int k = 0; k < 6; ++k) series.push_back({"theta " + std::to_string(k), {0, 1}, {static_cast<double>(k), 0.0}});
  const Xml xml = checked(to_svg(chart_of(series)));
  std::vector<double> lines;
  for (const XmlElement& element : xml.elements)
    if (element.text.starts_with("theta ")) lines.push_back(std::stod(element.attributes.at("y")));
  ASSERT_EQ(lines.size(), 6U);
  std::sort(lines.begin(), lines.end());
  for (std::size_t i = 1; i < lines.size(); ++i) EXPECT_GE(lines[i] - lines[i - 1], 15.8);
  EXPECT_EQ(xml.with_class("swatch").size(), 0U);
}

TEST(LineChart, ManyCurvesHaveALegendAndDifferInColourOrDash) {
  std::vector<Series> series;
  for (int k = 0; k < 12; ++k) series.push_back({"method " + std::to_string(k), {0, 1}, {0.0, static_cast<double>(k)}});
  const Xml xml = checked(to_svg(chart_of(series)));
  EXPECT_EQ(xml.with_class("swatch").size(), 12U);
  std::vector<std::string> kinds;
  for (const XmlElement& line : xml.with_class("line")) kinds.push_back(line.attributes.at("class"));
  std::sort(kinds.begin(), kinds.end());
  EXPECT_EQ(std::unique(kinds.begin(), kinds.end()) - kinds.begin(), 12);
}

TEST(LineChart, BandsEncloseTheirCurve) {
  const Xml xml = checked(
      to_svg(chart_of({{"a", {0, 1, 2, 3}, {1, 2, 3, 4}, {0, 1, nan, 3}, {2, 3, 4, 5}}, {"b", {0, 1}, {1, 1}}})));
  const auto bands = xml.with_class("band");
  ASSERT_EQ(bands.size(), 1U);
  const auto points = path_points(bands[0].attributes.at("d"));
  EXPECT_EQ(points.size(), 4U) << "up, back, and no area for the lone slice after the gap";
}

TEST(LineChart, EscapesWhatPeopleWrite) {
  LineChart chart = chart_of({{"<script>alert('1')</script>", {0, 1}, {0, 1}}});
  chart.title = "a < b & \"c\" θ\x01\xff";
  chart.reference_lines = {{0.5, "R > 0.5 & more"}};
  const std::string svg = to_svg(chart);
  const Xml xml = checked(svg);
  EXPECT_EQ(svg.find("<script"), std::string::npos);
  EXPECT_EQ(xml.elements.front().attributes.at("aria-label"), "a &lt; b &amp; &quot;c&quot; θ\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(LineChart, RejectsUnequalLengths) {
  EXPECT_THROW(to_svg(chart_of({{"a", {0, 1}, {0}}})), Error);
  EXPECT_THROW(to_svg(chart_of({{"a", {0, 1}, {0, 1}, {0, 1}}})), Error);
  EXPECT_THROW(to_svg(chart_of({{"a", {0, 1}, {0, 1}, {0}, {1}}})), Error);
}

TEST(LineChart, StandsAloneWithItsStyle) {
  const std::string svg = standalone_svg(to_svg(chart_of({{"a", {0, 1}, {0, 1}}})));
  EXPECT_EQ(parse_xml(svg).error, "");
  EXPECT_NE(svg.find("--series-0:"), std::string::npos);
}

// Four samples of weight 1/4 over bars of width 1; one lies outside and still counts.
TEST(Histogram, BarsAreDensities) {
  const HistogramPlot plot{"h", "x", 0, 2, {0.5, 0.6, 1.5, 7, nan}, {{"d", {0, 1, 2}, {0.5, 0.5, 0.5}}}, 2};
  const Xml xml = checked(to_svg(plot));
  ASSERT_EQ(xml.with_class("bars").size(), 1U);
  const auto bars = path_points(xml.with_class("bars")[0].attributes.at("d"));
  ASSERT_EQ(bars.size(), 8U);
  const double first = bars[0].y - bars[1].y, second = bars[4].y - bars[5].y;
  EXPECT_NEAR(first, 2 * second, 0.31);
  EXPECT_NEAR(bars[1].y, only_line(xml)[0].y, 0.11) << "0.5 of the mass over a width of 1 is the height of the curve";
  EXPECT_NE(to_svg(plot).find("5 samples, 2 outside."), std::string::npos);
}

// Data on the scale of the samples, in bars of the same width.
TEST(Histogram, DataAreAnOutline) {
  const HistogramPlot plot{"h", "x", 0, 2, {0.5, 0.6, 0.7, 1.5}, {}, 2, {0.2, 1.2, 1.4, 1.8, 9}, "<data>"};
  const std::string svg = to_svg(plot);
  const Xml xml = checked(svg);
  const auto bars = path_points(xml.with_class("bars")[0].attributes.at("d"));
  ASSERT_EQ(xml.with_class("stairs").size(), 1U);
  const auto stairs = path_points(xml.with_class("stairs")[0].attributes.at("d"));
  ASSERT_EQ(stairs.size(), 6U);
  const double floor = stairs[0].y;
  EXPECT_EQ(stairs.back().y, floor);
  EXPECT_NEAR(floor - stairs[3].y, 3 * (floor - stairs[1].y), 0.4) << "three points on the right, one on the left";
  EXPECT_NEAR((floor - stairs[3].y) / (bars[0].y - bars[1].y), (3.0 / 5) / (3.0 / 4), 0.01);
  EXPECT_EQ(xml.with_class("stairs-key").size(), 1U);
  EXPECT_NE(svg.find(">&lt;data&gt;</text>"), std::string::npos);
  EXPECT_NE(svg.find("4 samples. 5 points of the &lt;data&gt;, 1 outside."), std::string::npos);
}

// Bars as high as the shares, each around its class, and the outline of others on the same scale.
TEST(Histogram, OfClasses) {
  const Xml xml = checked(to_svg(ClassPlot{"c", "class", "share", {0.5, 0, 0.25}, "after", {0.2, 0.4, 0.3}, "before"}));
  const auto bars = path_points(xml.with_class("bars")[0].attributes.at("d")),
             stairs = path_points(xml.with_class("stairs")[0].attributes.at("d"));
  ASSERT_EQ(bars.size(), 8U) << "a class without samples has no bar";
  ASSERT_EQ(stairs.size(), 8U);
  const double unit = bars[0].y - bars[1].y;  // 0.5, in coordinates of one decimal
  EXPECT_NEAR(bars[4].y - bars[5].y, unit / 2, 0.21);
  EXPECT_NEAR(stairs[0].y - stairs[1].y, unit * 0.4, 0.21);
  EXPECT_NEAR(stairs[0].y - stairs[3].y, unit * 0.8, 0.21);
  EXPECT_NEAR(bars[4].x - bars[0].x, 2 * (bars[2].x - bars[0].x), 0.31);
  for (const char* label : {">after</text>", ">before</text>"})
    EXPECT_NE(to_svg(ClassPlot{"c", "x", "y", {1}, "after", {1}, "before"}).find(label), std::string::npos);
  checked(to_svg(ClassPlot{"c", "x", "y", {0, 0}, "a"}));
  EXPECT_THROW(to_svg(ClassPlot{"c", "x", "y", {}, "a"}), Error);
  EXPECT_THROW(to_svg(ClassPlot{"c", "x", "y", {1}, "a", {1, 2}, "b"}), Error);
}

TEST(Histogram, StrangeInput) {
  checked(to_svg(HistogramPlot{"h", "x", 0, 1, {}, {}, 0, {nan, 0.5, inf}}));
  checked(to_svg(HistogramPlot{"h", "x", 0, 1, {}}));
  checked(to_svg(HistogramPlot{"h", "x", 0, 1, std::vector<double>(100, 0.5)}));
  checked(to_svg(HistogramPlot{"h", "x", 0, 1, {nan, inf, -inf}, {{"c", {-1, 0, nan, 1, 2}, {1, inf, 1, nan, 3}}}}));
  EXPECT_THROW(to_svg(HistogramPlot{"h", "x", 1, 0, {}}), Error);
  EXPECT_THROW(to_svg(HistogramPlot{"h", "x", 0, inf, {}}), Error);
}

}  // namespace
}  // namespace implicit_diffusion::report
