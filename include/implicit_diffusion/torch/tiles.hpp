// Tensors as tiles: the first half of the network engine (implicit_diffusion/tiles.hpp has the contract).
//
// A tile is a shard: a few samples, 8 unless told otherwise, that are evaluated on one thread. Which thread takes which
// shard never matters, and gradients of shards are added as a tree (parallel/tree_sum.hpp): so results depend neither
// on threads nor on the order in which they finish. They do depend on the size of a shard, in the last digits: LibTorch
// may choose another convolution for another size. So it belongs to the identity of a run. The last shard of a batch is
// filled up with copies of its last sample, which count for nothing: what happens to a sample depends neither on its
// place nor on the size of the batch. Several processes may share a batch (processes.hpp): each has a range of its
// shards, and the tree goes over all of them.
//
// Noise is ours, by key (random/noise.hpp): the same seed gives the same path at any theta and any sharding.
//
// A thread that works on a tile uses one thread inside LibTorch from then on.
#pragma once

#include "implicit_diffusion/layout.hpp"
#include "implicit_diffusion/parallel/tree_sum.hpp"
#include "implicit_diffusion/random/noise.hpp"
#include "implicit_diffusion/tiles.hpp"
#include "implicit_diffusion/torch/parameters.hpp"

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace implicit_diffusion {

inline constexpr std::size_t default_shard = 8;

// A batch of samples: a value, copies are deep. Labels, where there are some, are part of its shape: they stay with
// their places from one batch of a run to the next, and are not saved.
class TensorSamples {
 public:
  TensorSamples() = default;
  // n samples at the origin, all here or spread over processes. Throws a usage Error where a shard has no samples.
  TensorSamples(std::size_t n, const std::vector<std::int64_t>& sample, at::ScalarType type = at::ScalarType::Float,
                std::size_t shard = default_shard, Processes* processes = nullptr);
  // A copy of samples of shape (n, sample...), with a label for each if there are labels; of processes, each keeps its
  // part of them. Throws a usage Error where they do not fit together.
  explicit TensorSamples(const at::Tensor& x, const at::Tensor& labels = {}, std::size_t shard = default_shard,
                         Processes* processes = nullptr);

  TensorSamples(const TensorSamples& other);
  TensorSamples(TensorSamples&&) noexcept = default;
  TensorSamples& operator=(const TensorSamples& other);  // into the memory that is there, where the shape is the same
  TensorSamples& operator=(TensorSamples&&) noexcept = default;
  ~TensorSamples() = default;

  std::size_t size() const { return x_.defined() ? static_cast<std::size_t>(x_.size(0)) : 0; }  // that are here
  std::size_t total() const { return total_; }                                                  // of all processes
  std::size_t first() const { return tiles_.first * shard_; }  // which of them is the first one here
  const Range& tiles() const { return tiles_; }                // the shards that are here
  Processes* processes() const { return tiles_.processes; }    // null: all are here
  std::size_t dimension() const;                               // numbers in a sample
  std::size_t shard() const { return shard_; }
  std::vector<std::int64_t> sample_shape() const;

  const at::Tensor& x() const { return x_; }            // (size, sample...), contiguous
  const at::Tensor& labels() const { return labels_; }  // (size), or undefined

  // A label for each of the samples of all processes. Throws a usage Error where there are more or fewer.
  void set_labels(const at::Tensor& all);

  // Samples, labels and shards are the same.
  friend bool operator==(const TensorSamples& a, const TensorSamples& b);

 private:
  void spread(Processes* processes, std::size_t n);
  at::Tensor here(const at::Tensor& all) const;  // a copy of the rows that are here

  at::Tensor x_, labels_;  // labels are never changed, and shared
  std::size_t shard_ = default_shard;
  Range tiles_;
  std::size_t total_ = 0;
};

// The samples of all processes, on all of them; and their labels alone.
TensorSamples gathered(const TensorSamples& x);
at::Tensor gathered_labels(const TensorSamples& x);

std::size_t size_in_bytes(const TensorSamples& x);
void give_pieces(const TensorSamples& x, const PieceSink& sink);
void take_pieces(TensorSamples& x, const PieceSource& source);
// The first coordinate that is infinite or not a number: here, and on any process.
std::optional<SampleCoordinate> find_nonfinite_here(const TensorSamples& x);
std::optional<SampleCoordinate> find_nonfinite(const TensorSamples& x);

// The samples of a shard, in place: views.
struct TensorTile {
  at::Tensor x, labels;
  std::size_t first;  // index of its first sample in the batch
  std::size_t shard;  // samples of a whole one

  std::int64_t size() const { return x.size(0); }
};

namespace detail {

// Called first in whatever evaluates a tile: one thread inside LibTorch, which would otherwise start a team of its own.
void use_one_thread();
// The rows of a shard's tensor, filled up to a whole shard with copies of the last; nothing remains nothing.
at::Tensor fill_up(const at::Tensor& rows, std::size_t shard);
// The same with zeros: for cotangents, so that the copies count for nothing.
at::Tensor fill_up_with_zeros(const at::Tensor& rows, std::size_t shard);
// N(0, I) for the samples of a tile, of its shape and type.
at::Tensor normals(const Noise& noise, Stream stream, StepKey key, const TensorTile& tile);
// A label for each sample of a tile, uniform below `classes`: floor(bits classes / 2^32) of Stream::component.
at::Tensor labels(const Noise& noise, StepKey key, std::int64_t classes, const TensorTile& tile);
// Adds c times a tensor of one number for each sample to numbers; what fills a shard up is left out.
void add_numbers(const at::Tensor& of_samples, std::int64_t size, double c, double* numbers);

}  // namespace detail

// R(x), a number for each sample, as a function of tensors: x of shape (n, sample...), with labels or without.
//
//     const TensorReward brightness([](const at::Tensor& x) { return x.flatten(1).mean(1); });
//
// Its gradient is autograd's. Row i of the result depends on row i of x alone. Throws a usage Error, where it is
// called, if the result is not a number for each sample.
class TensorReward {
 public:
  template <class F>
  requires std::is_invocable_r_v<at::Tensor, const F&, const at::Tensor&> TensorReward(
      F f)  // implicit: a callable is a reward
      : f_([f = std::move(f)](const at::Tensor& x, const at::Tensor&) { return f(x); }) {}
  template <class F>
  requires std::is_invocable_r_v<at::Tensor, const F&, const at::Tensor&, const at::Tensor&> TensorReward(F f)
      : f_(std::move(f)) {}

  // One that is not to be differentiated: for Langevin dynamics, which needs no gradient of it.
  [[nodiscard]] TensorReward without_gradient() const {
    TensorReward r = *this;
    r.has_gradient_ = false;
    return r;
  }
  bool has_gradient() const { return has_gradient_; }

  // The function itself, with its graph.
  at::Tensor operator()(const at::Tensor& x, const at::Tensor& labels = {}) const { return f_(x, labels); }
  // f_i += lambda R(x_i).
  void add(const TensorTile& x, double lambda, double* f) const;
  // grad R. A reward that does not depend on x has the gradient zero.
  void gradient(const TensorTile& x, const TensorTile& slope) const;

 private:
  at::Tensor values(const at::Tensor& x, const TensorTile& tile) const;

  std::function<at::Tensor(const at::Tensor& x, const at::Tensor& labels)> f_;
  bool has_gradient_ = true;
};

// Numbers for each sample of a batch, one unless told otherwise, in double precision and host memory: those of the
// samples that are here.
struct TensorNumbers {
  std::vector<double> values;
  std::size_t shard = default_shard;
  Range tiles = {};
  std::size_t total = 0;  // samples of all processes
  std::size_t each = 1;

  std::size_t size() const { return values.size(); }
  friend bool operator==(const TensorNumbers&, const TensorNumbers&) = default;
};
// Those of all processes, on all of them.
std::vector<double> gathered(const TensorNumbers& u);

std::size_t size_in_bytes(const TensorNumbers& u);
void give_pieces(const TensorNumbers& u, const PieceSink& sink);
void take_pieces(TensorNumbers& u, const PieceSource& source);

// A theta for each shard that is here.
struct TensorRows {
  std::vector<TensorParameters> rows;
  Range tiles = {};
  TensorParameters like = {};  // theta, for those who have none
};
// Rows go to a checkpoint one after the other.
std::size_t size_in_bytes(const TensorRows& rows);
void give_pieces(const TensorRows& rows, const PieceSink& sink);
void take_pieces(TensorRows& rows, const PieceSource& source);

struct TensorTiles {
  using Theta = TensorParameters;
  using Samples = TensorSamples;
  using Numbers = TensorNumbers;
  using Tile = TensorTile;
  using ConstTile = TensorTile;
  using TileNumbers = double*;
  using Sum = TensorParameters;
  using Adjoints = TensorSamples;
  using Rows = TensorRows;
  using Reward = TensorReward;

  class Scratch {
   public:
    Scratch(const Tile& like, std::size_t count);
    Tile operator[](std::size_t i) const;

   private:
    Tile like_;
    at::Tensor memory_;
  };

  static std::size_t tiles(const Samples& x) { return x.tiles().count; }
  static Tile tile(const Samples& x, std::size_t k);
  static Numbers numbers(const Samples& x, std::size_t each = 1) {
    return {std::vector<double>(each * x.size(), 0.0), x.shard(), x.tiles(), x.total(), each};
  }
  static double* numbers_of(Numbers& u, std::size_t k) { return u.values.data() + k * u.shard * u.each; }
  static const double* numbers_of(const Numbers& u, std::size_t k) { return u.values.data() + k * u.shard * u.each; }
  static void clear(Numbers& u) { u.values.assign(u.size(), 0.0); }
  static Adjoints adjoints(const Samples& x) {
    return {x.total(), x.sample_shape(), x.x().scalar_type(), x.shard(), x.processes()};
  }
  static Tile tile_of(Adjoints& a, const Samples&, std::size_t k) { return tile(a, k); }

  static void copy(const Tile& from, const Tile& to);
  static void scale(const Tile& y, double c);
  static void step_back(const Tile& z, const Tile& image, const Tile& guess);
  static double largest_difference(const Tile& a, const Tile& b);
  static void add_to(double& sum, const double* numbers, const Tile& y);
  static void affine(double* u, const Tile& y, double c, double b);
  static void fill_normals(Samples& x, const Noise& noise, Stream stream, StepKey key);

  template <class Task>
  static void for_each(Workers* workers, std::size_t count, Task&& task) {
    for_each_task(workers, count, 1, task);
  }
  template <class One>
  static void sum(Workers* workers, const Samples& x, Theta& total, One&& one) {
    total = tree_sum(
        workers, x.tiles(), [&total] { return zeros_like(total); }, one, add, message);
  }
  static Rows rows(const Samples& x, const Theta& theta);
  static Sum& row(Rows& rows, const Theta&, std::size_t k) { return rows.rows[k]; }
  static void add_up(const Rows& rows, const Samples& x, Theta& total);

 private:
  static void add(Theta& sum, const Theta& part);
  static std::span<std::byte> message(Theta& theta);
};

}  // namespace implicit_diffusion
