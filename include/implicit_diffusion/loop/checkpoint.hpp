// What all states of loops have in common, to and from a checkpoint: step, theta, and what the optimizer remembers.
//
// A population has a section of its own; that of a reverse chain is in denoising/checkpoint.hpp. A run that goes on
// from a restored state ends with the bytes of one that was never stopped.
#pragma once

#include "implicit_diffusion/io/checkpoint.hpp"
#include "implicit_diffusion/loop/state.hpp"
#include "implicit_diffusion/optimizer/memory.hpp"

#include <cstdint>
#include <string>

namespace implicit_diffusion {

// All of the optimizer's memory in one section: its numbers, then its moments. Nothing where it has none.
template <class Optimizer>
void save_optimizer(io::CheckpointWriter& writer, const std::string& name, const Optimizer& optimizer) {
  if constexpr (requires { optimizer.memory(); }) {
    const auto& memory = optimizer.memory();
    std::uint64_t size = size_in_bytes(memory.numbers);
    for (const auto& moment : memory.moments) size += size_in_bytes(moment);
    writer.put(name, size, [&memory](const PieceSink& sink) {
      give_pieces(memory.numbers, sink);
      for (const auto& moment : memory.moments) give_pieces(moment, sink);
    });
  } else {
    writer.put(name, "");
  }
}

// Throws a data Error where the section is of another optimizer, or of a theta of another shape, or not finite.
template <class Optimizer, class Theta>
void restore_optimizer(const io::CheckpointReader& reader, const std::string& name, Optimizer& optimizer,
                       const Theta& theta) {
  if constexpr (requires { optimizer.memory(); }) {
    auto& memory = optimizer.memory();
    const std::uint64_t numbers = size_in_bytes(memory.numbers), size = reader.size(name);
    if (size != numbers && size != numbers + memory.kinds * size_in_bytes(theta))
      reader.refuse(name, "is of another kind");
    memory.moments.clear();
    if (size != numbers) memory.begin(theta);
    reader.read(name, size, [&memory](const PieceSource& source) {
      take_pieces(memory.numbers, source);
      for (auto& moment : memory.moments) take_pieces(moment, source);
    });
    bool finite = !first_nonfinite(memory.numbers);
    for (const auto& moment : memory.moments) finite = finite && !first_nonfinite(moment);
    if (!finite) reader.refuse(name, "is not finite");
  } else if (reader.size(name) != 0) {
    reader.refuse(name, "is of another kind");
  }
}

// Of a State, QueueState or DoubleQueueState.
template <class AnyState>
void save_parameters(io::CheckpointWriter& writer, const AnyState& s) {
  using io::save;
  save(writer, "step", s.step);
  save(writer, "theta", s.theta);
  save_optimizer(writer, "optimizer", s.optimizer);
}

// Into a state whose theta has the right shape. Throws a data Error where the section is of another shape or holds what
// is not finite.
template <class AnyState>
void restore_parameters(const io::CheckpointReader& reader, AnyState& s) {
  using io::restore;
  restore(reader, "step", s.step);
  if (s.step < 0) reader.refuse("step", "is negative");
  restore(reader, "theta", s.theta);
  if (first_nonfinite(s.theta)) reader.refuse("theta", "is not finite");
  restore_optimizer(reader, "optimizer", s.optimizer, s.theta);
}

// A state of Langevin dynamics. The restored one has a population of the right shape.
template <class Population, class Optimizer, class Theta>
void save(io::CheckpointWriter& writer, const State<Population, Optimizer, Theta>& s) {
  using io::save;
  save_parameters(writer, s);
  save(writer, "samples", s.population);
}
template <class Population, class Optimizer, class Theta>
void restore(const io::CheckpointReader& reader, State<Population, Optimizer, Theta>& s) {
  using io::restore;
  restore_parameters(reader, s);
  restore(reader, "samples", s.population);
  if (find_nonfinite(s.population)) reader.refuse("samples", "is not finite");
}

}  // namespace implicit_diffusion
