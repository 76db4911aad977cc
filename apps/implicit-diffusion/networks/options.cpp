// The executable with networks: the commands that need LibTorch, every option with its help.
#include "command_line.hpp"
#include "commands/commands.hpp"
#include "networks/commands.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <string_view>

namespace program {
namespace {

const char* help_of(std::string_view name) {
  for (const NetworkCommand& c : network_commands)
    if (name == c.name) return c.help;
  return "";
}

void add_verify_model(CommandLine& line) {
  const auto [command, o] =
      line.add("verify-model", help_of("verify-model"), "verify-model my-model io.safetensors", verify_model);
  add_name(command, "DIR", o->folder, "folder of a model", "")->required();
  add_name(command, "FILE", o->file, "inputs, outputs and gradients of the other program (.safetensors)", "")
      ->required();
  command
      ->add_option("--tolerance", o->tolerance,
                   fmt::format("largest difference that passes (default: {})", o->tolerance))
      ->type_name("X")
      ->check(CLI::Validator(
          [](const std::string& typed) {
            double value = 0;
            return CLI::detail::lexical_cast(typed, value) && value >= 0 ? std::string()
                                                                         : typed + " is not a number of 0 or more";
          },
          ""));
  add_portable_bits(command, o->portable_bits);
}

}  // namespace

bool has_networks() { return true; }

void start_networks() {
  if (set_network_environment()) start_again();
  // Activations come and go with every step: memory that is given back to the system would be asked for again.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
}

void add_network_commands(CommandLine& line) { add_verify_model(line); }

}  // namespace program
