#include "experiment/checkpoints.hpp"

#include "experiment/console.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

namespace {

// The newest whole checkpoint of this configuration in a run's folder; damaged ones are named on stderr and passed
// over. Says, unless `quiet`, where there is none.
std::optional<io::CheckpointReader> newest_checkpoint(const Common& c, const std::filesystem::path& run, bool quiet,
                                                      Processes* processes = nullptr) {
  // Of a run that this process makes alone, nobody else can say it.
  const auto refused = [&](const std::string& why) { complain(why + "; an older one is tried", processes == nullptr); };
  auto newest = io::newest_checkpoint(run / "checkpoints", refused, processes);
  if (newest && newest->text("configuration") != c.without_steps())
    newest->refuse("configuration", "is not that of this run");
  if (!newest && !quiet)
    print_error(fmt::format("{}: there is no checkpoint, so the run starts at step 0\n", c.experiment));
  return newest;
}

void refuse_fewer_steps(std::int64_t steps, std::int64_t done, const std::filesystem::path& run) {
  if (done > steps)
    throw Error(ErrorKind::usage, "steps", fmt::format("{}: {} has done {} already", steps, io::display(run), done));
}

}  // namespace

void Checkpoints::write_if_due(std::int64_t step, const Save& save) {
  const bool late = together_(every_ == 0 && std::chrono::steady_clock::now() - when_ >= interval_ && step > 0);
  if (step > 0 && (every_ > 0 ? step % every_ == 0 : late)) write(step, save);
}

void Checkpoints::write(std::int64_t step, const Save& save) {
  if (step == last_) return;
  Writer c;
  c.put("configuration", configuration_.without_steps());
  if (!save(c)) return;
  if (!processes_ || processes_->rank() == 0)
    io::save_checkpoint(run_ / "checkpoints", step, c);
  else
    c.take_part();
  last_ = step;
  when_ = std::chrono::steady_clock::now();
}

bool Checkpoints::resume(std::int64_t steps, bool quiet, const std::function<std::int64_t(const Reader&)>& restore) {
  const std::optional<Reader> c = newest_checkpoint(configuration_, run_, quiet, processes_);
  if (c) {
    last_ = restore(*c);
    refuse_fewer_steps(steps, last_, run_);
    if (!quiet) print_error(fmt::format("{}: continues at step {}\n", configuration_.experiment, last_));
  }
  if (!processes_ || processes_->rank() == 0) write_configuration(run_, configuration_);
  when_ = std::chrono::steady_clock::now();
  return c.has_value();
}

FinishedParts::FinishedParts(const Common& c, const RunContext& context, std::int64_t steps)
    : folder_(context.folder / "checkpoints"),
      writes_(context.writes()),
      configuration_(c.without_steps()),
      steps_(steps) {
  if (!context.resume) return;
  const std::filesystem::path& folder = context.folder;
  const bool quiet = context.quiet;
  found_ = newest_checkpoint(c, folder, quiet, context.processes);
  if (found_) {
    before_ = found_->number<double>("seconds");
    if (found_->contains("steps")) refuse_fewer_steps(steps, found_->number<std::int64_t>("steps"), folder);
    for (const std::string& name : split(found_->text("parts"), '\n')) parts_[name] = found_->numbers<double>(name);
    if (!quiet) print_error(fmt::format("{}: continues with {} parts done\n", c.experiment, parts_.size()));
  }
  if (writes_) write_configuration(folder, c);
}

std::optional<std::vector<double>> FinishedParts::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = parts_.find(name);
  return found == parts_.end() ? std::nullopt : std::optional(found->second);
}

void FinishedParts::keep(const std::string& name, const std::vector<double>& numbers) {
  const std::lock_guard lock(mutex_);
  parts_[name] = numbers;
  if (!writes_) return;
  io::CheckpointWriter c;
  std::string names;
  for (const auto& [part, its_numbers] : parts_) {
    names += part + "\n";
    save(c, part, its_numbers);
  }
  c.put("configuration", configuration_);
  c.put("parts", names);
  save(c, "seconds", seconds());
  save(c, "steps", steps_);
  io::save_checkpoint(folder_, static_cast<std::int64_t>(parts_.size()), c);
}

double FinishedParts::seconds() const {
  return before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
}

}  // namespace program
