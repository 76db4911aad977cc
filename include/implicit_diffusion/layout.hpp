// What the parameters of a network are: tensors with names and shapes, in an order.
//
// They lie in theta one after the other, each row by row. Names are those that other programs know them by, so a model
// can be exchanged; this header knows neither files nor LibTorch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace implicit_diffusion {

struct TensorShape {
  std::string name;
  std::vector<std::int64_t> shape;

  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};
using Layout = std::vector<TensorShape>;

// The numbers in a tensor of that shape, and in all of a layout.
inline std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}
inline std::int64_t elements_of(const Layout& layout) {
  std::int64_t sum = 0;
  for (const TensorShape& tensor : layout) sum += elements_of(tensor.shape);
  return sum;
}

}  // namespace implicit_diffusion
