// Tasks that are independent of each other, on several threads.
#pragma once

#include <cstddef>
#include <functional>
#include <stop_token>

namespace program {

// Calls task(0), ..., task(count - 1), begun in this order, on up to `threads` threads, and returns when all have
// ended. Where the system refuses to start so many threads, there are fewer. After a request to stop no more tasks are
// begun; nor after one has thrown, and what it threw is thrown again here.
void run_tasks(std::size_t count, std::size_t threads, const std::function<void(std::size_t)>& task,
               const std::stop_token& stop = {});

}  // namespace program
