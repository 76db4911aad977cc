#include "implicit_diffusion/torch/parameters.hpp"

#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>

namespace implicit_diffusion {

namespace {

void require_floating(at::ScalarType type) {
  if (type != at::kFloat && type != at::kDouble)
    throw Error(ErrorKind::usage, "theta", "its elements must be float or double, not " + std::string(toString(type)));
}

}  // namespace

TensorParameters::TensorParameters(std::int64_t size, at::ScalarType type) {
  require_floating(type);
  flat_ = std::make_shared<at::Tensor>(at::zeros({size}, type));
}

TensorParameters::TensorParameters(const at::Tensor& elements) {
  require_floating(elements.scalar_type());
  const at::NoGradGuard no_graph;
  flat_ = std::make_shared<at::Tensor>(at::empty({elements.numel()}, elements.scalar_type()));
  flat_->view(elements.sizes()).copy_(elements);
}

const at::Tensor& TensorParameters::read() const {
  static const at::Tensor none = at::empty({0});
  return flat_ ? *flat_ : none;
}

const at::Tensor& TensorParameters::edit() {
  if (!flat_) flat_ = std::make_shared<at::Tensor>(at::empty({0}));
  if (flat_.use_count() > 1) flat_ = std::make_shared<at::Tensor>(flat_->clone());
  return *flat_;
}

bool operator==(const TensorParameters& a, const TensorParameters& b) {
  return a.same(b) || (a.type() == b.type() && a.size() == b.size() && at::equal(a.read(), b.read()));
}

TensorParameters zeros_like(const TensorParameters& v) { return {static_cast<std::int64_t>(v.size()), v.type()}; }

namespace {

// A number is finite unless all bits of its exponent are set: the largest of many tells at once whether one is not.
template <class Real, class Bits>
std::optional<std::size_t> first_nonfinite(const Real* v, std::size_t size) {
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1),
                 infinite = std::bit_cast<Bits>(std::numeric_limits<Real>::infinity());
  constexpr std::size_t piece = 1024;
  for (std::size_t first = 0; first < size; first += piece) {
    const std::size_t last = std::min(first + piece, size);
    Bits most = 0;
    for (std::size_t j = first; j < last; ++j) most = std::max<Bits>(most, std::bit_cast<Bits>(v[j]) & ~sign);
    if (most < infinite) continue;
    for (std::size_t j = first; j < last; ++j)
      if (!std::isfinite(v[j])) return j;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> first_nonfinite(const TensorParameters& v) {
  if (v.type() == at::kFloat) return first_nonfinite<float, std::uint32_t>(detail::elements<float>(v), v.size());
  return first_nonfinite<double, std::uint64_t>(detail::elements<double>(v), v.size());
}

namespace {

std::span<char> bytes_of(const at::Tensor& t) { return {static_cast<char*>(t.data_ptr()), t.nbytes()}; }

}  // namespace

std::size_t size_in_bytes(const TensorParameters& v) { return v.read().nbytes(); }
void give_pieces(const TensorParameters& v, const PieceSink& sink) {
  const std::span<char> bytes = bytes_of(v.read());
  sink({bytes.data(), bytes.size()});
}
void take_pieces(TensorParameters& v, const PieceSource& source) { source(bytes_of(v.edit())); }

void detail::require_alike(const TensorParameters& a, const TensorParameters& b) {
  if (a.size() != b.size() || a.type() != b.type())
    throw Error(ErrorKind::usage, "theta",
                std::to_string(a.size()) + " numbers of type " + toString(a.type()) + " do not go with " +
                    std::to_string(b.size()) + " of type " + toString(b.type()));
}

}  // namespace implicit_diffusion
