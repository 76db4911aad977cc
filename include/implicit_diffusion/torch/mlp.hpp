// Networks for points in R^d: layers of units with SiLU, silu(x) = x / (1 + e^-x), between them.
//
//     h_0 = W_0 x + b_0 + embedding of the time + embedding of the label
//     h_i = W_i silu(h_{i-1}) + b_i,                  i < widths.size()
//     f   = W silu(h) + b
//
// As an energy the network is confined by a parabola:
//
//     V(x) = confinement |x|^2 / 2 + f(x)
//
// f grows at most linearly, as silu' is bounded, so exp(-V) is integrable whatever the weights are.
#pragma once

#include "implicit_diffusion/torch/network.hpp"

#include <cstdint>
#include <vector>

namespace implicit_diffusion {

struct MlpConfig {
  std::int64_t inputs = 2;
  std::int64_t outputs = 2;
  std::vector<std::int64_t> widths{128, 128, 128};  // of the layers between
  // Sines and cosines of the time, of periods 2 pi to 20,000 pi, which suits times from 0 to about 1000. 0: no time.
  std::int64_t time_features = 64;
  std::int64_t classes = 0;  // labels are below it; 0: no labels
};

struct MlpEnergyConfig {
  std::int64_t inputs = 2;
  std::vector<std::int64_t> widths{128, 128};
  double confinement = 0.1;  // the law is about 1 / sqrt(confinement) wide where f is flat
};

// Both throw a usage Error that names the field unless sizes are positive, the time features even, and the confinement
// positive. initial_parameters makes weights to begin with.
Network make_mlp(const MlpConfig& config = {});               // (n, outputs)
Network make_mlp_energy(const MlpEnergyConfig& config = {});  // (n)

}  // namespace implicit_diffusion
