#include "langevin/pictures.hpp"

#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {

using namespace implicit_diffusion;

LawPictures::LawPictures(const RunFiles& run)
    : run_(run),
      potential_(run.configuration.potential.make()),
      shown_(std::min<std::size_t>(2, potential_.dimension())) {
  const LangevinConfiguration& c = run.configuration;
  window_.include(law(run.theta.front()));
  window_.include(law(run.theta.back()));
  if (c.reference) find_target(*c.reference);
  if (c.reward && shown_ == 2) markers_.push_back({c.reward->centre[0], c.reward->centre[1], "reward"});
}

report::Figure LawPictures::start(bool narrow) const {
  const LangevinConfiguration& c = run_.configuration;
  Population<float> x(static_cast<std::size_t>(c.particles), potential_.dimension());
  LawPicture picture{
      "π*(θ) at step 0", "The samples before the first step.", law(run_.theta.front()), &x, target(), markers_, narrow};
  try {
    make_start(c, x.dimension()).draw(x, 0);
  } catch (const Error&) {
    picture.caption = "The file with the initial samples no longer exists.";
    picture.samples = nullptr;
  }
  return draw(picture, window_);
}

report::Figure LawPictures::end(const std::string& title, bool narrow) const {
  const bool none = run_.samples.size() == 0;
  std::string caption = none ? "The run diverged, so there are no samples." : "The samples after the last step.";
  if (!none && run_.configuration.method == Method::guided)
    caption += fmt::format(" Guidance moves the samples away from {} and leaves θ as it is.", the_law);
  return draw({title, caption, law(run_.theta.back()), none ? nullptr : &run_.samples, target(), markers_, narrow},
              window_);
}

report::Section LawPictures::section() const {
  const std::optional<ReferenceSpec>& reference = run_.configuration.reference;
  const bool learns_law = reference && !reference->theta.empty();
  const bool narrow = learns_law && shown_ == 2;  // all three stand side by side
  report::Section section{
      .heading = "The distribution and its samples",
      .text = fmt::format("{} is the distribution with a density proportional to exp(−V(x, θ)). The samples follow it "
                          "once they have had enough steps.",
                          the_law),
      .figures = {start(narrow), end(fmt::format("π*(θ) at step {:.0f}", run_.columns.front().back()), narrow)},
      .three_in_a_row = narrow};
  if (potential_.dimension() > 2) section.text += " The pictures show marginals in the first two coordinates.";
  if (!missing_.empty()) section.text += " " + missing_;
  if (learns_law) {
    const std::string caption =
        fmt::format("The distribution to be learnt, and {} points drawn from it.", target_->points.size());
    section.figures.push_back(draw(
        {"The reference", caption, law(reference->theta), nullptr, target(), {}, narrow, "the reference"}, window_));
  }
  return section;
}

void LawPictures::find_target(const ReferenceSpec& reference) {
  constexpr std::size_t most_points = 1000;  // of a reference that is a law
  if (!reference.theta.empty()) {
    window_.include(law(reference.theta));
    target_ = Target{"reference", Population<float>(std::min(reference.batch, most_points), potential_.dimension())};
    MixtureSampler(*potential_.law(reference.theta), Noise(run_.configuration.seed)).draw(target_->points, 0);
    return;
  }
  try {
    target_ = Target{"data", reference.data->samples(potential_.dimension())};
    window_.include(target_->points);
  } catch (const Error&) {
    missing_ = "The pictures do not show the data, because their file no longer exists.";
  }
}

std::string LawPictures::thumbnail(const std::string& title, std::span<const double> theta,
                                   const Population<float>& x) const {
  return draw_thumbnail({title, "", law(theta), &x, nullptr, {}}, window_);
}

bool has_law(const RunFiles& run) { return run.configuration.potential.make().law(run.theta.back()).has_value(); }

}  // namespace program
