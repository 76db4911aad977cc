// An experiment, of whatever kind: it runs, makes a report of a run's folder, and lists what there is to check of it.
//
// A kind of experiments is a folder with a class that derives from this one and a function that reads it from a
// document; its declaration and one line of the table in registry.cpp make it known.
#pragma once

#include "experiment/check_rows.hpp"
#include "experiment/common.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace program {

struct Document;

// Something to check, with a name for the table.
struct Problem {
  std::string name;
  std::function<std::vector<CheckRow>()> check;
};

class Experiment {
 public:
  virtual ~Experiment() = default;

  virtual const Common& common() const = 0;

  // Whether run() and checks() need LibTorch: the program leaves them to the executable that has it. The rest of the
  // interface never does.
  virtual bool needs_networks() const { return false; }

  // Runs it, writes its folder and prints the closing table. Returns the exit code.
  virtual int run(const RunOptions& o) const = 0;
  // The page of the run in the folder.
  virtual std::string report(const std::filesystem::path& folder) const = 0;
  virtual std::vector<Problem> checks() const = 0;
  // What `check` without a name compares for the built-in experiments of this kind.
  virtual std::vector<Problem> standard_checks() const { return checks(); }

  // What --repeats means: independent runs, which run() does; a key of the experiment; or nothing, for a reason.
  struct Repeats {
    std::string key, refusal;
  };
  virtual Repeats repeats() const = 0;
  // Whether the processes of a job share the samples of one run. If not, the first one makes it alone.
  virtual bool is_shared() const { return false; }
};

// One with a configuration of its own, derived from Common.
template <class Configuration>
class ExperimentOf : public Experiment {
 public:
  explicit ExperimentOf(Configuration c) : c_(std::move(c)) {}
  const Configuration& configuration() const { return c_; }
  const Common& common() const override { return c_; }

 private:
  Configuration c_;
};

using ReadExperiment = std::unique_ptr<Experiment>(const Document&);

}  // namespace program
