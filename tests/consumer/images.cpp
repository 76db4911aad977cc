// A program that reads a set of images: two of one pixel, black and white, in an IDX file that it writes itself.
#include "implicit_diffusion/data/batches.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/io/file.hpp"

#include <cstdio>
#include <string>

int main() {
  using namespace implicit_diffusion;
  io::write_file("images-idx3-ubyte", std::string("\0\0\x08\3\0\0\0\2\0\0\0\1\0\0\0\1\0\xff", 18));
  const auto images = data::open_data_set("images-idx3-ubyte");
  const data::Batches batches(*images, {.seed = 1, .size = 2, .shape = {3, 8, 8}, .flip = true});
  data::BatchesAhead prepared(batches, /*threads=*/2);
  float sum = 0, size = 0;
  for (std::int64_t k = 0; k < 10; ++k)
    for (const float v : prepared.take(k).values) sum += v, size += v * v;
  const std::string png = data::png_bytes(data::image_grid(prepared.take(0).values, {3, 8, 8}));
  std::printf("%zu images; %zu bytes of PNG\n", images->size(), png.size());
  return sum == 0 && size == 10 * 2 * 3 * 64 ? 0 : 1;
}
