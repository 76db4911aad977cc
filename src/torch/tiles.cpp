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

// Of n samples, those of the shards that are here.
std::int64_t rows_here(const Range& tiles, std::size_t shard, std::size_t n) {
  return static_cast<std::int64_t>(std::min((tiles.first + tiles.count) * shard, n) - std::min(tiles.first * shard, n));
}

std::vector<std::int64_t> with_first(std::int64_t n, at::IntArrayRef rest) {
  std::vector<std::int64_t> shape{n};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return shape;
}

}  // namespace

void TensorSamples::spread(Processes* processes, std::size_t n) {
  require_shard(shard_);
  tiles_ = Range(processes, (n + shard_ - 1) / shard_);
  total_ = n;
}

TensorSamples::TensorSamples(std::size_t n, const std::vector<std::int64_t>& sample, at::ScalarType type,
                             std::size_t shard, Processes* processes)
    : shard_(shard) {
  spread(processes, n);
  x_ = at::zeros(with_first(rows_here(tiles_, shard_, n), sample), type);
}

TensorSamples::TensorSamples(const at::Tensor& x, const at::Tensor& labels, std::size_t shard, Processes* processes)
    : shard_(shard) {
  if (x.dim() == 0 || (x.scalar_type() != at::kFloat && x.scalar_type() != at::kDouble))
    throw Error(ErrorKind::usage, "samples", "they must be a list of float or double tensors");
  spread(processes, static_cast<std::size_t>(x.size(0)));
  x_ = here(x);
  if (labels.defined()) set_labels(labels);
}

at::Tensor TensorSamples::here(const at::Tensor& all) const {
  return all.detach()
      .narrow(0, static_cast<std::int64_t>(std::min(first(), total_)), rows_here(tiles_, shard_, total_))
      .clone(at::MemoryFormat::Contiguous);
}

void TensorSamples::set_labels(const at::Tensor& all) {
  if (all.dim() != 1 || all.size(0) != static_cast<std::int64_t>(total_) || all.scalar_type() != at::kLong)
    throw Error(ErrorKind::usage, "labels", "there must be a 64-bit integer for each sample");
  labels_ = here(all);
}

TensorSamples::TensorSamples(const TensorSamples& other)
    : labels_(other.labels_), shard_(other.shard_), tiles_(other.tiles_), total_(other.total_) {
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
  tiles_ = other.tiles_;
  total_ = other.total_;
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
  return a.shard_ == b.shard_ && a.tiles_ == b.tiles_ && same(a.x_, b.x_) && same(a.labels_, b.labels_);
}

namespace {

// Rows of `bytes` for each sample of a batch, those here in `own`.
struct RowsOfSamples {
  const Range& tiles;
  std::size_t shard, total, bytes;
  std::span<char> own;

  std::size_t first(std::size_t rank) const { return std::min(tiles.first_of(rank) * shard, total); }
  std::size_t size() const { return total * bytes; }
  void give(const PieceSink& sink) const {
    give_in_turn(
        tiles.processes,
        [&](const PieceSink& to) {
          to({own.data(), own.size()});
        },
        sink);
  }
  void take(const PieceSource& source) const {
    if (!tiles.processes) return source(own);
    take_part(size(), first(tiles.processes->rank()) * bytes, own, source);
  }
  // All of them, on all processes.
  void gather(std::span<char> all) const {
    const std::size_t at = tiles.processes ? first(tiles.processes->rank()) * bytes : 0;
    std::copy(own.begin(), own.end(), all.begin() + static_cast<std::ptrdiff_t>(at));
    if (!tiles.processes) return;
    std::vector<std::size_t> sizes;
    for (std::size_t r = 0; r < tiles.processes->ranks(); ++r) sizes.push_back((first(r + 1) - first(r)) * bytes);
    tiles.processes->gather(sizes, as_message(all));
  }
};

std::span<char> bytes_of(const at::Tensor& t) { return {static_cast<char*>(t.data_ptr()), t.nbytes()}; }

RowsOfSamples rows_of(const TensorSamples& x, const at::Tensor& of) {
  const std::size_t row = x.total() == 0 ? 0 : static_cast<std::size_t>(elements_of(of.sizes().slice(1).vec()));
  return {x.tiles(), x.shard(), x.total(), row * of.element_size(), bytes_of(of)};
}
RowsOfSamples rows_of(const TensorNumbers& u) {
  auto* own = const_cast<char*>(reinterpret_cast<const char*>(u.values.data()));
  return {u.tiles, u.shard, u.total, u.each * sizeof(double), {own, u.values.size() * sizeof(double)}};
}

}  // namespace

namespace {

at::Tensor gather(const TensorSamples& x, const at::Tensor& part) {
  if (!part.defined() || !x.processes()) return part;
  at::Tensor whole = at::empty(with_first(static_cast<std::int64_t>(x.total()), part.sizes().slice(1)), part.options());
  rows_of(x, part).gather(bytes_of(whole));
  return whole;
}

}  // namespace

TensorSamples gathered(const TensorSamples& x) {
  if (!x.processes()) return x;
  return TensorSamples(gather(x, x.x()), gathered_labels(x), x.shard());
}
at::Tensor gathered_labels(const TensorSamples& x) { return gather(x, x.labels()); }

std::size_t size_in_bytes(const TensorSamples& x) { return x.total() == 0 ? 0 : rows_of(x, x.x()).size(); }
void give_pieces(const TensorSamples& x, const PieceSink& sink) {
  if (x.total() != 0) rows_of(x, x.x()).give(sink);
}
void take_pieces(TensorSamples& x, const PieceSource& source) {
  if (x.total() != 0) rows_of(x, x.x()).take(source);
}

std::vector<double> gathered(const TensorNumbers& u) {
  std::vector<double> all(u.total * u.each);
  rows_of(u).gather({reinterpret_cast<char*>(all.data()), all.size() * sizeof(double)});
  return all;
}

std::size_t size_in_bytes(const TensorNumbers& u) { return rows_of(u).size(); }
void give_pieces(const TensorNumbers& u, const PieceSink& sink) { rows_of(u).give(sink); }
void take_pieces(TensorNumbers& u, const PieceSource& source) { rows_of(u).take(source); }

// Coordinate after coordinate, as populations have it.
std::optional<SampleCoordinate> find_nonfinite_here(const TensorSamples& x) {
  if (x.size() == 0) return std::nullopt;
  const at::Tensor bad = at::isfinite(x.x()).logical_not_();
  if (!bad.any().item<bool>()) return std::nullopt;
  const at::Tensor by_coordinate = bad.to(at::kByte).reshape({bad.size(0), -1}).t().contiguous();
  const auto j = static_cast<std::size_t>(at::argmax(by_coordinate.flatten()).item<std::int64_t>());
  return SampleCoordinate{x.first() + j % x.size(), j / x.size()};
}

std::optional<SampleCoordinate> find_nonfinite(const TensorSamples& x) {
  const auto here = find_nonfinite_here(x);
  const auto found = first_of_all(x.processes(), here ? std::optional(InBatch{0, *here}) : std::nullopt);
  return found ? std::optional(found->at) : std::nullopt;
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
  const std::size_t first = k * x.shard(), size = std::min(x.shard(), x.size() - first);  // among those here
  const auto part = [&](const at::Tensor& all) {
    return all.defined() ? all.narrow(0, static_cast<std::int64_t>(first), static_cast<std::int64_t>(size)) : all;
  };
  return {part(x.x()), part(x.labels()), x.first() + first, x.shard()};
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
  Rows all{{}, x.tiles(), theta};
  while (all.rows.size() < tiles(x)) all.rows.push_back(zeros_like(theta));  // each with memory of its own
  return all;
}
void TensorTiles::add_up(const Rows& rows, const Samples&, Theta& total) {
  total = tree_sum(
      nullptr, rows.tiles, [&total] { return zeros_like(total); },
      [&rows](std::size_t k, Theta& part) { part = rows.rows[k]; }, add, message);
}
void TensorTiles::add(Theta& sum, const Theta& part) { sum.edit().add_(part.read()); }

std::span<std::byte> TensorTiles::message(Theta& theta) { return as_message(bytes_of(theta.edit())); }

std::size_t size_in_bytes(const TensorRows& rows) { return rows.tiles.total * size_in_bytes(rows.like); }
void give_pieces(const TensorRows& rows, const PieceSink& sink) {
  give_in_turn(
      rows.tiles.processes,
      [&](const PieceSink& to) {
        for (const TensorParameters& row : rows.rows) give_pieces(row, to);
      },
      sink);
}
void take_pieces(TensorRows& rows, const PieceSource& source) {
  // Every process is given all rows, and keeps its own.
  TensorParameters other;
  for (std::size_t k = 0; k < rows.tiles.total; ++k) {
    const bool here = rows.tiles.first <= k && k < rows.tiles.first + rows.tiles.count;
    if (!here && other.size() == 0) other = zeros_like(rows.like);
    take_pieces(here ? rows.rows[k - rows.tiles.first] : other, source);
  }
}

}  // namespace implicit_diffusion
