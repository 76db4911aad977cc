// Commands that need networks, and the executable that has them: implicit-diffusion-networks, in the folder of the
// program, which execs it. So the program itself loads no LibTorch, and starts in milliseconds.
#pragma once

#include <string>
#include <string_view>

namespace program {

struct CommandLine;

struct NetworkCommand {
  const char *name, *help;
};
inline constexpr NetworkCommand network_commands[] = {
    {"pretrain", "Train the model of an experiment with images, or its classifier."},
    {"finetune", "Finetune a model of images to a reward, with the path KL to where it began as the price."},
    {"sample", "Sample a model of images: a picture of the samples, and all of them as numbers."},
    {"evaluate", "Judge samples of a model: reward, path KL to a base, distance to the data, classes, diversity."},
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
bool set_network_environment();

// The words that the program was called with, which main() keeps for those functions that begin a program again.
void keep_command_line(int argc, char** argv);

// What differs between the two executables, each of which defines it (light.cpp and networks/options.cpp): whether this
// is the one with networks, what that one does first, its commands, and its part of `bench`.
bool has_networks();
void start_networks();
void add_network_commands(CommandLine& line);
// What `bench` measures with networks; `only`: "networks", "paper", or nothing, which is the first.
int bench_networks(std::string_view only);

// Whether the executable with networks is in the folder of this one.
bool networks_were_built();

// Becomes the executable with networks, with the same words; where this is it, nothing happens. Throws a usage Error
// where it was not built: `what` needs it.
void become_networks(const std::string& what);

// Begins this program again, with the environment that was set. Throws an io Error where that fails.
[[noreturn]] void start_again();

}  // namespace program
