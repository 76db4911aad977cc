// Several processes of one job: whether a launcher (mpirun, srun) has started this one as one of several, and what
// connects them (mpi.hpp). Without a launcher MPI is never touched.
#pragma once

#include "implicit_diffusion/mpi.hpp"

#include <cstddef>
#include <optional>
#include <string>

namespace program {

// What a launcher says in the environment. A plain `sbatch` script, or one rank alone, is nothing to it.
struct Launch {
  std::size_t rank = 0;
  std::size_t ranks = 0;  // 0: it does not say
};
std::optional<Launch> launched();
// The first of several, or the only one: it alone writes files and speaks.
bool is_first();

// The processes that share this machine's processors; 1 where the launcher has given each its own, or says nothing.
std::size_t ranks_on_machine();

// Loads the plug-in and starts MPI, where a launcher has started several processes. Throws a usage Error where the
// plug-in is missing, or where MPI knows of another number of processes than the launcher.
void start_processes();
// Null where this process is alone, or start_processes() was not called.
implicit_diffusion::MpiJob* processes();

// The end of all of them: with an exit code, or with the one line of an error. They return the code.
int end_processes(int code);
int fail(const std::string& line, int code);

// The MPI that the plug-in is for; empty where there is none.
std::string describe_plugin();

}  // namespace program
