// Files of samples that a Langevin experiment names, each read once however many parts of a run need it.
#pragma once

#include "implicit_diffusion/io/checkpoint.hpp"
#include "implicit_diffusion/population.hpp"

#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

// Files of samples that a run goes on reading, by their keys, with a hash of what is in each: a continuation needs the
// same.
class SampleHashes {
 public:
  void add(const std::string& key, const SampleFile& file, std::size_t dimension);

  void save(implicit_diffusion::io::CheckpointWriter& to) const;
  // Throws a usage Error where a file is not what it was.
  void compare(const implicit_diffusion::io::CheckpointReader& from) const;

 private:
  struct Entry {
    std::string key;
    std::filesystem::path file;
    std::uint32_t crc = 0;
  };
  std::vector<Entry> entries_;
};

}  // namespace program
