// Several processes of one job: whether a launcher (mpirun, srun) has started this one as one of several, and what
// connects them (mpi.hpp). Without a launcher MPI is never touched.
#pragma once

#include "implicit_diffusion/mpi.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace program {

// What a launcher says in the environment. A plain `sbatch` script, or one rank alone, is no launch.
struct Launch {
  std::size_t rank = 0;
  std::size_t ranks = 0;  // 0: it does not say
};
std::optional<Launch> launched();
// The first of several, or the only one: it alone writes files and speaks.
bool is_first();

// The processes that share this machine's processors; 1 where the launcher has given each its own, or says nothing.
std::size_t ranks_on_machine();

// What a process was asked to do: all that must be the same on all of them. `options` are those that are not in the
// configuration, with their values.
struct Request {
  std::string command;
  std::vector<std::pair<std::string, std::string>> options;
  std::string configuration;
};
// Loads the plug-in and starts MPI, where a launcher has started several processes. Throws a usage Error where the
// plug-in is missing, where MPI knows of another number of processes than the launcher, or where they were not all
// asked for the same.
void start_processes(const Request& request);
// Before a command that the first one makes alone: the others end, so MPI, which would wait for them, is not started
// any more, not for an error either.
void leave_to_first();
// What to do where another process's error ends the job, as no exception unwinds this one then; empty: nothing.
void when_aborted(std::function<void()> what);
// Null where this process is alone, or start_processes() was not called.
implicit_diffusion::MpiJob* processes();

// The end of all of them: with an exit code, or with the one line of an error. They return the code.
int end_processes(int code);
int fail(const std::string& line, int code);

// The MPI that the plug-in is for; empty where there is none.
std::string describe_plugin();

}  // namespace program
