#include "experiment/progress.hpp"

#include "experiment/console.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

namespace program {
namespace {

std::string clock_time(double seconds) {
  const auto s = static_cast<long>(std::ceil(seconds));
  return s >= 3600 ? fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60)
                   : fmt::format("{:02}:{:02}", s / 60, s % 60);
}

}  // namespace

Progress::Progress(std::string label, std::size_t runs, double work, bool quiet)
    : label_(std::move(label)), runs_(runs), work_(work), quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {
  next_ = (begin_ + interval()).time_since_epoch().count();
}

Progress::Clock::duration Progress::interval() const { return std::chrono::milliseconds(terminal_ ? 100 : 2000); }

void Progress::Loop::operator()(std::int64_t step, const Figures& figures, const std::string& words) {
  if (!progress_ || progress_->quiet_) return;
  if (last_ < 0) {
    progress_->before_ += weight_ * static_cast<double>(step);
    progress_->done_ += weight_ * static_cast<double>(step);
  } else {
    progress_->steps_ += step - last_;
    progress_->done_ += weight_ * static_cast<double>(step - last_);
  }
  last_ = step;
  if (Clock::now().time_since_epoch().count() >= progress_->next_) progress_->show(figures, words);
}

void Progress::show(const Figures& figures, const std::string& words) {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  if (now.time_since_epoch().count() < next_) return;
  next_ = (now + interval()).time_since_epoch().count();
  const double seconds = std::chrono::duration<double>(now - begin_).count(), done = done_;
  std::string line = fmt::format("{}: {:3.0f} %  ", label_, 100 * done / work_);
  if (runs_ > 1) line += fmt::format("{} of {} runs done", finished_.load(), runs_);
  if (runs_ == 1 && !weighted_) line += fmt::format("step {:.0f} of {:.0f}", done, work_);
  const double speed = static_cast<double>(steps_) / seconds;
  if (runs_ > 1 || !weighted_)
    line += speed < 10 ? fmt::format("  {:.2f} steps/s", speed) : fmt::format("  {:.0f} steps/s", speed);
  if (const double rate = (done - before_) / seconds; rate > 0)
    line += fmt::format("  {} left", clock_time((work_ - done) / rate));
  if (runs_ == 1 && std::isfinite(figures.reward)) line += "  reward " + figure_text(figures.reward, 4);
  if (runs_ == 1 && std::isfinite(figures.log_likelihood))
    line += "  log-likelihood " + figure_text(figures.log_likelihood, 3);
  if (!words.empty()) line += "  " + words;
  print_error(terminal_ ? fmt::format("\r\x1b[K{}", line) : line + "\n");
  shown_ = true;
}

void Progress::say(const std::string& text) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  print_error(fmt::format("{}{}: {}\n", terminal_ && shown_ ? "\r\x1b[K" : "", label_, text));
}

void Progress::finish() {
  const std::lock_guard lock(mutex_);
  if (!quiet_ && terminal_ && shown_) print_error("\r\x1b[K");
  shown_ = false;
}

}  // namespace program
