// Files that other programs made, in a folder beside the repository. Tests that compare with them are skipped where it
// is not there.
#pragma once

#include <filesystem>

namespace implicit_diffusion {

// ../shared/fixtures/diffusers, seen from the root of the repository, in which this program was built.
inline std::filesystem::path fixtures() {
  std::error_code none;
  std::filesystem::path root = std::filesystem::read_symlink("/proc/self/exe", none);
  while (root.has_relative_path() && !std::filesystem::exists(root / "CMakePresets.json", none))
    root = root.parent_path();
  return root.parent_path() / "shared/fixtures/diffusers";
}
inline bool have_fixtures() {
  std::error_code none;
  return std::filesystem::is_directory(fixtures(), none);
}
inline constexpr const char* no_fixtures = "there is no folder ../shared/fixtures/diffusers beside the repository";

}  // namespace implicit_diffusion
