// The built-in rewards as files have them. All have a centre, and a weight in the objective or in the guidance.
#pragma once

#include "experiment/table_reader.hpp"

#include <cstddef>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

namespace implicit_diffusion {
template <class Real>
class Reward;
class HardReward;
class SmoothReward;
class QuadraticReward;
class BumpReward;
class RadiusReward;
}  // namespace implicit_diffusion

namespace program {

struct HardRewardSpec {
  static constexpr const char* name = "hard";
  double width = 20.0;  // tau
  double denominator = 2.5;

  void read(TableReader& t);
  implicit_diffusion::HardReward make(const std::vector<double>& centre) const;
  double length() const;  // over which it varies
};

struct SmoothRewardSpec {
  static constexpr const char* name = "smooth";
  double width = 20.0, denominator = 2.5, softness = 0.5;

  void read(TableReader& t);
  implicit_diffusion::SmoothReward make(const std::vector<double>& centre) const;
  double length() const;
};

struct QuadraticRewardSpec {
  static constexpr const char* name = "quadratic";

  void read(TableReader&) {}
  implicit_diffusion::QuadraticReward make(const std::vector<double>& centre) const;
  double length() const { return std::numeric_limits<double>::infinity(); }
};

struct BumpRewardSpec {
  static constexpr const char* name = "bump";
  double width = 20.0;  // s

  void read(TableReader& t);
  implicit_diffusion::BumpReward make(const std::vector<double>& centre) const;
  double length() const;
};

struct RadiusRewardSpec {
  static constexpr const char* name = "radius";
  double radius = 1.0, width = 1.0;  // r, s

  void read(TableReader& t);
  implicit_diffusion::RadiusReward make(const std::vector<double>& centre) const;
  double length() const;
};

// The list of them.
struct RewardSpec {
  std::variant<HardRewardSpec, SmoothRewardSpec, QuadraticRewardSpec, BumpRewardSpec, RadiusRewardSpec> part;
  std::vector<double> centre;  // of the bump, or the target
  double lambda = 1.0;

  // What is in it by now are the defaults; `denominator` is that of all that have one.
  void read(TableReader& t, std::size_t dimension, double denominator);
  // Real is float, which runs use, or double, which they are checked with.
  template <class Real = float>
  implicit_diffusion::Reward<Real> make() const;

  double length() const;
  std::optional<double> denominator() const;  // where it has one
};

}  // namespace program
