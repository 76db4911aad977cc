#include "networks/weights.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/safetensors.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

void save_network(const fs::path& folder, const Json& config, const Layout& layout, const TensorParameters& theta) {
  io::make_directory(folder);
  io::write_file(folder / "config.json", config.dump(2) + "\n");
  io::SafetensorsWriter writer;
  const std::vector<at::Tensor> weights = weights_of(layout, theta);
  for (std::size_t i = 0; i < weights.size(); ++i)
    writer.put(layout[i].name, layout[i].shape,
               std::span<const float>(weights[i].data_ptr<float>(), static_cast<std::size_t>(weights[i].numel())));
  writer.write(folder / "model.safetensors");
}

TensorParameters load_network(const fs::path& folder, const Layout& layout) {
  const io::SafetensorsReader reader(folder / "model.safetensors");
  for (const TensorShape& t : layout)  // before memory of that size is asked for
    if (const io::TensorInfo* info = reader.find(t.name); !info || info->shape != t.shape)
      throw Error(ErrorKind::data, reader.where(), t.name + ": it is not there in the shape that the network has");
  TensorParameters theta(elements_of(layout), at::kFloat);
  float* to = theta.edit().data_ptr<float>();
  for (const TensorShape& t : layout) {
    const auto size = static_cast<std::size_t>(elements_of(t.shape));
    reader.read_finite(t.name, {to, size});
    to += size;
  }
  return theta;
}

}  // namespace program
