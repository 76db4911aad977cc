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
//
// What several processes share has the size and the bytes of the whole. All call the functions together: the first
// one's sink is given everything, piece by piece, so that no process needs memory for more than its part; a source
// gives everything to all, and each keeps what is its own.
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

// What produce() gives on each process, rank after rank, goes to the sink of the first.
void give_in_turn(Processes* processes, const std::function<void(const PieceSink&)>& produce, const PieceSink& sink);
// Takes `total` bytes, and keeps those from `first` on in `own`.
void take_part(std::size_t total, std::size_t first, std::span<char> own, const PieceSource& source);

template <class Real>
std::size_t size_in_bytes(const Population<Real>& x) {
  return x.total() * x.dimension() * sizeof(Real);
}
template <class Real>
void give_pieces(const Population<Real>& x, const PieceSink& sink) {
  for (std::size_t j = 0; j < x.dimension(); ++j) {
    const std::string_view column(reinterpret_cast<const char*>(x.coordinate(j).data()), x.size() * sizeof(Real));
    if (x.processes())
      give_in_turn(
          x.processes(), [&](const PieceSink& to) { to(column); }, sink);
    else
      sink(column);
  }
}
template <class Real>
void take_pieces(Population<Real>& x, const PieceSource& source) {
  for (std::size_t j = 0; j < x.dimension(); ++j) {
    const std::span<char> column(reinterpret_cast<char*>(x.coordinate(j).data()), x.size() * sizeof(Real));
    if (x.processes())
      take_part(x.total() * sizeof(Real), x.first() * sizeof(Real), column, source);
    else
      source(column);
  }
}

// Of what belongs to tiles in equal parts and is so much here: so much it is on all processes. 0 where there are none
// here.
inline std::size_t on_all(const Range& tiles, std::size_t here) {
  return tiles.processes ? here / (tiles.count > 0 ? tiles.count : 1) * tiles.total : here;
}

// Numbers that belong to the tiles of a population, `each` of them to a tile: those of the tiles here are in a vector.
template <class Vector>
struct OfTiles {
  Vector& numbers;
  Range tiles;
  std::size_t each;
};
template <class Vector>
std::size_t size_in_bytes(const OfTiles<Vector>& x) {
  return x.tiles.total * x.each * sizeof(typename Vector::value_type);
}
template <class Vector>
void give_pieces(const OfTiles<Vector>& x, const PieceSink& sink) {
  give_in_turn(
      x.tiles.processes, [&](const PieceSink& to) { give_pieces(x.numbers, to); }, sink);
}
template <class Vector>
void take_pieces(OfTiles<Vector>& x, const PieceSource& source) {
  const std::size_t bytes = x.each * sizeof(typename Vector::value_type);
  take_part(x.tiles.total * bytes, x.tiles.first * bytes,
            {reinterpret_cast<char*>(x.numbers.data()), x.tiles.count * bytes}, source);
}

template <class T>
concept Streamable = requires(T& x, const T& c, const PieceSink& sink, const PieceSource& source) {
  { size_in_bytes(c) } -> std::convertible_to<std::size_t>;
  give_pieces(c, sink);
  take_pieces(x, source);
};

}  // namespace implicit_diffusion
