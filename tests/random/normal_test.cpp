// The law of the noise: moments, tails, distribution function and correlations of many draws.
//
// Seeds are fixed, so the tests are deterministic; the false-alarm rates below say how often a correct generator with
// another seed would fail. For each check a slightly wrong generator is shown to be rejected by the same code.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "implicit_diffusion/random/noise.hpp"

namespace implicit_diffusion {
namespace {

#ifdef __OPTIMIZE__
constexpr std::int64_t many = 100'000'000;
#else
constexpr std::int64_t many = 10'000'000;
#endif

// The next 2^15 normals at a time: dimension 2, 1024 groups, step after step.
constexpr std::size_t batch = 1024 * 2 * noise_lanes;
template <class F>
void for_batches(const Noise& noise, std::int64_t draws, F&& f) {
  std::vector<float> z(batch);
  for (std::int64_t k = 0; k * static_cast<std::int64_t>(batch) < draws; ++k) {
    noise.normals(Stream::sampling, {0, k}, 2, 0, 1024, z.data());
    f(z);
  }
}

struct Identity {
  float operator()(float z) const { return z; }
};

constexpr std::array<double, 3> levels = {4.0, 5.0, 5.5};

struct Summary {
  double draws = 0.0;
  std::array<double, 6> moments{};  // mean of z^k, k = 1..6
  std::array<double, 3> beyond{};   // how many have |z| > level
};

template <class Transform>
Summary summarise(std::uint64_t seed, Transform transform) {
  Summary s;
  std::array<double, 6> sums{};
  for_batches(Noise{seed}, many, [&](const std::vector<float>& zs) {
    std::array<double, 6> part{};
    std::array<std::int64_t, 3> count{};
    for (const float raw : zs) {
      const double z = transform(raw);
      double power = z;
      for (double& sum : part) {
        sum += power;
        power *= z;
      }
      if (std::abs(z) > levels[0]) {
        for (std::size_t i = 0; i < 3; ++i) count[i] += std::abs(z) > levels[i];
      }
    }
    for (std::size_t k = 0; k < 6; ++k) sums[k] += part[k];
    for (std::size_t i = 0; i < 3; ++i) s.beyond[i] += static_cast<double>(count[i]);
    s.draws += static_cast<double>(zs.size());
  });
  for (std::size_t k = 0; k < 6; ++k) s.moments[k] = sums[k] / s.draws;
  return s;
}

// The largest deviation of the moments in standard errors: the mean of z^k is E z^k = (k - 1)!! or 0, with standard
// error sqrt((E z^2k - (E z^k)^2) / n). Six checks at 5 of them: false alarms 3.5e-6. (Draws end at 6.66; what is cut
// off changes the sixth moment by 3e-6, and its standard error is 0.01.)
double worst_moment(const Summary& s) {
  constexpr std::array<double, 6> mean = {0, 1, 0, 3, 0, 15};
  constexpr std::array<double, 6> variance = {1, 3 - 1, 15, 105 - 9, 945, 10395 - 225};
  double worst = 0.0;
  for (std::size_t k = 0; k < 6; ++k) {
    worst = std::max(worst, std::abs(s.moments[k] - mean[k]) / std::sqrt(variance[k] / s.draws));
  }
  return worst;
}

// P(Poisson(mean) <= count) and P(Poisson(mean) >= count), summed directly.
double poisson_below(double mean, double count) {
  double sum = 0.0;
  for (double k = 0.0; k <= count; ++k) sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
  return sum;
}
double poisson_above(double mean, double count) {
  double sum = 0.0;
  for (double k = count; k < count + 50.0 + 10.0 * std::sqrt(mean); ++k) {
    sum += std::exp(k * std::log(mean) - mean - std::lgamma(k + 1.0));
  }
  return sum;
}

// The smallest one-sided probability of the counts beyond 4, 5 and 5.5. It is exact where 5 standard deviations would
// not be: at 5.5 only 3.8 draws in 10^8 are expected. Six sides at 2.9e-7, which is 5 sigma of a normal: false alarms
// 1.7e-6.
constexpr double least_probability = 2.9e-7;
double worst_tail(const Summary& s) {
  double worst = 1.0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double expected = s.draws * std::erfc(levels[i] / std::numbers::sqrt2);
    worst = std::min({worst, poisson_below(expected, s.beyond[i]), poisson_above(expected, s.beyond[i])});
  }
  return worst;
}

TEST(Normal, MomentsAndTails) {
  const Summary s = summarise(1, Identity{});
  EXPECT_LT(worst_moment(s), 5.0);
  EXPECT_GT(worst_tail(s), least_probability);
}

TEST(Normal, WrongScaleIsRejectedByTheMoments) {
  EXPECT_GT(worst_moment(summarise(1, [](float z) { return 1.002f * z; })), 5.0);
}

// Draws that end at 4.9, as with 17 bits for the radius: moments cannot see it.
TEST(Normal, ShortTailsAreRejectedByTheTails) {
  const Summary s = summarise(1, [](float z) { return std::clamp(z, -4.9f, 4.9f); });
  EXPECT_LT(worst_moment(s), 5.0);
  if (many < 100'000'000) GTEST_SKIP() << "too few draws to see the tails";
  EXPECT_LT(worst_tail(s), least_probability);
}

// sqrt(n) sup |F_n - F|, which is above c with probability 2 exp(-2 c^2): 1e-6 at c = 2.694. The supremum is taken over
// 2^16 quantiles of F instead of all draws: it can only be smaller, by less than 2^-16 (0.05 with 10^7 draws), and
// nothing need be sorted.
constexpr double kolmogorov_limit = 2.694;
double kolmogorov(const Noise& noise, float shift) {
  constexpr std::size_t bins = 65'536;
  std::vector<double> count(bins);
  double n = 0.0;
  for_batches(noise, 10'000'000, [&](const std::vector<float>& zs) {
    for (const float z : zs) {
      const double f = 0.5 * std::erfc(-(z + shift) / std::numbers::sqrt2);
      ++count[std::min(bins - 1, static_cast<std::size_t>(f * bins))];
    }
    n += static_cast<double>(zs.size());
  });
  double below = 0.0, worst = 0.0;
  for (std::size_t i = 0; i < bins; ++i) {
    below += count[i];
    worst = std::max(worst, std::abs(below / n - static_cast<double>(i + 1) / bins));
  }
  return std::sqrt(n) * worst;
}

TEST(Normal, KolmogorovSmirnov) {
  EXPECT_LT(kolmogorov(Noise{2}, 0.0f), kolmogorov_limit);
  // |F_n - F| is 0.004 phi(0) = 0.0016 then, or 5 with 10^7 draws.
  EXPECT_GT(kolmogorov(Noise{2}, 0.004f), kolmogorov_limit) << "a mean of 0.004 must be seen";
}

// Pairs of draws that ought to be independent: the mean of x y has standard error 1 / sqrt(n), that of (x^2 - 1)(y^2 -
// 1) twice that, as Var(z^2) = 2. In units of these.
struct Pairs {
  double n = 0.0, product = 0.0, squares = 0.0;

  void add(float x, float y) {
    n += 1.0;
    product += static_cast<double>(x) * y;
    squares += (static_cast<double>(x) * x - 1.0) * (static_cast<double>(y) * y - 1.0);
  }
  double worst() const { return std::max(std::abs(product), 0.5 * std::abs(squares)) / std::sqrt(n); }
};

// Sixteen checks at 5 standard errors: false alarms 9e-6.
TEST(Normal, NeighboursAreUncorrelated) {
  constexpr std::size_t dimension = 3, groups = 64, size = groups * dimension * noise_lanes;
  Pairs box_muller_pair, other_pair, lanes, next_group, steps, rounds, streams, seeds;
  std::vector<float> z(size), next_step(size), next_round(size), other_stream(size), other_seed(size);
  for (std::int64_t k = 0; k < 500; ++k) {
    const auto fill = [&](std::uint64_t seed, Stream stream, StepKey step, std::vector<float>& out) {
      Noise{seed}.normals(stream, step, dimension, 0, groups, out.data());
    };
    fill(3, Stream::sampling, {k, 2 * k}, z);
    fill(3, Stream::sampling, {k, 2 * k + 1}, next_step);
    fill(3, Stream::sampling, {k + 1, 2 * k}, next_round);
    fill(3, Stream::reference, {k, 2 * k}, other_stream);
    fill(4, Stream::sampling, {k, 2 * k}, other_seed);
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t vector = i / noise_lanes, lane = i % noise_lanes;
      if (vector % 2 == 0) box_muller_pair.add(z[i], z[i + noise_lanes]);
      if (vector % 4 < 2) other_pair.add(z[i], z[i + 2 * noise_lanes]);
      if (lane % 2 == 0) lanes.add(z[i], z[i + 1]);
      if (vector / dimension % 2 == 0) next_group.add(z[i], z[i + dimension * noise_lanes]);
      steps.add(z[i], next_step[i]);
      rounds.add(z[i], next_round[i]);
      streams.add(z[i], other_stream[i]);
      seeds.add(z[i], other_seed[i]);
    }
  }
  EXPECT_LT(box_muller_pair.worst(), 5.0);
  EXPECT_LT(other_pair.worst(), 5.0);
  EXPECT_LT(lanes.worst(), 5.0);
  EXPECT_LT(next_group.worst(), 5.0);
  EXPECT_LT(steps.worst(), 5.0);
  EXPECT_LT(rounds.worst(), 5.0);
  EXPECT_LT(streams.worst(), 5.0);
  EXPECT_LT(seeds.worst(), 5.0);
}

// The two normals of a pair with one radius for all: uncorrelated, each of the right variance, and yet dependent. The
// squares show it.
TEST(Normal, DependentPairsAreRejected) {
  Pairs pairs;
  for (std::size_t i = 0; i < 10'000; ++i) {
    const SineCosine<float> direction =
        sine_cosine<float>(static_cast<std::int32_t>(Noise{5}.bits(Stream::user, {}, 1, i, 0)));
    pairs.add(std::numbers::sqrt2_v<float> * direction.cosine, std::numbers::sqrt2_v<float> * direction.sine);
  }
  EXPECT_GT(pairs.worst(), 5.0);
}

// Uniforms: mean 1/2 and variance 1/12 of the uniform law give standard errors sqrt(1/12 / n) and sqrt(1/180 / n). Two
// checks at 5.
TEST(Uniform, MeanAndVariance) {
  constexpr int n = 1'000'000;
  double sum = 0.0, squares = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    const double u = Noise{6}.uniform(Stream::minibatch, {0, 0}, 1, i, 0) - 0.5;
    sum += u;
    squares += u * u;
  }
  EXPECT_LT(std::abs(sum / n), 5.0 * std::sqrt(1.0 / 12.0 / n));
  EXPECT_LT(std::abs(squares / n - 1.0 / 12.0), 5.0 * std::sqrt(1.0 / 180.0 / n));
}

}  // namespace
}  // namespace implicit_diffusion
