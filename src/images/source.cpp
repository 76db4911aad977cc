#include "implicit_diffusion/images/source.hpp"

#include <ATen/ATen.h>

#include <vector>

namespace implicit_diffusion {

namespace {

TensorSamples to_samples(data::Batch batch, bool labels, std::size_t shard, Processes* processes) {
  const data::ImageShape& s = batch.shape;
  const auto n = static_cast<std::int64_t>(batch.images.size());
  const at::Tensor x = at::from_blob(batch.values.data(),
                                     {n, static_cast<std::int64_t>(s.channels), static_cast<std::int64_t>(s.height),
                                      static_cast<std::int64_t>(s.width)},
                                     at::kFloat);
  at::Tensor of;
  if (labels && !batch.labels.empty()) {
    of = at::empty({n}, at::kLong);
    for (std::size_t i = 0; i < batch.labels.size(); ++i) of.data_ptr<std::int64_t>()[i] = batch.labels[i];
  }
  return TensorSamples(x, of, shard, processes);  // a copy
}

}  // namespace

void ImageSource::draw(TensorSamples& samples, std::int64_t round) {
  samples = to_samples(ahead_.take(round), labels_, shard_, samples.processes());
}

TensorSamples images_of(const data::DataSet& set, const data::ImageShape& shape, std::size_t first, std::size_t count,
                        bool labels, std::size_t shard, std::span<const std::uint32_t> order, Processes* processes) {
  data::Batch batch{shape, {}, {}, std::vector<float>(count * shape.values())};
  const TensorSamples like(count, {0}, at::kFloat, shard, processes);  // which of them are to be here
  for (std::size_t j = 0; j < count; ++j) {
    const std::size_t i = order.empty() ? first + j : order[first + j];
    if (like.first() <= j && j < like.first() + like.size()) {
      const data::Image image = data::fit(set.image(i), shape);
      data::to_signed(image.values, std::span(batch.values).subspan(j * shape.values(), shape.values()));
    }
    batch.images.push_back(static_cast<std::uint32_t>(i));
    if (const auto label = set.label(i)) batch.labels.push_back(static_cast<std::uint32_t>(*label));
  }
  return to_samples(std::move(batch), labels, shard, processes);
}

}  // namespace implicit_diffusion
