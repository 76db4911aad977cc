// write_model CONFIG.json FOLDER: a model with that config and fresh weights, and in FOLDER/io.safetensors what it does
// to made-up samples, for scripts/check-networks.
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/torch/model.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cstdio>

using namespace implicit_diffusion;

namespace {

at::Tensor normals(const std::vector<std::int64_t>& shape, Stream stream) {
  at::Tensor x = at::empty(shape);
  for (std::int64_t j = 0; j < x.numel(); ++j)
    x.data_ptr<float>()[j] = Noise(2).normal(stream, {}, 1, static_cast<std::size_t>(j), 0);
  return x;
}

NetworkInput input_for(const UNetConfig& config) {
  constexpr std::int64_t n = 3;
  NetworkInput in;
  in.x = normals({n, config.in_channels, config.sample_size.front(), config.sample_size.back()}, Stream::initial);
  in.t = at::tensor({1.0F, 3.0F, 17.0F});
  if (config.class_embed_type == UNetConfig::ClassEmbedding::identity)
    in.labels = normals({n, config.embedding_width()}, Stream::component);
  else if (config.class_embed_type || config.num_class_embeds)
    in.labels = at::tensor({std::int64_t{1}, std::int64_t{4}, std::int64_t{2}});
  return in;
}

}  // namespace

int main(int count, char** arguments) try {
  if (count != 3) throw Error(ErrorKind::usage, "write_model", "give CONFIG.json and FOLDER");
  ModelFolder model;
  model.network = parse_unet_config(io::read_file(arguments[1]), arguments[1]);
  const Network network = make_unet(model.network);
  const TensorParameters theta = initial_unet(model.network, Noise(1));
  save_model(arguments[2], model, theta);

  const NetworkInput in = input_for(model.network);
  in.x.set_requires_grad(true);
  std::vector<at::Tensor> variables = weights_of(network.layout, theta);
  for (at::Tensor& w : variables) w = w.detach().set_requires_grad(true);
  const at::Tensor out = evaluate(network, variables, in);
  const at::Tensor c = normals(out.sizes().vec(), Stream::sampling);
  variables.push_back(in.x);
  std::vector<at::Tensor> products = torch::autograd::grad({out}, variables, {c}, false, false, true);

  io::SafetensorsWriter writer;
  std::vector<at::Tensor> kept;
  const auto put = [&](const std::string& name, const at::Tensor& t) {
    kept.push_back(t.detach().contiguous());
    const auto values = static_cast<std::size_t>(t.numel());
    if (t.scalar_type() == at::kLong)
      writer.put(name, t.sizes().vec(), std::span<const std::int64_t>(kept.back().data_ptr<std::int64_t>(), values));
    else
      writer.put(name, t.sizes().vec(), std::span<const float>(kept.back().data_ptr<float>(), values));
  };
  const bool learned = model.network.time_embedding_type == UNetConfig::TimeEmbedding::learned;
  put("sample", in.x);
  put("timestep", learned ? in.t.to(at::kLong) : in.t);
  if (in.labels.defined()) put("class_labels", in.labels);
  put("output", out);
  put("cotangent", c);
  put("vjp_sample", products.back());
  for (std::size_t i = 0; i < network.layout.size(); ++i) {
    std::string name = "vjp_" + network.layout[i].name;
    std::replace(name.begin(), name.end(), '.', '_');
    if (products[i].defined()) put(name, products[i]);
  }
  writer.write(std::string(arguments[2]) + "/io.safetensors");
} catch (const Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
