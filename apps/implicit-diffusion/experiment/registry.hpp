// Experiments of every kind: the ones inside the program, and those of users' files. The key `kind` says which it is.
#pragma once

#include "denoising_gaussian/denoising_gaussian.hpp"
#include "denoising_mixture/denoising_mixture.hpp"
#include "finite_state/finite_state.hpp"
#include "langevin/configuration.hpp"
#include "rates/rates.hpp"

#include <map>
#include <string>
#include <variant>

namespace program {

using Experiment = std::variant<Configuration, Comparison, FiniteStateConfiguration, RatesConfiguration,
                                DenoisingGaussianConfiguration, DenoisingExperiment>;

inline const Common& common(const Experiment& e) {
  return std::visit([](const Common& c) -> const Common& { return c; }, e);
}

// The experiment of a name or a file. Throws a usage Error with the nearest name, or a missing one.
Experiment load_experiment(const std::string& name_or_file, const Overrides& overrides);

// The experiments inside the program, by name.
const std::map<std::string, std::string>& built_in_experiments();

// What `list` shows.
struct Description {
  std::string name, title, duration;
};
Description read_description(std::string_view text, const std::string& name);

}  // namespace program
