#include "experiment/launch.hpp"

#include "experiment/common.hpp"
#include "experiment/console.hpp"
#include "experiment/together.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;

MpiJob* job = nullptr;
std::function<void()> undo;  // what this process has begun, should another's error end the job
bool tried = false;          // to start it, which can be done once

// Throws a usage Error where the variable is no number: what a launcher says must not be taken for nothing.
std::optional<std::size_t> number_in(const char* name) {
  const char* text = std::getenv(name);
  if (!text) return std::nullopt;
  const std::string_view all(text);
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (error != std::errc() || end != all.data() + all.size())
    throw Error(ErrorKind::usage, name, fmt::format("{} in the environment is not a number", io::excerpt(all)));
  return number;
}

// Beside the program, or where it was installed to.
void* load_plugin(std::string& why) {
  constexpr const char* name = "libimplicit_diffusion_mpi.so";
  std::error_code none;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", none).parent_path();
  for (const auto& place : {folder, folder / IMPLICIT_DIFFUSION_PLUGINS}) {
    if (!std::filesystem::exists(place / name, none)) continue;
    if (void* plugin = ::dlopen((place / name).c_str(), RTLD_NOW | RTLD_GLOBAL)) return plugin;
    why = ::dlerror();
  }
  return nullptr;
}

void* symbol(void* plugin, const char* name) {
  if (void* found = ::dlsym(plugin, name)) return found;
  throw Error(ErrorKind::usage, "MPI", fmt::format("the plug-in is not that of this program: {}", ::dlerror()));
}

}  // namespace

std::optional<Launch> launched() {
  struct Names {
    const char *size, *rank;
  };
  // Open MPI; MPICH and its kin; Slurm, of which a step that srun began has this variable.
  constexpr std::array<Names, 3> all{{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                      {"PMI_SIZE", "PMI_RANK"},
                                      {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}}};
  for (const auto& [size, rank] : all)
    if (const auto ranks = number_in(size)) {
      if (*ranks < 2) return std::nullopt;
      return Launch{number_in(rank).value_or(number_in("PMIX_RANK").value_or(0)), *ranks};
    }
  if (const auto rank = number_in("PMIX_RANK")) return Launch{*rank, 0};
  return std::nullopt;
}

bool is_first() {
  static const std::size_t rank = launched().value_or(Launch{}).rank;
  return rank == 0;
}

std::size_t ranks_on_machine() {
  cpu_set_t own;
  const bool bound = ::sched_getaffinity(0, sizeof own, &own) == 0 && CPU_COUNT(&own) < ::sysconf(_SC_NPROCESSORS_ONLN);
  if (!launched() || bound) return 1;
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"})
    if (const auto ranks = number_in(name)) return std::max<std::size_t>(1, *ranks);
  return 1;
}

MpiJob* processes() { return job; }

namespace {

void connect() {
  const std::optional<Launch> launch = launched();
  if (!launch || tried) return;
  tried = true;
  std::string why;
  void* plugin = load_plugin(why);
  if (!plugin)
    throw Error(ErrorKind::usage, "MPI",
                why.empty() ? fmt::format("a launcher started {} processes, and this program was built without MPI: "
                                          "`make build` builds it",
                                          launch->ranks)
                            : why);
  // MPI starts threads, which inherit that these are for us to wait for.
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGUSR1}) sigaddset(&set, number);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  MpiOptions options;
  if (const auto seconds = number_in("IMPLICIT_DIFFUSION_MPI_TIMEOUT")) options.timeout = static_cast<double>(*seconds);
  options.before_abort = [] {
    if (undo) undo();
  };
  job = reinterpret_cast<StartMpi*>(symbol(plugin, start_mpi))(options);
  if (const std::size_t ranks = job->ranks(); launch->ranks != 0 && ranks != launch->ranks) {
    end_processes(0);
    throw Error(ErrorKind::usage, "MPI",
                fmt::format("the launcher started {} processes, and MPI connects {} of them; with srun, --mpi=pmix may "
                            "be missing",
                            launch->ranks, ranks));
  }
  if (job->ranks() > 1) return;
  end_processes(0);
  if (launch->rank == 0) return;
  mute(false);  // there is no first one that could say it
  throw Error(ErrorKind::usage, "MPI",
              fmt::format("the environment says that this is process {} of several (PMIX_RANK), and MPI connects it to "
                          "none",
                          launch->rank));
}

// Throws a usage Error on all where one of them was asked for something else than the first.
void require_same(const Request& request) {
  std::string here = fmt::format("command = {}\nversion = {}", request.command, IMPLICIT_DIFFUSION_VERSION);
  for (const auto& [key, value] : request.options) here += fmt::format("\n{} = {}", key, value);
  here += "\n" + request.configuration;
  const std::string first = from_first(job, [&] { return here; });
  std::string difference;
  if (here != first) {
    const auto [there, own] = first_difference(first, here);
    difference = fmt::format("{} there, {} on the first", own, there);
  }
  const std::vector<std::string> differences = from_all(job, difference);
  for (std::size_t r = 0; r < differences.size(); ++r)
    if (!differences[r].empty())
      throw Error(ErrorKind::usage, "MPI",
                  fmt::format("process {} was given another command or configuration: {}; all need the same, and "
                              "--repeats makes independent runs",
                              r, differences[r]));
}

}  // namespace

void start_processes(const Request& request) {
  if (tried) return;
  connect();
  if (job) require_same(request);
}

void when_aborted(std::function<void()> what) { undo = std::move(what); }

void leave_to_first() { tried = true; }

int end_processes(int code) {
  if (job) job->finish();
  // A launcher ends all when one ends with an error: the first one is given the time to say what it was.
  if (!tried && code != 0 && !is_first()) ::sleep(1);
  job = nullptr;
  return code;
}

int fail(const std::string& line, int code) {
  if (!tried) try {
      connect();
    } catch (const std::exception&) {
      // then each is alone: the first one says what it has to say
    }
  if (job) job->fail(to_line(line), code);
  complain(line);
  return code;
}

std::string describe_plugin() {
  std::string why;
  void* plugin = load_plugin(why);
  return plugin ? reinterpret_cast<DescribeMpi*>(symbol(plugin, describe_mpi))() : why;
}

}  // namespace program
