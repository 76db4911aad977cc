// What the program has, which links no LibTorch, in the place of what needs it: it becomes the executable with networks
// before any of this could be called.
#include "networks/environment.hpp"

namespace program {

bool has_networks() { return false; }
void start_networks() {}
void add_network_commands(CommandLine&) {}

}  // namespace program
