#include "implicit_diffusion/report/contour.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <random>

#include "implicit_diffusion/error.hpp"

namespace implicit_diffusion::report {
namespace {

struct Sampled {
  std::vector<double> values;
  Grid grid;
};

template <class F>
Sampled sample(F&& f, double half_width, std::size_t n) {
  Sampled out{std::vector<double>(n * n), {-half_width, half_width, -half_width, half_width, n, n, {}}};
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j) {
      const auto at = [&](std::size_t k) {
        return -half_width + 2 * half_width * static_cast<double>(k) / static_cast<double>(n - 1);
      };
      out.values[i * n + j] = f(at(j), at(i));
    }
  out.grid.values = out.values;
  return out;
}

double ring_area(const Contour& ring) {
  double twice = 0;
  for (std::size_t i = 0; i < ring.vertices.size(); ++i) {
    const Vertex& a = ring.vertices[i];
    const Vertex& b = ring.vertices[(i + 1) % ring.vertices.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return 0.5 * std::abs(twice);
}

// Even-odd rule over all rings.
bool contains(const std::vector<Contour>& rings, double x, double y) {
  bool inside = false;
  for (const Contour& ring : rings)
    for (std::size_t i = 0; i < ring.vertices.size(); ++i) {
      const Vertex& a = ring.vertices[i];
      const Vertex& b = ring.vertices[(i + 1) % ring.vertices.size()];
      if ((a.y > y) != (b.y > y) && x < a.x + (y - a.y) / (b.y - a.y) * (b.x - a.x)) inside = !inside;
    }
  return inside;
}

// Along an edge of length h the linear interpolant of x^2 exceeds it by at most h^2 / 4, so that the vertex lies inside
// the circle by at most h^2 / (8 r), to first order; one tenth more pays for the second.
TEST(ContourLines, OfACircleAreOneRingOnIt) {
  const double r = 1.3, h = 4.0 / 60;
  const Sampled s = sample([](double x, double y) { return x * x + y * y; }, 2, 61);
  const auto lines = contour_lines(s.grid, r * r);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].closed);
  const double tolerance = 1.1 * h * h / (8 * r);
  double worst = 0;
  for (const Vertex& v : lines[0].vertices) {
    const double radius = std::hypot(v.x, v.y);
    EXPECT_LE(radius, r + 1e-12);
    EXPECT_GE(radius, r - tolerance);
    worst = std::max(worst, r - radius);
  }
  EXPECT_GT(worst, 0.5 * tolerance) << "the bound is too loose to notice a vertex that is off";
  // Joined in order: neighbours are in the same cell, the ends too, and the area is that of the disc.
  for (std::size_t i = 0; i < lines[0].vertices.size(); ++i) {
    const Vertex& a = lines[0].vertices[i];
    const Vertex& b = lines[0].vertices[(i + 1) % lines[0].vertices.size()];
    EXPECT_LE(std::hypot(a.x - b.x, a.y - b.y), std::numbers::sqrt2 * h + 1e-12);
  }
  EXPECT_NEAR(ring_area(lines[0]), std::numbers::pi * r * r, 2 * std::numbers::pi * r * 2 * tolerance);
}

TEST(ContourLines, EndAtTheBorder) {
  const Sampled s = sample([](double x, double) { return x; }, 1, 5);
  const auto lines = contour_lines(s.grid, 0.3);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_FALSE(lines[0].closed);
  ASSERT_EQ(lines[0].vertices.size(), 5U);
  EXPECT_NEAR(std::abs(lines[0].vertices.front().y), 1, 1e-12);
  EXPECT_NEAR(std::abs(lines[0].vertices.back().y), 1, 1e-12);
  for (const Vertex& v : lines[0].vertices) EXPECT_NEAR(v.x, 0.3, 1e-12);
}

TEST(ContourLines, TwoHillsAreTwoRings) {
  const Sampled s = sample(
      [](double x, double y) { return std::exp(-4 * ((std::abs(x) - 1) * (std::abs(x) - 1) + y * y)); }, 2.5, 51);
  const auto lines = contour_lines(s.grid, 0.5);
  ASSERT_EQ(lines.size(), 2U);
  for (const Contour& line : lines) {
    EXPECT_TRUE(line.closed);
    EXPECT_TRUE(std::all_of(line.vertices.begin(), line.vertices.end(), [](const Vertex& v) { return v.x > 0; }) ||
                std::all_of(line.vertices.begin(), line.vertices.end(), [](const Vertex& v) { return v.x < 0; }));
  }
}

// A cell with two high and two low corners across: the middle decides.
TEST(ContourLines, SaddleFollowsTheMean) {
  const std::array<double, 4> high{1.0, 0.4, 0.4, 1.0}, low{1.0, 0.0, 0.0, 1.0};
  const auto joined = contour_lines({0, 1, 0, 1, 2, 2, high}, 0.6);
  const auto apart = contour_lines({0, 1, 0, 1, 2, 2, low}, 0.6);
  ASSERT_EQ(joined.size(), 2U);
  ASSERT_EQ(apart.size(), 2U);
  // The high corners are (0,0) and (1,1). Where they are joined, a line cuts off the low corner (1,0), and stays away
  // from (0,0).
  const auto cuts_off_high = [](const std::vector<Contour>& lines) {
    return std::any_of(lines.begin(), lines.end(), [](const Contour& line) {
      return std::all_of(line.vertices.begin(), line.vertices.end(),
                         [](const Vertex& v) { return v.x == 0 || v.y == 0; });
    });
  };
  EXPECT_FALSE(cuts_off_high(joined));
  EXPECT_TRUE(cuts_off_high(apart));
}

// On noise, regions are closed and agree with the values at every node; the hardest case for the joining.
TEST(ContourRegions, HoldExactlyTheHighNodes) {
  std::mt19937 random{5};
  std::uniform_real_distribution<double> unit{0, 1};
  const Sampled s = sample([&](double, double) { return unit(random); }, 1, 24);
  for (const double level : {0.1, 0.5, 0.9}) {
    const auto rings = contour_regions(s.grid, level);
    for (const Contour& ring : rings) EXPECT_TRUE(ring.closed);
    for (std::size_t i = 1; i + 1 < 24; ++i)
      for (std::size_t j = 1; j + 1 < 24; ++j) {
        const double x = -1 + 2 * static_cast<double>(j) / 23, y = -1 + 2 * static_cast<double>(i) / 23;
        ASSERT_EQ(contains(rings, x, y), s.values[i * 24 + j] >= level) << i << ' ' << j << ' ' << level;
      }
  }
}

TEST(ContourRegions, OfEverythingAreTheWindow) {
  const Sampled s = sample([](double, double) { return 1.0; }, 2, 4);
  EXPECT_TRUE(contour_lines(s.grid, 0.5).empty());
  const auto rings = contour_regions(s.grid, 0.5);
  ASSERT_EQ(rings.size(), 1U);
  EXPECT_NEAR(ring_area(rings[0]), 16, 1e-12);
  EXPECT_TRUE(contour_regions(s.grid, 1.5).empty());
}

TEST(ContourLines, StayFiniteNextToValuesThatAreNot) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> values{nan, 1, 1, inf, 0, 1, -inf, 1, 1e308};
  for (const auto& lines :
       {contour_lines({0, 1, 0, 1, 3, 3, values}, 0.5), contour_regions({0, 1, 0, 1, 3, 3, values}, 0.5)})
    for (const Contour& line : lines)
      for (const Vertex& v : line.vertices) EXPECT_TRUE(std::isfinite(v.x) && std::isfinite(v.y));
}

TEST(ContourLines, RejectWrongShapes) {
  const std::vector<double> values(6, 1.0);
  EXPECT_THROW(contour_lines({0, 1, 0, 1, 3, 3, values}, 0.5), Error);
  EXPECT_THROW(contour_lines({0, 1, 0, 1, 6, 1, values}, 0.5), Error);
  EXPECT_THROW(contour_lines({1, 1, 0, 1, 3, 2, values}, 0.5), Error);
}

// For N(0, I) the region of mass q is { r^2 <= -2 log(1 - q) }, so its level is (1 - q) / (2 pi). On the grid a level
// is known to the difference of values next to each other in order: neighbouring shells of nodes, which differ by less
// than the step in r of one spacing.
TEST(MassLevels, OfAGaussianAreTheKnownOnes) {
  const std::array<double, 6> fractions{0.1, 0.3, 0.5, 0.7, 0.9, 0.99};
  const std::size_t n = 201;
  const double half = 6, h = 2 * half / static_cast<double>(n - 1);
  const Sampled s =
      sample([](double x, double y) { return std::exp(-0.5 * (x * x + y * y)) / (2 * std::numbers::pi); }, half, n);
  const auto levels = mass_levels(s.values, fractions);
  ASSERT_EQ(levels.size(), fractions.size());
  for (std::size_t k = 0; k < fractions.size(); ++k) {
    const double expected = (1 - fractions[k]) / (2 * std::numbers::pi);
    const double radius = std::sqrt(-2 * std::log(1 - fractions[k]));
    EXPECT_NEAR(levels[k], expected, expected * radius * h);
    double mass = 0;
    for (const double value : s.values) mass += value >= levels[k] ? value * h * h : 0;
    EXPECT_GE(mass, fractions[k] - 1e-9);
    EXPECT_NEAR(mass, fractions[k], 0.01);
  }
}

TEST(MassLevels, FlatPeakedAndEmpty) {
  const std::array<double, 2> fractions{0.5, 0.99};
  EXPECT_EQ(mass_levels(std::vector<double>(9, 2.0), fractions), (std::vector<double>{2, 2}));
  const std::vector<double> peak{0, 0, 0, 0, 8, 0, 0, 0, 0};
  EXPECT_EQ(mass_levels(peak, fractions), (std::vector<double>{4, 4}));
  EXPECT_EQ(contour_regions({0, 1, 0, 1, 3, 3, peak}, 4).size(), 1U);
  EXPECT_TRUE(mass_levels(std::vector<double>(9, 0.0), fractions).empty());
  EXPECT_TRUE(mass_levels(std::vector<double>{std::nan(""), -1}, fractions).empty());
}

}  // namespace
}  // namespace implicit_diffusion::report
