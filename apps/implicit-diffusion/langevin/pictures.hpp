// Pictures of the law of a Langevin run.
#pragma once

#include "figures/law_pictures.hpp"
#include "langevin/files.hpp"

namespace program {

// The pictures of a run's law, in a window that has room for all of them. The laws of its potential must have a closed
// form.
class LawPictures {
 public:
  explicit LawPictures(const RunFiles& run);

  // The law and the samples at the start and at the end, and the law to be learnt where there is one.
  implicit_diffusion::report::Section section() const;
  // One picture: at the end.
  implicit_diffusion::report::Figure end(const std::string& title, bool narrow) const;
  // The law at a theta with samples over it, small and without axes: one of many. In the plane only.
  std::string thumbnail(const std::string& title, std::span<const double> theta, const Population<float>& x) const;

 private:
  GaussianMixture law(std::span<const double> theta) const { return marginal(*potential_.law(theta), shown_); }
  const Target* target() const { return target_ ? &*target_ : nullptr; }
  implicit_diffusion::report::Figure start(bool narrow) const;
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
