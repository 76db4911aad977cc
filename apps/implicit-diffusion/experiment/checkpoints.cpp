#include "experiment/checkpoints.hpp"

#include "experiment/console.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

Checkpoints::Checkpoints(const Common& c, const std::filesystem::path& folder, std::int64_t every)
    : configuration_(c),
      run_(folder),
      folder_(folder / "checkpoints"),
      every_(every),
      when_(std::chrono::steady_clock::now()) {}

void Checkpoints::write_if_due(std::int64_t step, const Save& save) {
  if (step == 0) return;
  if (every_ > 0 ? step % every_ == 0 : std::chrono::steady_clock::now() - when_ >= std::chrono::seconds(10))
    write(step, save);
}

void Checkpoints::write(std::int64_t step, const Save& save) {
  if (step == last_) return;
  Writer c;
  c.put("configuration", configuration_.without_steps());
  if (!save(c)) return;
  io::save_checkpoint(folder_, step, c);
  last_ = step;
  when_ = std::chrono::steady_clock::now();
}

bool Checkpoints::resume(std::int64_t steps, bool quiet, const std::function<std::int64_t(const Reader&)>& restore) {
  const std::optional<Reader> c = newest_checkpoint(configuration_, run_);
  if (c) {
    last_ = restore(*c);
    if (last_ > steps)
      throw Error(ErrorKind::usage, "steps",
                  fmt::format("{}: {} has done {} already", steps, io::display(run_), last_));
  }
  if (!quiet)
    print_error(c ? fmt::format("{}: goes on at step {}\n", configuration_.experiment, last_)
                  : fmt::format("{}: there is no checkpoint, begins at step 0\n", configuration_.experiment));
  write_configuration(run_, configuration_);
  when_ = std::chrono::steady_clock::now();
  return c.has_value();
}

std::optional<io::CheckpointReader> newest_checkpoint(const Common& c, const std::filesystem::path& run_folder) {
  auto newest = io::newest_checkpoint(run_folder / "checkpoints",
                                      [](const std::string& why) { complain(why + "; an older one is tried"); });
  if (newest && newest->text("configuration") != c.without_steps())
    newest->refuse("configuration", "is not that of this run");
  return newest;
}

}  // namespace program
