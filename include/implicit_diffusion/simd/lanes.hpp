// Lanes: sixteen floats that are worked on together, always sixteen, whatever the machine.
//
// They are kept as an array of the machine's own vectors: one of 16 floats (v4), two of 8 (v3), four of 4 (baseline).
// Every operation is done lane by lane and is exact or correctly rounded, and sums over the lanes follow a fixed tree:
// so the bits of a result do not depend on the level, but for fma, which the baseline lacks.
//
// Lanes is a number type (simd/number.hpp): plain arithmetic, literals included, compiles as it is; where lanes differ,
// select() takes the place of an if. Everything is always_inline: an operation that became a call would pass its
// vectors through memory.
#pragma once

#include "implicit_diffusion/random/philox.hpp"
#include "implicit_diffusion/simd/isa.hpp"
#include "implicit_diffusion/simd/number.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define IMPLICIT_DIFFUSION_INLINE __attribute__((always_inline)) inline

namespace implicit_diffusion {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// The operators of each class, part by part: the statement with k = 0, 1, ... It is spelled out because a loop would
// have to be unrolled first, in every operation of every kernel, before the compiler knows that parts are registers:
// that took three times as long to compile.
#define IMPLICIT_DIFFUSION_PART(number, ...) \
  {                                          \
    constexpr std::size_t k = number;        \
    __VA_ARGS__;                             \
  }
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
inline constexpr std::size_t native_bytes = 64;
#define IMPLICIT_DIFFUSION_PARTS(...) IMPLICIT_DIFFUSION_PART(0, __VA_ARGS__)
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr std::size_t native_bytes = 32;
#define IMPLICIT_DIFFUSION_PARTS(...) IMPLICIT_DIFFUSION_PART(0, __VA_ARGS__) IMPLICIT_DIFFUSION_PART(1, __VA_ARGS__)
#else
inline constexpr std::size_t native_bytes = 16;
#define IMPLICIT_DIFFUSION_PARTS(...)     \
  IMPLICIT_DIFFUSION_PART(0, __VA_ARGS__) \
  IMPLICIT_DIFFUSION_PART(1, __VA_ARGS__) \
  IMPLICIT_DIFFUSION_PART(2, __VA_ARGS__) IMPLICIT_DIFFUSION_PART(3, __VA_ARGS__)
#endif
inline constexpr std::size_t native_lanes = native_bytes / sizeof(float);
inline constexpr std::size_t native_parts = 16 / native_lanes;

using NativeFloat [[gnu::vector_size(native_bytes)]] = float;
using NativeInteger [[gnu::vector_size(native_bytes)]] = std::int32_t;
using NativeWord [[gnu::vector_size(native_bytes)]] = std::uint32_t;
using NativeWide [[gnu::vector_size(native_bytes)]] = std::uint64_t;

// What the compiler has no operator for. (The forms with a mask of all lanes avoid a false warning of the plain ones.)
namespace native {
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
IMPLICIT_DIFFUSION_INLINE NativeFloat fma(NativeFloat a, NativeFloat b, NativeFloat c) {
  return _mm512_fmadd_ps(a, b, c);
}
IMPLICIT_DIFFUSION_INLINE NativeFloat sqrt(NativeFloat a) { return _mm512_maskz_sqrt_ps(0xffff, a); }
IMPLICIT_DIFFUSION_INLINE NativeFloat max(NativeFloat a, NativeFloat b) { return _mm512_maskz_max_ps(0xffff, a, b); }
IMPLICIT_DIFFUSION_INLINE NativeFloat min(NativeFloat a, NativeFloat b) { return _mm512_maskz_min_ps(0xffff, a, b); }
IMPLICIT_DIFFUSION_INLINE NativeInteger to_integer(NativeFloat a) {
  return reinterpret_cast<NativeInteger>(_mm512_maskz_cvtps_epi32(0xffff, a));
}
IMPLICIT_DIFFUSION_INLINE NativeWide multiply(NativeWide a, NativeWide b) {
  return reinterpret_cast<NativeWide>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
}
IMPLICIT_DIFFUSION_INLINE bool any(NativeInteger mask) {
  return _mm512_movepi32_mask(reinterpret_cast<__m512i>(mask)) != 0;
}
IMPLICIT_DIFFUSION_INLINE bool any_above(NativeFloat a, NativeFloat b) {
  return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ) != 0;
}
#elif defined(__AVX2__) && defined(__FMA__)
IMPLICIT_DIFFUSION_INLINE NativeFloat fma(NativeFloat a, NativeFloat b, NativeFloat c) {
  return _mm256_fmadd_ps(a, b, c);
}
IMPLICIT_DIFFUSION_INLINE NativeFloat sqrt(NativeFloat a) { return _mm256_sqrt_ps(a); }
IMPLICIT_DIFFUSION_INLINE NativeFloat max(NativeFloat a, NativeFloat b) { return _mm256_max_ps(a, b); }
IMPLICIT_DIFFUSION_INLINE NativeFloat min(NativeFloat a, NativeFloat b) { return _mm256_min_ps(a, b); }
IMPLICIT_DIFFUSION_INLINE NativeInteger to_integer(NativeFloat a) {
  return reinterpret_cast<NativeInteger>(_mm256_cvtps_epi32(a));
}
IMPLICIT_DIFFUSION_INLINE NativeWide multiply(NativeWide a, NativeWide b) {
  return reinterpret_cast<NativeWide>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
}
IMPLICIT_DIFFUSION_INLINE bool any(NativeInteger mask) {
  return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0;
}
#else
IMPLICIT_DIFFUSION_INLINE NativeFloat fma(NativeFloat a, NativeFloat b, NativeFloat c) { return a * b + c; }
IMPLICIT_DIFFUSION_INLINE NativeFloat sqrt(NativeFloat a) { return _mm_sqrt_ps(a); }
IMPLICIT_DIFFUSION_INLINE NativeFloat max(NativeFloat a, NativeFloat b) { return _mm_max_ps(a, b); }
IMPLICIT_DIFFUSION_INLINE NativeFloat min(NativeFloat a, NativeFloat b) { return _mm_min_ps(a, b); }
IMPLICIT_DIFFUSION_INLINE NativeInteger to_integer(NativeFloat a) {
  return reinterpret_cast<NativeInteger>(_mm_cvtps_epi32(a));
}
IMPLICIT_DIFFUSION_INLINE NativeWide multiply(NativeWide a, NativeWide b) {
  return reinterpret_cast<NativeWide>(_mm_mul_epu32(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
}
IMPLICIT_DIFFUSION_INLINE bool any(NativeInteger mask) { return _mm_movemask_ps(reinterpret_cast<__m128>(mask)) != 0; }
#endif
// The high word of each 64 bits, in both halves.
IMPLICIT_DIFFUSION_INLINE NativeWide high_words(NativeWide a) {
  return [&]<int... k>(std::integer_sequence<int, k...>) __attribute__((always_inline)) {
    const auto words = reinterpret_cast<NativeWord>(a);
    return reinterpret_cast<NativeWide>(__builtin_shufflevector(words, words, (k | 1)...));
  }
  (std::make_integer_sequence<int, static_cast<int>(native_lanes)>{});
}
#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512DQ__) || !defined(__AVX512VL__)
IMPLICIT_DIFFUSION_INLINE bool any_above(NativeFloat a, NativeFloat b) { return any(a > b); }
#endif
}  // namespace native

#define IMPLICIT_DIFFUSION_BINARY(Class, op)                             \
  friend IMPLICIT_DIFFUSION_INLINE Class operator op(Class a, Class b) { \
    IMPLICIT_DIFFUSION_PARTS(a.part[k] = a.part[k] op b.part[k])         \
    return a;                                                            \
  }

// A yes or no for each lane: all bits of the lane set, or none.
struct Mask {
  NativeInteger part[native_parts];

  IMPLICIT_DIFFUSION_BINARY(Mask, &)
  IMPLICIT_DIFFUSION_BINARY(Mask, |)
};
IMPLICIT_DIFFUSION_INLINE bool any(Mask m) {
  bool found = false;
  IMPLICIT_DIFFUSION_PARTS(found |= native::any(m.part[k]))
  return found;
}

// Logic on integers, which are mostly the bits of floats. AVX2's form for floats hands them on to arithmetic on floats
// without the delay that there is between its units for integers and those for floats.
#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)
#define IMPLICIT_DIFFUSION_NATIVE_LOGIC(a, op, name, b) \
  reinterpret_cast<NativeInteger>(                      \
      _mm256_##name##_ps(reinterpret_cast<NativeFloat>(a), reinterpret_cast<NativeFloat>(b)))
#else
#define IMPLICIT_DIFFUSION_NATIVE_LOGIC(a, op, name, b) (a) op(b)
#endif
#define IMPLICIT_DIFFUSION_LOGIC(op, name)                                                                \
  friend IMPLICIT_DIFFUSION_INLINE IntegerLanes operator op(IntegerLanes a, IntegerLanes b) {             \
    IMPLICIT_DIFFUSION_PARTS(a.part[k] = IMPLICIT_DIFFUSION_NATIVE_LOGIC(a.part[k], op, name, b.part[k])) \
    return a;                                                                                             \
  }

struct IntegerLanes {
  NativeInteger part[native_parts];

  IntegerLanes() = default;
  IMPLICIT_DIFFUSION_INLINE explicit IntegerLanes(std::int32_t a){
      IMPLICIT_DIFFUSION_PARTS(part[k] = a - NativeInteger{})}

  IMPLICIT_DIFFUSION_BINARY(IntegerLanes, +) IMPLICIT_DIFFUSION_BINARY(IntegerLanes, -) IMPLICIT_DIFFUSION_LOGIC(&, and)
      IMPLICIT_DIFFUSION_LOGIC(|, or) IMPLICIT_DIFFUSION_LOGIC(^, xor) friend IMPLICIT_DIFFUSION_INLINE Mask
      operator<(IntegerLanes a, IntegerLanes b) {
    Mask m;
    IMPLICIT_DIFFUSION_PARTS(m.part[k] = a.part[k] < b.part[k])
    return m;
  }
};

struct Lanes {
  NativeFloat part[native_parts];

  Lanes() = default;
  // One number in all lanes; implicit, so that plain literals of any type mix in.
  template <class T>
  requires std::is_arithmetic_v<T> IMPLICIT_DIFFUSION_INLINE Lanes(T a) {
    IMPLICIT_DIFFUSION_PARTS(part[k] = static_cast<float>(a) - NativeFloat{})
  }

  IMPLICIT_DIFFUSION_BINARY(Lanes, +)
  IMPLICIT_DIFFUSION_BINARY(Lanes, -)
  IMPLICIT_DIFFUSION_BINARY(Lanes, *)
  IMPLICIT_DIFFUSION_BINARY(Lanes, /)
  IMPLICIT_DIFFUSION_INLINE Lanes operator-() const {
    Lanes a;
    IMPLICIT_DIFFUSION_PARTS(a.part[k] = -part[k])
    return a;
  }
  IMPLICIT_DIFFUSION_INLINE Lanes& operator+=(Lanes b) { return *this = *this + b; }
  IMPLICIT_DIFFUSION_INLINE Lanes& operator-=(Lanes b) { return *this = *this - b; }
  IMPLICIT_DIFFUSION_INLINE Lanes& operator*=(Lanes b) { return *this = *this * b; }

#define IMPLICIT_DIFFUSION_COMPARISON(op)                               \
  friend IMPLICIT_DIFFUSION_INLINE Mask operator op(Lanes a, Lanes b) { \
    Mask m;                                                             \
    IMPLICIT_DIFFUSION_PARTS(m.part[k] = a.part[k] op b.part[k])        \
    return m;                                                           \
  }
  IMPLICIT_DIFFUSION_COMPARISON(<)
  IMPLICIT_DIFFUSION_COMPARISON(<=)
  IMPLICIT_DIFFUSION_COMPARISON(>)
  IMPLICIT_DIFFUSION_COMPARISON(>=)
  IMPLICIT_DIFFUSION_COMPARISON(==)
  IMPLICIT_DIFFUSION_COMPARISON(!=)
#undef IMPLICIT_DIFFUSION_COMPARISON
};

// any(a > b), without a mask in between.
IMPLICIT_DIFFUSION_INLINE bool any_above(Lanes a, Lanes b) {
  bool found = false;
  IMPLICIT_DIFFUSION_PARTS(found |= native::any_above(a.part[k], b.part[k]))
  return found;
}
IMPLICIT_DIFFUSION_INLINE Lanes fma(Lanes a, Lanes b, Lanes c) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = native::fma(a.part[k], b.part[k], c.part[k]))
  return a;
}
IMPLICIT_DIFFUSION_INLINE Lanes sqrt(Lanes a) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = native::sqrt(a.part[k]))
  return a;
}
IMPLICIT_DIFFUSION_INLINE Lanes max(Lanes a, Lanes b) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = native::max(a.part[k], b.part[k]))
  return a;
}
IMPLICIT_DIFFUSION_INLINE Lanes min(Lanes a, Lanes b) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = native::min(a.part[k], b.part[k]))
  return a;
}
IMPLICIT_DIFFUSION_INLINE Lanes select(Mask m, Lanes a, Lanes b) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = m.part[k] ? a.part[k] : b.part[k])
  return a;
}
IMPLICIT_DIFFUSION_INLINE IntegerLanes as_integer(Lanes a) {
  IntegerLanes b;
  IMPLICIT_DIFFUSION_PARTS(b.part[k] = reinterpret_cast<NativeInteger>(a.part[k]))
  return b;
}
IMPLICIT_DIFFUSION_INLINE Lanes as_real(IntegerLanes a) {
  Lanes b;
  IMPLICIT_DIFFUSION_PARTS(b.part[k] = reinterpret_cast<NativeFloat>(a.part[k]))
  return b;
}
IMPLICIT_DIFFUSION_INLINE Lanes abs(Lanes a) { return as_real(as_integer(a) & IntegerLanes(0x7fffffff)); }
IMPLICIT_DIFFUSION_INLINE Lanes to_real(IntegerLanes a) {
  Lanes b;
  IMPLICIT_DIFFUSION_PARTS(b.part[k] = __builtin_convertvector(a.part[k], NativeFloat))
  return b;
}
IMPLICIT_DIFFUSION_INLINE IntegerLanes to_integer(Lanes a) {
  IntegerLanes b;
  IMPLICIT_DIFFUSION_PARTS(b.part[k] = native::to_integer(a.part[k]))
  return b;
}
IMPLICIT_DIFFUSION_INLINE IntegerLanes wrap_add(IntegerLanes a, IntegerLanes b) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = reinterpret_cast<NativeInteger>(reinterpret_cast<NativeWord>(a.part[k]) +
                                                                       reinterpret_cast<NativeWord>(b.part[k])))
  return a;
}
IMPLICIT_DIFFUSION_INLINE IntegerLanes wrap_subtract(IntegerLanes a, IntegerLanes b) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] = reinterpret_cast<NativeInteger>(reinterpret_cast<NativeWord>(a.part[k]) -
                                                                       reinterpret_cast<NativeWord>(b.part[k])))
  return a;
}
template <int count>
IMPLICIT_DIFFUSION_INLINE IntegerLanes shift_left(IntegerLanes a) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] =
                               reinterpret_cast<NativeInteger>(reinterpret_cast<NativeWord>(a.part[k]) << count))
  return a;
}
template <int count>
IMPLICIT_DIFFUSION_INLINE IntegerLanes shift_right_logical(IntegerLanes a) {
  IMPLICIT_DIFFUSION_PARTS(a.part[k] =
                               reinterpret_cast<NativeInteger>(reinterpret_cast<NativeWord>(a.part[k]) >> count))
  return a;
}

// 16 consecutive floats in memory, aligned or not.
IMPLICIT_DIFFUSION_INLINE Lanes load(const float* from, Lanes*) {
  Lanes a;
  IMPLICIT_DIFFUSION_PARTS(__builtin_memcpy(&a.part[k], from + k * native_lanes, native_bytes))
  return a;
}
IMPLICIT_DIFFUSION_INLINE void store(Lanes a, float* to){
    IMPLICIT_DIFFUSION_PARTS(__builtin_memcpy(to + k * native_lanes, &a.part[k], native_bytes))}

// The first `count` lanes.
IMPLICIT_DIFFUSION_INLINE Mask first_lanes(std::size_t count, Lanes*) {
  IntegerLanes lane;
  for (std::size_t k = 0; k < native_parts; ++k)
    for (std::size_t l = 0; l < native_lanes; ++l) lane.part[k][l] = static_cast<std::int32_t>(k * native_lanes + l);
  return lane < IntegerLanes(static_cast<std::int32_t>(count));
}

// The sum over the lanes, as a tree: l + (l + 8), then + 4, + 2, + 1. First to four of them.
using Four [[gnu::vector_size(16)]] = float;
IMPLICIT_DIFFUSION_INLINE Four fold_to_four(Lanes a) {
  alignas(64) float lane[16];
  if constexpr (native_parts == 4) {
    a.part[0] = (a.part[0] + a.part[2]) + (a.part[1] + a.part[3]);
  } else if constexpr (native_parts == 2) {
    a.part[0] = a.part[0] + a.part[1];
  }
  __builtin_memcpy(lane, &a.part[0], native_bytes);
  Four four;
  if constexpr (native_parts == 4) {
    __builtin_memcpy(&four, lane, 16);
  } else {
    using Eight [[gnu::vector_size(32)]] = float;
    Eight eight;
    if constexpr (native_parts == 2) {
      __builtin_memcpy(&eight, lane, 32);
    } else {
      Eight high;
      __builtin_memcpy(&eight, lane, 32);
      __builtin_memcpy(&high, lane + 8, 32);
      eight = eight + high;
    }
    Four low, high;
    __builtin_memcpy(&low, &eight, 16);
    __builtin_memcpy(&high, reinterpret_cast<const char*>(&eight) + 16, 16);
    four = low + high;
  }
  return four;
}
IMPLICIT_DIFFUSION_INLINE float sum(Lanes a) {
  const Four four = fold_to_four(a);
  return (four[0] + four[2]) + (four[1] + four[3]);
}
// The sums of four of them, together.
IMPLICIT_DIFFUSION_INLINE Four sums(const Lanes* a) {
  const auto halves = [](Four x, Four y) __attribute__((always_inline)) {
    return __builtin_shufflevector(x, y, 0, 1, 4, 5) + __builtin_shufflevector(x, y, 2, 3, 6, 7);
  };
  const Four x = halves(fold_to_four(a[0]), fold_to_four(a[1])), y = halves(fold_to_four(a[2]), fold_to_four(a[3]));
  return __builtin_shufflevector(x, y, 0, 2, 4, 6) + __builtin_shufflevector(x, y, 1, 3, 5, 7);
}

// 16 words for Philox, each in the low half of 64 bits: the even lanes, then the odd ones. What the high halves hold
// means nothing, so a product needs no shuffling: multiply() reads low halves only.
struct WordLanes {
  NativeWide part[2 * native_parts];

  WordLanes() = default;
  IMPLICIT_DIFFUSION_INLINE explicit WordLanes(std::uint32_t a) {
    for (NativeWide& p : part) p = std::uint64_t{a} - NativeWide{};
  }
  // 0, 1, ..., 15. Made element by element: not for the inside of a loop.
  static IMPLICIT_DIFFUSION_INLINE WordLanes index() {
    WordLanes a;
    for (std::size_t k = 0; k < native_parts; ++k)
      for (std::size_t l = 0; l < native_lanes / 2; ++l) {
        a.part[k][l] = 2 * (k * native_lanes / 2 + l);
        a.part[native_parts + k][l] = 2 * (k * native_lanes / 2 + l) + 1;
      }
    return a;
  }
  IMPLICIT_DIFFUSION_INLINE explicit operator IntegerLanes() const {
    IntegerLanes a;
    IMPLICIT_DIFFUSION_PARTS(a.part[k] = reinterpret_cast<NativeInteger>((part[k] & std::uint64_t{0xffffffff}) |
                                                                         (part[native_parts + k] << 32)))
    return a;
  }
  // Sums that do not exceed a word.
  friend IMPLICIT_DIFFUSION_INLINE WordLanes operator+(WordLanes a, WordLanes b) {
    _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 2 * native_parts; ++k) a.part[k] += b.part[k];
    return a;
  }
  friend IMPLICIT_DIFFUSION_INLINE WordLanes operator^(WordLanes a, WordLanes b) {
    _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 2 * native_parts; ++k) a.part[k] ^= b.part[k];
    return a;
  }
};
IMPLICIT_DIFFUSION_INLINE WideProduct<WordLanes> multiply_wide(WordLanes a, WordLanes b) {
  WideProduct<WordLanes> p;
  _Pragma("GCC unroll 8") for (std::size_t k = 0; k < 2 * native_parts; ++k) {
    p.low.part[k] = native::multiply(a.part[k], b.part[k]);
    // Shifts and shuffles are made by different units: half of each.
    p.high.part[k] = k % 2 == 0 ? p.low.part[k] >> 32 : native::high_words(p.low.part[k]);
  }
  return p;
}
#undef IMPLICIT_DIFFUSION_BINARY
#undef IMPLICIT_DIFFUSION_LOGIC
#undef IMPLICIT_DIFFUSION_NATIVE_LOGIC
#undef IMPLICIT_DIFFUSION_PARTS

}  // namespace IMPLICIT_DIFFUSION_LEVEL

template <>
struct NumberTraits<Lanes> {
  using Scalar = float;
  using Integer = IntegerLanes;
  static constexpr std::size_t width = 16;
};

}  // namespace implicit_diffusion
