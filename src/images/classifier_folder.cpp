#include "implicit_diffusion/images/classifier_folder.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/safetensors.hpp"
#include "io/json.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace implicit_diffusion {

namespace {

namespace fs = std::filesystem;
constexpr const char *description = "classifier.json", *weights_file = "classifier.safetensors";

}  // namespace

void save_classifier(const fs::path& folder, const ClassifierModel& model) {
  if (const auto j = first_nonfinite(model.theta))
    throw Error(ErrorKind::data, folder.string(), fmt::format("parameter {} is not finite", *j));
  io::make_directory(folder);
  const Network network = make_classifier(model.config);
  const std::vector<at::Tensor> w = weights_of(network.layout, model.theta);
  io::SafetensorsWriter writer;
  for (std::size_t i = 0; i < w.size(); ++i)
    writer.put(network.layout[i].name, network.layout[i].shape,
               std::span<const float>(w[i].data_ptr<float>(), static_cast<std::size_t>(w[i].numel())));
  writer.write(folder / weights_file);
  io::Json json{{"channels", model.config.channels}, {"height", model.config.height},
                {"width", model.config.width},       {"classes", model.config.classes},
                {"features", model.config.features}, {"class_names", model.class_names}};
  if (model.accuracy) json["accuracy"] = *model.accuracy;
  io::write_file(folder / description, io::json_bytes(json));
}

ClassifierModel load_classifier(const fs::path& folder) {
  const fs::path file = folder / description;
  io::JsonObject json(io::read_file(file, io::longest_json), file.string());
  ClassifierModel model;
  ClassifierConfig& c = model.config;
  constexpr std::int64_t largest = 16384;
  c.channels = json.integer("channels", c.channels, 1, largest);
  c.height = json.integer("height", c.height, 1, largest);
  c.width = json.integer("width", c.width, 1, largest);
  c.classes = json.integer("classes", c.classes, 1, largest);
  c.features = json.integer("features", c.features, 1, largest);
  const io::Json& names = json.raw("class_names");
  if (!names.is_null() && !names.is_array()) json.refuse("class_names", "is not a list");
  for (const io::Json& name : names) {
    if (!name.is_string()) json.refuse("class_names", "a name is not a text");
    model.class_names.push_back(name.get<std::string>());
  }
  if (!model.class_names.empty() && static_cast<std::int64_t>(model.class_names.size()) != c.classes)
    json.refuse("class_names", fmt::format("{} names for {} classes", model.class_names.size(), c.classes));
  if (json.contains("accuracy")) model.accuracy = json.number("accuracy", 0);

  const Network network = make_classifier(c);
  const io::SafetensorsReader reader(folder / weights_file);
  // All is there in its shape, before memory of that size is asked for.
  for (const TensorShape& t : network.layout)
    if (const io::TensorInfo* info = reader.find(t.name); !info || info->shape != t.shape)
      throw Error(ErrorKind::data, reader.where(),
                  fmt::format("{}: {}", t.name, info ? "it is of another shape" : "it is missing"));
  model.theta = TensorParameters(elements_of(network.layout), at::kFloat);
  (void)model.theta.edit();
  const std::vector<at::Tensor> w = weights_of(network.layout, model.theta);
  for (std::size_t i = 0; i < w.size(); ++i)
    reader.read_finite(network.layout[i].name,
                       std::span(w[i].data_ptr<float>(), static_cast<std::size_t>(w[i].numel())));
  return model;
}

}  // namespace implicit_diffusion
