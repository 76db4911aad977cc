// Which level's kernels run.
#include "implicit_diffusion/error.hpp"
#include "kernel_table.hpp"

#include <fmt/format.h>

#include <atomic>

namespace implicit_diffusion {

// Defined by kernels.cpp, once for each level.
namespace kernel {
inline namespace baseline {
extern const KernelSet lane_kernels;
}
namespace v3 {
extern const KernelSet lane_kernels;
}
namespace v4 {
extern const KernelSet lane_kernels;
}
}  // namespace kernel

std::string_view to_string(Level level) {
  switch (level) {
    case Level::baseline:
      return "baseline";
    case Level::v3:
      return "v3";
    case Level::v4:
      return "v4";
  }
  return "";
}

Level machine_level() {
  __builtin_cpu_init();
  // What the compiler may use beyond these (lzcnt, movbe, f16c) every processor with them has.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Level::v4 : v3 ? Level::v3 : Level::baseline;
}

namespace {
std::atomic<Level>& chosen() {
  static std::atomic<Level> level{machine_level()};
  return level;
}
}  // namespace

Level active_level() { return chosen(); }

void use_level(Level level) {
  if (level > machine_level())
    throw Error(ErrorKind::usage, "level",
                fmt::format("this machine has no {}, its best is {}", to_string(level), to_string(machine_level())));
  chosen() = level;
}

const KernelSet& kernels_of(Level level) {
  switch (level) {
    case Level::v4:
      return kernel::v4::lane_kernels;
    case Level::v3:
      return kernel::v3::lane_kernels;
    case Level::baseline:
      break;
  }
  return kernel::baseline::lane_kernels;
}

const KernelSet& active_kernels() { return kernels_of(active_level()); }

void* kernel_scratch(std::size_t bytes) {
  static thread_local void* memory = nullptr;
  static thread_local std::size_t size = 0;
  if (bytes > size || !memory) {
    if (memory) give_memory(memory);
    memory = nullptr;
    size = 0;
    const std::size_t pages = (bytes + 4096) / 4096 * 4096;  // one at least: it is never null
    memory = take_memory(pages);
    size = pages;
  }
  return memory;
}

// The overloads by which built-in parts find their kernels.
#define IMPLICIT_DIFFUSION_POTENTIAL(Type, member)                             \
  template <>                                                                  \
  const PotentialKernels<float, Type>& potential_kernels<float>(const Type&) { \
    return active_kernels().member;                                            \
  }
#define IMPLICIT_DIFFUSION_REWARD(Type, member)                          \
  template <>                                                            \
  const RewardKernels<float, Type>& reward_kernels<float>(const Type&) { \
    return active_kernels().member;                                      \
  }
IMPLICIT_DIFFUSION_POTENTIAL(Quadratic, quadratic)
IMPLICIT_DIFFUSION_POTENTIAL(SoftmaxWells, softmax_wells)
IMPLICIT_DIFFUSION_POTENTIAL(LogisticWells, logistic_wells)
IMPLICIT_DIFFUSION_POTENTIAL(Mixture, mixture)
IMPLICIT_DIFFUSION_REWARD(HardReward, hard_reward)
IMPLICIT_DIFFUSION_REWARD(SmoothReward, smooth_reward)
IMPLICIT_DIFFUSION_REWARD(BumpReward, bump_reward)
IMPLICIT_DIFFUSION_REWARD(QuadraticReward, quadratic_reward)

#undef IMPLICIT_DIFFUSION_POTENTIAL
#undef IMPLICIT_DIFFUSION_REWARD

}  // namespace implicit_diffusion
