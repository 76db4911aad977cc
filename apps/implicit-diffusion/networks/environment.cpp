#include "networks/environment.hpp"

#include "implicit_diffusion/error.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

namespace program {

namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;

constexpr std::pair<const char*, const char*> portable[] = {
    {"ONEDNN_MAX_CPU_ISA", "AVX2"}, {"ATEN_CPU_CAPABILITY", "avx2"}, {"OPENBLAS_CORETYPE", "Haswell"}};

int word_count = 0;
char** words = nullptr;

std::filesystem::path networks_executable() {
  std::error_code unknown;
  return std::filesystem::read_symlink("/proc/self/exe", unknown).parent_path() / "implicit-diffusion-networks";
}

}  // namespace

void keep_command_line(int argc, char** argv) {
  word_count = argc;
  words = argv;
}

bool set_network_environment() {
  bool changed = false;
  const auto set = [&changed](const char* name, const char* value) {
    ::setenv(name, value, 1);
    changed = true;
  };
  if (!std::getenv("OMP_WAIT_POLICY")) set("OMP_WAIT_POLICY", "passive");
  if (!std::getenv("OPENBLAS_CORETYPE")) {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
      set("OPENBLAS_CORETYPE", "SkylakeX");
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      set("OPENBLAS_CORETYPE", "Haswell");
  }
  if (std::any_of(words, words + word_count, [](const char* w) { return w == std::string_view("--portable-bits"); }))
    for (const auto& [name, value] : portable)
      if (const char* now = std::getenv(name); !now || now != std::string_view(value)) set(name, value);
  return changed;
}

bool networks_were_built() {
  std::error_code unknown;
  return std::filesystem::exists(networks_executable(), unknown);
}

void become_networks(const std::string& what) {
  if (has_networks()) return;
  const std::string other = networks_executable().string();
  set_network_environment();
  ::execv(other.c_str(), words);
  if (errno == ENOENT)
    throw Error(ErrorKind::usage, what,
                "needs networks, which were not built: `make build` builds them, with LibTorch");
  throw Error(ErrorKind::io, other, std::strerror(errno));
}

void start_again() {
  ::execv("/proc/self/exe", words);
  throw Error(ErrorKind::io, "implicit-diffusion-networks", std::strerror(errno));
}

}  // namespace program
