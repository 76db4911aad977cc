// The seam between algorithms and engines, first half: a batch of samples as tiles.
//
// Samples are independent given theta, so every algorithm is written over tiles: a few samples that one thread takes
// through all their steps. An algorithm knows of them only what an engine offers. Its types:
//
//     Theta                the parameters (parameters.hpp)
//     Samples              a batch of samples: a value, copies are deep; size()
//     Numbers              a number for each sample of a batch: a value; size() is 0 where there are none
//     Tile, ConstTile      the samples of one tile, in place
//     TileNumbers          their numbers, in place
//     Scratch(like, n)     memory for n tiles of that shape: [i] is a Tile
//     Sum                  what a tile adds its part of a theta-gradient to
//     Adjoints             a vector for each sample of a batch, beside its place: a value
//     Rows                 a Sum for each tile of a batch, which may go on from step to step: a value
//     Reward               add(tile, lambda, numbers) adds lambda R of each sample;
//                          gradient(tile, slope) writes grad R; has_gradient()
//
// and static functions:
//
//     tiles(samples), tile(samples, k)                 how many there are, and one of them
//     numbers(samples), numbers_of(numbers, k)         a zero for each sample; those of a tile
//     clear(numbers)                                   all are zero again
//     adjoints(samples), tile_of(adjoints, samples, k) zeros; those of a tile, as a Scratch would hold them
//     copy(from, to), scale(tile, c)                   of tiles
//     step_back(z, image, guess)                       guess <- z - (image - guess)
//     largest_difference(a, b)                         of two tiles
//     add_to(sum, numbers, tile)                       adds the numbers of a tile to a double, one after the other
//     affine(numbers, tile, c, b)                      u <- c u + b, for the numbers of a tile
//     fill_normals(samples, noise, stream, key)        N(0, I), by key
//     for_each(workers, count, task)                   task(0), ..., task(count - 1), on whichever threads
//     sum(workers, samples, theta, one)                theta = what one(k, Sum) adds up to over all tiles,
//                                                      in an order that depends on the batch alone
//     rows(samples, theta), row(rows, theta, k)        zeros; the Sum of a tile
//     add_up(rows, samples, theta)                     theta = their total, in the same order
//
// tiles(samples) and size() are of those that are here: other processes may have more (processes.hpp), and spread_of,
// total_of tell. Nothing above the seam says where numbers are: they may be on another device. The second half of the
// seam is denoising/steps.hpp for reverse chains and langevin/energy.hpp for Langevin dynamics.
//
// PointwiseTiles is the first half of the SIMD engine: a tile is a block of 256 samples, which stay in the cache.
#pragma once

#include "implicit_diffusion/parallel/sums.hpp"
#include "implicit_diffusion/parameters.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <span>
#include <vector>

namespace implicit_diffusion {

template <class E>
concept Tiles = requires(typename E::Samples& x, const typename E::Samples& samples, typename E::Numbers& u,
                         typename E::Tile tile, typename E::ConstTile at, typename E::Theta& theta,
                         typename E::Rows& rows, typename E::Adjoints& adjoints, Workers* workers, double& sum) {
  requires Parameters<typename E::Theta>;
  requires std::copyable<typename E::Samples> && std::copyable<typename E::Numbers> &&
      std::copyable<typename E::Adjoints> && std::copyable<typename E::Rows>;
  { samples.size() } -> std::convertible_to<std::size_t>;
  { E::tiles(samples) } -> std::convertible_to<std::size_t>;
  { E::tile(x, std::size_t{}) } -> std::convertible_to<typename E::Tile>;
  { E::tile(samples, std::size_t{}) } -> std::convertible_to<typename E::ConstTile>;
  { E::numbers(samples) } -> std::same_as<typename E::Numbers>;
  { E::numbers_of(u, std::size_t{}) } -> std::convertible_to<typename E::TileNumbers>;
  E::clear(u);
  { E::adjoints(samples) } -> std::same_as<typename E::Adjoints>;
  { E::tile_of(adjoints, samples, std::size_t{}) } -> std::convertible_to<typename E::Tile>;
  E::copy(at, tile);
  E::scale(tile, 1.0);
  E::step_back(at, at, tile);
  { E::largest_difference(at, at) } -> std::convertible_to<double>;
  E::add_to(sum, E::numbers_of(u, std::size_t{}), at);
  E::affine(E::numbers_of(u, std::size_t{}), at, 1.0, 0.0);
  E::fill_normals(x, Noise{}, Stream::initial, StepKey{});
  E::for_each(workers, std::size_t{}, [](std::size_t) {});
  E::sum(workers, samples, theta, [](std::size_t, auto&&) {});
  { E::rows(samples, theta) } -> std::same_as<typename E::Rows>;
  E::row(rows, theta, std::size_t{});
  E::add_up(rows, samples, theta);
  typename E::Scratch;
  typename E::Reward;
};

// The engine that T names: the SIMD engine of that precision for float and double, else T itself.
namespace detail {
template <class T, template <class> class>
struct NamedEngine {
  using type = T;
};
template <std::floating_point Real, template <class> class Simd>
struct NamedEngine<Real, Simd> {
  using type = Simd<Real>;
};
}  // namespace detail
template <class T, template <class> class Simd>
using EngineOf = typename detail::NamedEngine<T, Simd>::type;

template <class Real>
class Reward;

template <class Real>
struct PointwiseTiles {
  using Theta = std::vector<double>;
  using Samples = Population<Real>;
  using Numbers = std::vector<Real>;
  using Tile = Block<Real>;
  using ConstTile = Block<const Real>;
  using TileNumbers = Real*;
  using Sum = std::span<double>;
  using Adjoints = std::vector<Real>;  // block after block
  using Rows = std::vector<double>;
  using Reward = implicit_diffusion::Reward<Real>;

  static constexpr std::size_t tiles_per_thread = blocks_per_thread;

  class Scratch {
   public:
    Scratch(const ConstTile& like, std::size_t count) : like_(like), memory_(count * like.dimension) {}
    Tile operator[](std::size_t i) {
      return {memory_.data() + i * like_.dimension * block_size, block_size, like_.size, like_.dimension, like_.first};
    }

   private:
    ConstTile like_;
    BlockArray<Real> memory_;
  };

  static std::size_t tiles(const Samples& x) { return x.blocks(); }
  static Tile tile(Samples& x, std::size_t k) { return x.block(k); }
  static ConstTile tile(const Samples& x, std::size_t k) { return x.block(k); }

  static Numbers numbers(const Samples& x) { return Numbers(x.blocks() * block_size, Real(0)); }
  static TileNumbers numbers_of(Numbers& u, std::size_t k) { return u.data() + k * block_size; }
  static const Real* numbers_of(const Numbers& u, std::size_t k) { return u.data() + k * block_size; }

  static void clear(Numbers& u) { std::fill(u.begin(), u.end(), Real(0)); }

  static Adjoints adjoints(const Samples& x) { return Adjoints(x.blocks() * x.dimension() * block_size, Real(0)); }
  static Tile tile_of(Adjoints& a, const Samples& x, std::size_t k) {
    const ConstTile y = x.block(k);
    return {a.data() + k * y.dimension * block_size, block_size, y.size, y.dimension, y.first};
  }

  static void copy(const ConstTile& from, const Tile& to) {
    for (std::size_t j = 0; j < from.dimension; ++j)
      std::copy_n(from.data + j * from.stride, from.size, to.data + j * to.stride);
  }
  static void scale(const Tile& y, double c) {
    for (std::size_t j = 0; j < y.dimension; ++j)
      for (std::size_t i = 0; i < y.size; ++i) y(i, j) *= static_cast<Real>(c);
  }
  static void step_back(const ConstTile& z, const ConstTile& image, const Tile& guess) {
    for (std::size_t j = 0; j < z.dimension; ++j)
      for (std::size_t i = 0; i < z.size; ++i) guess(i, j) = z(i, j) - (image(i, j) - guess(i, j));
  }
  static double largest_difference(const ConstTile& a, const ConstTile& b) {
    double most = 0;
    for (std::size_t j = 0; j < a.dimension; ++j)
      for (std::size_t i = 0; i < a.size; ++i)
        most = std::max(most, std::abs(static_cast<double>(a(i, j)) - static_cast<double>(b(i, j))));
    return most;
  }
  static void add_to(double& sum, const Real* numbers, const ConstTile& y) {
    for (std::size_t i = 0; i < y.size; ++i) sum += static_cast<double>(numbers[i]);
  }
  static void affine(Real* u, const ConstTile& y, double c, double b) {
    for (std::size_t i = 0; i < y.size; ++i) u[i] = static_cast<Real>(c * static_cast<double>(u[i]) + b);
  }

  // The normals of a tile's samples as Noise::normals lays them out, `out` with room for a block.
  static void normals(const Noise& noise, Stream stream, StepKey at, const ConstTile& y, float* out) {
    noise.normals(stream, at, y.dimension, y.first / lanes_per_group, (y.size + lanes_per_group - 1) / lanes_per_group,
                  out);
  }
  static void fill_normals(Samples& x, const Noise& noise, Stream stream, StepKey at) {
    for (std::size_t k = 0; k < x.blocks(); ++k) {
      const Tile y = x.block(k);
      BlockArray<float> z(y.dimension);
      normals(noise, stream, at, y, z.data());
      for (std::size_t j = 0; j < y.dimension; ++j)
        for (std::size_t i = 0; i < y.size; ++i)
          y(i, j) =
              static_cast<Real>(z[((i / lanes_per_group) * y.dimension + j) * lanes_per_group + i % lanes_per_group]);
    }
  }

  template <class Task>
  static void for_each(Workers* workers, std::size_t count, Task&& task) {
    for_each_task(workers, count, tiles_per_thread, task);
  }
  template <class One>
  static void sum(Workers* workers, const Samples& x, Theta& total, One&& one) {
    TileSums sums;
    const auto all = sums(workers, x.tiles(), total.size(), tiles_per_thread, one);
    std::copy(all.begin(), all.end(), total.begin());
  }
  static Rows rows(const Samples& x, const Theta& theta) { return Rows(x.blocks() * theta.size(), 0.0); }
  static Sum row(Rows& rows, const Theta& theta, std::size_t k) {
    return std::span(rows).subspan(k * theta.size(), theta.size());
  }
  static void add_up(const Rows& rows, const Samples& x, Theta& total) { TileSums().add_up(x.tiles(), rows, total); }
};

}  // namespace implicit_diffusion
