#include "implicit_diffusion/torch/tiles.hpp"

#include "autograd.hpp"
#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace implicit_diffusion {

// ---- samples

namespace {

void require_shard(std::size_t shard) {
  if (shard == 0) throw Error(ErrorKind::usage, "shard", "it must have a sample at least");
}

std::vector<std::int64_t> with_first(std::int64_t n, at::IntArrayRef rest) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

}  // namespace

TensorSamples::TensorSamples(std::size_t n, const std::vector<std::int64_t>& sample, at::ScalarType type,
                             std::size_t shard)
    : x_(at::zeros(with_first(static_cast<std::int64_t>(n), sample), type)), shard_(shard) {
  require_shard(shard);
}

TensorSamples::TensorSamples(const at::Tensor& x, const at::Tensor& labels, std::size_t shard) : shard_(shard) {
  require_shard(shard);
  if (x.dim() == 0 || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble))
    throw Error(ErrorKind::usage, "samples", "they must be a list of float or double tensors");
  x_ = x.detach().clone(at::MemoryFormat::Contiguous);
  if (!labels.defined()) return;
  if (labels.dim() != 1 || labels.size(0) != x.size(0) || labels.scalar_type() != at::kLong)
    throw Error(ErrorKind::usage, "labels", "there must be a 64-bit integer for each sample");
  labels_ = labels.clone();
}

TensorSamples::TensorSamples(const TensorSamples& other) : labels_(other.labels_), shard_(other.shard_) {
  if (other.x_.defined()) x_ = other.x_.clone();
}

TensorSamples& TensorSamples::operator=(const TensorSamples& other) {
  if (this == &other) return *this;
  if (x_.defined() && other.x_.defined() && x_.sizes() == other.x_.sizes() &&
      x_.scalar_type() == other.x_.scalar_type())
    x_.copy_(other.x_);
  else
    x_ = other.x_.defined() ? other.x_.clone() : at::Tensor();
  labels_ = other.labels_;
  shard_ = other.shard_;
  return *this;
}

std::size_t TensorSamples::dimension() const { return static_cast<std::size_t>(elements_of(sample_shape())); }
std::vector<std::int64_t> TensorSamples::sample_shape() const {
  if (!x_.defined()) return {0};
  return x_.sizes().slice(1).vec();
}

namespace {

bool same(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.is_same(b) || (a.scalar_type() == b.scalar_type() && at::equal(a, b));
}

}  // namespace

bool operator==(const TensorSamples& a, const TensorSamples& b) {
  return a.shard_ == b.shard_ && same(a.x_, b.x_) && same(a.labels_, b.labels_);
}

std::size_t size_in_bytes(const TensorSamples& x) { return x.size() == 0 ? 0 : x.x().nbytes(); }
void give_pieces(const TensorSamples& x, const PieceSink& sink) {
  if (x.size() != 0) sink({static_cast<const char*>(x.x().data_ptr()), x.x().nbytes()});
}
void take_pieces(TensorSamples& x, const PieceSource& source) {
  if (x.size() != 0) source({static_cast<char*>(x.x().data_ptr()), x.x().nbytes()});
}

std::optional<SampleCoordinate> find_nonfinite(const TensorSamples& x) {
  if (x.size() == 0) return std::nullopt;
  const at::Tensor bad = at::isfinite(x.x()).logical_not_();
  if (!bad.any().item<bool>()) return std::nullopt;
  const auto j = static_cast<std::size_t>(at::argmax(bad.to(at::kByte).flatten()).item<std::int64_t>());
  return SampleCoordinate{j / x.dimension(), j % x.dimension()};
}

// ---- what every evaluation of a tile shares

namespace detail {

void use_one_thread() {
  if (at::get_num_threads() != 1) at::set_num_threads(1);
}

at::Tensor fill_up(const at::Tensor& rows, std::size_t shard) {
  if (!rows.defined()) return rows;
  const std::int64_t missing = static_cast<std::int64_t>(shard) - rows.size(0);
  if (missing <= 0) return rows;
  return at::cat({rows, rows.narrow(0, rows.size(0) - 1, 1).expand(with_first(missing, rows.sizes().slice(1)))});
}

at::Tensor fill_up_with_zeros(const at::Tensor& rows, std::size_t shard) {
  const std::int64_t missing = static_cast<std::int64_t>(shard) - rows.size(0);
  if (missing <= 0) return rows;
  return at::cat({rows, at::zeros(with_first(missing, rows.sizes().slice(1)), rows.options())});
}

at::Tensor normals(const Noise& noise, Stream stream, StepKey key, const TensorTile& tile) {
  const auto size = static_cast<std::size_t>(tile.size());
  const auto d = static_cast<std::size_t>(tile.x.numel()) / size;
  const std::size_t group = tile.first / noise_lanes, groups = (tile.first + size - 1) / noise_lanes - group + 1;
  std::vector<float> made(groups * d * noise_lanes);
  noise.normals(stream, key, d, group, groups, made.data());
  const at::Tensor rows = at::empty(tile.x.sizes(), at::kFloat);
  float* out = rows.data_ptr<float>();
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t sample = tile.first + i - group * noise_lanes;
    const float* lane = made.data() + sample / noise_lanes * d * noise_lanes + sample % noise_lanes;
    for (std::size_t j = 0; j < d; ++j) *out++ = lane[j * noise_lanes];
  }
  return rows.to(tile.x.scalar_type());
}

at::Tensor labels(const Noise& noise, StepKey key, std::int64_t classes, const TensorTile& tile) {
  const at::Tensor drawn = at::empty({tile.size()}, at::kLong);
  for (std::int64_t i = 0; i < tile.size(); ++i) {
    const std::uint64_t bits = noise.bits(Stream::component, key, 1, tile.first + static_cast<std::size_t>(i), 0);
    drawn.data_ptr<std::int64_t>()[i] = static_cast<std::int64_t>((bits * static_cast<std::uint64_t>(classes)) >> 32U);
  }
  return drawn;
}

void add_numbers(const at::Tensor& of_samples, std::int64_t size, double c, double* numbers) {
  const at::Tensor host = of_samples.detach().to(at::kDouble).contiguous();
  for (std::int64_t i = 0; i < size; ++i) numbers[i] += c * host.data_ptr<double>()[i];
}

}  // namespace detail

// ---- rewards

at::Tensor TensorReward::values(const at::Tensor& x, const TensorTile& tile) const {
  detail::use_one_thread();
  const at::Tensor r =
      detail::unless_refused("reward", [&] { return f_(x, detail::fill_up(tile.labels, tile.shard)); });
  if (!r.defined() || r.dim() != 1 || r.size(0) != x.size(0))
    throw Error(ErrorKind::usage, "reward", "it must return one number for each sample");
  return r;
}

void TensorReward::add(const TensorTile& x, double lambda, double* f) const {
  const at::NoGradGuard no_graph;
  detail::add_numbers(values(detail::fill_up(x.x, x.shard), x), x.size(), lambda, f);
}

void TensorReward::gradient(const TensorTile& x, const TensorTile& slope) const {
  const at::AutoGradMode graph(true);
  const at::Tensor input = detail::leaf_of(detail::fill_up(x.x, x.shard));
  const at::Tensor r = values(input, x);
  const at::NoGradGuard no_graph;
  const at::Tensor g = detail::pull_back(r, {input}, at::ones_like(r))[0];
  if (g.defined())
    slope.x.copy_(g.narrow(0, 0, x.size()));
  else
    slope.x.zero_();
}

// ---- tiles

TensorTiles::Scratch::Scratch(const Tile& like, std::size_t count)
    : like_(like), memory_(at::empty(with_first(static_cast<std::int64_t>(count), like.x.sizes()), like.x.options())) {}

TensorTile TensorTiles::Scratch::operator[](std::size_t i) const {
  return {memory_.select(0, static_cast<std::int64_t>(i)), like_.labels, like_.first, like_.shard};
}

TensorTile TensorTiles::tile(const Samples& x, std::size_t k) {
  const std::size_t first = k * x.shard(), size = std::min(x.shard(), x.size() - first);
  const auto part = [&](const at::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(size)) : all;
  };
  return {part(x.x()), part(x.labels()), first, x.shard()};
}

void TensorTiles::copy(const Tile& from, const Tile& to) { to.x.copy_(from.x); }
void TensorTiles::scale(const Tile& y, double c) { y.x.mul_(c); }
void TensorTiles::step_back(const Tile& z, const Tile& image, const Tile& guess) {
  guess.x.copy_(z.x - (image.x - guess.x));
}
double TensorTiles::largest_difference(const Tile& a, const Tile& b) { return (a.x - b.x).abs().max().item<double>(); }
void TensorTiles::add_to(double& sum, const double* numbers, const Tile& y) {
  for (std::int64_t i = 0; i < y.size(); ++i) sum += numbers[i];
}
void TensorTiles::affine(double* u, const Tile& y, double c, double b) {
  for (std::int64_t i = 0; i < y.size(); ++i) u[i] = c * u[i] + b;
}
void TensorTiles::fill_normals(Samples& x, const Noise& noise, Stream stream, StepKey key) {
  for (std::size_t k = 0; k < tiles(x); ++k) {
    const Tile y = tile(x, k);
    y.x.copy_(detail::normals(noise, stream, key, y));
  }
}

TensorTiles::Rows TensorTiles::rows(const Samples& x, const Theta& theta) {
  Rows all;
  while (all.size() < tiles(x)) all.push_back(zeros_like(theta));  // each with memory of its own
  return all;
}
void TensorTiles::add_up(const Rows& rows, const Samples&, Theta& total) {
  total = tree_sum(
      nullptr, rows.size(), [&total] { return zeros_like(total); },
      [&rows](std::size_t k, Theta& part) { part = rows[k]; }, add);
}
void TensorTiles::add(Theta& sum, const Theta& part) { sum.edit().add_(part.read()); }

std::size_t size_in_bytes(const TensorTiles::Rows& rows) {
  std::size_t size = 0;
  for (const TensorParameters& row : rows) size += size_in_bytes(row);
  return size;
}
void give_pieces(const TensorTiles::Rows& rows, const PieceSink& sink) {
  for (const TensorParameters& row : rows) give_pieces(row, sink);
}
void take_pieces(TensorTiles::Rows& rows, const PieceSource& source) {
  for (TensorParameters& row : rows) take_pieces(row, source);
}

}  // namespace implicit_diffusion
