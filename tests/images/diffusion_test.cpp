// Diffusion models of images: made, written, read; samples by chains and as diffusers samples.
#include "implicit_diffusion/images/diffusion.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"
#include "models/small_model.hpp"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace implicit_diffusion {
namespace {

Diffusion small(Prediction prediction = Prediction::v) {
  return new_diffusion(small_model().network, Noise(1), prediction, 4, false);
}

double largest(const at::Tensor& x) { return x.abs().max().item<double>(); }

TEST(Diffusion, IsWrittenAndRead) {
  const io::TemporaryFolder folder;
  const Diffusion model = small();
  save_diffusion(folder.path() / "m", model, model.theta);
  const Diffusion read = load_diffusion(folder.path() / "m");
  EXPECT_EQ(read.theta, model.theta);
  EXPECT_EQ(read.prediction, Prediction::v);
  EXPECT_EQ(read.horizon, 4);
  EXPECT_EQ(read.classes(), 3);
  for (const double tau : {0.001, 0.5, 3.0})
    EXPECT_EQ(read.schedule.network_time(tau), model.schedule.network_time(tau));
  std::filesystem::remove_all(folder.path() / "m/unet");
  EXPECT_ERROR(load_diffusion(folder.path() / "m"), missing, "config.json");
}

TEST(Diffusion, RefusesWhatChainsCannotUse) {
  const io::TemporaryFolder folder;
  Diffusion model = small();
  model.folder.scheduler->prediction_type = SchedulerConfig::Prediction::sample;
  model.folder.origin.reset();
  save_diffusion(folder.path() / "m", model, model.theta);
  EXPECT_ERROR(load_diffusion(folder.path() / "m"), data, "predicts the sample itself");
}

TEST(Diffusion, GivesPlacesTheirLabels) {
  const Diffusion model = small();
  const TensorSamples x = places(model, 5);
  for (std::int64_t i = 0; i < 5; ++i) EXPECT_EQ(x.labels()[i].item<std::int64_t>(), i % 3);
  EXPECT_EQ(places(model, 4, 8, {2}).labels()[3].item<std::int64_t>(), 2);
  EXPECT_ERROR(places(model, 4, 8, {3}), usage, "classes 0 to 2");
  UNetConfig plain = small_model().network;
  plain.num_class_embeds.reset();
  const Diffusion without = new_diffusion(plain, Noise(1), Prediction::v, 4);
  EXPECT_FALSE(places(without, 4).labels().defined());
  EXPECT_ERROR(places(without, 4, 8, {1}), usage, "the model has none");
}

TEST(Samples, AreTheSameForAnyThreadsAndAnyNumber) {
  const Diffusion model = small();
  const ImageChain chain{log_linear_grid(4, 6)};
  const ImageSamples one = sample_images(model.steps(Noise(7), nullptr), model.theta, chain, places(model, 19));
  Workers workers(3);
  const ImageSamples three = sample_images(model.steps(Noise(7), &workers), model.theta, chain, places(model, 19));
  EXPECT_EQ(one.images, three.images);
  const ImageSamples few = sample_images(model.steps(Noise(7), nullptr), model.theta, chain, places(model, 5));
  EXPECT_TRUE(at::equal(few.images.x(), one.images.x().narrow(0, 0, 5)));
  EXPECT_TRUE(one.path_kl.empty());
}

TEST(Samples, KnowTheirPathKl) {
  const Diffusion model = small();
  TensorParameters other = model.theta;
  other.edit().mul_(1.05);
  const ImageChain chain{log_linear_grid(4, 6)};
  const NetworkSteps steps = model.steps(Noise(7), nullptr);
  const ImageSamples same = sample_images(steps, model.theta, chain, places(model, 5), model.theta),
                     moved = sample_images(steps, other, chain, places(model, 5), model.theta);
  for (const double kl : same.path_kl) EXPECT_EQ(kl, 0);
  for (const double kl : moved.path_kl) EXPECT_GT(kl, 0);
}

// Two ways to the same numbers: the steps of diffusers' schedulers on indices, and those of a chain on their noise
// levels, with the same noise. Single precision through 8 steps, whose first enlarge by a few.
TEST(Samples, AgreeWithTheSchedulersOfDiffusers) {
  for (const Prediction prediction : {Prediction::v, Prediction::epsilon}) {
    const Diffusion model = small(prediction);
    const TensorSamples x = places(model, 5);
    const TimeGrid grid = model.schedule.grid(model.schedule.timesteps(8));
    for (const bool ddim : {true, false}) {
      const TensorSamples discrete = sample_discrete(
          model, model.theta, ddim ? DiscreteSampler::ddim : DiscreteSampler::ddpm, 8, 0, x, Noise(7), nullptr);
      const ImageSamples chain = sample_images(model.steps(Noise(7), nullptr), model.theta,
                                               {grid, ddim ? Dynamics::ddim : Dynamics::ddpm, LastStep::noise}, x);
      EXPECT_LT(largest(discrete.x() - chain.images.x()), 1e-3 * largest(chain.images.x())) << ddim;
      EXPECT_GT(largest(discrete.x()), 0.1);
    }
  }
}

TEST(Samples, AreClippedWhereTheSchedulerSaysSo) {
  Diffusion model = small();
  SchedulerConfig scheduler = *model.folder.scheduler;
  scheduler.clip_sample = true;
  scheduler.clip_sample_range = 0.5;
  model.schedule = DiscreteSchedule(scheduler);
  const TensorSamples x =
      sample_discrete(model, model.theta, DiscreteSampler::ddim, 8, 0, places(model, 5), Noise(7), nullptr);
  EXPECT_LE(largest(x.x()), 0.5 + 1e-6);  // the last step returns x_0
}

}  // namespace
}  // namespace implicit_diffusion
