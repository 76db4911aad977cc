#include "experiment/interrupt.hpp"

#include <unistd.h>
#include <chrono>
#include <csignal>

namespace program {

Interrupt::Interrupt() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR2}) sigaddset(&set, number);  // the last: our own, to end the waiting
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::thread([this, set] {
    std::chrono::steady_clock::time_point first;
    for (;;) {
      int number = 0;
      sigwait(&set, &number);
      if (done_) return;
      if (number == SIGUSR2) continue;
      const auto now = std::chrono::steady_clock::now();
      if (signal_ == 0) {
        signal_ = number;
        first = now;
        source_.request_stop();
      } else if (now - first > std::chrono::seconds(2)) {
        _exit(128 + number);
      }
    }
  });
}

Interrupt::~Interrupt() {
  done_ = true;
  pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

}  // namespace program
