// Numbers in [-1, 1) that any language can make: of a name and a place. scripts/check-networks makes the same.
#pragma once

#include <ATen/ATen.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace implicit_diffusion {

inline at::Tensor made_up(const std::string& name, const std::vector<std::int64_t>& shape) {
  double phase = 0;
  for (const char c : name) phase += static_cast<unsigned char>(c);
  at::Tensor x = at::empty(shape, at::kDouble);
  for (std::int64_t j = 0; j < x.numel(); ++j) {
    const double s = std::sin(12.9898 * static_cast<double>(j) + phase) * 43758.5453;
    x.data_ptr<double>()[j] = 2 * (s - std::floor(s)) - 1;
  }
  return x;
}

// <made_up, v>
inline double made_up_sum(const std::string& name, const at::Tensor& v) {
  return (made_up(name, v.sizes().vec()) * v.detach()).sum().item<double>();
}

}  // namespace implicit_diffusion
