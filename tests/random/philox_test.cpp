// Philox4x32-10 against the published known answers and against the authors' own code.
#include "implicit_diffusion/random/philox.hpp"

#include <Random123/philox.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>

namespace implicit_diffusion {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The vectors that come with Random123 (kat_vectors, philox4x32 10). Evaluated by the compiler: the function is
// constexpr.
static_assert(philox<std::uint32_t>({0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox<std::uint32_t>({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
              Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(philox<std::uint32_t>({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
              Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST(Philox, EqualsRandom123) {
  std::mt19937 random{1};
  const auto word = [&] { return static_cast<std::uint32_t>(random()); };
  for (int k = 0; k < 10'000; ++k) {
    const Words counter{word(), word(), word(), word()};
    const PhiloxKey key{word(), word()};
    const r123::Philox4x32::ctr_type theirs =
        r123::Philox4x32{}({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
    const Words ours = philox(counter, key);
    for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ(ours[i], theirs[i]);
  }
}

}  // namespace
}  // namespace implicit_diffusion
