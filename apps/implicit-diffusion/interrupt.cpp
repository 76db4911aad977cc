#include "interrupt.hpp"

#include <csignal>
#include <unistd.h>

namespace program {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGUSR2);  // our own, to end the waiting
  return set;
}

}  // namespace

Interrupt::Interrupt() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  waiter_ = std::thread([this, set] {
    for (;;) {
      int number = 0;
      sigwait(&set, &number);
      if (done_) return;
      if (number == SIGUSR2) continue;
      if (signal_ != 0) _exit(128 + number);
      signal_ = number;
      source_.request_stop();
    }
  });
}

Interrupt::~Interrupt() {
  done_ = true;
  pthread_kill(waiter_.native_handle(), SIGUSR2);
  waiter_.join();
}

}  // namespace program
