#include "langevin/reward_specs.hpp"

#include "experiment/limits.hpp"
#include "experiment/spec.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {

using namespace implicit_diffusion;
using Sign = TableReader::Sign;

void HardRewardSpec::read(TableReader& t) {
  width = t.number("width", width, Sign::positive);
  denominator = t.number("denominator", denominator, Sign::positive);
}
HardReward HardRewardSpec::make(const std::vector<double>& centre) const { return {centre, width, denominator}; }
double HardRewardSpec::length() const { return std::sqrt(width / 2); }

void SmoothRewardSpec::read(TableReader& t) {
  width = t.number("width", width, Sign::positive);
  denominator = t.number("denominator", denominator, Sign::positive);
  softness = t.number("softness", softness, Sign::positive);
}
SmoothReward SmoothRewardSpec::make(const std::vector<double>& centre) const {
  return {centre, width, denominator, softness};
}
double SmoothRewardSpec::length() const { return std::min(std::sqrt(width / 2), softness); }

QuadraticReward QuadraticRewardSpec::make(const std::vector<double>& centre) const { return QuadraticReward(centre); }

void BumpRewardSpec::read(TableReader& t) { width = t.number("width", width, Sign::positive); }
BumpReward BumpRewardSpec::make(const std::vector<double>& centre) const { return {centre, width}; }
double BumpRewardSpec::length() const { return std::sqrt(width); }

void RadiusRewardSpec::read(TableReader& t) {
  radius = t.number("radius", radius, Sign::positive);
  width = t.number("width", width, Sign::positive);
}
RadiusReward RadiusRewardSpec::make(const std::vector<double>& centre) const { return {centre, radius, width}; }
double RadiusRewardSpec::length() const { return std::min(radius, std::sqrt(width)); }

void RewardSpec::read(TableReader& t, std::size_t dimension, double default_denominator) {
  choose_spec(part, t);
  centre = t.numbers("centre", {});
  if (centre.size() != dimension)
    t.fail("centre", fmt::format("{} numbers, the potential has dimension {}", centre.size(), dimension));
  check_coordinates(t, "centre", centre);
  std::visit(
      [&](auto& spec) {
        if constexpr (requires { spec.denominator; }) spec.denominator = default_denominator;
        spec.read(t);
      },
      part);
  lambda = t.number("lambda", lambda, Sign::any);
}

template <class Real>
Reward<Real> RewardSpec::make() const {
  return std::visit([&](const auto& spec) -> Reward<Real> { return spec.make(centre); }, part);
}
template Reward<float> RewardSpec::make() const;
template Reward<double> RewardSpec::make() const;

double RewardSpec::length() const {
  return std::visit([](const auto& spec) { return spec.length(); }, part);
}

std::optional<double> RewardSpec::denominator() const {
  return std::visit(
      [](const auto& spec) -> std::optional<double> {
        if constexpr (requires { spec.denominator; }) return spec.denominator;
        return std::nullopt;
      },
      part);
}

}  // namespace program
