#include "implicit_diffusion/torch/model.hpp"

#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace implicit_diffusion {
namespace {

using at::Tensor;

Network network_of(const std::filesystem::path& folder, const UNetConfig& config, UNetOptions options) try {
  return make_unet(config, options);
} catch (const Error& e) {
  throw Error(ErrorKind::data, folder.string(), e.reason());
}

TensorParameters weights_in(const std::filesystem::path& folder, const Layout& layout) {
  TensorParameters theta(elements_of(layout), at::kFloat);
  ModelWeights(folder).load(layout, {theta.edit().data_ptr<float>(), theta.size()});
  return theta;
}

// What another program saw and answered.
class Recording {
 public:
  explicit Recording(const std::filesystem::path& file) : reader_(file) {}

  const io::SafetensorsReader& reader() const { return reader_; }

  // Numbers become single precision, integers 64 bits.
  Tensor read(const std::string& name) const {
    const io::TensorInfo* info = reader_.find(name);
    if (!info) refuse(name, "is missing");
    const auto count = static_cast<std::size_t>(info->elements());
    if (info->dtype == io::Dtype::i64) {
      Tensor t = at::empty(info->shape, at::kLong);
      reader_.read(name, std::span(static_cast<char*>(t.data_ptr()), count * sizeof(std::int64_t)));
      return t;
    }
    Tensor t = at::empty(info->shape, at::kFloat);
    reader_.read_finite(name, std::span(t.data_ptr<float>(), count));
    return t;
  }
  Tensor read(const std::string& name, at::IntArrayRef shape) const {
    Tensor t = read(name);
    if (t.sizes() != shape)
      refuse(name,
             fmt::format("its shape is [{}] and should be [{}]", fmt::join(t.sizes(), ", "), fmt::join(shape, ", ")));
    return t;
  }
  [[noreturn]] void refuse(const std::string& name, const std::string& what) const {
    throw Error(ErrorKind::data, reader_.where(), fmt::format("{}: {}", name, what));
  }

 private:
  io::SafetensorsReader reader_;
};

NetworkInput input_of(const Recording& io, const UNetConfig& config) {
  NetworkInput in;
  in.x = io.read("sample");
  if (in.x.dim() != 4) io.refuse("sample", fmt::format("it has {} dimensions and should have 4", in.x.dim()));
  if (in.x.scalar_type() != at::kFloat) io.refuse("sample", "its values are integers; F32 is meant");
  if (in.x.numel() == 0) io.refuse("sample", "it has no values");
  const std::int64_t n = in.x.size(0);
  in.t = io.read("timestep");
  if (in.t.dim() == 0 || in.t.numel() == 1)
    in.t = in.t.reshape({1}).expand({n});
  else if (in.t.sizes() != at::IntArrayRef{n})
    io.refuse("timestep", fmt::format("its shape is [{}] and should be [{}]", fmt::join(in.t.sizes(), ", "), n));
  in.t = in.t.to(at::kFloat);

  if (config.class_embed_type == UNetConfig::ClassEmbedding::identity)
    in.labels = io.read("class_labels", {n, config.embedding_width()});
  else if (config.class_embed_type || config.num_class_embeds)
    in.labels = io.read("class_labels", {n});
  else if (io.reader().find("class_labels"))
    io.refuse("class_labels", "the model has no labels");
  if (config.classes()) {
    if (in.labels.scalar_type() != at::kLong) io.refuse("class_labels", "they are no integers of 64 bits");
    for (std::int64_t i = 0; i < n; ++i)
      if (const std::int64_t label = in.labels.data_ptr<std::int64_t>()[i]; label < 0 || label >= *config.classes())
        io.refuse("class_labels", fmt::format("[{}] is {}, the model has {} classes", i, label, *config.classes()));
  }
  return in;
}

// The config for samples of this shape: images, or the patches that the network sees.
UNetConfig config_for(const Tensor& sample, UNetConfig config, const Recording& io) {
  if (sample.size(1) == config.in_channels)
    config.patch = 1;
  else if (sample.size(1) != config.image_channels())
    io.refuse("sample", fmt::format("it has {} channels, the model {}", sample.size(1), config.in_channels));
  if (sample.size(2) % config.patch != 0 || sample.size(3) % config.patch != 0)
    io.refuse("sample", fmt::format("{} x {} pixels are no whole patches", sample.size(2), sample.size(3)));
  config.sample_size = {sample.size(2) / config.patch, sample.size(3) / config.patch};
  require_valid(config, io.reader().where(), ErrorKind::data);
  return config;
}

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

double difference(const Tensor& is, const Tensor& should) {
  const double largest = (is - should).abs().max().item<double>();
  if (!std::isfinite(largest)) return std::numeric_limits<double>::infinity();
  return largest / std::max(1.0, should.abs().max().item<double>());
}

}  // namespace

NetworkModel load_model(const std::filesystem::path& folder, UNetOptions options) {
  ModelFolder model = read_model_folder(folder);
  Network network = network_of(folder, model.network, options);
  TensorParameters theta = weights_in(folder, network.layout);
  return {std::move(model), std::move(network), std::move(theta)};
}

void save_model(const std::filesystem::path& folder, const ModelFolder& model, const TensorParameters& theta) {
  if (const auto j = first_nonfinite(theta))
    throw Error(ErrorKind::data, folder.string(), fmt::format("parameter {} is not finite", *j));
  const Tensor flat = theta.size() == 0 ? at::empty({0}, at::kFloat) : theta.read().to(at::kFloat);
  write_model_folder(folder, model, {flat.data_ptr<float>(), theta.size()});
}

std::vector<TensorDifference> verify_model(const std::filesystem::path& folder, const std::filesystem::path& file) {
  const ModelFolder model = read_model_folder(folder);
  const Recording io(file);
  NetworkInput in = input_of(io, model.network);
  const UNetConfig config = config_for(in.x, model.network, io);
  const Network network = network_of(folder, config, {.inference_only = true});
  const TensorParameters theta = weights_in(folder, network.layout);
  std::vector<Tensor> weights = weights_of(network.layout, theta);
  for (Tensor& w : weights) w = w.detach().set_requires_grad(true);
  in.x.set_requires_grad(true);

  // Which tensor each vjp of the file is by.
  std::vector<std::pair<std::string, Tensor>> by;
  for (const io::TensorInfo& t : io.reader().tensors()) {
    if (!t.name.starts_with("vjp_")) continue;
    std::string x = t.name.substr(4);
    if (x.starts_with("time_linear_")) x.insert(4, "_embedding");
    const auto named = std::find_if(network.layout.begin(), network.layout.end(), [&](const TensorShape& parameter) {
      return with_underscores(parameter.name) == x;
    });
    if (x == "sample")
      by.emplace_back(t.name, in.x);
    else if (named != network.layout.end())
      by.emplace_back(t.name, weights[static_cast<std::size_t>(named - network.layout.begin())]);
    else
      io.refuse(t.name, "the model has no such parameter");
  }

  const Tensor out = evaluate(network, weights, in);
  std::vector<TensorDifference> rows{{"output", difference(out.detach(), io.read("output", out.sizes()))}};
  if (by.empty()) return rows;
  std::vector<Tensor> variables;
  for (const auto& [name, x] : by) variables.push_back(x);
  const std::vector<Tensor> products =
      torch::autograd::grad({out}, variables, {io.read("cotangent", out.sizes())}, false, false, /*allow_unused=*/true);
  for (std::size_t i = 0; i < by.size(); ++i) {
    const Tensor product = products[i].defined() ? products[i] : at::zeros_like(variables[i]);
    rows.push_back({by[i].first, difference(product, io.read(by[i].first, product.sizes()))});
  }
  return rows;
}

}  // namespace implicit_diffusion
