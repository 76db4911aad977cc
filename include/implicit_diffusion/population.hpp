// A population: n samples in R^d, the empirical measure that a loop carries along (p_k in the paper).
//
// Stored by coordinate ("structure of arrays"): coordinate j of all samples is contiguous, so that a kernel reads 16
// samples at once. Work on a population goes block by block. Blocks have a fixed size, whatever the number of threads,
// and sums over the population are sums over blocks in their order: so no result depends on how the work was split.
//
// Several processes may share a population (processes.hpp): each has a range of its blocks, and knows which.
#pragma once

#include "implicit_diffusion/processes.hpp"

#include <cmath>
#include <cstddef>
#include <new>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

// Samples come in groups of 16, the lanes of the kernels, and blocks of 16 groups, the unit of parallel work and of
// summation.
inline constexpr std::size_t lanes_per_group = 16;
inline constexpr std::size_t groups_per_block = 16;
inline constexpr std::size_t block_size = lanes_per_group * groups_per_block;

// Up to block_size consecutive samples of a population. Coordinate j of sample i of the block is data[j * stride + i].
template <class Real>
struct Block {
  Real* data;
  std::size_t stride;
  std::size_t size;       // samples in it
  std::size_t dimension;  // coordinates of a sample
  std::size_t first;      // index of its first sample in the whole population

  Real& operator()(std::size_t i, std::size_t j) const { return data[j * stride + i]; }
  operator Block<const Real>() const { return {data, stride, size, dimension, first}; }
};

// Memory on the boundaries of cache lines: a group of lanes that straddled two would cost two loads.
template <class T>
struct LineAllocator {
  using value_type = T;
  static constexpr std::align_val_t line{64};

  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}  // implicit, as the standard asks of allocators
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), line)); }
  void deallocate(T* p, std::size_t) { ::operator delete(p, line); }
  friend bool operator==(const LineAllocator&, const LineAllocator&) { return true; }
};

// Throws a usage Error where n samples of d numbers are more than any memory holds.
void require_memory_for(std::size_t n, std::size_t d);

template <class Real>
class Population {
 public:
  using value_type = Real;

  Population() = default;
  // n samples at the origin of R^d, all here or spread over processes.
  Population(std::size_t n, std::size_t d, Processes* processes = nullptr)
      : tiles_(processes, (n + block_size - 1) / block_size), total_(n), dimension_(d) {
    require_memory_for(n, d);
    const std::size_t end = (tiles_.first + tiles_.count) * block_size;
    size_ = (end < n ? end : n) - (first() < n ? first() : n);
    stride_ = padded(size_);
    values_.resize(stride_ * d, Real{0});
  }

  std::size_t size() const { return size_; }  // samples that are here
  std::size_t dimension() const { return dimension_; }
  std::size_t total() const { return total_; }                     // samples of all processes
  std::size_t first() const { return tiles_.first * block_size; }  // which of them is the first one here
  const Range& tiles() const { return tiles_; }                    // the blocks that are here
  Processes* processes() const { return tiles_.processes; }        // null: all are here

  // Takes the samples that are to be here from a population that is all here.
  void take_from(const Population& whole) {
    for (std::size_t j = 0; j < dimension_; ++j)
      for (std::size_t i = 0; i < size_; ++i) (*this)(i, j) = whole(first() + i, j);
  }

  std::span<Real> coordinate(std::size_t j) { return {values_.data() + j * stride_, size_}; }
  std::span<const Real> coordinate(std::size_t j) const { return {values_.data() + j * stride_, size_}; }
  Real& operator()(std::size_t i, std::size_t j) { return values_[j * stride_ + i]; }
  Real operator()(std::size_t i, std::size_t j) const { return values_[j * stride_ + i]; }

  std::size_t blocks() const { return tiles_.count; }
  Block<Real> block(std::size_t b) { return make_block<Real>(values_.data(), b); }
  Block<const Real> block(std::size_t b) const { return make_block<const Real>(values_.data(), b); }

  friend bool operator==(const Population&, const Population&) = default;

 private:
  static std::size_t padded(std::size_t n) { return (n + lanes_per_group - 1) / lanes_per_group * lanes_per_group; }

  template <class T, class Pointer>
  Block<T> make_block(Pointer values, std::size_t b) const {
    const std::size_t begin = b * block_size;
    const std::size_t size = size_ - begin < block_size ? size_ - begin : block_size;
    return {values + begin, stride_, size, dimension_, first() + begin};
  }

  Range tiles_;
  std::size_t total_ = 0, size_ = 0;
  std::size_t dimension_ = 0;
  std::size_t stride_ = 0;  // size rounded up to whole groups; what lies beyond size is never read as a sample
  std::vector<Real, LineAllocator<Real>> values_;
};

// Memory of the calling thread, on the boundary of a cache line; given back, it is kept for the next who takes.
void* take_memory(std::size_t bytes);
void give_memory(void* memory);
// Zeros. Where the compiler knew how few they are it would make `rep stos` of it, three times as slow.
void clear_memory(void* memory, std::size_t bytes);

// Numbers for each sample of a block, by coordinate: coordinate j of sample i is data()[j * block_size + i]. On the
// stack where they are few.
template <class Real>
class BlockArray {
 public:
  explicit BlockArray(std::size_t coordinates = 1) {
    if (coordinates > few) large_ = static_cast<Real*>(take_memory(coordinates * block_size * sizeof(Real)));
  }
  ~BlockArray() {
    if (large_) give_memory(large_);
  }
  BlockArray(const BlockArray&) = delete;
  BlockArray& operator=(const BlockArray&) = delete;

  Real* data() { return large_ ? large_ : small_; }
  Real& operator[](std::size_t i) { return data()[i]; }
  // Zeros for the first n samples, of the first coordinate.
  void clear(std::size_t n) { clear_memory(data(), n * sizeof(Real)); }

 private:
  static constexpr std::size_t few = 4;
  alignas(64) Real small_[few * block_size];
  Real* large_ = nullptr;
};

struct SampleCoordinate {
  std::size_t sample;
  std::size_t coordinate;
};

// The first coordinate among the samples here that is infinite or not a number.
template <class Real>
std::optional<SampleCoordinate> find_nonfinite_here(const Population<Real>& x);
extern template std::optional<SampleCoordinate> find_nonfinite_here(const Population<float>& x);
extern template std::optional<SampleCoordinate> find_nonfinite_here(const Population<double>& x);

// The first of those that processes have found, with the number of the batch that it is in. They are ordered by batch,
// coordinate and sample.
struct InBatch {
  std::size_t batch;
  SampleCoordinate at;
};
std::optional<InBatch> first_of_all(Processes* processes, std::optional<InBatch> here);

// The first coordinate that is infinite or not a number, on any process.
template <class Real>
std::optional<SampleCoordinate> find_nonfinite(const Population<Real>& x) {
  const auto here = find_nonfinite_here(x);
  if (!x.processes()) return here;
  const auto found = first_of_all(x.processes(), here ? std::optional(InBatch{0, *here}) : std::nullopt);
  return found ? std::optional(found->at) : std::nullopt;
}

// The sum of one number for each sample of a block: first one sum for each lane, so that no addition waits for the one
// before, then the lanes in order.
double sum_of(std::span<const float> numbers);

}  // namespace implicit_diffusion
