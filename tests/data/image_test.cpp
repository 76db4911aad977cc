#include "implicit_diffusion/data/image.hpp"

#include "data/support.hpp"

#include <cmath>

namespace implicit_diffusion::data {
namespace {

// The formula of image.hpp as it stands there, in double precision.
double covered_mean(const Image& image, std::size_t c, std::size_t u, std::size_t v, std::size_t height,
                    std::size_t width) {
  const auto [channels, h, w] = image.shape;
  const auto overlap = [](double i, double begin, double end) {
    return std::max(0.0, std::min(i + 1, end) - std::max(i, begin));
  };
  const double rows = static_cast<double>(h) / static_cast<double>(height),
               columns = static_cast<double>(w) / static_cast<double>(width);
  double sum = 0;
  for (std::size_t i = 0; i < h; ++i)
    for (std::size_t j = 0; j < w; ++j)
      sum += image.values[(c * h + i) * w + j] *
             overlap(static_cast<double>(i), static_cast<double>(u) * rows, static_cast<double>(u + 1) * rows) *
             overlap(static_cast<double>(j), static_cast<double>(v) * columns, static_cast<double>(v + 1) * columns);
  return sum / (rows * columns);
}

// Rounded to the nearest, so at most one half away; 1e-9 is more than the rounding of some hundred doubles below 255.
TEST(Resize, IsTheMeanOfTheCoveredArea) {
  for (const auto& [h, w, height, width] : std::vector<std::array<std::size_t, 4>>{
           {8, 8, 4, 4}, {9, 7, 4, 5}, {5, 5, 5, 2}, {3, 4, 7, 9}, {1, 1, 3, 2}, {16, 11, 1, 1}}) {
    const Image image = random_image({3, h, w}, h * 100 + w);
    const Image small = resize_box(image, height, width);
    ASSERT_EQ(small.shape, (ImageShape{3, height, width}));
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t u = 0; u < height; ++u)
        for (std::size_t v = 0; v < width; ++v)
          EXPECT_NEAR(small.values[(c * height + u) * width + v], covered_mean(image, c, u, v, height, width),
                      0.5 + 1e-9);
  }
}

TEST(Resize, HalvesByTheMeanOfFourPixelsHalvesUp) {
  const Image image{{1, 2, 4}, {0, 1, 10, 20, 1, 0, 30, 41}};
  EXPECT_EQ(resize_box(image, 1, 2).values, (std::vector<std::uint8_t>{1, 25}));  // 0.5 and 25.25
  EXPECT_EQ(resize_box(image, 2, 4), image);
}

TEST(Crop, TakesTheMiddle) {
  const Image image{{1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
  EXPECT_EQ(crop_centre(image, 1, 2).values, (std::vector<std::uint8_t>{5, 6}));
  EXPECT_EQ(crop_centre(image, 2, 3).values, (std::vector<std::uint8_t>{0, 1, 2, 4, 5, 6}));
  EXPECT_ERROR(crop_centre(image, 4, 1), usage, "4 x 1 of an image of 3 x 4");
}

TEST(Fit, ScalesTheShortSideAndCropsTheLongOne) {
  const Image image = random_image({3, 20, 30}, 4);
  EXPECT_EQ(fit(image, {3, 10, 10}), crop_centre(resize_box(image, 10, 15), 10, 10));
  const Image tall = random_image({3, 31, 20}, 5);
  EXPECT_EQ(fit(tall, {3, 8, 8}), crop_centre(resize_box(tall, 12, 8), 8, 8));  // 31 * 8 / 20 = 12.4
  EXPECT_EQ(fit(tall, {3, 8, 4}), crop_centre(resize_box(tall, 8, 5), 8, 4));   // 20 * 8 / 31 = 5.2
  EXPECT_EQ(fit(image, image.shape), image);
  EXPECT_EQ(fit(image, {1, 20, 30}), with_channels(image, 1));
}

// Scaled until it covers 64 x 64 it would have 4 * 10^9 pixels.
TEST(Fit, TakesAnImageOfAnyProportions) {
  const Image image = random_image({1, 1, 1'000'000}, 6);
  const Image middle = fit(image, {1, 64, 64});
  for (std::size_t i = 0; i < middle.values.size(); ++i)
    EXPECT_EQ(middle.values[i], image.values[i % 64 < 32 ? 499'999 : 500'000]) << i;
}

TEST(Channels, GreyByTheWeightsOfItu601) {
  const Image colours{{3, 1, 4}, {255, 0, 0, 100, 0, 255, 0, 100, 0, 0, 255, 100}};
  EXPECT_EQ(with_channels(colours, 1).values, (std::vector<std::uint8_t>{76, 150, 29, 100}));
  EXPECT_EQ(with_channels(Image{{1, 1, 2}, {3, 4}}, 3).values, (std::vector<std::uint8_t>{3, 4, 3, 4, 3, 4}));
  EXPECT_ERROR(with_channels(Image{{2, 1, 1}, {3, 4}}, 3), usage, "3 cannot be made of 2");
}

TEST(Values, AreInMinusOneToOneAndBack) {
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t b = 0; b < 256; ++b) bytes[b] = static_cast<std::uint8_t>(b);
  std::vector<float> x(256);
  to_signed(bytes, x);
  EXPECT_EQ(x[0], -1.0F);
  EXPECT_EQ(x[255], 1.0F);
  for (std::size_t b = 0; b < 256; ++b) {
    EXPECT_NEAR(x[b], static_cast<double>(b) / 127.5 - 1, 6e-8);
    EXPECT_EQ(to_byte(x[b]), b);
  }
  EXPECT_EQ(to_byte(std::nanf("")), 0);
  EXPECT_EQ(to_byte(-INFINITY), 0);
  EXPECT_EQ(to_byte(INFINITY), 255);
}

TEST(Flip, MirrorsEveryRowOfEveryChannel) {
  Image image{{2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}};
  flip_horizontally(image);
  EXPECT_EQ(image.values, (std::vector<std::uint8_t>{3, 2, 1, 6, 5, 4, 9, 8, 7, 12, 11, 10}));
}

}  // namespace
}  // namespace implicit_diffusion::data
