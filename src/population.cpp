#include "implicit_diffusion/population.hpp"

#include <algorithm>
#include <cstdlib>

namespace implicit_diffusion {
namespace {

struct Piece {
  void* memory;
  std::size_t bytes;
  bool taken;
};

struct Pieces {
  std::vector<Piece> all;
  ~Pieces() {
    for (const Piece& p : all) std::free(p.memory);
  }
};
thread_local Pieces pieces;

}  // namespace

void* take_memory(std::size_t bytes) {
  for (Piece& p : pieces.all)
    if (!p.taken && p.bytes >= bytes) {
      p.taken = true;
      return p.memory;
    }
  pieces.all.push_back({nullptr, (bytes + 63) / 64 * 64, true});
  Piece& p = pieces.all.back();
  p.memory = std::aligned_alloc(64, p.bytes);
  if (!p.memory) {
    pieces.all.pop_back();
    throw std::bad_alloc();
  }
  return p.memory;
}

void give_memory(void* memory) {
  std::find_if(pieces.all.begin(), pieces.all.end(), [&](const Piece& p) { return p.memory == memory; })->taken = false;
}

}  // namespace implicit_diffusion
