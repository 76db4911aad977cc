#include "reliability/reliability.hpp"

#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) != "--full") {
      std::fprintf(stderr, "reliability_test: %s: unknown option; there is --full\n", argv[i]);
      return 2;
    }
    program_test::full = true;
  }
  // The short form spares the disk, which may be busy: what counts is what the program asks of it.
  if (!program_test::full && ::access("/dev/shm", W_OK) == 0) ::setenv("TMPDIR", "/dev/shm", 0);
  return RUN_ALL_TESTS();
}
