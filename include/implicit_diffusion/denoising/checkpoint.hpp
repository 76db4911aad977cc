// Batches of reverse chains, and the queues that they are in, to and from a checkpoint.
//
// A batch is saved with its path and its penalty. The thetas that batches share for their replays are saved once, as
// `replay-0`, `replay-1`, ...; a batch names them by number.
#pragma once

#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/checkpoint.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace implicit_diffusion {

// How many numbers belong to each tile, where those here have so many. A process may have no tiles.
inline std::size_t numbers_each(const Range& tiles, std::size_t here) {
  return largest_over(tiles.processes, tiles.count == 0 ? 0 : here / tiles.count);
}

template <class T>
class BatchWriter {
 public:
  // What is saved must stay until the checkpoint is written.
  BatchWriter(io::CheckpointWriter& writer, const ReverseChain<T>& chain) : writer_(writer), chain_(chain) {}

  void save(const std::string& name, const PathBatch<T>& b) {
    using io::save;
    save(writer_, name + ".birth", b.birth);
    save(writer_, name + ".step", static_cast<std::uint64_t>(b.step));
    save(writer_, name + ".points", b.points);
    const std::size_t kept = std::min(b.path.size(), (b.step + chain_.keep_every() - 1) / chain_.keep_every());
    writer_.put(name + ".path", kept * size_in_bytes(b.points), [&b, kept](const PieceSink& sink) {
      for (std::size_t i = 0; i < kept; ++i) give_pieces(b.path[i], sink);
    });
    save_numbers(name + ".penalty", b.penalty, b.points);
    std::vector<std::uint64_t> stretches;
    for (const auto& s : b.thetas) {
      stretches.push_back(s.until);
      stretches.push_back(number_of(s.theta));
    }
    save(writer_, name + ".stretches", std::move(stretches));
  }

  void save(const std::string& name, const BackwardBatch<T>& b) {
    using io::save;
    save(writer_, name + ".birth", b.birth);
    save(writer_, name + ".points", b.points);
    save_numbers(name + ".adjoint", b.adjoint, b.points);
    save_numbers(name + ".gradients", b.gradients, b.points);
  }

 private:
  // What belongs to the tiles of a batch: of one that processes share, each has a part.
  template <class Numbers>
  void save_numbers(const std::string& name, const Numbers& numbers, const typename StepsOf<T>::Samples& of) {
    if constexpr (KnowsItsSpread<Numbers>) {  // NOLINT(bugprone-branch-clone): known before the other
      io::save(writer_, name, numbers);
    } else if (const Range tiles = spread_of(of); !tiles.processes) {
      io::save(writer_, name, numbers);
    } else if constexpr (requires { numbers.data(); }) {
      const OfTiles<const Numbers> all{numbers, tiles, numbers_each(tiles, numbers.size())};
      writer_.put(name, size_in_bytes(all), [all](const PieceSink& sink) { give_pieces(all, sink); });
    }
  }

  // A theta is saved when it is first met.
  std::uint64_t number_of(const std::shared_ptr<const typename StepsOf<T>::Theta>& theta) {
    const auto known = std::find(thetas_.begin(), thetas_.end(), theta);
    const auto number = static_cast<std::uint64_t>(known - thetas_.begin());
    if (known == thetas_.end()) {
      io::save(writer_, "replay-" + std::to_string(number), *theta);
      thetas_.push_back(theta);
    }
    return number;
  }

  io::CheckpointWriter& writer_;
  const ReverseChain<T>& chain_;
  std::vector<std::shared_ptr<const typename StepsOf<T>::Theta>> thetas_;
};

// Every function throws a data Error where a section does not fit the chain, the batch or the state.
template <class T>
class BatchReader {
 public:
  using Theta = typename StepsOf<T>::Theta;

  // `theta` gives the thetas of replays their shape.
  BatchReader(const io::CheckpointReader& reader, const ReverseChain<T>& chain, const Theta& theta)
      : reader_(reader), chain_(chain), theta_(theta) {}

  // Into a batch whose points have the right shape.
  void restore(const std::string& name, PathBatch<T>& b) {
    using io::restore;
    restore(reader_, name + ".birth", b.birth);
    b.step = static_cast<std::size_t>(reader_.template number<std::uint64_t>(name + ".step"));
    if (b.step > chain_.steps()) reader_.refuse(name + ".step", "is beyond the last step");
    restore(reader_, name + ".points", b.points);
    if (find_nonfinite(b.points)) reader_.refuse(name + ".points", "holds a number that is not finite");
    // A batch that went all the way at once has no path.
    const std::size_t kept = (b.step + chain_.keep_every() - 1) / chain_.keep_every();
    const bool at_once = b.step == chain_.steps() && reader_.size(name + ".path") == 0;
    b.path.assign(at_once ? 0 : kept, b.points);
    reader_.read(name + ".path", b.path.size() * size_in_bytes(b.points), [&b](const PieceSource& source) {
      for (auto& state : b.path) take_pieces(state, source);
    });
    b.penalty = {};
    if (reader_.size(name + ".penalty") != 0) {
      b.penalty = StepsOf<T>::numbers(b.points);
      restore_numbers(name + ".penalty", b.penalty, b.points);
    }
    b.thetas.clear();
    const auto stretches = reader_.template numbers<std::uint64_t>(name + ".stretches");
    if (stretches.size() % 2 != 0) reader_.refuse(name + ".stretches", "is not made of whole rows");
    for (std::size_t i = 0; i < stretches.size(); i += 2) {
      const std::size_t before = b.thetas.empty() ? 0 : b.thetas.back().until;
      if (stretches[i] <= before || stretches[i] > chain_.steps())
        reader_.refuse(name + ".stretches", "has a step that is not one");
      b.thetas.push_back({static_cast<std::size_t>(stretches[i]), theta_of(stretches[i + 1])});
    }
    if (!chain_.keeps_all() && !b.path.empty() && (b.thetas.empty() || b.thetas.back().until != b.step))
      reader_.refuse(name + ".stretches", "does not tell all steps");
  }

  // One that has made `step` steps back.
  BackwardBatch<T> backward(const std::string& name, const typename StepsOf<T>::Samples& like, std::size_t step) {
    using io::restore;
    using Steps = StepsOf<T>;
    BackwardBatch<T> b{like, Steps::adjoints(like), Steps::rows(like, theta_), step};
    restore(reader_, name + ".birth", b.birth);
    restore(reader_, name + ".points", b.points);
    restore_numbers(name + ".adjoint", b.adjoint, b.points);
    restore_numbers(name + ".gradients", b.gradients, b.points);
    return b;
  }

 private:
  template <class Numbers>
  void restore_numbers(const std::string& name, Numbers& numbers, const typename StepsOf<T>::Samples& of) {
    if constexpr (KnowsItsSpread<Numbers>) {  // NOLINT(bugprone-branch-clone): known before the other
      io::restore(reader_, name, numbers);
    } else if (const Range tiles = spread_of(of); !tiles.processes) {
      io::restore(reader_, name, numbers);
    } else if constexpr (requires { numbers.data(); }) {
      OfTiles<Numbers> all{numbers, tiles, numbers_each(tiles, numbers.size())};
      io::restore(reader_, name, all);
    }
  }

  std::shared_ptr<const Theta> theta_of(std::uint64_t number) {
    if (number > thetas_.size()) reader_.refuse("replay-" + std::to_string(number), "is out of turn");
    if (number == thetas_.size()) {
      Theta theta = zeros_like(theta_);
      io::restore(reader_, "replay-" + std::to_string(number), theta);
      thetas_.push_back(std::make_shared<const Theta>(std::move(theta)));
    }
    return thetas_[number];
  }

  const io::CheckpointReader& reader_;
  const ReverseChain<T>& chain_;
  const Theta& theta_;
  std::vector<std::shared_ptr<const Theta>> thetas_;
};

// States of the loops over reverse chains. A restored state begins with a theta of the right shape; `empty` is a batch
// of the right shape.
template <class T, class Optimizer, class Theta>
void save(io::CheckpointWriter& writer, const State<PathBatch<T>, Optimizer, Theta>& s, const ReverseChain<T>& chain) {
  save_parameters(writer, s);
  BatchWriter<T>(writer, chain).save("slot-0", s.population);
}
template <class T, class Optimizer, class Theta>
void restore(const io::CheckpointReader& reader, State<PathBatch<T>, Optimizer, Theta>& s,
             const ReverseChain<T>& chain) {
  restore_parameters(reader, s);
  BatchReader<T>(reader, chain, s.theta).restore("slot-0", s.population);
}

template <class T, class Optimizer, class Theta>
void save(io::CheckpointWriter& writer, const QueueState<PathBatch<T>, Optimizer, Theta>& s,
          const ReverseChain<T>& chain) {
  save_parameters(writer, s);
  io::save(writer, "slots", static_cast<std::uint64_t>(s.slots.size()));
  BatchWriter<T> batches(writer, chain);
  for (std::size_t m = 0; m < s.slots.size(); ++m) batches.save("slot-" + std::to_string(m), s.slots[m]);
}
template <class T, class Optimizer, class Theta>
void restore(const io::CheckpointReader& reader, QueueState<PathBatch<T>, Optimizer, Theta>& s,
             const ReverseChain<T>& chain, const PathBatch<T>& empty) {
  restore_parameters(reader, s);
  const auto slots = reader.number<std::uint64_t>("slots");
  if (slots < 1 || slots > chain.slots() + 1) reader.refuse("slots", "is not a number of slots");
  s.slots.assign(static_cast<std::size_t>(slots), empty);
  BatchReader<T> batches(reader, chain, s.theta);
  for (std::size_t m = 0; m < s.slots.size(); ++m) batches.restore("slot-" + std::to_string(m), s.slots[m]);
}

template <class T, class Optimizer, class Theta>
void save(io::CheckpointWriter& writer, const DoubleQueueState<PathBatch<T>, BackwardBatch<T>, Optimizer, Theta>& s,
          const ReverseChain<T>& chain) {
  save_parameters(writer, s);
  BatchWriter<T> batches(writer, chain);
  std::vector<std::uint8_t> there;
  for (std::size_t m = 0; m < s.slots.size(); ++m) batches.save("slot-" + std::to_string(m), s.slots[m]);
  for (std::size_t m = 0; m < s.back.size(); ++m) {
    there.push_back(s.back[m] ? 1 : 0);
    if (s.back[m]) batches.save("back-" + std::to_string(m), *s.back[m]);
  }
  io::save(writer, "back", std::move(there));
}
template <class T, class Optimizer, class Theta>
void restore(const io::CheckpointReader& reader, DoubleQueueState<PathBatch<T>, BackwardBatch<T>, Optimizer, Theta>& s,
             const ReverseChain<T>& chain, const PathBatch<T>& empty) {
  restore_parameters(reader, s);
  BatchReader<T> batches(reader, chain, s.theta);
  s.slots.assign(chain.slots() + 1, empty);
  s.back.assign(chain.slots() + 1, std::nullopt);
  const auto there = reader.numbers<std::uint8_t>("back");
  if (there.size() != s.back.size()) reader.refuse("back", "has another size");
  for (std::size_t m = 0; m < s.slots.size(); ++m) batches.restore("slot-" + std::to_string(m), s.slots[m]);
  for (std::size_t m = 0; m < there.size(); ++m)
    if (there[m]) s.back[m] = batches.backward("back-" + std::to_string(m), empty.points, m);
}

}  // namespace implicit_diffusion
