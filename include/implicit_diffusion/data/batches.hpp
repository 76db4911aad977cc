// Batches of images for training: batch k of a seed is a pure function of (seed, k).
//
// Places in the stream of images are numbered 0, 1, 2, ...: batch k of size B has the places k B to k B + B - 1. With n
// images, place p is in epoch e = floor(p / n), and it is the image
//
//     order_e(p mod n),     order_e a permutation of 0 ... n-1 from the noise of (seed, e)
//
// so every epoch has each image once, whatever B is; a batch may have the end of one epoch and the beginning of the
// next, and B may be larger than n. order_e is made by Fisher and Yates: for i = n-1, ..., 1 the entries i and
// floor(b (i+1) / 2^32) are exchanged, b the 32 random bits of (Stream::minibatch, round e, index 1, sample i). With
// `flip`, the image at place p is mirrored where the highest bit of (Stream::minibatch, round e, index 2,
// sample p mod n) is set. (Index 0 is that of minibatches of reference samples.)
//
// Nothing has to be saved to go on at batch k, and what was prepared ahead is no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "implicit_diffusion/data/data_set.hpp"

namespace implicit_diffusion::data {

// order_e of the contract above. Throws a usage Error for more than 2^32 images.
std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::size_t images);

struct BatchOptions {
  std::uint64_t seed = 0;
  std::size_t size = 32;  // B
  ImageShape shape = {};  // every image is brought to it by fit(); all 0: that of the data set, which must have one
  bool flip = false;
};

struct Batch {
  ImageShape shape;
  std::vector<std::uint32_t> images;  // which of the data set
  std::vector<std::uint32_t> labels;  // none where the data set has none
  std::vector<float> values;          // in [-1, 1], of shape (B, C, H, W)
};

class Batches {
 public:
  // The data set must live as long. Throws a usage Error for a size of 0, or a shape that cannot be made.
  Batches(const DataSet& images, const BatchOptions& options);
  ~Batches();

  const BatchOptions& options() const { return options_; }

  // k >= 0. Any number of threads may call it at once. Throws what DataSet::image throws.
  Batch batch(std::int64_t k) const;

 private:
  struct Orders;
  const DataSet* images_;
  BatchOptions options_;
  std::unique_ptr<Orders> orders_;  // of the epochs in use, so that they need not be made again
};

// The same batches, prepared ahead by other threads while the caller computes.
class BatchesAhead {
 public:
  // Up to `ahead` batches are prepared before they are asked for, each by one of `threads` threads. With no threads, or
  // where the system starts none, each batch is made when it is taken. `batches` must live as long.
  explicit BatchesAhead(const Batches& batches, std::size_t threads = 1, std::size_t ahead = 4);
  BatchesAhead(const BatchesAhead&) = delete;
  BatchesAhead& operator=(const BatchesAhead&) = delete;
  ~BatchesAhead();

  // Equal to batches.batch(k), exceptions included. Those after k are begun; any k can be asked for next.
  Batch take(std::int64_t k);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace implicit_diffusion::data
