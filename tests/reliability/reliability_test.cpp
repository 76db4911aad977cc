#include "reliability/reliability.hpp"

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
  return RUN_ALL_TESTS();
}
