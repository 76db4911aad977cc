// Pictures of a law: its contours, or its density on the line, with samples over it.
#pragma once

#include "implicit_diffusion/langevin/law.hpp"
#include "implicit_diffusion/report/density_plot.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <limits>

namespace program {

using implicit_diffusion::GaussianMixture;
using implicit_diffusion::Population;

// In running text the name of the law is not to be broken into lines.
inline constexpr const char* the_law = "π*\u2060(θ)";

// The name of a coordinate: x, or x₁, x₂, ... where there are several.
std::string coordinate_name(std::size_t j, std::size_t dimension);

// What the pictures of one run show of the plane, or of the line.
struct Window {
  double x_min = std::numeric_limits<double>::infinity(), x_max = -x_min, y_min = x_min, y_max = -x_min;

  // Nearly all of the points: a few that lie far away would make everything else small.
  void include(const Population<float>& points);
  void include(const GaussianMixture& m);
  // Axis 0 is x, 1 is y.
  void include(std::size_t axis, double low, double high);
};

// What the law is to be like: points of the user's, or some of a reference that is a law itself.
struct Target {
  std::string name;  // data, reference
  Population<float> points;
};

struct LawPicture {
  std::string title, caption;
  GaussianMixture law;                                      // in as many coordinates as can be drawn
  const Population<float>* samples;                         // or null
  const Target* target;                                     // or null
  std::vector<implicit_diffusion::report::Marker> markers;  // in the plane
  bool narrow = false;                                      // one of three side by side
  std::string law_name = "π*(θ)";
};

// With samples, the caption says how many of them lie where the law has nine tenths of its mass.
implicit_diffusion::report::Figure draw(const LawPicture& picture, const Window& w);

// In the plane only: small, without axes, one of many.
std::string draw_thumbnail(const LawPicture& picture, const Window& w);

// The marginal law of the first d coordinates.
GaussianMixture marginal(const GaussianMixture& m, std::size_t d);

}  // namespace program
