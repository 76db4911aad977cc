// theta as a tensor is a value that every optimizer works on; tiles are views with our noise.
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/any.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"
#include "implicit_diffusion/torch/steps.hpp"
#include "torch/networks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace implicit_diffusion {
namespace {

using torch_tests::host;

static_assert(Parameters<TensorParameters> && Streamable<TensorParameters> && Streamable<TensorSamples>);
static_assert(Tiles<TensorTiles> && ReverseSteps<NetworkSteps> && Energy<NetworkEnergy>);

TEST(TensorParameters, AreValues) {
  TensorParameters a(at::arange(6, at::kFloat).view({2, 3}));
  const TensorParameters b = a;
  EXPECT_TRUE(a.same(b)) << "a copy that is only read costs nothing";
  a.edit()[1] = 7;
  EXPECT_EQ(host(a), (std::vector<double>{0, 7, 2, 3, 4, 5}));
  EXPECT_EQ(host(b), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_FALSE(a == b);
  a = b;
  EXPECT_EQ(a, b);
  TensorParameters moved = std::move(a);
  moved.edit();  // alone with b
  EXPECT_FALSE(moved.same(b));
  EXPECT_EQ(moved, b);
  EXPECT_EQ(TensorParameters().size(), 0U);
  EXPECT_EQ(host(zeros_like(b)), std::vector<double>(6));
}

TEST(TensorParameters, FindTheFirstThatIsNotFinite) {
  TensorParameters a(5, at::kDouble);
  EXPECT_FALSE(first_nonfinite(a));
  EXPECT_FALSE(first_nonfinite(TensorParameters()));
  a.edit()[4] = std::numeric_limits<double>::infinity();
  a.edit()[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(first_nonfinite(a), 3U);
}

// In double precision an optimizer's steps on a tensor have the bits of those on a vector; in single precision each
// step rounds theta and two moments once, by 6e-8 of their size.
template <class OnVector, class OnTensor>
void expect_the_same_steps(OnVector on_vector, OnTensor on_double, OnTensor on_float) {
  std::vector<double> theta{1, -2, 0.5, 3}, gradient(4);
  TensorParameters wide(at::tensor(theta, at::kDouble)), narrow(at::tensor(theta, at::kFloat));
  for (int k = 0; k < 20; ++k) {
    for (std::size_t j = 0; j < 4; ++j)
      gradient[j] = static_cast<double>(static_cast<float>(std::sin(k + 3.0 * static_cast<double>(j))));
    on_vector.update(theta, gradient, k);
    on_double.update(wide, TensorParameters(at::tensor(gradient, at::kDouble)), k);
    on_float.update(narrow, TensorParameters(at::tensor(gradient, at::kFloat)), k);
  }
  EXPECT_EQ(host(wide), theta);
  EXPECT_LT(torch_tests::relative(narrow, wide), 20 * 3 * 6e-8);
  EXPECT_GT(std::abs(theta[0] - 1), 1e-3) << "nothing moved";
}
TEST(TensorParameters, OptimizersMoveThemAsVectors) {
  using TensorRms = BasicRmsProp<TensorParameters>;
  using TensorAny = BasicAnyOptimizer<TensorParameters>;
  expect_the_same_steps(GradientDescent{{0.1}}, GradientDescent{{0.1}}, GradientDescent{{0.1}});
  expect_the_same_steps(Adam(0.01), BasicAdam<TensorParameters>(0.01), BasicAdam<TensorParameters>(0.01));
  expect_the_same_steps(RmsProp(0.01), TensorRms(0.01), TensorRms(0.01));
  expect_the_same_steps(Adam(0.01), TensorAny::make("adam", 0.01), TensorAny::make("adam", 0.01));
}

TEST(TensorParameters, RefuseOthers) {
  TensorParameters a(3, at::kFloat);
  EXPECT_THROW(GradientDescent{}.update(a, TensorParameters(4, at::kFloat), 0), Error);
  EXPECT_THROW(GradientDescent{}.update(a, TensorParameters(3, at::kDouble), 0), Error);
  EXPECT_THROW(TensorParameters(at::arange(3)), Error);  // integers
  EXPECT_THROW(weights_of({{"w", {2, 2}}}, a), Error);
}

TEST(InitialParameters, FollowTheLayout) {
  const Layout layout{
      {"conv.weight", {4, 2, 3, 3}}, {"conv.bias", {4}}, {"norm.weight", {4}}, {"norm.bias", {4}}, {"scale", {2}}};
  const TensorParameters theta = initial_parameters(layout, Noise(1));
  const std::vector<at::Tensor> w = weights_of(layout, theta);
  const double bound = 1 / std::sqrt(18.0);
  EXPECT_LE(w[0].abs().max().item<double>(), bound);
  // The variance of a uniform number in +-b is b^2 / 3; of 72 of them it is known to 5 / sqrt(72) of that, at most.
  EXPECT_NEAR(w[0].square().mean().item<double>(), bound * bound / 3, bound * bound / 3 * 5 / std::sqrt(72.0));
  EXPECT_GT(w[1].abs().max().item<double>(), 0);
  EXPECT_LE(w[1].abs().max().item<double>(), bound);
  EXPECT_EQ(host(w[2]), std::vector<double>(4, 1.0));
  EXPECT_EQ(host(w[3]), std::vector<double>(4, 0.0));
  EXPECT_EQ(host(w[4]), std::vector<double>(2, 0.0));
  EXPECT_EQ(initial_parameters(layout, Noise(1)), theta);
  EXPECT_FALSE(initial_parameters(layout, Noise(2)) == theta);
}

TEST(TensorSamples, AreValues) {
  TensorSamples a(3, {1, 2}), b = a;
  a.x().fill_(1);
  EXPECT_EQ(host(b.x()), std::vector<double>(6));
  const void* memory = b.x().data_ptr();
  b = a;
  EXPECT_EQ(b.x().data_ptr(), memory) << "a copy of the same shape takes the memory that is there";
  EXPECT_EQ(a, b);
  a.x()[2][0][1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(find_nonfinite(a)->sample, 2U);
  EXPECT_EQ(find_nonfinite(a)->coordinate, 1U);
  EXPECT_FALSE(find_nonfinite(b));
  EXPECT_THROW(TensorSamples(at::zeros({3, 2}), at::zeros({2}, at::kLong)), Error);
  EXPECT_THROW(TensorSamples(3, {2}, at::kFloat, 0), Error);
}

// Whatever the shards, sample i has the numbers of sample i.
TEST(TensorSamples, HaveTheNoiseOfTheirPlaces) {
  const Noise noise(5);
  const StepKey key{.round = 3};
  for (const std::size_t shard : {1, 5, 8, 16, 40}) {
    TensorSamples x(37, {1, 3}, at::kFloat, shard);
    TensorTiles::fill_normals(x, noise, Stream::initial, key);
    for (std::size_t i = 0; i < 37; ++i)
      for (std::size_t j = 0; j < 3; ++j)
        EXPECT_EQ(x.x().data_ptr<float>()[3 * i + j], noise.normal(Stream::initial, key, 3, i, j)) << shard;
  }
}

TEST(TensorReward, IsAFunctionAndItsGradient) {
  TensorSamples x(5, {2}, at::kDouble, 3);
  x.x().copy_(at::arange(10, at::kDouble).view({5, 2}));
  TensorNumbers f = TensorTiles::numbers(x);
  const TensorReward square([](const at::Tensor& y) { return y.square().sum(1); });
  for (std::size_t k = 0; k < 2; ++k) {
    const TensorTile tile = TensorTiles::tile(x, k);
    square.add(tile, 0.5, TensorTiles::numbers_of(f, k));
    const TensorTiles::Scratch slope(tile, 1);
    square.gradient(tile, slope[0]);
    EXPECT_TRUE(at::equal(slope[0].x, 2 * tile.x));
  }
  EXPECT_EQ(f.values, (std::vector<double>{0.5, 6.5, 20.5, 42.5, 72.5}));
  EXPECT_FALSE(square.without_gradient().has_gradient());
  const TensorTile first = TensorTiles::tile(x, 0);
  EXPECT_THROW(TensorReward([](const at::Tensor& y) { return y; }).add(first, 1, f.values.data()), Error);
  EXPECT_THROW(TensorReward([](const at::Tensor& y) { return at::mm(y, y); }).add(first, 1, f.values.data()), Error);
}

}  // namespace
}  // namespace implicit_diffusion
