#include "experiment/progress.hpp"

#include "commands/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

namespace program {
namespace {

using std::chrono::milliseconds;

std::string clock_time(double seconds) {
  const auto s = static_cast<long>(std::ceil(seconds));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{:02}:{:02}", s / 60, s % 60);
}

}  // namespace

Progress::Progress(std::string label, std::int64_t steps, bool quiet)
    : label_(std::move(label)),
      steps_(steps),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) == 1),
      begin_(Clock::now()) {
  next_ = begin_ + (terminal_ ? milliseconds(100) : milliseconds(2000));
}

void Progress::operator()(std::int64_t step, const Figures& figures) {
  if (quiet_) return;
  if (first_ < 0) first_ = step;  // a run that goes on begins with more
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + (terminal_ ? milliseconds(100) : milliseconds(2000));
  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double rate = static_cast<double>(step - first_) / seconds;
  std::string line = fmt::format("{}: {:3.0f} %  step {} of {}  {:.0f} steps/s", label_,
                                 100.0 * static_cast<double>(step) / static_cast<double>(steps_), step, steps_, rate);
  if (rate > 0) line += fmt::format("  {} left", clock_time(static_cast<double>(steps_ - step) / rate));
  if (std::isfinite(figures.reward)) line += "  reward " + shown(figures.reward, 4);
  if (std::isfinite(figures.log_likelihood)) line += "  log-likelihood " + shown(figures.log_likelihood, 3);
  print_error(terminal_ ? fmt::format("\r\x1b[K{}", line) : line + "\n");
  shown_ = true;
}

void Progress::finish() {
  if (!quiet_ && terminal_ && shown_) print_error("\r\x1b[K");
}

}  // namespace program
