// An experiment that is made of parts, each of them short: those that are finished are kept in the folder
// `checkpoints`, and a run that goes on does the others. What a part is kept as is a list of numbers; a part that was
// not finished is done again from its beginning, with the same noise.
#pragma once

#include "experiment/common.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"

#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace program {

class FinishedParts {
 public:
  // To resume is to begin with what the newest whole checkpoint has, to say how much that is, and to write the
  // configuration. Throws a data Error where there are checkpoints and none is whole, or where it is one of another
  // configuration.
  FinishedParts(const Common& c, const std::filesystem::path& folder, bool resume, bool quiet);

  // The numbers of a part that is finished. May be called from several threads, as keep may.
  std::optional<std::vector<double>> find(const std::string& name) const;
  // A part that is now: it is on the disk when this returns.
  void keep(const std::string& name, const std::vector<double>& numbers);
  // For numbers that were found and are no such part. Throws a data Error.
  [[noreturn]] void refuse(const std::string& name, const std::string& why) const { found_.value().refuse(name, why); }

  // Since the beginning, with those of the runs before this one.
  double seconds() const;

 private:
  std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::string configuration_;
  std::optional<implicit_diffusion::io::CheckpointReader> found_;
  std::map<std::string, std::vector<double>> parts_;
  double before_ = 0;
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace program
