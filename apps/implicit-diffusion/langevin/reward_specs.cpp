#include "langevin/reward_specs.hpp"

#include "experiment/limits.hpp"

#include <fmt/format.h>

namespace program {

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
  lambda = t.number("lambda", lambda, TableReader::Sign::any);
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
