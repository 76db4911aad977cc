// Writes an array with the installed library, reads it back, and prints the sum.
#include <cstdio>
#include <numeric>
#include <vector>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/samples.hpp"

int main() {
  namespace io = implicit_diffusion::io;
  try {
    const std::vector<double> values = {1, 2, 3, 4, 5, 6};
    const std::vector<std::size_t> shape = {3, 2};
    io::write_file("consumer.npy", io::npy_bytes(values, shape));
    const io::Array samples = io::read_samples("consumer.npy");
    const double sum = std::accumulate(samples.values.begin(), samples.values.end(), 0.0);
    std::printf("%zu samples, sum %g\n", samples.shape[0], sum);
    return samples.shape == shape && sum == 21.0 ? 0 : 1;
  } catch (const implicit_diffusion::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
