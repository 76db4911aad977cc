#include "implicit_diffusion/io/pieces.hpp"

#include "implicit_diffusion/io/file.hpp"

#include <algorithm>
#include <cstdint>

namespace implicit_diffusion {

void give_in_turn(Processes* processes, const std::function<void(const PieceSink&)>& produce, const PieceSink& sink) {
  if (!processes) return produce(sink);
  // A piece is its size, then its bytes; the size 0 is the end of a rank's.
  const auto send_size = [&](std::uint64_t size) { processes->send(0, as_message(std::span(&size, 1))); };
  if (processes->rank() != 0) {
    produce([&](std::string_view bytes) {
      while (!bytes.empty()) {
        const std::string_view piece = bytes.substr(0, io::piece_size);
        send_size(piece.size());
        processes->send(0, std::as_bytes(std::span(piece)));
        bytes.remove_prefix(piece.size());
      }
    });
    return send_size(0);
  }
  produce(sink);
  std::vector<char> piece;
  for (std::size_t rank = 1; rank < processes->ranks(); ++rank)
    for (std::uint64_t size = 1;;) {
      processes->receive(rank, as_message(std::span(&size, 1)));
      if (size == 0) break;
      piece.resize(size);
      processes->receive(rank, as_message(std::span(piece)));
      sink({piece.data(), piece.size()});
    }
}

void take_part(std::size_t total, std::size_t first, std::span<char> own, const PieceSource& source) {
  std::vector<char> piece(std::min(total, io::piece_size));
  for (std::size_t at = 0, size = 0; at < total; at += size) {
    size = std::min(total - at, piece.size());
    source(std::span(piece).first(size));
    const std::size_t begin = std::max(at, first), end = std::min(at + size, first + own.size());
    if (begin < end)
      std::copy(piece.begin() + static_cast<std::ptrdiff_t>(begin - at),
                piece.begin() + static_cast<std::ptrdiff_t>(end - at),
                own.begin() + static_cast<std::ptrdiff_t>(begin - first));
  }
}

}  // namespace implicit_diffusion
