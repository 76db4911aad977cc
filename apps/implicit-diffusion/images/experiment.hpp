// The kind `images`: a diffusion model of images is pretrained on a data set and finetuned to a reward, with the path
// KL to the pretrained model as the price. Nothing in this header needs LibTorch.
//
// An experiment has stages, each a run of its own in a folder of its own:
//
//     classifier   the judge of samples is trained                    `pretrain --classifier`
//     pretrain     the model is trained by denoising score matching   `pretrain`
//     finetune     it is finetuned to the reward                      `finetune --model DIR`
//     all          the three, with a sweep over lambda and M          `run`
#pragma once

#include "experiment/experiment.hpp"
#include "implicit_diffusion/data/image.hpp"
#include "implicit_diffusion/denoising/time_grid.hpp"
#include "implicit_diffusion/models/unet_config.hpp"
#include "networks/training_keys.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace program {

enum class Stage { all, classifier, pretrain, finetune };
std::string_view to_string(Stage stage);
// M slots are a queue, one is the nested loop.
inline const char* loop_of(std::int64_t slots) { return slots == 1 ? "nested" : "queue"; }

struct ImagesConfiguration : Common {
  Stage stage = Stage::all;
  std::int64_t steps = 0;  // of the stage
  std::int64_t log_every = 0, checkpoint_every = 0;

  std::filesystem::path data;  // a folder
  implicit_diffusion::data::ImageShape shape;
  std::int64_t classes = 10;
  bool conditional = false;  // the model is told the label
  bool flip = false;

  implicit_diffusion::UNetConfig network;
  bool zero_outputs = true;

  std::int64_t features = 64;
  TrainingKeys classifier{1872, 128, 50, 32, 2e-3, true, 0.9, 0.99, 1e-8, 0, 0.99};

  TrainingKeys pretrain{2800, 32, 100, 16, 2e-3};
  bool predicts_v = true;
  bool uniform_levels = false;  // the law of noise levels: uniform in tau, not in the angle
  double horizon = 4;
  std::int64_t sample_every = 0;

  enum class Grid { log_linear, uniform, cosine };
  Grid grid = Grid::log_linear;
  double tau_min = 0.01;
  implicit_diffusion::LastStep last_step = implicit_diffusion::LastStep::mean;
  std::int64_t steps_per_sample = 32;
  implicit_diffusion::Dynamics dynamics = implicit_diffusion::Dynamics::euler_sde;

  std::string model, judge;          // folders of finetuning: the model to begin with, the classifier or none
  std::string model_key, judge_key;  // as the file has them
  std::string reward = "brightness";
  std::int64_t reward_class = 0;
  double lambda = 30, beta = 1;
  std::int64_t slots = 4, last_steps = 0;  // M; of truncated backpropagation, 0: all
  TrainingKeys finetune{30, 8, 5, 4, 1.5e-4, true, 0.9, 0.99, 1e-8, 0, 0};
  std::int64_t evaluate_every = 5, strip = 64, samples = 1000, evaluation_seed = 777;

  std::vector<double> lambdas;            // of the sweep
  std::vector<std::int64_t> sweep_slots;  //

  implicit_diffusion::TimeGrid time_grid(double horizon) const;
};

// What a run of all stages is made of, in order.
struct StageRun {
  std::string folder;
  ImagesConfiguration configuration;
};
struct ImagesPlan : ImagesConfiguration {
  std::vector<StageRun> stages;  // of `all`
};
ImagesPlan read_images_configuration(const Document& d);

class ImagesExperiment final : public ExperimentOf<ImagesPlan> {
 public:
  using ExperimentOf::ExperimentOf;
  bool needs_networks() const override { return true; }
  int run(const RunOptions& o) const override;
  std::string report(const std::filesystem::path& folder) const override;
  std::vector<Problem> checks() const override;
  Repeats repeats() const override;
  bool is_shared() const override { return true; }
};

// These need LibTorch: the executable with networks has them.
int run_images(const ImagesExperiment& experiment, const RunOptions& o);
std::vector<Problem> check_images(const ImagesPlan& plan);

}  // namespace program
