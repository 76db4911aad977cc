#include "experiment/finished_parts.hpp"

#include "experiment/checkpoints.hpp"
#include "experiment/console.hpp"

#include <fmt/format.h>

#include <sstream>

namespace program {

using namespace implicit_diffusion;

FinishedParts::FinishedParts(const Common& c, const std::filesystem::path& folder, bool resume, bool quiet)
    : folder_(folder / "checkpoints"), begin_(std::chrono::steady_clock::now()) {
  if (resume) {
    auto newest = newest_checkpoint(c, folder);
    if (newest) {
      kept_ = std::move(*newest);
      before_ = kept_.number<double>("seconds");
      std::istringstream lines(kept_.get("parts"));
      for (std::string name; std::getline(lines, name);) names_.insert(name);
    }
    if (!quiet)
      print_error(newest ? fmt::format("{}: goes on with {} parts done\n", c.experiment, names_.size())
                         : fmt::format("{}: there is no checkpoint, begins at step 0\n", c.experiment));
  }
  kept_.put("configuration", c.without_steps());
}

std::optional<std::vector<double>> FinishedParts::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (!names_.contains(name)) return std::nullopt;
  return kept_.numbers<double>(name);
}

void FinishedParts::keep(const std::string& name, const std::vector<double>& numbers) {
  const std::lock_guard lock(mutex_);
  names_.insert(name);
  kept_.put_numbers(name, numbers);
  std::string names;
  for (const std::string& n : names_) names += n + "\n";
  kept_.put("parts", names);
  kept_.put_number("seconds", seconds());
  io::save_checkpoint(folder_, static_cast<std::int64_t>(names_.size()), kept_);
}

double FinishedParts::seconds() const {
  return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace program
