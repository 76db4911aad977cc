// Experiments of every kind: the ones inside the program, and those of users' files. The key `kind` says which it is.
#pragma once

#include "experiment/experiment.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace program {

// What a document describes. Throws an Error for one that describes nothing.
std::unique_ptr<Experiment> read_experiment(const Document& d);
// The experiment of a name or a file. Throws a usage Error with the nearest name, or a missing one.
std::unique_ptr<Experiment> load_experiment(const std::string& name_or_file, const Overrides& overrides);

// Texts of experiments, with their names.
using Experiments = std::vector<std::pair<std::string, std::string>>;
// The ones inside the program, in the order of their names.
const Experiments& built_in_experiments();
// In the order of the kinds.
std::vector<std::unique_ptr<Experiment>> read_experiments(const Experiments& texts, const Overrides& overrides);

}  // namespace program
