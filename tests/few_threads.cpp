#include "few_threads.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>
#include <limits>

std::atomic<int> threads_left = std::numeric_limits<int>::max();

// The standard library starts its threads by this one instead of the system's: it refuses as a system at its limit
// does.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  static const auto next = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  return threads_left-- > 0 ? next(thread, attributes, start, argument) : EAGAIN;
}
