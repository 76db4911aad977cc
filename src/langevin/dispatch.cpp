// Which level's kernels run.
#include "kernel_table.hpp"

#include "../require.hpp"

#include <atomic>
#include <tuple>
#include <type_traits>

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

std::string_view to_string(Isa level) { return level == Isa::v4 ? "v4" : level == Isa::v3 ? "v3" : "baseline"; }

Isa machine_isa() {
  __builtin_cpu_init();
  // What the compiler may use beyond these (lzcnt, movbe, f16c) every processor with them has.
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  return v4 ? Isa::v4 : v3 ? Isa::v3 : Isa::baseline;
}

namespace {
std::atomic<Isa>& chosen() {
  static std::atomic<Isa> level{machine_isa()};
  return level;
}
}  // namespace

Isa active_isa() { return chosen(); }

void use_isa(Isa level) {
  require(level <= machine_isa(), "level", "this machine has no {}, its best is {}", to_string(level),
          to_string(machine_isa()));
  chosen() = level;
}

const KernelSet& kernels_of(Isa level) {
  return level == Isa::v4   ? kernel::v4::lane_kernels
         : level == Isa::v3 ? kernel::v3::lane_kernels
                            : kernel::baseline::lane_kernels;
}

const KernelSet& active_kernels() { return kernels_of(active_isa()); }

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

// The kernels of the built-in parts: of the level in use for float; for double, the reference, one number at a time.
template <class Kernels>
const Kernels& builtin_kernels() {
  if constexpr (std::is_same_v<typename Kernels::Number, float>) {
    return std::get<Kernels>(active_kernels().parts);
  } else {
    static constexpr Kernels kernels = kernel::over<typename Kernels::Number>(Kernels{});
    return kernels;
  }
}

namespace {

// The template is defined here alone: for everything in the lists it must be here.
template <class Real>
constexpr auto instances = std::apply([](auto... part) { return std::tuple(&builtin_kernels<decltype(part)>...); },
                                      all_kernels<Real>(BuiltinPotentials(), BuiltinRewards()));
[[gnu::used]] constexpr auto float_instances = instances<float>;
[[gnu::used]] constexpr auto double_instances = instances<double>;

}  // namespace

}  // namespace implicit_diffusion
