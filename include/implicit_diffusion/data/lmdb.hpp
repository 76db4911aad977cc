// An LMDB environment, as LSUN comes in: keys and values, read in a process of its own.
//
// liblmdb maps its file into memory and follows the page numbers in it unchecked. A damaged file ends one reader in
// thirty by SIGSEGV or SIGBUS, and no reader of the same process can be saved from that. So the file is read by another
// program, implicit-diffusion-lmdb, and its answers come through a socket, each with its length and checked here. Where
// that program dies, the file is damaged, and an Error says so.
//
// The other program ends with this object, and with this process however that ends. It keeps none of its descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace implicit_diffusion::data {

// implicit-diffusion-lmdb in the folder of the running program.
std::filesystem::path default_lmdb_helper();

class LmdbReader {
 public:
  // All keys are read, no values. Throws Error: missing where the folder has no data.mdb, or there is no helper; data
  // for a damaged environment; io where no process can be started.
  LmdbReader(const std::filesystem::path& folder, const std::filesystem::path& helper);
  LmdbReader(const LmdbReader&) = delete;
  LmdbReader& operator=(const LmdbReader&) = delete;
  ~LmdbReader();

  std::size_t size() const;
  // In ascending order. i < size().
  std::string_view key(std::size_t i) const;
  // The value of key i. Threads may call it at the same time; they wait for each other. Throws a data Error that names
  // folder and key. After one there are no more values.
  std::string value(std::size_t i) const;

 private:
  struct Child;
  std::unique_ptr<Child> child_;
};

}  // namespace implicit_diffusion::data
