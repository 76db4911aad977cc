// theta: what an optimizer moves and a sampler depends on.
//
// It is any value type with deep copies: std::vector<double> for particles, one flat tensor for a network, numbers on
// another device. The library touches its elements only through three functions, found beside the type (or here, for
// numbers in host memory):
//
//     zeros_like(theta)                    zeros of the same shape: a gradient, an optimizer's moments
//     first_nonfinite(theta)               the first element that is infinite or not a number
//     for_each_element(f, theta, more...)  f(theta[j], more[j]...) for all j; f may change any of them
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <type_traits>
#include <vector>

namespace implicit_diffusion {

// Numbers in host memory: std::vector, std::span, std::array.
template <class T>
concept HostNumbers = std::ranges::contiguous_range<T> && std::floating_point<std::ranges::range_value_t<T>>;

template <class Real>
std::vector<Real> zeros_like(const std::vector<Real>& v) {
  return std::vector<Real>(v.size(), Real(0));
}

template <HostNumbers T>
std::optional<std::size_t> first_nonfinite(const T& v) {
  for (std::size_t j = 0; j < std::ranges::size(v); ++j)
    if (!std::isfinite(std::ranges::data(v)[j])) return j;
  return std::nullopt;
}

template <class F, HostNumbers T, HostNumbers... More>
void for_each_element(F&& f, T&& v, More&&... more) {
  for (std::size_t j = 0; j < std::ranges::size(v); ++j) f(std::ranges::data(v)[j], std::ranges::data(more)[j]...);
}

template <class T>
concept Parameters = std::copyable<T> && requires(T& t, const T& c) {
  { zeros_like(c) } -> std::same_as<T>;
  { first_nonfinite(c) } -> std::same_as<std::optional<std::size_t>>;
  for_each_element([](auto&, const auto&) {}, t, c);
};

// An element after a computation in double: the bits of double elements are those of the computation, single ones are
// rounded once.
template <class Element>
void set_element(Element& element, double value) {
  element = static_cast<Element>(value);
}

}  // namespace implicit_diffusion
