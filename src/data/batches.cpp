#include "implicit_diffusion/data/batches.hpp"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>

#include "../require.hpp"
#include "implicit_diffusion/random/noise.hpp"

namespace implicit_diffusion::data {
namespace {

// Of the noise in Stream::minibatch.
constexpr std::int64_t order_index = 1, flip_index = 2;

}  // namespace

std::vector<std::uint32_t> epoch_order(std::uint64_t seed, std::int64_t epoch, std::size_t images) {
  require(images <= std::size_t{1} << 32, "images", "{} are more than 2^32", images);
  const Noise noise(seed);
  std::vector<std::uint32_t> order(images);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = images; i-- > 1;) {
    const std::uint64_t bits = noise.bits(Stream::minibatch, {.round = epoch, .index = order_index}, 1, i, 0);
    std::swap(order[i], order[bits * (i + 1) >> 32]);
  }
  return order;
}

// A batch has at most a few epochs, and the threads are at most a few batches apart.
struct Batches::Orders {
  using Order = std::shared_ptr<const std::vector<std::uint32_t>>;
  static constexpr std::size_t most = 3;
  std::mutex mutex;
  std::map<std::int64_t, Order> kept;

  Order at(std::uint64_t seed, std::int64_t epoch, std::size_t images) {
    const std::lock_guard lock(mutex);
    Order& order = kept[epoch];
    if (!order) order = std::make_shared<const std::vector<std::uint32_t>>(epoch_order(seed, epoch, images));
    const Order wanted = order;
    // The one that is furthest from what was asked for last goes.
    while (kept.size() > most)
      kept.erase(epoch - kept.begin()->first > kept.rbegin()->first - epoch ? kept.begin() : std::prev(kept.end()));
    return wanted;
  }
};

Batches::Batches(const DataSet& images, const BatchOptions& options)
    : images_(&images), options_(options), orders_(std::make_unique<Orders>()) {
  require(options_.size > 0, "batch", "{} is not a number of images", options_.size);
  ImageShape& shape = options_.shape;
  if (shape == ImageShape{}) {
    require(images.shape().has_value(), "size", "images of this data set may differ in size: one must be chosen");
    shape = *images.shape();
  }
  require((shape.channels == 1 || shape.channels == 3) && shape.height > 0 && shape.width > 0 &&
              shape.height <= 16384 && shape.width <= 16384,
          "size", "{} channels of {} x {} pixels", shape.channels, shape.height, shape.width);
}

Batches::~Batches() = default;

Batch Batches::batch(std::int64_t k) const {
  require(k >= 0, "batch", "number {} is negative", k);
  const std::size_t count = options_.size, n = images_->size();
  Batch batch{options_.shape, {}, {}, std::vector<float>(count * options_.shape.values())};
  batch.images.reserve(count);
  const Noise noise(options_.seed);
  std::uint64_t place = 0;
  require(!__builtin_mul_overflow(static_cast<std::uint64_t>(k), count, &place) &&
              place <= std::numeric_limits<std::int64_t>::max() - count,
          "batch", "number {} is too large", k);
  Orders::Order order;
  for (std::size_t j = 0; j < count; ++j, ++place) {
    const auto epoch = static_cast<std::int64_t>(place / n);
    const std::size_t at = place % n;
    if (!order || at == 0) order = orders_->at(options_.seed, epoch, n);
    const std::uint32_t i = (*order)[at];
    Image image = fit(images_->image(i), options_.shape);
    if (options_.flip && noise.bits(Stream::minibatch, {.round = epoch, .index = flip_index}, 1, at, 0) >> 31 != 0)
      flip_horizontally(image);
    to_signed(image.values, std::span(batch.values).subspan(j * image.values.size(), image.values.size()));
    batch.images.push_back(i);
    if (const auto label = images_->label(i)) batch.labels.push_back(static_cast<std::uint32_t>(*label));
  }
  return batch;
}

// What is prepared, by its number: a batch, an exception, or neither while a thread is at work.
struct BatchesAhead::Shared {
  struct Slot {
    std::optional<Batch> batch;
    std::exception_ptr error;
    bool is_done() const { return batch.has_value() || error != nullptr; }
  };

  const Batches& batches;
  std::size_t ahead;
  std::mutex mutex;
  std::condition_variable wanted, done;
  std::map<std::int64_t, Slot> slots;  // begun; those that nobody wants any more are dropped when they are done
  std::int64_t first = 0, end = 0;     // the batches to have
  bool stop = false;
  std::vector<std::thread> threads;

  Shared(const Batches& all, std::size_t count) : batches(all), ahead(count) {}

  Slot make(std::int64_t k) const {
    try {
      return {batches.batch(k), nullptr};
    } catch (...) {
      return {std::nullopt, std::current_exception()};
    }
  }
  // The first that nobody has begun; with the mutex held.
  std::optional<std::int64_t> next() const {
    for (std::int64_t k = first; k < end; ++k)
      if (!slots.contains(k)) return k;
    return {};
  }
  void work() {
    std::unique_lock lock(mutex);
    while (true) {
      wanted.wait(lock, [this] { return stop || next(); });
      if (stop) return;
      const std::int64_t k = *next();
      slots[k];
      lock.unlock();
      Slot made = make(k);
      lock.lock();
      if (k >= first && k < end)
        slots[k] = std::move(made);
      else
        slots.erase(k);
      done.notify_all();
    }
  }
};

namespace {
constexpr std::size_t most_ahead = 1024;  // memory is for the network
}

BatchesAhead::BatchesAhead(const Batches& batches, std::size_t threads, std::size_t ahead)
    : shared_(std::make_unique<Shared>(batches, std::clamp<std::size_t>(ahead, 1, most_ahead))) {
  try {
    for (std::size_t i = 0; i < threads; ++i) shared_->threads.emplace_back([s = shared_.get()] { s->work(); });
  } catch (const std::exception&) {
    // A limit on threads was met: those that were started do all the work.
  }
}

BatchesAhead::~BatchesAhead() {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->stop = true;
  }
  shared_->wanted.notify_all();
  for (std::thread& t : shared_->threads) t.join();
}

Batch BatchesAhead::take(std::int64_t k) {
  Shared& s = *shared_;
  Shared::Slot slot;
  constexpr std::int64_t last = std::numeric_limits<std::int64_t>::max();
  if (s.threads.empty() || k == last) {
    slot = s.make(k);
  } else {
    std::unique_lock lock(s.mutex);
    s.first = k;
    const std::int64_t room = last - k - 1;
    s.end = k + 1 + std::min(room, static_cast<std::int64_t>(s.ahead));
    std::erase_if(s.slots,
                  [&](const auto& one) { return one.second.is_done() && (one.first < s.first || one.first >= s.end); });
    s.wanted.notify_all();
    s.done.wait(lock, [&] { return s.slots.contains(k) && s.slots[k].is_done(); });
    slot = std::move(s.slots[k]);
    s.slots.erase(k);
    s.first = k + 1;
  }
  if (slot.error) std::rethrow_exception(slot.error);
  return std::move(*slot.batch);
}

}  // namespace implicit_diffusion::data
