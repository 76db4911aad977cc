// Batches of a data set as tensors: what training draws (torch/training.hpp).
#pragma once

#include "implicit_diffusion/data/batches.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace implicit_diffusion {

// Batch k of the data set becomes the samples of round k, in [-1, 1]; prepared ahead by a thread of its own, which is
// no state. Processes that share the samples all read the batch, and each keeps its part.
class ImageSource {
 public:
  // `batches` must live as long. `labels`: whether the samples get theirs.
  ImageSource(const data::Batches& batches, bool labels, std::size_t shard = default_shard)
      : ahead_(batches), labels_(labels), shard_(shard) {}

  void draw(TensorSamples& samples, std::int64_t round);

 private:
  data::BatchesAhead ahead_;
  bool labels_;
  std::size_t shard_;
};

// Images `first` to first + count - 1 of a data set in the wanted shape, as one tensor; with labels where there are
// some and they are wanted. `order`: which images, none for their own order. Of processes, each has a part.
TensorSamples images_of(const data::DataSet& set, const data::ImageShape& shape, std::size_t first, std::size_t count,
                        bool labels, std::size_t shard = default_shard, std::span<const std::uint32_t> order = {},
                        Processes* processes = nullptr);

}  // namespace implicit_diffusion
