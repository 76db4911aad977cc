// The built-in rewards as files have them. All have a centre, and a weight in the objective or in the guidance.
#pragma once

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <variant>

namespace program {

using Centre = std::vector<double>;
inline constexpr double no_kink = std::numeric_limits<double>::infinity();

struct HardRewardSpec {
  static constexpr const char* name = "hard";
  double width = 20.0;  // tau
  double denominator = 2.5;

  void read(TableReader& t) {
    width = t.number("width", width, TableReader::Sign::positive);
    denominator = t.number("denominator", denominator, TableReader::Sign::positive);
  }
  implicit_diffusion::HardReward make(const Centre& centre) const { return {centre, width, denominator}; }
  double length() const { return std::sqrt(width / 2); }  // over which it varies
  double distance_to_kink(const Centre&, std::span<const double> x) const { return std::abs(x[0]); }
};

struct SmoothRewardSpec : HardRewardSpec {
  static constexpr const char* name = "smooth";
  double softness = 0.5;

  void read(TableReader& t) {
    HardRewardSpec::read(t);
    softness = t.number("softness", softness, TableReader::Sign::positive);
  }
  implicit_diffusion::SmoothReward make(const Centre& centre) const { return {centre, width, denominator, softness}; }
  double length() const { return std::min(HardRewardSpec::length(), softness); }
  double distance_to_kink(const Centre&, std::span<const double>) const { return no_kink; }
};

struct QuadraticRewardSpec {
  static constexpr const char* name = "quadratic";

  void read(TableReader&) {}
  implicit_diffusion::QuadraticReward make(const Centre& centre) const {
    return implicit_diffusion::QuadraticReward(centre);
  }
  double length() const { return std::numeric_limits<double>::infinity(); }
  double distance_to_kink(const Centre&, std::span<const double>) const { return no_kink; }
};

struct BumpRewardSpec {
  static constexpr const char* name = "bump";
  double width = 20.0;  // s

  void read(TableReader& t) { width = t.number("width", width, TableReader::Sign::positive); }
  implicit_diffusion::BumpReward make(const Centre& centre) const { return {centre, width}; }
  double length() const { return std::sqrt(width); }
  double distance_to_kink(const Centre&, std::span<const double>) const { return no_kink; }
};

struct RadiusRewardSpec {
  static constexpr const char* name = "radius";
  double radius = 1.0, width = 1.0;  // r, s

  void read(TableReader& t) {
    radius = t.number("radius", radius, TableReader::Sign::positive);
    width = t.number("width", width, TableReader::Sign::positive);
  }
  implicit_diffusion::RadiusReward make(const Centre& centre) const { return {centre, radius, width}; }
  double length() const { return std::min(radius, std::sqrt(width)); }
  double distance_to_kink(const Centre& centre, std::span<const double> x) const {
    double square = 0;
    for (std::size_t j = 0; j < x.size(); ++j) square += (x[j] - centre[j]) * (x[j] - centre[j]);
    return std::sqrt(square);
  }
};

// The list of them.
struct RewardSpec {
  std::variant<HardRewardSpec, SmoothRewardSpec, QuadraticRewardSpec, BumpRewardSpec, RadiusRewardSpec> part;
  Centre centre;  // of the bump, or the target
  double lambda = 1.0;

  // What is in it by now are the defaults; `denominator` is that of all that have one.
  void read(TableReader& t, std::size_t dimension, double denominator);
  // Real is float, which runs use, or double, which they are checked with.
  template <class Real = float>
  implicit_diffusion::Reward<Real> make() const {
    return std::visit([&](const auto& spec) -> implicit_diffusion::Reward<Real> { return spec.make(centre); }, part);
  }
  double length() const {
    return std::visit([](const auto& spec) { return spec.length(); }, part);
  }
  // From x to where R has no gradient: the centre of a radius, the jump of a hard reward.
  double distance_to_kink(std::span<const double> x) const {
    return std::visit([&](const auto& spec) { return spec.distance_to_kink(centre, x); }, part);
  }
  std::optional<double> denominator() const;  // where it has one
};

}  // namespace program
