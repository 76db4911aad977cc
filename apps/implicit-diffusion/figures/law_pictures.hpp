// Pictures of the law of a run: its contours, or its density on the line, with the samples over it.
#pragma once

#include "experiment/run_directory.hpp"
#include "implicit_diffusion/report/density_plot.hpp"
#include "implicit_diffusion/report/page.hpp"

#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace program {

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

// The marginal law of the first d coordinates.
GaussianMixture marginal(const GaussianMixture& m, std::size_t d);

// The pictures of a run's law: a window that has room for all of them, and one picture at a time. The laws of its
// potential must have a closed form.
class LawPictures {
 public:
  explicit LawPictures(const RunFiles& run);

  // In the plane the start, the end and the reference stand side by side.
  bool three_in_a_row() const { return shown_ == 2 && has_reference_law(); }

  implicit_diffusion::report::Figure start() const;
  implicit_diffusion::report::Figure end() const;
  implicit_diffusion::report::Figure end(const std::string& title, bool narrow) const;
  // The law to be learnt, where there is one.
  std::optional<implicit_diffusion::report::Figure> reference() const;
  // The law at a theta with samples over it, small and without axes: one of many. In the plane only.
  std::string thumbnail(const std::string& title, std::span<const double> theta, const Population<float>& x) const;

  std::string text() const;

 private:
  GaussianMixture law(std::span<const double> theta) const;
  bool has_reference_law() const {
    return run_.configuration.reference && !run_.configuration.reference->theta.empty();
  }
  const Target* target() const { return target_ ? &*target_ : nullptr; }
  void find_target(const ReferenceSpec& reference);

  const RunFiles& run_;
  Potential<float> potential_;
  std::size_t shown_;
  Window window_;
  std::vector<implicit_diffusion::report::Marker> markers_;
  std::optional<Target> target_;
  std::string missing_;
};

bool has_law(const RunFiles& run);

}  // namespace program
