// Writes the seeds into the last argument of a libFuzzer program, its folder of inputs, before that is read.
#include "fuzz/fuzz.hpp"

#include <fstream>

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {  // NOLINT: libFuzzer's name
  const std::string folder = (*argv)[*argc - 1];
  int n = 0;
  for (const std::string& seed : fuzz::seeds())
    std::ofstream(folder + "/seed-" + std::to_string(n++), std::ios::binary) << seed;
  return 0;
}
