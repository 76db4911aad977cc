#include "implicit_diffusion/data/batches.hpp"

#include "data/support.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <stdexcept>

namespace implicit_diffusion::data {
namespace {

// Image i is filled with i, but for its first column, which is 200 + i; its label is i mod 3.
class Numbered : public DataSet {
 public:
  explicit Numbered(std::size_t size) : size_(size) { class_names_ = {"a", "b", "c"}; }
  Kind kind() const override { return Kind::idx; }
  std::size_t size() const override { return size_; }
  std::optional<ImageShape> shape() const override { return ImageShape{1, 2, 3}; }
  std::optional<std::size_t> label(std::size_t i) const override { return i % 3; }
  Image image(std::size_t i) const override {
    if (i == broken) throw Error(ErrorKind::data, "numbered", "image " + std::to_string(i) + " is broken");
    const auto b = static_cast<std::uint8_t>(i), first = static_cast<std::uint8_t>(200 + i);
    return {{1, 2, 3}, {first, b, b, first, b, b}};
  }
  std::size_t broken = std::size_t(-1);

 private:
  std::size_t size_;
};

bool same(const Batch& a, const Batch& b) {
  return a.shape == b.shape && a.images == b.images && a.labels == b.labels && a.values == b.values;
}

TEST(EpochOrder, IsAPermutationThatDependsOnSeedAndEpoch) {
  std::set<std::vector<std::uint32_t>> all;
  for (const std::uint64_t seed : {0U, 1U})
    for (const std::int64_t epoch : {0, 1, 2}) {
      std::vector<std::uint32_t> order = epoch_order(seed, epoch, 1000);
      EXPECT_EQ(order, epoch_order(seed, epoch, 1000));
      all.insert(order);
      std::ranges::sort(order);
      for (std::size_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i);
    }
  EXPECT_EQ(all.size(), 6U);
  EXPECT_EQ(epoch_order(0, 0, 1), std::vector<std::uint32_t>{0});
}

// 24 permutations of 4, 24,000 epochs: chi-square with 23 degrees of freedom, above 58 once in 10^4 seeds.
TEST(EpochOrder, HasEveryPermutationEquallyOften) {
  std::map<std::vector<std::uint32_t>, int> counts;
  for (std::int64_t epoch = 0; epoch < 24'000; ++epoch) ++counts[epoch_order(7, epoch, 4)];
  ASSERT_EQ(counts.size(), 24U);
  double chi_square = 0;
  for (const auto& [order, count] : counts) chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
  EXPECT_LT(chi_square, 58);
  EXPECT_GT(chi_square, 5) << "too even to be random";
}

// 10 images in batches of 1, 3, 4, 10 and 23: whatever the size, places 10 e to 10 e + 9 are the same ten images, in
// the same order.
TEST(Batches, EveryEpochHasEachImageOnceForAnyBatchSize) {
  const Numbered images(10);
  const auto places = [&](std::size_t size) {
    const Batches batches(images, {.seed = 3, .size = size});
    std::vector<std::uint32_t> all;
    for (std::int64_t k = 0; all.size() < 60; ++k) {
      const Batch batch = batches.batch(k);
      EXPECT_EQ(batch.images.size(), size);
      all.insert(all.end(), batch.images.begin(), batch.images.end());
    }
    all.resize(60);
    return all;
  };
  const std::vector<std::uint32_t> all = places(1);
  for (std::size_t e = 0; e < 6; ++e) {
    const std::set<std::uint32_t> epoch(all.begin() + static_cast<std::ptrdiff_t>(10 * e),
                                        all.begin() + static_cast<std::ptrdiff_t>(10 * e + 10));
    EXPECT_EQ(epoch.size(), 10U) << "epoch " << e;
  }
  for (const std::size_t size : {3U, 4U, 10U, 23U}) EXPECT_EQ(places(size), all) << size;
}

TEST(Batches, HoldValuesAndLabelsOfTheirImages) {
  const Numbered images(50);
  const Batch batch = Batches(images, {.seed = 1, .size = 4}).batch(5);
  ASSERT_EQ(batch.values.size(), 4U * 6U);
  for (std::size_t j = 0; j < 4; ++j) {
    const std::uint32_t i = batch.images[j];
    EXPECT_EQ(batch.labels[j], i % 3);
    EXPECT_EQ(to_byte(batch.values[6 * j]), 200 + i);
    EXPECT_EQ(to_byte(batch.values[6 * j + 1]), i);
    EXPECT_NEAR(batch.values[6 * j + 1], i / 127.5 - 1, 1e-7);
  }
  const Batch large = Batches(images, {.seed = 1, .size = 4, .shape = {3, 5, 4}}).batch(5);
  EXPECT_EQ(large.images, batch.images);
  EXPECT_EQ(large.values.size(), 4U * 60U);
}

// A pure function of (seed, k): in any order, from any object.
TEST(Batches, DependOnSeedAndNumberAlone) {
  const Numbered images(37);
  const BatchOptions options{.seed = 9, .size = 5, .flip = true};
  const Batches one(images, options);
  std::vector<Batch> forward;
  for (std::int64_t k = 0; k < 40; ++k) forward.push_back(one.batch(k));
  const Batches other(images, options);
  for (std::int64_t k = 39; k >= 0; k -= 3)
    EXPECT_TRUE(same(other.batch(k), forward[static_cast<std::size_t>(k)])) << k;
  EXPECT_FALSE(same(Batches(images, {.seed = 10, .size = 5, .flip = true}).batch(0), forward[0]));
}

// Half of the images are mirrored, and the same image in one epoch and not in another: of 2000 flips, 1000 +- 5 * 22.
TEST(Batches, FlipByKey) {
  const Numbered images(50);
  const Batches batches(images, {.seed = 2, .size = 50, .flip = true});
  int mirrored = 0;
  std::set<bool> of_image_7;
  for (std::int64_t k = 0; k < 40; ++k) {
    const Batch batch = batches.batch(k);
    for (std::size_t j = 0; j < 50; ++j) {
      const bool flipped = to_byte(batch.values[6 * j + 2]) >= 200;
      EXPECT_EQ(to_byte(batch.values[6 * j]) >= 200, !flipped);
      mirrored += flipped;
      if (batch.images[j] == 7) of_image_7.insert(flipped);
    }
  }
  EXPECT_NEAR(mirrored, 1000, 5 * 22.4);
  EXPECT_EQ(of_image_7.size(), 2U);
}

TEST(Batches, RefuseWhatCannotBe) {
  const Numbered images(5);
  EXPECT_ERROR(Batches(images, {.size = 0}), usage, "batch: 0");
  EXPECT_ERROR(Batches(images, {.shape = {2, 8, 8}}), usage, "size: 2 channels of 8 x 8");
  EXPECT_ERROR(Batches(images, {}).batch(-1), usage, "number -1 is negative");
  EXPECT_ERROR(Batches(images, {}).batch(std::int64_t{1} << 60), usage, "is too large");
}

TEST(BatchesAhead, GiveTheSameForAnyNumberOfThreads) {
  const Numbered images(37);
  const Batches batches(images, {.seed = 9, .size = 5, .flip = true});
  for (const std::size_t threads : {0U, 1U, 3U})
    for (const std::size_t ahead : {1U, 4U, 9U}) {
      BatchesAhead prepared(batches, threads, ahead);
      for (std::int64_t k = 0; k < 50; ++k)
        ASSERT_TRUE(same(prepared.take(k), batches.batch(k))) << threads << ' ' << k;
      for (const std::int64_t k : {7, 7, 8, 3, 100, 4}) ASSERT_TRUE(same(prepared.take(k), batches.batch(k))) << k;
    }
}

// Resumed at step k, nothing but k is needed.
TEST(BatchesAhead, ResumeAtAnyStep) {
  const Numbered images(11);
  const Batches batches(images, {.seed = 4, .size = 3});
  BatchesAhead whole(batches, 2);
  for (std::int64_t k = 0; k < 20; ++k) (void)whole.take(k);
  BatchesAhead resumed(batches, 1);
  EXPECT_TRUE(same(whole.take(20), resumed.take(20)));
}

// The error of a batch comes when that batch is taken, and the others can be had.
TEST(BatchesAhead, DoNotWaitForWhatCannotBe) {
  const Numbered set(5);
  const Batches batches(set, {.seed = 1, .size = 2});
  BatchesAhead ahead(batches, 1, std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(ahead.take(0).values, batches.batch(0).values);
  EXPECT_THROW((void)ahead.take(std::numeric_limits<std::int64_t>::max()), Error);
}

TEST(BatchesAhead, ErrorsComeWithTheirBatch) {
  Numbered images(10);
  images.broken = 4;
  const Batches batches(images, {.seed = 1, .size = 1});
  BatchesAhead prepared(batches, 3);
  int thrown = 0;
  for (std::int64_t k = 0; k < 10; ++k) {
    const bool is_broken = epoch_order(1, 0, 10)[static_cast<std::size_t>(k)] == 4;
    if (is_broken) {
      EXPECT_ERROR(prepared.take(k), data, "numbered: image 4 is broken");
      ++thrown;
    } else {
      EXPECT_TRUE(same(prepared.take(k), batches.batch(k)));
    }
  }
  EXPECT_EQ(thrown, 1);
}

}  // namespace
}  // namespace implicit_diffusion::data
