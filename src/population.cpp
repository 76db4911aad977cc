#include "implicit_diffusion/population.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace implicit_diffusion {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
struct Piece {
  std::unique_ptr<void, Free> memory;
  std::size_t bytes;
  bool taken;
};
thread_local std::vector<Piece> pieces;

}  // namespace

void* take_memory(std::size_t bytes) {
  for (Piece& p : pieces)
    if (!p.taken && p.bytes >= bytes) {
      p.taken = true;
      return p.memory.get();
    }
  const std::size_t whole = (bytes + 63) / 64 * 64;
  std::unique_ptr<void, Free> memory(std::aligned_alloc(64, whole));
  if (!memory) throw std::bad_alloc();
  pieces.push_back({std::move(memory), whole, true});
  return pieces.back().memory.get();
}

void give_memory(void* memory) {
  std::ranges::find_if(pieces, [&](const Piece& p) { return p.memory.get() == memory; })->taken = false;
}

}  // namespace implicit_diffusion
