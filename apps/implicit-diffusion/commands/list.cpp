#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"
#include "experiment/table_reader.hpp"

#include <fmt/format.h>

namespace program {

int list(const ListOptions&) {
  std::string text;
  for (const auto& [name, toml] : built_in_experiments()) {
    const Document d = read_document(toml, name, name, ".", {});
    TableReader top(d);
    text += fmt::format("{:<21}{}  ({})\n", name, top.text("title", ""), top.text("duration", ""));
  }
  print(text);
  return 0;
}

}  // namespace program
