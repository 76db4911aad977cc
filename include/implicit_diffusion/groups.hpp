// What kernels are made of: the samples of a block, group by group, on 16 lanes or one lane after the other.
#pragma once

#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/simd/lanes.hpp"

#include <array>
#include <cstddef>
#include <type_traits>

namespace implicit_diffusion {

// Memory for a kernel's arrays, aligned for lanes; the calling thread's own, valid until its next call.
[[gnu::returns_nonnull]] void* kernel_scratch(std::size_t bytes);

// Code of different levels has different names. (Not in the namespace of Lanes itself: there its functions would hide
// those of float.)
namespace kernel {
inline namespace IMPLICIT_DIFFUSION_LEVEL {

// The baseline, which few machines need, is compiled in a smaller form: no kernels for the plane alone, derivatives of
// derivatives on single floats. It is slower for it; the bits are the same.
inline constexpr bool in_full = native_parts < 4;

// The sum of 16 lanes as a tree, the order of sum(Lanes).
template <class Real>
Real sum_tree(std::array<Real, lanes_per_group> lane) {
  for (std::size_t half = lanes_per_group / 2; half > 0; half /= 2)
    for (std::size_t l = 0; l < half; ++l) lane[l] += lane[l + half];
  return lane[0];
}

// The sums of a block over its lanes: at once for 16 lanes, with the last lane for one.
template <Number Real>
class LaneSums {
 public:
  // `memory` holds 16 Scalars for each sum, unused by lanes.
  LaneSums(Scalar<Real>* memory, std::size_t lane) : memory_(memory), lane_(lane) {}
  // Sums j to j + count - 1: add(k, total), k < count, with the total in double precision.
  template <class Add>
  [[gnu::always_inline]] void put(std::size_t j, const Real* values, std::size_t count, const Add& add) {
    if constexpr (width<Real> == lanes_per_group) {
      std::size_t k = 0;
      for (; k + 4 <= count; k += 4) {
        const Four four = sums(values + k);
        for (std::size_t l = 0; l < 4; ++l) add(k + l, static_cast<double>(four[l]));
      }
      for (; k < count; ++k) add(k, static_cast<double>(sum(values[k])));
    } else {
      for (std::size_t k = 0; k < count; ++k) memory_[(j + k) * lanes_per_group + lane_] = values[k];
      if (lane_ + 1 < lanes_per_group) return;
      for (std::size_t k = 0; k < count; ++k) {
        std::array<Scalar<Real>, lanes_per_group> lane;
        for (std::size_t l = 0; l < lanes_per_group; ++l) lane[l] = memory_[(j + k) * lanes_per_group + l];
        add(k, static_cast<double>(sum_tree(lane)));
      }
    }
  }

 private:
  Scalar<Real>* memory_;
  std::size_t lane_;
};

// Coordinates of the samples from i on, one for each lane. Where it is the last group and not full, its missing samples
// repeat its first.
template <Number Real, bool last, class T>
[[gnu::always_inline]] inline void load_point(const Block<T>& x, std::size_t i, std::size_t d, Real* point) {
  for (std::size_t j = 0; j < d; ++j) {
    const auto* column = x.data + j * x.stride + i;
    point[j] = load<Real>(column);
    if constexpr (last)
      point[j] = select(first_lanes(x.size - i, static_cast<Real*>(nullptr)), point[j], Real(*column));
  }
}

// Writes a number for each sample: all lanes, or the first `count` of the last group.
template <bool last, Number Real>
[[gnu::always_inline]] inline void store_some(const Real& value, Scalar<Real>* to, std::size_t count) {
  if constexpr (last) {
    alignas(64) Scalar<Real> lane[width<Real>];
    store(value, lane);
    for (std::size_t l = 0; l < count; ++l) to[l] = lane[l];
  } else {
    store(value, to);
  }
}

// Calls body(i, last) for each group of a block.
template <Number Real, class Body>
[[gnu::always_inline]] inline void for_each_group(std::size_t size, Body&& body) {
  std::size_t i = 0;
  for (; i + width<Real> <= size; i += width<Real>) body(i, std::false_type{});
  if constexpr (width < Real >> 1)
    if (i < size) body(i, std::true_type{});
}

// So many groups go through a stage before the next stage takes them: the terms, what is made of them, the sums. Short
// loops, each with the registers for itself and iterations that do not wait for one another, are faster than one long
// one, as long as what passes between them stays in the first-level cache.
inline std::size_t groups_at_once(std::size_t parameters, std::size_t bytes_per_number) {
  constexpr std::size_t bytes = 20480;
  const std::size_t each = parameters * bytes_per_number + 1;
  if (each * groups_per_block <= bytes) return groups_per_block;  // nearly always: a division would be felt
  return each > bytes ? 1 : bytes / each;
}

// Calls stage(i, place, last) for the next groups of a block, `first` on, `at_once` of them or what is left; returns
// how many they were. A plain number takes one lane of each.
template <Number Real, class Stage>
[[gnu::always_inline]] inline std::size_t in_turn(std::size_t first, std::size_t size, std::size_t at_once,
                                                  const Stage& stage) {
  std::size_t place = 0, i = first;
  for (; place < at_once && i + width<Real> <= size; ++place, i += lanes_per_group) stage(i, place, std::false_type{});
  if constexpr (width < Real >> 1)
    if (place < at_once && i < size) stage(i, place++, std::true_type{});
  return place;
}

// Calls body(i, count) for all of 0 to n - 1 in pieces of `most`, then of two, then one by one. The count is a constant
// of its type, so that so many sums can be kept in registers and none waits for its own last addition.
template <std::size_t most, class Body>
[[gnu::always_inline]] inline void in_pieces(std::size_t n, const Body& body) {
  std::size_t i = 0;
  for (; i + most <= n; i += most) body(i, std::integral_constant<std::size_t, most>{});
  if constexpr (most > 2)
    for (; i + 2 <= n; i += 2) body(i, std::integral_constant<std::size_t, 2>{});
  if constexpr (most > 1)
    for (; i < n; ++i) body(i, std::integral_constant<std::size_t, 1>{});
}

}  // namespace IMPLICIT_DIFFUSION_LEVEL
}  // namespace kernel
}  // namespace implicit_diffusion
