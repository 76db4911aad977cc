// Files of samples that a Langevin experiment names, each read once however many parts of a run need it.
#pragma once

#include "implicit_diffusion/population.hpp"

#include <filesystem>
#include <mutex>

namespace program {

// The samples of a file. Throws an Error unless it has `dimension` columns of single-precision numbers.
implicit_diffusion::Population<float> read_population(const std::filesystem::path& path, std::size_t dimension);

class SampleFile {
 public:
  explicit SampleFile(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  // Reads it at the first call.
  const implicit_diffusion::Population<float>& samples(std::size_t dimension) const;

 private:
  std::filesystem::path path_;
  mutable std::once_flag once_;
  mutable std::optional<implicit_diffusion::Population<float>> samples_;
};

}  // namespace program
