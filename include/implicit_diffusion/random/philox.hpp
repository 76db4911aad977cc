// Philox4x32-10: random bits as a pure function of a counter and a key.
//
// The generator of Salmon, Moraes, Dror and Shaw (Parallel Random Numbers: As Easy as 1, 2, 3; SC'11): ten rounds of
// two 32 x 32 -> 64 bit products on a 128-bit counter. It passes BigCrush, any counter can be computed at any time, and
// different counters or keys give streams that are independent for all practical purposes.
//
// A template over the word: one 32-bit word here; a vector of words joins by overloading multiply_wide(). The key is
// the same in all lanes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace implicit_diffusion {

template <class Word>
struct WideProduct {
  Word high;
  Word low;
};

[[gnu::always_inline]] constexpr WideProduct<std::uint32_t> multiply_wide(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
}

using PhiloxKey = std::array<std::uint32_t, 2>;

// The keys of all rounds, made once for many counters.
template <class Word>
struct PhiloxRounds {
  Word low[10], high[10];

  [[gnu::always_inline]] constexpr explicit PhiloxRounds(PhiloxKey key) {
    for (int round = 0; round < 10; ++round) {
      low[round] = Word(key[0]);
      high[round] = Word(key[1]);
      key[0] += 0x9E3779B9u;  // the golden ratio
      key[1] += 0xBB67AE85u;  // sqrt(3) - 1
    }
  }
};

// For those who have nothing to do between rounds.
struct Nothing {
  template <class Round>
  [[gnu::always_inline]] constexpr void operator()(Round) const {}
};

// N counters in place. Their rounds take turns, so that none waits for its own products; after each, between(round) has
// its turn, round being a constant of the type.
template <class Word, std::size_t N, class Between = Nothing>
[[gnu::always_inline]] constexpr void philox(std::array<Word, 4> (&counter)[N], const PhiloxRounds<Word>& keys,
                                             const Between& between = {}) {
  const auto turn = [&](auto round) __attribute__((always_inline)) {
    for (std::array<Word, 4>& c : counter) {
      const WideProduct<Word> p = multiply_wide(c[0], Word(0xD2511F53u));
      const WideProduct<Word> q = multiply_wide(c[2], Word(0xCD9E8D57u));
      c = {q.high ^ c[1] ^ keys.low[round], q.low, p.high ^ c[3] ^ keys.high[round], p.low};
    }
    between(round);
  };
  [&]<int... round>(std::integer_sequence<int, round...>) __attribute__((always_inline)) {
    (turn(std::integral_constant<int, round>{}), ...);
  }
  (std::make_integer_sequence<int, 10>{});
}

template <class Word>
[[gnu::always_inline]] constexpr std::array<Word, 4> philox(std::array<Word, 4> counter, PhiloxKey key) {
  std::array<Word, 4> counters[] = {counter};
  philox(counters, PhiloxRounds<Word>(key));
  return counters[0];
}

}  // namespace implicit_diffusion
