#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"

#include <fmt/format.h>

namespace program {

int list() {
  std::string text;
  for (const auto& [name, toml] : built_in_experiments()) {
    const Description d = read_description(toml, name);
    text += fmt::format("{:<21}{}  ({})\n", d.name, d.title, d.duration);
  }
  print(text);
  return 0;
}

}  // namespace program
