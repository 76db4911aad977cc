#include "implicit_diffusion/langevin/means.hpp"

namespace implicit_diffusion {

// numbers(block, out) writes one for each sample.
template <class Numbers>
double SampleMeans::mean(const Population<float>& x, Numbers&& numbers) {
  const auto total = sums_(workers_, x.tiles(), 1, blocks_per_thread, [&](std::size_t b, std::span<double> sum) {
    const Block<const float> block = x.block(b);
    BlockArray<float> f;
    numbers(block, f.data());
    sum[0] = sum_of({f.data(), block.size});
  });
  return total[0] / static_cast<double>(x.total());
}

double SampleMeans::value(const Potential<float>& v, const Population<float>& x) {
  return mean(x, [&](const Block<const float>& block, float* out) { v.values(block, out); });
}

double SampleMeans::reward(const Reward<float>& r, const Population<float>& x) {
  return mean(x, [&](const Block<const float>& block, float* out) { r.values(block, out); });
}

}  // namespace implicit_diffusion
