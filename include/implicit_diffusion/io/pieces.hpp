// Values as bytes, piece by piece: how a state of any size goes to and from a file without a copy of it.
//
// A value is streamable where three functions are found beside its type:
//
//     size_in_bytes(x)         what it takes in a file
//     give_pieces(x, sink)     calls sink(std::string_view) with all its bytes, in order
//     take_pieces(x, source)   calls source(std::span<char>) for as many bytes, and puts them where they belong:
//                              the value keeps its shape
//
// Here they are for vectors of numbers and for populations (coordinate by coordinate, without what pads them).
#pragma once

#include "implicit_diffusion/population.hpp"

#include <concepts>
#include <cstddef>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace implicit_diffusion {

using PieceSink = std::function<void(std::string_view)>;
using PieceSource = std::function<void(std::span<char>)>;

// What lies in a file as it lies in memory.
template <class T>
concept Arithmetic = std::is_arithmetic_v<T>;

template <Arithmetic Number>
std::size_t size_in_bytes(const std::vector<Number>& v) {
  return v.size() * sizeof(Number);
}
template <Arithmetic Number>
void give_pieces(const std::vector<Number>& v, const PieceSink& sink) {
  sink({reinterpret_cast<const char*>(v.data()), size_in_bytes(v)});
}
template <Arithmetic Number>
void take_pieces(std::vector<Number>& v, const PieceSource& source) {
  source({reinterpret_cast<char*>(v.data()), size_in_bytes(v)});
}

template <class Real>
std::size_t size_in_bytes(const Population<Real>& x) {
  return x.size() * x.dimension() * sizeof(Real);
}
template <class Real>
void give_pieces(const Population<Real>& x, const PieceSink& sink) {
  for (std::size_t j = 0; j < x.dimension(); ++j)
    sink({reinterpret_cast<const char*>(x.coordinate(j).data()), x.size() * sizeof(Real)});
}
template <class Real>
void take_pieces(Population<Real>& x, const PieceSource& source) {
  for (std::size_t j = 0; j < x.dimension(); ++j)
    source({reinterpret_cast<char*>(x.coordinate(j).data()), x.size() * sizeof(Real)});
}

template <class T>
concept Streamable = requires(T& x, const T& c, const PieceSink& sink, const PieceSource& source) {
  { size_in_bytes(c) } -> std::convertible_to<std::size_t>;
  give_pieces(c, sink);
  take_pieces(x, source);
};

}  // namespace implicit_diffusion
