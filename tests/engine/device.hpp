// A second engine, which has nothing to do with SIMD: what a tensor library on another device would look like to the
// algorithms.
//
// Numbers lie in one allocation behind a handle whose copies alias, as a tensor's do; Vector and Samples make values of
// it. Elements are never seen by the host but through a transfer, and transfers and copies of theta are counted. Tiles
// are shards of four samples.
//
// The energy is V(x, theta) = |x - theta|^2 / 2. The score is linear, s_theta(y, tau) = e^-tau m - g y for theta = (g,
// m), by coordinate.
#pragma once

#include "implicit_diffusion/denoising/steps.hpp"
#include "implicit_diffusion/io/pieces.hpp"
#include "implicit_diffusion/langevin/energy.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace device {

namespace imd = implicit_diffusion;

struct Counts {
  std::atomic<int> copies{0}, transfers{0};  // of theta
};
inline Counts counts;

// An allocation. Copies of the handle are the same numbers; the version tells when they change.
struct Memory {
  std::vector<float> numbers;
  std::uint64_t version = 0;
};
using Handle = std::shared_ptr<Memory>;
inline Handle allocate(std::size_t n) { return std::make_shared<Memory>(Memory{std::vector<float>(n, 0.0F)}); }

// theta: a value.
class Vector {
 public:
  Vector() : handle_(allocate(0)) {}
  explicit Vector(std::vector<float> from_host) : handle_(allocate(0)) {
    ++counts.transfers;
    handle_->numbers = std::move(from_host);
  }
  Vector(const Vector& other) : handle_(std::make_shared<Memory>(*other.handle_)) { ++counts.copies; }
  Vector(Vector&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Vector& operator=(const Vector& other) {
    if (this == &other) return *this;
    ++counts.copies;
    handle_->numbers = other.handle_->numbers;  // into memory that is there
    ++handle_->version;
    return *this;
  }
  Vector& operator=(Vector&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Vector() = default;

  std::size_t size() const { return handle_->numbers.size(); }
  std::vector<float> to_host() const {
    ++counts.transfers;
    return handle_->numbers;
  }
  // For kernels of this device.
  const Handle& handle() const { return handle_; }
  float* edit() const {
    ++handle_->version;
    return handle_->numbers.data();
  }
  const float* read() const { return handle_->numbers.data(); }

 private:
  Handle handle_;
};

inline Vector zeros_like(const Vector& v) {
  Vector zeros;
  zeros.handle()->numbers.assign(v.size(), 0.0F);
  return zeros;
}
inline std::optional<std::size_t> first_nonfinite(const Vector& v) {
  for (std::size_t j = 0; j < v.size(); ++j)
    if (!std::isfinite(v.read()[j])) return j;
  return std::nullopt;
}
inline float* elements(Vector& v) { return v.edit(); }
inline const float* elements(const Vector& v) { return v.read(); }
template <class F, class... More>
void for_each_element(F&& f, Vector& v, More&&... more) {
  const auto all = std::make_tuple(elements(v), elements(more)...);
  for (std::size_t j = 0; j < v.size(); ++j) std::apply([&](auto*... p) { f(p[j]...); }, all);
}
inline std::size_t size_in_bytes(const Vector& v) { return v.size() * sizeof(float); }
inline void give_pieces(const Vector& v, const imd::PieceSink& sink) { imd::give_pieces(v.to_host(), sink); }
inline void take_pieces(Vector& v, const imd::PieceSource& source) {
  std::vector<float> host(v.size());
  imd::take_pieces(host, source);
  v = Vector(std::move(host));
}

// n samples in R^d, row by row: a value.
class Samples {
 public:
  Samples() : Samples(0, 0) {}
  Samples(std::size_t n, std::size_t d) : handle_(allocate(n * d)), size_(n), dimension_(d) {}
  Samples(const Samples& other)
      : handle_(std::make_shared<Memory>(*other.handle_)), size_(other.size_), dimension_(other.dimension_) {}
  Samples(Samples&&) noexcept = default;
  Samples& operator=(Samples other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(size_, other.size_);
    std::swap(dimension_, other.dimension_);
    return *this;
  }
  ~Samples() = default;

  std::size_t size() const { return size_; }
  std::size_t dimension() const { return dimension_; }
  const Handle& handle() const { return handle_; }
  std::vector<float>& numbers() const { return handle_->numbers; }

 private:
  Handle handle_;
  std::size_t size_, dimension_;
};
inline std::size_t size_in_bytes(const Samples& x) { return x.numbers().size() * sizeof(float); }
inline void give_pieces(const Samples& x, const imd::PieceSink& sink) { imd::give_pieces(x.numbers(), sink); }
inline void take_pieces(Samples& x, const imd::PieceSource& source) { imd::take_pieces(x.numbers(), source); }
inline std::optional<imd::SampleCoordinate> find_nonfinite(const Samples& x) {
  for (std::size_t i = 0; i < x.numbers().size(); ++i)
    if (!std::isfinite(x.numbers()[i])) return imd::SampleCoordinate{i / x.dimension(), i % x.dimension()};
  return std::nullopt;
}

// The normals of samples first, first + 1, ... of a group of 16: [i * dimension + j], as Noise defines them.
inline std::vector<float> normals(const imd::Noise& noise, imd::Stream stream, imd::StepKey key, std::size_t dimension,
                                  std::size_t first, std::size_t size) {
  std::vector<float> group(imd::noise_lanes * dimension), out(size * dimension);
  noise.normals(stream, key, dimension, first / imd::noise_lanes, 1, group.data());
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < dimension; ++j)
      out[i * dimension + j] = group[j * imd::noise_lanes + first % imd::noise_lanes + i];
  return out;
}

// A few rows of a batch, in place: an alias.
struct Tile {
  Handle handle;
  std::size_t first, size, dimension;  // first: of its samples

  std::size_t offset = 0;  // of the first row in the allocation
  float* row(std::size_t i) const { return handle->numbers.data() + (offset + i) * dimension; }
  std::size_t count() const { return size * dimension; }
};

// R(x) = -|x - 1|^2 / 2.
struct Reward {
  static bool has_gradient() { return true; }
  void add(const Tile& x, double lambda, float* f) const {
    for (std::size_t i = 0; i < x.size; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < x.dimension; ++j) sum -= std::pow(double{x.row(i)[j]} - 1, 2) / 2;
      f[i] += static_cast<float>(lambda * sum);
    }
  }
  void gradient(const Tile& x, const Tile& slope) const {
    for (std::size_t k = 0; k < x.count(); ++k) slope.row(0)[k] = 1 - x.row(0)[k];
  }
};

struct Tiles {
  static constexpr std::size_t shard = 4;

  using Theta = Vector;
  using Samples = device::Samples;
  using Numbers = std::vector<float>;
  using Tile = device::Tile;
  using ConstTile = device::Tile;
  using TileNumbers = float*;
  using Sum = Vector;
  using Adjoints = device::Samples;
  using Rows = std::vector<Vector>;
  using Reward = device::Reward;

  class Scratch {
   public:
    Scratch(const Tile& like, std::size_t count) : like_(like), memory_(allocate(count * like.count())) {}
    Tile operator[](std::size_t i) const { return {memory_, like_.first, like_.size, like_.dimension, i * like_.size}; }

   private:
    Tile like_;
    Handle memory_;
  };

  static std::size_t tiles(const Samples& x) { return (x.size() + shard - 1) / shard; }
  static Tile tile(const Samples& x, std::size_t k) {
    return {x.handle(), k * shard, std::min(shard, x.size() - k * shard), x.dimension(), k * shard};
  }
  static Numbers numbers(const Samples& x) { return Numbers(x.size(), 0.0F); }
  static float* numbers_of(Numbers& u, std::size_t k) { return u.data() + k * shard; }
  static const float* numbers_of(const Numbers& u, std::size_t k) { return u.data() + k * shard; }
  static void clear(Numbers& u) { std::fill(u.begin(), u.end(), 0.0F); }
  static Adjoints adjoints(const Samples& x) { return {x.size(), x.dimension()}; }
  static Tile tile_of(Adjoints& a, const Samples&, std::size_t k) { return tile(a, k); }

  static void copy(const Tile& from, const Tile& to) { std::copy_n(from.row(0), from.count(), to.row(0)); }
  static void scale(const Tile& y, double c) {
    for (std::size_t k = 0; k < y.count(); ++k) y.row(0)[k] *= static_cast<float>(c);
  }
  static void step_back(const Tile& z, const Tile& image, const Tile& guess) {
    for (std::size_t k = 0; k < z.count(); ++k) guess.row(0)[k] = z.row(0)[k] - (image.row(0)[k] - guess.row(0)[k]);
  }
  static double largest_difference(const Tile& a, const Tile& b) {
    double most = 0;
    for (std::size_t k = 0; k < a.count(); ++k)
      most = std::max(most, std::abs(double{a.row(0)[k]} - double{b.row(0)[k]}));
    return most;
  }
  static void add_to(double& sum, const float* numbers, const Tile& y) {
    for (std::size_t i = 0; i < y.size; ++i) sum += double{numbers[i]};
  }
  static void affine(float* u, const Tile& y, double c, double b) {
    for (std::size_t i = 0; i < y.size; ++i) u[i] = static_cast<float>(c * double{u[i]} + b);
  }
  static void fill_normals(Samples& x, const imd::Noise& noise, imd::Stream stream, imd::StepKey key) {
    for (std::size_t k = 0; k < tiles(x); ++k) {
      const Tile y = tile(x, k);
      const std::vector<float> z = normals(noise, stream, key, y.dimension, y.first, y.size);
      std::copy(z.begin(), z.end(), y.row(0));
    }
  }

  template <class Task>
  static void for_each(imd::Workers* workers, std::size_t count, Task&& task) {
    imd::for_each_task(workers, count, 1, task);
  }
  template <class One>
  static void sum(imd::Workers* workers, const Samples& x, Theta& total, One&& one) {
    Rows parts = rows(x, total);
    for_each(workers, parts.size(), [&](std::size_t k) { one(k, parts[k]); });
    add_up(parts, x, total);
  }
  static Rows rows(const Samples& x, const Theta& theta) {
    Rows all;
    while (all.size() < tiles(x)) all.push_back(zeros_like(theta));
    return all;
  }
  static Sum& row(Rows& rows, const Theta&, std::size_t k) { return rows[k]; }
  static void add_up(const Rows& rows, const Samples&, Theta& total) {
    for_each_element([](float& t) { t = 0; }, total);
    for (const Vector& part : rows) for_each_element([](float& t, float p) { t += p; }, total, part);
  }
};

// Rows go to a checkpoint one after the other.
inline std::size_t size_in_bytes(const Tiles::Rows& rows) {
  std::size_t size = 0;
  for (const Vector& v : rows) size += size_in_bytes(v);
  return size;
}
inline void give_pieces(const Tiles::Rows& rows, const imd::PieceSink& sink) {
  for (const Vector& v : rows) give_pieces(v, sink);
}
inline void take_pieces(Tiles::Rows& rows, const imd::PieceSource& source) {
  for (Vector& v : rows) take_pieces(v, source);
}

class Energy : public Tiles {
 public:
  explicit Energy(std::size_t dimension = 784) : dimension_(dimension) {}
  Samples samples(std::size_t n) const { return Samples(n, dimension_); }
  bool fits(const Vector& theta) const { return theta.size() == dimension_; }
  bool fits(const Samples& x) const { return x.dimension() == dimension_; }
  void prepare(const Vector& theta) { theta_ = theta.handle(); }
  static std::optional<std::size_t> find_inadmissible(const Vector&) { return std::nullopt; }

  void add_values(const Tile& x, double c, float* f) const {
    for (std::size_t i = 0; i < x.size; ++i) {
      double sum = 0;
      for (std::size_t j = 0; j < x.dimension; ++j) sum += std::pow(double{slope(x, i, j)}, 2) / 2;
      f[i] += static_cast<float>(c * sum);
    }
  }
  void add(const Tile& x, const float* w, Vector& sum) const {
    for (std::size_t i = 0; i < x.size; ++i)
      for (std::size_t j = 0; j < x.dimension; ++j) sum.edit()[j] -= w[i] * slope(x, i, j);
  }
  void step(const Tile& x, const imd::LangevinStep& s, bool& nonfinite) const {
    const std::vector<float> z = normals(s.noise, imd::Stream::sampling, s.key, x.dimension, x.first, x.size);
    for (std::size_t i = 0; i < x.size; ++i)
      for (std::size_t j = 0; j < x.dimension; ++j) {
        x.row(i)[j] += static_cast<float>(std::sqrt(2 * s.size)) * z[i * x.dimension + j] -
                       static_cast<float>(s.size) * slope(x, i, j);
        if (!std::isfinite(x.row(i)[j])) nonfinite = true;
      }
  }
  void step_and_add(const Tile& x, const imd::LangevinStep& s, bool& nonfinite, const float* w, Vector& sum) const {
    add(x, w, sum);
    step(x, s, nonfinite);
  }
  static bool has_mixed_derivative() { return true; }
  void add_mixed_derivative(const Tile& x, const Tile& u, Vector& sum) const {
    for (std::size_t k = 0; k < x.count(); ++k) sum.edit()[k % x.dimension] -= u.row(0)[k];
  }

 private:
  float slope(const Tile& x, std::size_t i, std::size_t j) const { return x.row(i)[j] - theta_->numbers[j]; }
  std::size_t dimension_;
  Handle theta_;
};

class Steps : public Tiles {
 public:
  explicit Steps(std::size_t dimension, imd::Noise noise = imd::Noise(), imd::Workers* workers = nullptr)
      : dimension_(dimension), noise_(noise), workers_(workers) {}

  struct Model {
    Handle theta;
    std::uint64_t version = 0;
  };
  static Model model() { return {}; }
  static bool prepare(Model& m, const Vector& theta, const imd::TimeGrid&, std::size_t, std::size_t) {
    if (m.theta == theta.handle() && m.version == theta.handle()->version) return false;
    m = {theta.handle(), theta.handle()->version};
    return true;
  }

  void forward(const Model& m, const Model* frozen, const imd::ReverseStep& s, const Tile& from, const Tile& to,
               float* u) const {
    std::vector<float> xi;
    if (s.c.noise > 0) xi = normals(noise_, imd::Stream::sampling, s.key, dimension_, from.first, from.size);
    for (std::size_t i = 0; i < from.size; ++i) {
      double square = 0;
      for (std::size_t j = 0; j < dimension_; ++j) {
        const float y = from.row(i)[j], score = score_of(m, s.tau, y, j);
        if (u) square += std::pow(double{score} - double{score_of(*frozen, s.tau, y, j)}, 2);
        double next = s.c.growth * double{y} + s.c.pull * double{score};
        if (!xi.empty()) next += s.c.noise * double{xi[i * dimension_ + j]};
        to.row(i)[j] = static_cast<float>(next);
      }
      if (u) u[i] += static_cast<float>(s.c.penalty * square);
    }
  }
  void backward(const Model& m, const Model* frozen, const imd::ReverseStep& s, double beta, const Tile& at,
                const Tile& a, Vector& sum) const {
    for (std::size_t i = 0; i < at.size; ++i)
      for (std::size_t j = 0; j < dimension_; ++j) {
        const float y = at.row(i)[j];
        float& adjoint = a.row(i)[j];
        const double gap = frozen ? 2 * beta * s.c.penalty *
                                        (double{score_of(m, s.tau, y, j)} - double{score_of(*frozen, s.tau, y, j)})
                                  : 0;
        const double c = s.c.pull * double{adjoint} + gap;
        sum.edit()[j] -= static_cast<float>(c * double{y});
        sum.edit()[dimension_ + j] += static_cast<float>(c * std::exp(-s.tau));
        adjoint = static_cast<float>(s.c.growth * double{adjoint} - c * double{m.theta->numbers[j]} +
                                     (frozen ? gap * double{frozen->theta->numbers[j]} : 0));
      }
  }

  bool fits(const Vector& theta) const { return theta.size() == 2 * dimension_; }
  bool fits(const Samples& x) const { return x.dimension() == dimension_; }
  static bool fits(const Model&) { return true; }
  static std::optional<std::size_t> find_inadmissible(const Vector&) { return std::nullopt; }
  imd::Workers* workers() const { return workers_; }

 private:
  float score_of(const Model& m, double tau, float y, std::size_t j) const {
    const std::vector<float>& theta = m.theta->numbers;
    return static_cast<float>(std::exp(-tau) * double{theta[dimension_ + j]} - double{theta[j]} * double{y});
  }

  std::size_t dimension_;
  imd::Noise noise_;
  imd::Workers* workers_;
};

}  // namespace device
