// Runs a target on its seeds, changed at random, always in the same way: a test that needs no libFuzzer, and finds
// less.
//
//     checkpoint_mutate 100000      so many executions
#include "fuzz/fuzz.hpp"

#include <algorithm>
#include <random>

namespace {

class Mutator {
 public:
  explicit Mutator(std::vector<std::string> seeds) : seeds_(std::move(seeds)) {}

  std::string next() {
    std::string bytes = any();
    for (std::size_t changes = below(5); changes > 0; --changes) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : static_cast<std::size_t>(random_() % n); }
  const std::string& any() { return seeds_[below(seeds_.size())]; }

  void change(std::string& bytes) {
    const std::size_t at = below(bytes.size() + 1), length = below(std::min<std::size_t>(bytes.size() - at, 32) + 1);
    switch (below(7)) {
      case 0:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random_());
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(below(bytes.size() + 1), 32));
        break;
      case 4: {
        const std::string& other = any();
        bytes.replace(at, length, other.substr(below(other.size() + 1), below(64)));
        break;
      }
      case 5:
        bytes.resize(at);
        break;
      default:
        put_number(bytes, at);
    }
  }

  // What sizes and counts like least, in a field of 1, 2, 4 or 8 bytes.
  void put_number(std::string& bytes, std::size_t at) {
    std::uint64_t number = std::uint64_t{1} << below(64);
    if (below(2) == 0) number -= 1 + below(2);
    if (below(4) == 0) number = ~number;
    const std::size_t width = std::size_t{1} << below(4);
    for (std::size_t i = 0; i < width && at + i < bytes.size(); ++i)
      bytes[at + i] = static_cast<char>(number >> (8 * i));
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_{1};
};

}  // namespace

// A reader that believes a size in a file asks for more than this.
extern "C" const char* __asan_default_options() {  // NOLINT: the sanitizer's name
  return "max_allocation_size_mb=64";
}

int main(int argc, char** argv) {
  const long executions = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 10'000;
  Mutator mutator(fuzz::seeds());
  for (long i = 0; i < executions; ++i) {
    const std::string bytes = mutator.next();
    // A copy of exactly this size, so that a read beyond its end is seen.
    const std::vector<std::uint8_t> data(bytes.begin(), bytes.end());
    LLVMFuzzerTestOneInput(data.data(), data.size());
  }
  std::printf("%ld executions\n", executions);
}
