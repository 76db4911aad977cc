// A system at its limit of threads. A test program that includes this compiles few_threads.cpp too.
#pragma once

#include <atomic>

extern std::atomic<int> threads_left;  // that may still be started; no limit at first
