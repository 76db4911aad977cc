// Commands that need networks, and the executable that has them: implicit-diffusion-networks, in the folder of the
// program, which execs it. So the program itself loads no LibTorch, and starts in milliseconds.
#pragma once

namespace program {

struct NetworkCommand {
  const char *name, *help;
};
inline constexpr NetworkCommand network_commands[] = {
    {"verify-model", "Compare a model that comes from another program with what that program computed with it."}};

// Sets what LibTorch and its libraries read when they are loaded, before any of our code runs: true where something was
// not so yet.
//
//     OMP_WAIT_POLICY=passive     idle threads of OpenMP sleep
//     OPENBLAS_CORETYPE=SkylakeX  or Haswell, what the processor has: on one that is newer than itself OpenBLAS takes
//                                 kernels for SSE3, with which products of matrices take 4 times as long
//
// where the user has not set them, and with --portable-bits, so that processors with other vector units give the same
// bits,
//
//     ONEDNN_MAX_CPU_ISA=AVX2  ATEN_CPU_CAPABILITY=avx2  OPENBLAS_CORETYPE=Haswell
bool set_network_environment(int argc, char** argv);

// Becomes the executable with networks. Throws a usage Error where it was not built.
[[noreturn]] void exec_networks(int argc, char** argv);

// Begins this program again, with the environment that was set. Throws an io Error where that fails.
[[noreturn]] void start_again(char** argv);

}  // namespace program
