// The noise as a function: its definition, and that all ways of asking give the same bits. Its law is in
// normal_test.cpp.
#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/isa.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace implicit_diffusion {
namespace {

struct Request {
  std::uint64_t seed;
  Stream stream;
  StepKey step;
  std::size_t dimension, sample, coordinate;
};

// Requests from all over what is allowed.
Request random_request(std::mt19937_64& random) {
  const std::size_t dimension = 1 + random() % 40;
  const auto round = static_cast<std::int64_t>(random()) >> (8 + random() % 50);
  return {random(),
          static_cast<Stream>(random() % 256),
          {round, static_cast<std::int64_t>(random() >> (32 + random() % 31))},
          dimension,
          random() % ((std::uint64_t{1} << 34) / 40),
          random() % dimension};
}

// The words of the block a request falls into, by Random123 and the packing that random/noise.hpp documents.
r123::Philox4x32::ctr_type documented_words(const Request& r) {
  const std::uint64_t v = (r.sample / 16) * r.dimension + r.coordinate;
  const auto round = static_cast<std::uint64_t>(r.step.round);
  const auto low = [](std::uint64_t a) { return static_cast<std::uint32_t>(a); };
  const std::uint64_t c3 = (std::uint64_t{static_cast<std::uint8_t>(r.stream)} << 24) | ((round >> 32) & 0xffffff);
  return r123::Philox4x32{}(
      {{low((v / 4) * 16 + r.sample % 16), low(static_cast<std::uint64_t>(r.step.index)), low(round), low(c3)}},
      {{low(r.seed), low(r.seed >> 32)}});
}

TEST(Noise, BitsAreTheDocumentedWordOfPhilox) {
  std::mt19937_64 random{2};
  for (int k = 0; k < 10'000; ++k) {
    const Request r = random_request(random);
    const std::uint32_t expected = documented_words(r)[((r.sample / 16) * r.dimension + r.coordinate) % 4];
    const Noise noise{r.seed};
    ASSERT_EQ(noise.bits(r.stream, r.step, r.dimension, r.sample, r.coordinate), expected);
    ASSERT_EQ(noise.uniform(r.stream, r.step, r.dimension, r.sample, r.coordinate), (expected + 0.5) / 0x1p32);
  }
}

// Against Box-Muller in double precision, from the same u. The radius errs by at most 1.25 ulp (log, halved by the
// root) and 0.5 (root), the direction by 2.2e-7 absolutely, the product by 0.5 ulp: 1.7 x 2^-23 + 2.2e-7 = 4.3e-7 of
// the radius.
TEST(Noise, NormalsAreBoxMullerOfTheDocumentedWords) {
  std::mt19937_64 random{3};
  double worst = 0.0;
  for (int k = 0; k < 100'000; ++k) {
    const Request r = random_request(random);
    const auto w = documented_words(r);
    const std::size_t word = ((r.sample / 16) * r.dimension + r.coordinate) % 4;
    const std::uint32_t a = w[word / 2 * 2], b = w[word / 2 * 2 + 1];
    const float u = static_cast<float>(static_cast<float>(a >> 1) * 0x1p-31) + 0x1p-32f;
    const double radius = std::sqrt(-2.0 * std::log(static_cast<double>(u)));
    const double angle = std::numbers::pi / 2 * static_cast<std::int32_t>(b) / 0x1p31;
    const double expected = radius * (word % 2 == 0 ? (b & 1 ? -1 : 1) * std::cos(angle) : std::sin(angle));
    const float got = Noise{r.seed}.normal(r.stream, r.step, r.dimension, r.sample, r.coordinate);
    if (radius > 0) worst = std::max(worst, std::abs(got - expected) / radius);
  }
  EXPECT_LE(worst, 4.3e-7);
  EXPECT_GT(worst, 1e-8) << "nothing was compared";
}

TEST(Noise, ExtremeBitsGiveFiniteNormals) {
  for (const std::uint32_t a : {0u, 1u, 2u, 3u, 0x7fffffffu, 0x80000000u, 0xfffffffdu, 0xfffffffeu, 0xffffffffu}) {
    for (const std::uint32_t b : {0u, 1u, 0x3fffffffu, 0x40000000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      const NormalPair<float> z = box_muller<float>(static_cast<std::int32_t>(a), static_cast<std::int32_t>(b));
      ASSERT_TRUE(std::isfinite(z.first) && std::isfinite(z.second)) << a << ' ' << b;
      ASSERT_LT(std::hypot(z.first, z.second), 6.6605f);
    }
  }
  const NormalPair<float> largest = box_muller<float>(0, 0);
  EXPECT_NEAR(largest.first, std::sqrt(64.0 * std::numbers::ln2), 1e-5);
}

TEST(Noise, BlockFillEqualsSingleDraws) {
  const Noise noise{11};
  const StepKey step{-3, 17};
  const std::size_t far = (std::size_t{1} << 28) / 5 - 20;
  for (const std::size_t dimension : {1u, 2u, 3u, 4u, 5u}) {
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{4},
                                    std::size_t{7}, std::size_t{8}, far}) {
      for (const std::size_t groups : {0u, 1u, 2u, 3u, 4u, 5u, 7u, 9u}) {
        const float canary = 1234.5f;
        std::vector<float> out(groups * dimension * noise_lanes + 1, canary);
        noise.normals(Stream::sampling, step, dimension, first, groups, out.data());
        ASSERT_EQ(out.back(), canary) << "written beyond the end";
        for (std::size_t g = first; g < first + groups; ++g) {
          for (std::size_t coordinate = 0; coordinate < dimension; ++coordinate) {
            for (std::size_t lane = 0; lane < noise_lanes; ++lane) {
              const float filled = out[((g - first) * dimension + coordinate) * noise_lanes + lane];
              const float drawn = noise.normal(Stream::sampling, step, dimension, noise_lanes * g + lane, coordinate);
              ASSERT_EQ(std::bit_cast<std::uint32_t>(filled), std::bit_cast<std::uint32_t>(drawn))
                  << "dimension " << dimension << " group " << g << " coordinate " << coordinate << " lane " << lane;
            }
          }
        }
      }
    }
  }
}

// Long requests go through loops of their own, which differ between levels: all of them against single groups.
TEST(Noise, LongFillsEqualSingleGroupsAtEveryLevel) {
  const Noise noise{11};
  const StepKey step{4, 2};
  const Isa before = active_isa();
  for (const Isa level : {Isa::baseline, Isa::v3, Isa::v4}) {
    if (level > machine_isa()) continue;
    use_isa(level);
    for (const std::size_t dimension : {1u, 2u, 3u, 8u})
      for (const std::size_t first : {0u, 5u})
        for (const std::size_t groups : {8u, 64u, 65u, 129u}) {
          const float canary = 1234.5f;
          std::vector<float> out(groups * dimension * noise_lanes + 1, canary), group(dimension * noise_lanes);
          noise.normals(Stream::sampling, step, dimension, first, groups, out.data());
          EXPECT_EQ(out.back(), canary) << "written beyond the end";
          for (std::size_t g = 0; g < groups; ++g) {
            noise.normals(Stream::sampling, step, dimension, first + g, 1, group.data());
            EXPECT_TRUE(std::equal(group.begin(), group.end(),
                                   out.begin() + static_cast<std::ptrdiff_t>(g * dimension * noise_lanes)))
                << to_string(level) << ", dimension " << dimension << ", group " << g << " of " << groups;
          }
        }
  }
  use_isa(before);
}

TEST(Noise, OrderOfQueriesDoesNotMatter) {
  constexpr std::size_t samples = 100, dimension = 3;
  const Noise noise{5};
  std::vector<float> forward;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < samples * dimension; ++i) {
    forward.push_back(noise.normal(Stream::initial, {4, 2}, dimension, i / dimension, i % dimension));
    order.push_back(i);
  }
  std::shuffle(order.begin(), order.end(), std::mt19937{6});
  for (const std::size_t i : order) {
    const Noise another{5};
    ASSERT_EQ(another.normal(Stream::initial, {4, 2}, dimension, i / dimension, i % dimension), forward[i]);
  }
}

// Every part of the request matters, up to the ends of what is allowed: all counters differ, so all blocks do (Philox
// is a bijection for each seed), and so do those of different seeds but for a chance of 2^-96 or so.
TEST(Noise, DifferentRequestsGiveDifferentBits) {
  std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>> seen;
  std::size_t asked = 0;
  const std::int64_t far = (std::int64_t{1} << 55) - 1;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
    for (const Stream stream : {Stream::initial, Stream::sampling, Stream::reference, Stream::component,
                                Stream::minibatch, Stream::user, Stream{255}}) {
      for (const std::int64_t round : {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{-2},
                                       std::int64_t{1} << 32, -(std::int64_t{1} << 32), far, -far}) {
        for (const std::int64_t index : {std::int64_t{0}, std::int64_t{1}, (std::int64_t{1} << 32) - 1}) {
          for (const std::size_t sample : {std::size_t{0}, std::size_t{1}, std::size_t{32}, std::size_t{1} << 32}) {
            const Noise noise{seed};
            // At dimension 2 samples s and s + 16 share a block: these are its four words.
            const auto bits = [&](std::size_t s, std::size_t c) { return noise.bits(stream, {round, index}, 2, s, c); };
            seen.insert({bits(sample, 0), bits(sample, 1), bits(sample + 16, 0), bits(sample + 16, 1)});
            ++asked;
          }
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), asked);
}

}  // namespace
}  // namespace implicit_diffusion
