#include "experiment/finished_parts.hpp"

#include "experiment/checkpoints.hpp"
#include "experiment/console.hpp"
#include "experiment/run_directory.hpp"

#include <fmt/format.h>

#include <sstream>

namespace program {

using namespace implicit_diffusion;

FinishedParts::FinishedParts(const Common& c, const std::filesystem::path& folder, bool resume, bool quiet)
    : folder_(folder / "checkpoints"), configuration_(c.without_steps()), begin_(std::chrono::steady_clock::now()) {
  if (!resume) return;
  found_ = newest_checkpoint(c, folder);
  if (found_) {
    before_ = found_->number<double>("seconds");
    std::istringstream lines(found_->text("parts"));
    for (std::string name; std::getline(lines, name);) parts_[name] = found_->numbers<double>(name);
  }
  if (!quiet)
    print_error(found_ ? fmt::format("{}: goes on with {} parts done\n", c.experiment, parts_.size())
                       : fmt::format("{}: there is no checkpoint, begins at step 0\n", c.experiment));
  write_configuration(folder, c);
}

std::optional<std::vector<double>> FinishedParts::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = parts_.find(name);
  return found == parts_.end() ? std::nullopt : std::optional(found->second);
}

void FinishedParts::keep(const std::string& name, const std::vector<double>& numbers) {
  const std::lock_guard lock(mutex_);
  parts_[name] = numbers;
  io::CheckpointWriter c;
  std::string names;
  for (const auto& [part, its_numbers] : parts_) {
    names += part + "\n";
    save(c, part, its_numbers);
  }
  c.put("configuration", configuration_);
  c.put("parts", names);
  save(c, "seconds", seconds());
  io::save_checkpoint(folder_, static_cast<std::int64_t>(parts_.size()), c);
}

double FinishedParts::seconds() const {
  return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace program
