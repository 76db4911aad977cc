// Pictures of the law of a Langevin run.
#pragma once

#include "figures/law_pictures.hpp"
#include "langevin/files.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace program {

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
