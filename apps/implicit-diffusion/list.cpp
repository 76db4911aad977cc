#include "commands.hpp"
#include "configuration.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace program {

void add_list(CLI::App& app, Action& action) {
  CLI::App* list = app.add_subcommand("list", "The experiments that come with the program.");
  list->footer("Example: implicit-diffusion list");
  list->callback([&action] {
    action = [] {
      std::string text;
      for (const auto& [name, toml] : built_in_experiments()) {
        const Description d = read_description(toml, name);
        text += fmt::format("{:<18}{}  ({})\n", d.name, d.title, d.duration);
      }
      print(text);
      return 0;
    };
  });
}

}  // namespace program
