// Number types: float and double, and what it takes for another one to join.
#include "implicit_diffusion/simd/number.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <numbers>

#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

// A number type of two lanes, in a namespace of its own: everything it offers is found through its arguments.
namespace two {

template <class T>
struct Pair {
  T a, b;
  Pair() = default;
  explicit Pair(T x) : a(x), b(x) {}
  Pair(T x, T y) : a(x), b(y) {}
  template <class U>
  explicit Pair(Pair<U> x) : a(static_cast<T>(x.a)), b(static_cast<T>(x.b)) {}

  friend Pair operator+(Pair x, Pair y) { return {x.a + y.a, x.b + y.b}; }
  friend Pair operator-(Pair x, Pair y) { return {x.a - y.a, x.b - y.b}; }
  friend Pair operator*(Pair x, Pair y) { return {x.a * y.a, x.b * y.b}; }
  friend Pair operator/(Pair x, Pair y) { return {x.a / y.a, x.b / y.b}; }
  friend Pair operator-(Pair x) { return {-x.a, -x.b}; }
  friend Pair operator&(Pair x, Pair y) { return {x.a & y.a, x.b & y.b}; }
  friend Pair operator|(Pair x, Pair y) { return {x.a | y.a, x.b | y.b}; }
  friend Pair operator^(Pair x, Pair y) { return {x.a ^ y.a, x.b ^ y.b}; }
  friend Pair<bool> operator<(Pair x, Pair y) { return {x.a < y.a, x.b < y.b}; }
  friend Pair<bool> operator<=(Pair x, Pair y) { return {x.a <= y.a, x.b <= y.b}; }
  friend Pair<bool> operator==(Pair x, Pair y) { return {x.a == y.a, x.b == y.b}; }
};

using Real = Pair<float>;
using Integer = Pair<std::int32_t>;
using Word = Pair<std::uint32_t>;

namespace one = implicit_diffusion;
Real fma(Real x, Real y, Real z) { return {one::fma(x.a, y.a, z.a), one::fma(x.b, y.b, z.b)}; }
Real sqrt(Real x) { return {one::sqrt(x.a), one::sqrt(x.b)}; }
Real abs(Real x) { return {one::abs(x.a), one::abs(x.b)}; }
Real max(Real x, Real y) { return {one::max(x.a, y.a), one::max(x.b, y.b)}; }
Real select(Pair<bool> m, Real x, Real y) { return {m.a ? x.a : y.a, m.b ? x.b : y.b}; }
Integer as_integer(Real x) { return {one::as_integer(x.a), one::as_integer(x.b)}; }
Real as_real(Integer x) { return {one::as_real(x.a), one::as_real(x.b)}; }
Real to_real(Integer x) { return {one::to_real(x.a), one::to_real(x.b)}; }
Integer wrap_add(Integer x, Integer y) { return {one::wrap_add(x.a, y.a), one::wrap_add(x.b, y.b)}; }
Integer wrap_subtract(Integer x, Integer y) { return {one::wrap_subtract(x.a, y.a), one::wrap_subtract(x.b, y.b)}; }
template <int n>
Integer shift_left(Integer x) {
  return {one::shift_left<n>(x.a), one::shift_left<n>(x.b)};
}
template <int n>
Integer shift_right_logical(Integer x) {
  return {one::shift_right_logical<n>(x.a), one::shift_right_logical<n>(x.b)};
}
one::WideProduct<Word> multiply_wide(Word x, Word y) {
  const auto p = one::multiply_wide(x.a, y.a), q = one::multiply_wide(x.b, y.b);
  return {{p.high, q.high}, {p.low, q.low}};
}

}  // namespace two

namespace implicit_diffusion {

template <>
struct NumberTraits<two::Real> {
  using Scalar = float;
  using Integer = two::Integer;
  static constexpr std::size_t width = 2;
};

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// The functions take number types and nothing else: an int or a long double is not converted on the quiet.
template <class T>
concept HasExp = requires(T x) {
  exp(x);
};
static_assert(Number<float> && Number<double> && !Number<int> && !Number<long double>);
static_assert(FloatNumber<float> && !FloatNumber<double>);
static_assert(HasExp<float> && HasExp<double> && !HasExp<int> && !HasExp<long double>);
static_assert(width<float> == 1 && std::same_as<Integer<double>, std::int64_t>);

// Bit for bit, NaN included.
void expect_lanes(two::Real got, float a, float b) {
  EXPECT_EQ(as_integer(got.a), as_integer(a));
  EXPECT_EQ(as_integer(got.b), as_integer(b));
}

TEST(Number, AnotherNumberTypeJoinsByOverloads) {
  constexpr float values[] = {0.0f, -1.0f, 0.7f, 1.0f, 3.0f, -88.0f, 89.0f, 1e-40f, 1e30f, -20.5f};
  for (const float x : values) {
    for (const float y : values) {
      expect_lanes(exp(two::Real{x, y}), exp(x), exp(y));
      expect_lanes(log(two::Real{x, y}), log(x), log(y));
      expect_lanes(sigmoid(two::Real{x, y}), sigmoid(x), sigmoid(y));
      expect_lanes(softplus(two::Real{x, y}), softplus(x), softplus(y));
      expect_lanes(tanh(two::Real{x, y}), tanh(x), tanh(y));
      expect_lanes(erf(two::Real{x, y}), erf(x), erf(y));
    }
  }
  const NoiseKey at = Noise{3}.at(Stream::sampling, {5, 7});
  for (std::uint32_t block = 0; block < 1000; ++block) {
    const auto words = philox<two::Word>(
        {two::Word{block, block + 16}, two::Word(at.counter[0]), two::Word(at.counter[1]), two::Word(at.counter[2])},
        at.key);
    const auto a = philox<std::uint32_t>({block, at.counter[0], at.counter[1], at.counter[2]}, at.key);
    const auto b = philox<std::uint32_t>({block + 16, at.counter[0], at.counter[1], at.counter[2]}, at.key);
    const auto one = [](std::uint32_t x, std::uint32_t y) {
      return box_muller<float>(static_cast<std::int32_t>(x), static_cast<std::int32_t>(y));
    };
    const NormalPair<two::Real> both = box_muller<two::Real>(two::Integer(words[0]), two::Integer(words[1]));
    expect_lanes(both.first, one(a[0], a[1]).first, one(b[0], b[1]).first);
    expect_lanes(both.second, one(a[0], a[1]).second, one(b[0], b[1]).second);
  }
}

TEST(Number, ConversionsRoundToNearestEven) {
  EXPECT_EQ(to_integer(0.5f), 0);
  EXPECT_EQ(to_integer(1.5f), 2);
  EXPECT_EQ(to_integer(-2.5f), -2);
  EXPECT_EQ(to_integer(2147483520.0f), 2147483520);
  EXPECT_EQ(to_integer(3e9f), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(to_integer(not_a_number), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(to_integer(0.5), 0);
  EXPECT_EQ(to_integer(-3.5), -4);
  EXPECT_EQ(to_integer(1e300), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(to_real(std::int32_t{16777217}), 16777216.0f);
}

TEST(Number, BitsAndSelection) {
  EXPECT_EQ(as_integer(1.0f), 0x3f800000);
  EXPECT_EQ(as_real(std::int32_t{0x40490fdb}), std::numbers::pi_v<float>);
  EXPECT_EQ(as_real(as_integer(-0.1)), -0.1);
  EXPECT_EQ(shift_left<31>(std::int32_t{3}), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(shift_right_logical<28>(std::int32_t{-1}), 15);
  EXPECT_EQ(wrap_add(std::numeric_limits<std::int32_t>::max(), std::int32_t{1}),
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(select(1.0f < 2.0f, 3.0f, 4.0f), 3.0f);
  EXPECT_EQ(max(not_a_number, 1.0f), 1.0f);
  EXPECT_TRUE(std::isnan(max(1.0f, not_a_number)));
  EXPECT_EQ(min(not_a_number, 1.0f), 1.0f);
  EXPECT_EQ(fma(2.0f, 3.0f, 4.0f), 10.0f);
  EXPECT_EQ(sqrt(2.25f), 1.5f);
  EXPECT_EQ(abs(-2.0), 2.0);
}

}  // namespace
}  // namespace implicit_diffusion
