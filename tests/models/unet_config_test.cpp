#include "implicit_diffusion/models/unet_config.hpp"

#include <gtest/gtest.h>

#include "io/expect_error.hpp"

namespace implicit_diffusion {
namespace {

using Shape = std::vector<std::int64_t>;
using Block = UNetConfig::Block;

UNetConfig parse(const std::string& json) { return parse_unet_config(json, "config.json"); }

Shape shape_of(const std::vector<TensorShape>& layout, const std::string& name) {
  for (const TensorShape& t : layout)
    if (t.name == name) return t.shape;
  return {};
}

// Counts that diffusers' own class gave.
TEST(UNetConfig, CountsTheParametersOfKnownNetworks) {
  const auto ddpm = [](Shape widths, std::size_t attention) {
    UNetConfig c;
    const std::size_t n = widths.size();
    c.block_out_channels = std::move(widths);
    c.down_block_types.assign(n, Block::plain);
    c.up_block_types.assign(n, Block::plain);
    c.down_block_types[attention] = c.up_block_types[n - 1 - attention] = Block::attention;
    c.attention_head_dim = std::nullopt;
    return c;
  };
  const auto cifar = parameter_layout(ddpm({128, 256, 256, 256}, 1));
  EXPECT_EQ(cifar.size(), 328U);
  EXPECT_EQ(element_count(cifar), 35'746'307);
  const auto large = parameter_layout(ddpm({128, 128, 256, 256, 512, 512}, 4));
  EXPECT_EQ(large.size(), 450U);
  EXPECT_EQ(element_count(large), 113'673'219);

  UNetConfig mnist = ddpm({32, 64, 96}, 1);
  mnist.in_channels = mnist.out_channels = 1;
  mnist.attention_head_dim = 8;
  EXPECT_EQ(element_count(parameter_layout(mnist)), 2'502'849);
  UNetConfig labels = ddpm({160, 288, 320, 320}, 2);
  labels.attention_head_dim = 64;
  labels.num_class_embeds = 10;
  EXPECT_EQ(element_count(parameter_layout(labels)), 53'199'587);

  UNetConfig patches = ddpm({32, 64}, 1);
  patches.in_channels = patches.out_channels = 4;
  patches.layers_per_block = 1;
  patches.norm_num_groups = 8;
  patches.attention_head_dim = 32;
  EXPECT_EQ(element_count(parameter_layout(patches)), 703'076);
  patches.num_class_embeds = 10;
  EXPECT_EQ(element_count(parameter_layout(patches)), 704'356);
}

}  // namespace
}  // namespace implicit_diffusion
