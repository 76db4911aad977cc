#include "experiment/interrupt.hpp"

#include "experiment/launch.hpp"
#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <system_error>

namespace program {

using namespace implicit_diffusion;

Interrupt::Interrupt() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR2}) sigaddset(&set, number);  // the last: our own, to end the waiting
  if (launched()) sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  const auto wait = [this, set] {
    std::chrono::steady_clock::time_point first;
    for (;;) {
      int number = 0;
      sigwait(&set, &number);
      if (done_) return;
      if (number == SIGUSR2) continue;
      const auto now = std::chrono::steady_clock::now();
      if (signal_ == 0) {
        signal_ = number == SIGUSR1 ? SIGTERM : number;
        first = now;
        source_.request_stop();
      } else if (now - first > std::chrono::seconds(2)) {
        _exit(128 + number);
      }
    }
  };
  try {
    waiter_ = std::thread(wait);
  } catch (const std::system_error& e) {
    throw Error(ErrorKind::io, "threads", fmt::format("not one can be started: {}", e.code().message()));
  }
}

Interrupt::~Interrupt() {
  done_ = true;
  pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

int Interrupt::signal(Processes* processes) const {
  return static_cast<int>(largest_over(processes, static_cast<std::uint64_t>(signal_.load())));
}

}  // namespace program
