#include "implicit_diffusion/models/model_folder.hpp"

#include "../io/json.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/sha256.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

namespace implicit_diffusion {
namespace {

using io::display;
using io::Json;
using io::JsonObject;
using Path = std::filesystem::path;

constexpr const char* weights_name = "diffusion_pytorch_model.safetensors";
constexpr const char* shards_name = "diffusion_pytorch_model.safetensors.index.json";
constexpr const char* pickle_name = "diffusion_pytorch_model.bin";
constexpr const char* origin_name = "implicit_diffusion.json";
constexpr const char* index_name = "model_index.json";
constexpr std::size_t most_files = 10'000;

bool is_there(const Path& path) {
  std::error_code none;
  return std::filesystem::exists(path, none);
}

// For who names the folder of a run: where in it a model is, up to three folders down.
std::string models_below(const Path& folder) {
  std::error_code none;
  std::vector<Path> found;
  for (std::filesystem::recursive_directory_iterator at(folder, none), end; !none && at != end; at.increment(none)) {
    if (at.depth() == 2) at.disable_recursion_pending();
    if (at->path().filename() == "model" && is_there(at->path() / "unet" / "config.json")) found.push_back(at->path());
  }
  std::ranges::sort(found);
  return found.empty() ? "" : "; there is a model in " + display(found.front());
}

// The folder of a part: the one called like it, or the model's own.
Path part_of(const Path& folder, const char* part) {
  std::error_code none;
  if (!std::filesystem::exists(folder, none)) throw Error(ErrorKind::missing, display(folder), "no such folder");
  if (!std::filesystem::is_directory(folder, none))
    throw Error(ErrorKind::missing, display(folder), "is not a folder; the folder of a model is meant");
  return std::filesystem::is_directory(folder / part, none) ? folder / part : folder;
}

std::string read_json(const Path& path) { return io::read_file(path, io::longest_json); }

// An entry of model_index.json: ["diffusers", "UNet2DModel"].
void require_class(JsonObject& index, const char* part, std::string_view name) {
  const Json& entry = index.raw(part);
  if (entry.is_null()) return;
  if (!entry.is_array() || entry.size() != 2 || !entry[1].is_string())
    index.refuse(part, fmt::format("{} is not a library and a class", io::printable(entry.dump(), 60)));
  if (!name.empty() && entry[1] != name)
    index.refuse(part,
                 fmt::format("{} is not supported; {} is", io::excerpt(entry[1].get_ref<const std::string&>()), name));
}

// The name of today.
std::string current_name(std::string name) {
  if (name.find("attentions.") == std::string::npos) return name;
  constexpr std::array<std::array<std::string_view, 2>, 4> renamed{
      {{".query.", ".to_q."}, {".key.", ".to_k."}, {".value.", ".to_v."}, {".proj_attn.", ".to_out.0."}}};
  for (const auto& [old, current] : renamed)
    if (const std::size_t at = name.find(old); at != std::string::npos) return name.replace(at, old.size(), current);
  return name;
}

bool is_float(io::Dtype dtype) {
  return dtype == io::Dtype::f16 || dtype == io::Dtype::bf16 || dtype == io::Dtype::f32 || dtype == io::Dtype::f64;
}

// A file of weights under another name, such as that of a variant, or none.
std::string other_weights(const Path& folder) {
  std::error_code none;
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none))
    if (entry.path().extension() == ".safetensors") names.insert(display(entry.path().filename()));
  return names.empty() ? "" : *names.begin();
}

// What a writer has made in a folder, and takes away again unless all is well.
class Made {
 public:
  explicit Made(const Path& folder) { make(folder); }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;
  ~Made() {
    std::error_code none;
    for (const Path& file : files_) std::filesystem::remove(file, none);
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) std::filesystem::remove(*folder, none);
  }
  void make(const Path& folder) {
    const std::vector<Path> made = io::make_directory(folder);  // the innermost first
    folders_.insert(folders_.end(), made.rbegin(), made.rend());
  }
  template <class Write>
  void write(const Path& file, Write write) {
    const bool there = is_there(file);
    write(file);
    if (!there) files_.push_back(file);
  }
  void write_text(const Path& file, const std::string& text) {
    write(file, [&](const Path& path) { io::write_file(path, text); });
  }
  void keep() {
    files_.clear();
    folders_.clear();
  }

 private:
  std::vector<Path> folders_, files_;
};

}  // namespace

ModelFolder read_model_folder(const Path& folder) {
  ModelFolder model;
  const Path network = part_of(folder, "unet") / "config.json";
  const Path scheduler = part_of(folder, "scheduler") / "scheduler_config.json";
  if (const Path index = folder / index_name; is_there(index)) {
    JsonObject file(read_json(index), display(index));
    require_class(file, "unet", "UNet2DModel");
    require_class(file, "scheduler", "");  // its own file names the class
    model.index_keys = file.others();
  }
  if (!is_there(network))
    throw Error(ErrorKind::missing, display(folder), "has no config.json, here or in unet/" + models_below(folder));
  model.network = parse_unet_config(read_json(network), display(network));
  if (is_there(scheduler)) model.scheduler = parse_scheduler_config(read_json(scheduler), display(scheduler));
  if (const Path origin = folder / origin_name; is_there(origin)) {
    model.origin = parse_model_origin(read_json(origin), display(origin));
    const auto contradicts = [&](const char* key, const auto& here, const auto& there, const Path& other) {
      if (here != there)
        throw Error(ErrorKind::data, display(origin),
                    fmt::format("{}: {}, but {} in {}", key, here, there, display(other)));
    };
    contradicts("patch", model.origin->patch, model.network.patch, network);
    if (model.scheduler)
      contradicts("prediction", to_string(model.origin->prediction), to_string(model.scheduler->prediction_type),
                  scheduler);
  }
  return model;
}

ModelWeights::ModelWeights(const Path& folder) : folder_(part_of(folder, "unet")) {
  if (const Path index = folder_ / shards_name; is_there(index)) {
    const std::string where = display(index);
    JsonObject file(read_json(index), where);
    const Json& map = file.raw("weight_map");
    if (!map.is_object()) file.refuse("weight_map", "is no object that says which tensor is in which file");
    std::set<std::string> names;
    for (const auto& [tensor, name] : map.items()) {
      if (!name.is_string()) file.refuse("weight_map", fmt::format("{} is not in a file", io::excerpt(tensor, 200)));
      names.insert(name.get<std::string>());
    }
    if (names.empty()) file.refuse("weight_map", "names no file");
    if (names.size() > most_files) file.refuse("weight_map", fmt::format("{} files are too many", names.size()));
    std::map<std::string, std::size_t> number;
    for (const std::string& name : names) {
      // Not a way to read files elsewhere.
      if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..")
        file.refuse("weight_map", fmt::format("{} is not the name of a file in this folder", io::excerpt(name)));
      number.emplace(name, paths_.size());
      paths_.push_back(folder_ / name);
      readers_.emplace_back(paths_.back());
    }
    for (const auto& [tensor, name] : map.items()) {
      const std::size_t at = number.at(name.get<std::string>());
      if (!readers_[at].find(tensor))
        throw Error(ErrorKind::data, display(paths_[at]),
                    fmt::format("tensor {} is missing, which {} says is here", io::excerpt(tensor, 200), shards_name));
      add(tensor, at);
    }
    // What is there without being named is not to be overlooked.
    for (std::size_t at = 0; at < readers_.size(); ++at)
      for (const io::TensorInfo& t : readers_[at].tensors())
        if (!map.contains(t.name)) add(t.name, at);
    return;
  }
  const Path single = folder_ / weights_name;
  if (!is_there(single) && is_there(folder_ / pickle_name))
    throw Error(ErrorKind::missing, display(single),
                fmt::format("no such file; {0} is there, which only Python can read. To convert it: cd {1}; python3 -c "
                            "\"import torch, safetensors.torch as s; s.save_file({{k: v.contiguous() for k, v in "
                            "torch.load('{0}', weights_only=True).items()}}, '{2}', {{'format': 'pt'}})\"",
                            pickle_name, io::shell_word(display(folder_)), weights_name));
  if (const std::string other = other_weights(folder_); !is_there(single) && !other.empty())
    throw Error(ErrorKind::missing, display(single), fmt::format("no such file; to use {}, give it this name", other));
  paths_.push_back(single);
  readers_.emplace_back(single);
  for (const io::TensorInfo& t : readers_.front().tensors()) add(t.name, 0);
}

void ModelWeights::add(const std::string& name, std::size_t file) {
  const auto [place, added] = places_.try_emplace(current_name(name), Place{file, name});
  if (!added)
    throw Error(ErrorKind::data, display(paths_[file]),
                fmt::format("tensors {} and {} are the same parameter", io::excerpt(place->second.name, 200),
                            io::excerpt(name, 200)));
}

std::vector<Path> ModelWeights::files() const { return paths_; }

std::string ModelWeights::sha256() const {
  if (paths_.size() == 1) return io::sha256_of_file(paths_.front());
  io::Sha256 all;
  for (const Path& path : paths_) all.update(io::sha256_of_file(path));
  return all.digits();
}

std::vector<std::string> ModelWeights::faults(const Layout& layout, bool values) const {
  std::vector<std::string> all;
  std::set<std::string_view> expected;
  std::vector<float> buffer;
  for (const TensorShape& t : layout) {
    expected.insert(t.name);
    const auto found = places_.find(t.name);
    if (found == places_.end()) {
      all.push_back(fmt::format("tensor '{}' is missing", t.name));
      continue;
    }
    const auto& [file, name] = found->second;
    const io::TensorInfo& info = *readers_[file].find(name);
    if (info.shape != t.shape) {
      all.push_back(fmt::format("tensor '{}' has the shape [{}], [{}] is meant", name, fmt::join(info.shape, ", "),
                                fmt::join(t.shape, ", ")));
    } else if (!is_float(info.dtype)) {
      all.push_back(
          fmt::format("tensor '{}' has values {}, F16, BF16, F32 or F64 is meant", name, to_string(info.dtype)));
    } else if (values) {
      buffer.resize(info.elements());
      try {
        readers_[file].read_finite(name, buffer);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::data) throw;
        all.push_back(e.reason());
      }
    }
  }
  for (const auto& [name, place] : places_)
    if (!expected.contains(name))
      all.push_back(fmt::format("tensor {} does not belong to this network", io::excerpt(place.name, 200)));
  return all;
}

void ModelWeights::load(const Layout& layout, std::span<float> theta) const {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::data, display(paths_.front()), what); };
  if (theta.size() != static_cast<std::size_t>(elements_of(layout)))
    throw Error(ErrorKind::usage, "theta",
                fmt::format("{} numbers for {} parameters", theta.size(), elements_of(layout)));
  if (const std::vector<std::string> wrong = faults(layout, false); !wrong.empty())
    refuse(wrong.size() == 1 ? wrong.front()
                             : fmt::format("{}; {} tensors are wrong in all", wrong.front(), wrong.size()));
  std::size_t at = 0;
  for (const TensorShape& t : layout) {
    const auto& [file, name] = places_.at(t.name);
    const auto count = static_cast<std::size_t>(elements_of(t.shape));
    readers_[file].read_finite(name, theta.subspan(at, count));
    at += count;
  }
}

void write_model_folder(const Path& folder, const ModelFolder& model, std::span<const float> theta) {
  require_valid(model.network, "network");
  const Layout layout = parameter_layout(model.network);
  if (theta.size() != static_cast<std::size_t>(elements_of(layout)))
    throw Error(ErrorKind::usage, "theta",
                fmt::format("{} numbers for {} parameters", theta.size(), elements_of(layout)));
  io::SafetensorsWriter weights;
  std::size_t at = 0;
  for (const TensorShape& t : layout) {
    const auto count = static_cast<std::size_t>(elements_of(t.shape));
    weights.put(t.name, t.shape, theta.subspan(at, count));
    at += count;
  }

  Made made(folder);
  made.make(folder / "unet");
  made.write(folder / "unet" / weights_name, [&](const Path& path) { weights.write(path); });
  made.write_text(folder / "unet" / "config.json", unet_config_json(model.network));
  if (model.origin) made.write_text(folder / origin_name, model_origin_json(*model.origin));
  if (model.scheduler) {
    made.make(folder / "scheduler");
    made.write_text(folder / "scheduler" / "scheduler_config.json", scheduler_config_json(*model.scheduler));
    const bool ddim = model.scheduler->class_name == "DDIMScheduler";
    Json index = {{"_class_name", ddim ? "DDIMPipeline" : "DDPMPipeline"},
                  {"scheduler", {"diffusers", model.scheduler->class_name}},
                  {"unet", {"diffusers", "UNet2DModel"}}};
    for (const auto& [key, text] : model.index_keys) index[key] = Json::parse(text);
    made.write_text(folder / index_name, io::json_bytes(index));
  }
  made.keep();
  // Of a model that was there before, nothing may be left that would be read with this one.
  std::error_code none;
  std::filesystem::remove(folder / "unet" / shards_name, none);
  if (!model.origin) std::filesystem::remove(folder / origin_name, none);
  if (!model.scheduler)
    for (const Path& file : {folder / "scheduler" / "scheduler_config.json", folder / index_name})
      std::filesystem::remove(file, none);
}

}  // namespace implicit_diffusion
