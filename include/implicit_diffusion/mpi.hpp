// The processes of an MPI job, from a plug-in: libimplicit_diffusion_mpi.so, which alone is linked with MPI.
//
// It is loaded at run time, by a program that a launcher (mpirun, srun) has started, so that nobody else needs MPI or
// waits for it to start:
//
//     void* plugin = dlopen("libimplicit_diffusion_mpi.so", RTLD_NOW | RTLD_GLOBAL);
//     auto start = reinterpret_cast<StartMpi*>(dlsym(plugin, start_mpi));
//     MpiJob* job = start({});
//
// One thread at a time may use it, but for tasks.
#pragma once

#include "implicit_diffusion/processes.hpp"

#include <functional>
#include <string>
#include <vector>

namespace implicit_diffusion {

class MpiJob : public Processes {
 public:
  // Ends all processes, with the launcher's exit code `code`: one line on stderr says why. Where several fail, it is
  // that of one of them.
  [[noreturn]] virtual void fail(const std::string& line, int code) = 0;
  // Waits for all, and ends MPI. The last call.
  virtual void finish() = 0;

  // Tasks 0, ..., count - 1, in this order, each to the next process that asks. The first one hands them out, from a
  // thread of its own.
  virtual void begin_tasks(std::size_t count) = 0;
  // The next task for this process, or `count` where there are no more. May be called by several threads.
  virtual std::size_t next_task() = 0;
  // No more are handed out, to any of them.
  virtual void stop_tasks() = 0;
  // What came of a task, for the first process; only it has them when all have ended, empty where a task was not done.
  virtual void put_result(std::size_t task, const std::string& bytes) = 0;
  virtual std::vector<std::string> end_tasks() = 0;
};

struct MpiOptions {
  double timeout = 3600;  // seconds; one that waits longer for another, which does not answer, ends the job
  std::function<void()> before_abort;  // called by each that ends the job, be it because of another's error
};

// What the plug-in exports.
using StartMpi = MpiJob*(const MpiOptions& options);
inline constexpr const char* start_mpi = "implicit_diffusion_start_mpi";
using DescribeMpi = const char*();  // name and version of the MPI that it was built with
inline constexpr const char* describe_mpi = "implicit_diffusion_describe_mpi";

}  // namespace implicit_diffusion
