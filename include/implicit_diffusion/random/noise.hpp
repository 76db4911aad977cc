// Noise: standard normals and uniforms that are a pure function of (seed, stream, step, sample, coordinate).
//
// There is no state, so any number can be asked for again, in any order, on any thread: an adjoint regenerates the path
// it goes back along, a resumed run continues with the numbers of an uninterrupted one, and no result depends on how
// the work was split.
//
// How a request becomes a Philox4x32-10 counter. Samples are taken in groups of 16, the lanes of a vector; the numbers
// of a step form a list of vectors of 16, all coordinates of one group before the next group:
//
//     v  = (sample / 16) dimension + coordinate      index of the vector; the lane is sample % 16
//     c0 = (v / 4) 16 + sample % 16                  a block of 128 bits serves one lane of 4 consecutive vectors:
//                                                    output word v % 4 is the request's
//     c1 = index                                     low 32 bits
//     c2 = round                                     bits 0..31 (two's complement)
//     c3 = stream << 24 | round                      bits 32..55
//     key = seed
//
// so that whole vectors are made without moving anything between lanes. All requests differ as long as
//
//     samples x dimension <= 2^34,   0 <= index < 2^32,   |round| < 2^55;
//
// beyond that numbers repeat. Numbers depend on the dimension: it is part of what is asked for.
//
// Normals are by Box and Muller, from words (0, 1) and (2, 3) of a block: with u = (floor(a / 2) + 1/2) 2^-31 in
// float, so in (0, 1], and the angle from all bits of b (see sine_cosine), the even word gives sqrt(-2 log u) cos, the
// odd one sqrt(-2 log u) sin. They reach +-6.66.
//
// Normals use fma where it is compiled for, so code for the baseline differs from the others in the last digits; bits()
// and uniform() are the same everywhere.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "implicit_diffusion/random/philox.hpp"
#include "implicit_diffusion/simd/elementary.hpp"

namespace implicit_diffusion {

// What the noise is for. Streams of one seed are independent of each other; a program's own begin at `user`.
enum class Stream : std::uint8_t { initial, sampling, reference, component, minibatch, user = 64 };

// When a sampling step happens. In a queue or a nested loop, round is the outer step at which the chain started
// (negative for the slots with which a queue is warm-started) and index the number of steps since. In the single loop,
// whose chains never restart, round is the outer step itself and index is 0.
struct StepKey {
  std::int64_t round = 0;
  std::int64_t index = 0;
};

// Lanes of a vector of samples: part of the definition of the noise, whatever the machine has.
inline constexpr std::size_t noise_lanes = 16;

// The noise of one stream at one step, as a kernel takes it along: key and counter of Philox, but for c0.
struct NoiseKey {
  PhiloxKey key;
  std::array<std::uint32_t, 3> counter;  // c1, c2, c3
};

template <Number Real>
struct NormalPair {
  Real first;
  Real second;
};

// Two independent standard normals from two times 32 random bits, in ten steps, as many as Philox has rounds: begin(),
// next<1>() to next<8>(), end().
template <FloatNumber Real>
class BoxMullerSteps {
 public:
  [[gnu::always_inline]] void begin(Integer<Real> radius, Integer<Real> angle) {
    // At least 2^-32 and at most 1 (31 bits are rounded to a float), so log needs no care for special values and is not
    // positive.
    u_ = fma(to_real(shift_right_logical<1>(radius)), Real(0x1p-31f), Real(0x1p-32f));
    angle_ = angle;
  }
  template <int k>
  [[gnu::always_inline]] void next() {
    static_assert(k >= 1 && k <= 8);
    if constexpr (k == 1) log_.begin(detail::decompose(u_));
    if constexpr (k == 2) direction_.begin(angle_);
    if constexpr (k >= 2) log_.template next<k - 1>();
    if constexpr (k >= 3 && k <= 6) direction_.template next<k - 2>();
  }
  [[gnu::always_inline]] NormalPair<Real> end() const {
    const Real r = sqrt(log_.end());
    const SineCosine<Real> direction = direction_.end();
    return {r * direction.cosine, r * direction.sine};
  }

 private:
  Real u_;
  Integer<Real> angle_;
  detail::LogSteps<-2, Real> log_;
  SineCosineSteps<Real> direction_;
};
template <FloatNumber Real>
[[gnu::always_inline]] inline NormalPair<Real> box_muller(Integer<Real> radius, Integer<Real> angle) {
  BoxMullerSteps<Real> z;
  z.begin(radius, angle);
  detail::next_to<8>(z);
  return z.end();
}

class Noise {
 public:
  explicit Noise(std::uint64_t seed = 0) : seed_(seed) {}

  std::uint64_t seed() const { return seed_; }

  NoiseKey at(Stream stream, StepKey step) const;

  // One standard normal: the definition. dimension >= 1, coordinate < dimension.
  float normal(Stream stream, StepKey step, std::size_t dimension, std::size_t sample, std::size_t coordinate) const;

  // The 32 random bits of a request, and the uniform (bits + 1/2) 2^-32 in (0, 1). They are the bits its normal is made
  // of: do not take both from one stream.
  std::uint32_t bits(Stream stream, StepKey step, std::size_t dimension, std::size_t sample,
                     std::size_t coordinate) const;
  double uniform(Stream stream, StepKey step, std::size_t dimension, std::size_t sample, std::size_t coordinate) const;

  // The normals of samples 16 first_group to 16 (first_group + groups) - 1, vector after vector:
  //
  //     out[((g - first_group) dimension + coordinate) 16 + lane] = normal(..., 16 g + lane, coordinate)
  //
  // bit for bit. Fastest when first_group is a multiple of 4: then blocks are used whole.
  void normals(Stream stream, StepKey step, std::size_t dimension, std::size_t first_group, std::size_t groups,
               float* out) const;

 private:
  std::uint64_t seed_;
};

}  // namespace implicit_diffusion
