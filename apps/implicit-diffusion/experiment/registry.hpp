// Experiments of every kind: the ones inside the program, and those of users' files. The key `kind` says which it is.
#pragma once

#include "experiment/experiment.hpp"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace program {

// The experiment of a name or a file. Throws a usage Error with the nearest name, or a missing one.
std::unique_ptr<Experiment> load_experiment(const std::string& name_or_file, const Overrides& overrides);

// The experiment of a text, called `name`.
std::unique_ptr<Experiment> read_experiment(std::string_view text, const std::string& name, const Overrides& overrides);

// The names of all kinds, in the order of the table.
std::vector<std::string> kind_names();
// The kind that the text of an experiment names.
std::string kind_of(std::string_view text, const std::string& name);

// The experiments inside the program, by name.
const std::map<std::string, std::string>& built_in_experiments();

// What `list` shows.
struct Description {
  std::string name, title, duration;
};
Description read_description(std::string_view text, const std::string& name);

}  // namespace program
