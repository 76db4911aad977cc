// Folders that hold a diffusion model, as diffusers writes and opens them, without LibTorch.
//
//     model_index.json                                  what the parts are
//     unet/config.json                                  the network (models/unet_config.hpp)
//     unet/diffusion_pytorch_model.safetensors          its parameters; large ones in several files, with
//     unet/diffusion_pytorch_model.safetensors.index.json      an index that says which tensor is in which
//     scheduler/scheduler_config.json                   its noise schedule (denoising/discrete_schedule.hpp)
//     implicit_diffusion.json                           ours: where the model comes from
//
// All of it may also lie in the folder itself, without unet/ and scheduler/. Of these only config.json and the
// parameters must be there. Keys that are not known are kept and written again; missing ones have the defaults of
// diffusers' classes.
//
//     const ModelFolder model = read_model_folder(folder);
//     const Layout layout = parameter_layout(model.network);
//     std::vector<float> theta(elements_of(layout));
//     ModelWeights(folder).load(layout, theta);
//     ...
//     write_model_folder(other, model, theta);
//
// Errors name the file and what is wrong with it: missing where there is none, data where it is bad.
#pragma once

#include "implicit_diffusion/denoising/discrete_schedule.hpp"
#include "implicit_diffusion/io/safetensors.hpp"
#include "implicit_diffusion/models/unet_config.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion {

// implicit_diffusion.json: what diffusers has no place for.
struct ModelOrigin {
  struct Base {
    std::string path, sha256;  // of the folder, and of its parameters (ModelWeights::sha256)
    bool operator==(const Base&) const = default;
  };
  std::optional<Base> base;         // the model that this one was finetuned from
  std::string schedule = "cosine";  // of its training
  double horizon = 4;               // of its chains, in tau
  std::int64_t patch = 1;
  SchedulerConfig::Prediction prediction = SchedulerConfig::Prediction::epsilon;
  std::map<std::string, std::string> other_keys;

  bool operator==(const ModelOrigin&) const = default;
};

struct ModelFolder {
  UNetConfig network;
  std::optional<SchedulerConfig> scheduler;
  std::optional<ModelOrigin> origin;
  std::map<std::string, std::string> index_keys;  // of model_index.json, each with its JSON text

  bool operator==(const ModelFolder&) const = default;
};

// Everything but the parameters. Throws a data Error too where the files contradict each other: another class in
// model_index.json, another patch or prediction in implicit_diffusion.json.
ModelFolder read_model_folder(const std::filesystem::path& folder);

// The parameters in a folder: of one file or of several, under the names of today (checkpoints of old versions call
// to_q, to_k, to_v and to_out.0 of an attention query, key, value and proj_attn). A file of torch.save (.bin) is not
// read, and the error says how to convert it.
class ModelWeights {
 public:
  explicit ModelWeights(const std::filesystem::path& folder);

  std::vector<std::filesystem::path> files() const;
  std::size_t tensors() const { return places_.size(); }
  std::string sha256() const;  // of the files, in the order of their names

  // What is wrong with them as the parameters of a network, a line for each tensor: missing, unexpected, of another
  // shape or type. With `values`, each is also read, and a value that is not finite is named.
  std::vector<std::string> faults(const Layout& layout, bool values) const;

  // Reads them into a flat theta, one behind the other. Throws a data Error with the first of faults().
  void load(const Layout& layout, std::span<float> theta) const;

 private:
  struct Place {
    std::size_t file;
    std::string name;  // in the file
  };
  void add(const std::string& name, std::size_t file);

  std::filesystem::path folder_;
  std::vector<std::filesystem::path> paths_;
  std::vector<io::SafetensorsReader> readers_;
  std::map<std::string, Place> places_;
};

// Writes a folder with the parts that there are, in subfolders; theta is the parameters one behind the other. Each file
// is whole or not there, and model_index.json is the last one. Where one cannot be written, those that were not there
// before are removed again.
void write_model_folder(const std::filesystem::path& folder, const ModelFolder& model, std::span<const float> theta);

// The parts, from text and as text; `where` stands for the name of the file.
SchedulerConfig parse_scheduler_config(std::string_view json, const std::string& where);
std::string scheduler_config_json(const SchedulerConfig& config);
ModelOrigin parse_model_origin(std::string_view json, const std::string& where);
std::string model_origin_json(const ModelOrigin& origin);

// "epsilon", "sample", "v_prediction"; "linear", ...
std::string_view to_string(SchedulerConfig::Prediction prediction);
std::string_view to_string(SchedulerConfig::BetaSchedule schedule);
std::string_view to_string(SchedulerConfig::Variance variance);

}  // namespace implicit_diffusion
