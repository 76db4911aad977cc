// Levels: the instruction sets a kernel is compiled for, and which of them this machine runs.
//
// Kernel sources are compiled once for each level into one binary and chosen at run time. They use only operations
// whose result does not depend on the number of lanes, so v3 and v4 give the same bits; the baseline has no fma and may
// differ in the last digits.
#pragma once

#include <string_view>

// The level this file is being compiled for. It names an inline namespace, so that code of different levels never
// shares a symbol.
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
#define IMPLICIT_DIFFUSION_LEVEL v4
#elif defined(__AVX2__) && defined(__FMA__)
#define IMPLICIT_DIFFUSION_LEVEL v3
#else
#define IMPLICIT_DIFFUSION_LEVEL baseline
#endif

namespace implicit_diffusion {

enum class Isa { baseline, v3, v4 };

std::string_view to_string(Isa level);

// The best level of this machine.
Isa machine_isa();

// The level the library's kernels run at: the machine's unless use_isa() said otherwise.
Isa active_isa();

// Chooses a level for the whole program, before work begins. Throws a usage Error where the machine lacks it.
void use_isa(Isa level);

}  // namespace implicit_diffusion
