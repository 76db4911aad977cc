#include "experiment/finished_parts.hpp"

#include "langevin/checkpoints.hpp"

#include <fmt/format.h>

#include <sstream>

namespace program {

using namespace implicit_diffusion;

FinishedParts::FinishedParts(const Common& c, const std::filesystem::path& folder, const RunOptions& o)
    : folder_(folder / "checkpoints"), begin_(std::chrono::steady_clock::now()) {
  const std::string configuration = without_steps(c.resolved);
  if (o.resume) {
    auto newest =
        io::newest_checkpoint(folder_, [](const std::string& why) { complain(why + "; an older one is tried"); });
    if (!newest && !o.quiet) print_error(fmt::format("{}: there is no checkpoint, begins at step 0\n", c.experiment));
    if (newest) {
      kept_ = std::move(*newest);
      if (kept_.get("configuration") != configuration) kept_.refuse("configuration", "is not that of this run");
      before_ = kept_.number<double>("seconds");
      std::istringstream lines(kept_.get("parts"));
      for (std::string name; std::getline(lines, name);) names_.insert(name);
      if (!o.quiet) print_error(fmt::format("{}: goes on with {} parts done\n", c.experiment, names_.size()));
    }
  }
  kept_.put("configuration", configuration);
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
