#include "experiment/together.hpp"

#include <algorithm>

namespace program {

using namespace implicit_diffusion;

std::vector<std::string> from_all(Processes* processes, const std::string& own) {
  if (!processes) return {own};
  std::vector<std::size_t> sizes(processes->ranks(), sizeof(std::size_t)), each(processes->ranks());
  each[processes->rank()] = own.size();
  processes->gather(sizes, as_message(std::span(each)));
  std::string all;
  for (std::size_t r = 0; r < each.size(); ++r) all += r == processes->rank() ? own : std::string(each[r], ' ');
  processes->gather(each, as_message(std::span(all)));
  std::vector<std::string> texts;
  for (std::size_t r = 0, at = 0; r < each.size(); at += each[r++]) texts.push_back(all.substr(at, each[r]));
  return texts;
}

bool Together::operator()(bool wanted) {
  if (!processes_) return wanted;
  if (--left_ > 0) return false;
  struct Message {
    std::uint64_t stop, wanted, every;
  };
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_).count();
  last_ = now;
  constexpr double between = 0.02;
  const double steps = static_cast<double>(every_) * between / std::max(seconds, 1e-9);
  const auto next = static_cast<std::uint64_t>(std::clamp(steps, 1.0, 2.0 * static_cast<double>(every_)));
  std::vector<Message> all(processes_->ranks());
  all[processes_->rank()] = {signal_.stop_requested(), wanted, next};
  processes_->gather(std::vector<std::size_t>(all.size(), sizeof(Message)), as_message(std::span(all)));
  if (std::ranges::any_of(all, [](const Message& m) { return m.stop != 0; })) source_.request_stop();
  every_ = left_ = all[0].every;
  return all[0].wanted != 0;
}

}  // namespace program
