// The subcommands of the executable with networks, as commands/commands.hpp has those of the program.
#pragma once

#include "experiment/common.hpp"
#include "implicit_diffusion/torch/model.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace program {

struct VerifyModelOptions {
  std::string folder, file;
  double tolerance = implicit_diffusion::model_tolerance;
  bool portable_bits = false;  // read by set_network_environment()
};
int verify_model(const VerifyModelOptions& o);

// Stages of an experiment with images (images/experiment.hpp).
struct PretrainOptions : RunOptions {
  bool classifier = false;
};
int pretrain(const PretrainOptions& o);
struct FinetuneOptions : RunOptions {
  std::string model, classifier;  // folders
};
int finetune(const FinetuneOptions& o);

struct SampleOptions {
  std::string model, output;                     // folders; the second by default samples
  std::string noise;                             // a file for the noise, or none
  std::int64_t count = 64, seed = 0, steps = 0;  // 0 steps: 64 of a chain, 50 of the schedule's times
  std::int64_t shard = implicit_diffusion::default_shard;
  std::uint64_t threads = 0;
  std::vector<std::int64_t> labels;  // empty: i mod classes
  std::string sampler = "sde";
  std::optional<std::string> grid;  // of sde and ode; log-linear
  std::optional<double> eta;        // of ddim; 0
  bool portable_bits = false;
};
int sample(const SampleOptions& o);

struct EvaluateOptions {
  std::string model, base, data, classifier, output;  // folders, but for the last: a JSON file
  std::string reward = "brightness";
  double ratio = 0;                    // lambda / beta of the oracle
  std::optional<std::int64_t> chosen;  // the class of the reward of that name; 0
  std::int64_t count = 1000, seed = 777, steps = 32;
  std::int64_t shard = implicit_diffusion::default_shard;
  std::string grid = "log-linear";
  std::uint64_t threads = 0;
  bool portable_bits = false;
};
int evaluate(const EvaluateOptions& o);

}  // namespace program
