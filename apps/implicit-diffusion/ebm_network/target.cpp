#include "ebm_network/target.hpp"

#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/langevin/plane_laws.hpp"

#include <fmt/format.h>

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<EbmTarget::Law> plane_laws{{"eight-gaussians", EbmTarget::Law::eight_gaussians},
                                           {"two-moons", EbmTarget::Law::two_moons},
                                           {"checkerboard", EbmTarget::Law::checkerboard}};

class CheckerboardReference final : public Reference<float> {
 public:
  CheckerboardReference(std::size_t size, const Noise& noise) : batch_(size, 2), noise_(noise) {}
  const Population<float>& batch(std::int64_t step) override {
    Checkerboard::draw(batch_, noise_, step);
    return batch_;
  }

 private:
  Population<float> batch_;
  Noise noise_;
};

}  // namespace

void EbmTarget::read(TableReader& t, const std::filesystem::path& folder) {
  if (const std::filesystem::path file = t.file("data", folder); !file.empty()) {
    if (t.contains("law")) t.fail("law", "the data are given already");
    data_ = std::make_shared<const SampleFile>(file);
    batch_ = static_cast<std::size_t>(t.integer("batch", 1000, 0, 10'000'000));
    return;
  }
  law_ = t.choice("law", law_, plane_laws);
  const bool moons = law_ == Law::two_moons;
  if (law_ != Law::checkerboard) {
    deviation_ = t.number("deviation", moons ? 0.1 : 0.3, TableReader::Sign::positive);
    // Narrower ones fall between the cells of the quadrature (langevin/plane_laws.hpp).
    const double narrowest = moons ? 0.05 : 0.1, widest = 1;
    if (deviation_ < narrowest || deviation_ > widest)
      t.fail("deviation", fmt::format("{} must be between {} and {}", deviation_, narrowest, widest));
  }
  batch_ = static_cast<std::size_t>(t.integer("batch", 1000, 1, 10'000'000));
}

std::string EbmTarget::name() const {
  if (data_) return fmt::format("the data in {}", io::display(data_->path().filename()));
  switch (law_) {
    case Law::eight_gaussians:
      return "eight Gaussians on a circle";
    case Law::two_moons:
      return "two moons";
    case Law::checkerboard:
      break;
  }
  return "a checkerboard";
}

std::optional<double> EbmTarget::deviation() const {
  return data_ || law_ == Law::checkerboard ? std::nullopt : std::optional(deviation_);
}

GaussianMixture EbmTarget::mixture() const {
  return law_ == Law::two_moons ? two_moons(deviation_) : eight_gaussians(2, deviation_);
}

std::unique_ptr<Reference<float>> EbmTarget::batches(const Noise& noise) const {
  if (data_ && batch_ == 0) return std::make_unique<FixedReference<float>>(data_->samples(2));
  if (data_) return std::make_unique<MinibatchReference<float>>(data_->samples(2), batch_, noise);
  if (law_ == Law::checkerboard) return std::make_unique<CheckerboardReference>(batch_, noise);
  return std::make_unique<MixtureReference<float>>(mixture(), batch_, noise);
}

std::function<double(std::span<const double> x)> EbmTarget::log_density() const {
  if (data_) return {};
  if (law_ == Law::checkerboard) return Checkerboard::log_density;
  return MixtureLogDensity(mixture());
}

Population<float> EbmTarget::points(std::size_t count, const Noise& noise) const {
  if (data_) return data_->samples(2);
  Population<float> x(count, 2);
  if (law_ == Law::checkerboard)
    Checkerboard::draw(x, noise, -1);
  else
    MixtureSampler(mixture(), noise).draw(x, -1);
  return x;
}

Window EbmTarget::window() const {
  Window w;
  if (data_)
    w.include(data_->samples(2));
  else if (law_ == Law::checkerboard)
    for (const std::size_t axis : {0, 1}) w.include(axis, -2.5, 2.5);
  else
    w.include(mixture());
  return w;
}

}  // namespace program
