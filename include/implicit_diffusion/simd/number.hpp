// Number types: what a kernel is a template over.
//
// A kernel is written once, as a template over `Real`, from the operators + - * / and comparisons and the functions
// below; a number type is whatever offers them. Here float and double, one number each; a vector of lanes joins by
// specialising NumberTraits and overloading the functions. What a kernel may rely on:
//
//     Scalar<Real>   one lane: Real(Scalar) broadcasts it
//     Integer<Real>  as many signed integers of the same size, for work on bits:
//                    + - & | ^ wrap_add wrap_subtract, shifts
//     width<Real>    the number of lanes
//     a < b, ...     a mask (bool for one number); select(mask, a, b) takes a where it is true, b elsewhere
//
// Every operation is exact or correctly rounded by IEEE 754, lane by lane, so a result does not depend on the number of
// lanes. There is one exception: fma(a, b, c) is fused where it is compiled for (__FMA__: x86-64-v3 and above) and
// a * b + c, rounded twice, on the baseline, which may therefore differ in the last digits. Compile with
// -ffp-contract=off, as the library's target says: otherwise the compiler fuses where it likes.
//
// Everything is always_inline: kernels are compiled once for each instruction set, and an ordinary inline function
// would be merged by the linker into one copy, possibly one that the machine cannot run.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace implicit_diffusion {

// Specialised for every number type.
template <class Real>
struct NumberTraits;

template <>
struct NumberTraits<float> {
  using Scalar = float;
  using Integer = std::int32_t;
  static constexpr std::size_t width = 1;
};

template <>
struct NumberTraits<double> {
  using Scalar = double;
  using Integer = std::int64_t;
  static constexpr std::size_t width = 1;
};

template <class T>
concept Number = requires {
  typename NumberTraits<T>::Scalar;
};

template <Number Real>
using Scalar = typename NumberTraits<Real>::Scalar;

template <Number Real>
using Integer = typename NumberTraits<Real>::Integer;

template <Number Real>
inline constexpr std::size_t width = NumberTraits<Real>::width;

// a b + c: see above for what the baseline does.
#if defined(__FMA__)
[[gnu::always_inline]] inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
[[gnu::always_inline]] inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
[[gnu::always_inline]] inline float fma(float a, float b, float c) { return a * b + c; }
[[gnu::always_inline]] inline double fma(double a, double b, double c) { return a * b + c; }
#endif

[[gnu::always_inline]] inline float sqrt(float a) { return __builtin_sqrtf(a); }
[[gnu::always_inline]] inline double sqrt(double a) { return __builtin_sqrt(a); }

[[gnu::always_inline]] constexpr float abs(float a) { return __builtin_fabsf(a); }
[[gnu::always_inline]] constexpr double abs(double a) { return __builtin_fabs(a); }

// As the machine's instruction does it: the second operand where the two are equal or one is NaN.
[[gnu::always_inline]] constexpr float max(float a, float b) { return a > b ? a : b; }
[[gnu::always_inline]] constexpr double max(double a, double b) { return a > b ? a : b; }
[[gnu::always_inline]] constexpr float min(float a, float b) { return a < b ? a : b; }
[[gnu::always_inline]] constexpr double min(double a, double b) { return a < b ? a : b; }

[[gnu::always_inline]] constexpr bool any(bool mask) { return mask; }
// any(a > b), which lanes know a shorter way to.
template <Number Real>
[[gnu::always_inline]] inline bool any_above(const Real& a, const Real& b) {
  return any(a > b);
}
// The lanes below `count`.
[[gnu::always_inline]] constexpr bool first_lanes(std::size_t count, float*) { return count > 0; }
[[gnu::always_inline]] constexpr bool first_lanes(std::size_t count, double*) { return count > 0; }
[[gnu::always_inline]] constexpr float select(bool mask, float a, float b) { return mask ? a : b; }
[[gnu::always_inline]] constexpr double select(bool mask, double a, double b) { return mask ? a : b; }

// As many consecutive numbers in memory as Real has lanes: load<Real>(from), store(a, to).
[[gnu::always_inline]] inline float load(const float* from, float*) { return *from; }
[[gnu::always_inline]] inline double load(const double* from, double*) { return *from; }
template <Number Real>
[[gnu::always_inline]] inline Real load(const Scalar<Real>* from) {
  return load(from, static_cast<Real*>(nullptr));
}
[[gnu::always_inline]] inline void store(float a, float* to) { *to = a; }
[[gnu::always_inline]] inline void store(double a, double* to) { *to = a; }

// The same bits, read as the other type. (The builtin, because std::bit_cast is a function of its own in an unoptimised
// build.)
[[gnu::always_inline]] constexpr std::int32_t as_integer(float a) { return __builtin_bit_cast(std::int32_t, a); }
[[gnu::always_inline]] constexpr std::int64_t as_integer(double a) { return __builtin_bit_cast(std::int64_t, a); }
[[gnu::always_inline]] constexpr float as_real(std::int32_t a) { return __builtin_bit_cast(float, a); }
[[gnu::always_inline]] constexpr double as_real(std::int64_t a) { return __builtin_bit_cast(double, a); }

// The nearest number, ties to even.
[[gnu::always_inline]] constexpr float to_real(std::int32_t a) { return static_cast<float>(a); }
[[gnu::always_inline]] constexpr double to_real(std::int64_t a) { return static_cast<double>(a); }

// The nearest integer, ties to even; the most negative integer where it does not fit or a is NaN (as cvtps2dq does).
#if defined(__SSE2__)
[[gnu::always_inline]] inline std::int32_t to_integer(float a) { return _mm_cvtss_si32(_mm_set_ss(a)); }
[[gnu::always_inline]] inline std::int64_t to_integer(double a) { return _mm_cvtsd_si64(_mm_set_sd(a)); }
#else
[[gnu::always_inline]] inline std::int32_t to_integer(float a) {
  return abs(a) < 0x1p31f ? static_cast<std::int32_t>(__builtin_rintf(a)) : INT32_MIN;
}
[[gnu::always_inline]] inline std::int64_t to_integer(double a) {
  return abs(a) < 0x1p63 ? static_cast<std::int64_t>(__builtin_rint(a)) : INT64_MIN;
}
#endif

// a + b and a - b modulo 2^32 or 2^64: for sums of bit patterns, which may overflow.
template <std::signed_integral I>
[[gnu::always_inline]] constexpr I wrap_add(I a, I b) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(a) + static_cast<std::make_unsigned_t<I>>(b));
}
template <std::signed_integral I>
[[gnu::always_inline]] constexpr I wrap_subtract(I a, I b) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(a) - static_cast<std::make_unsigned_t<I>>(b));
}

template <int count, std::signed_integral I>
[[gnu::always_inline]] constexpr I shift_left(I a) {
  return a << count;
}
// Zeros move in.
template <int count, std::signed_integral I>
[[gnu::always_inline]] constexpr I shift_right_logical(I a) {
  return static_cast<I>(static_cast<std::make_unsigned_t<I>>(a) >> count);
}

}  // namespace implicit_diffusion
