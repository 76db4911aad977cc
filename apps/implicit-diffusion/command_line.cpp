#include "command_line.hpp"

#include "experiment/common.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace program {

void add_text(CLI::App* command, const char* name, std::optional<std::string>& text, const char* help,
              const char* type) {
  const auto take = [&text](const std::string& typed) { text = typed; };
  command->add_option_function<std::string>(name, take, help)->type_name(type);
}

CLI::Option* add_name(CLI::App* command, const char* option, std::string& name, const char* help, const char* type) {
  const auto check = [](const std::string& typed) { return typed.empty() ? "'' is not a name" : ""; };
  return command->add_option(option, name, help)->type_name(type)->check(CLI::Validator(check, ""));
}

namespace {

// CLI11's complaint, with the nearest word for an option or command that does not exist.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> unknown;
  if (chosen.empty())
    unknown.assign(argv + 1, argv + argc);
  else if (dynamic_cast<const CLI::ExtrasError*>(&error))
    unknown = at.remaining();
  if (!unknown.empty() && !unknown.front().empty()) {
    const std::string& word = unknown.front();
    std::vector<std::string> words;
    for (const CLI::App* s : at.get_subcommands([](const CLI::App*) { return true; })) words.push_back(s->get_name());
    for (const CLI::Option* o : at.get_options()) words.push_back(o->get_name());
    const auto near = nearest(word.substr(0, word.find('=')), words);
    return fmt::format("{}: unknown {}{}", word,
                       word.starts_with("-") ? "option"
                       : chosen.empty()      ? "command"
                                             : "argument",
                       near ? fmt::format("; did you mean {}?", *near) : "; see --help");
  }
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (what.starts_with("--")) return what;  // it names the option
  return fmt::format("{}: {}", chosen.empty() ? "command line" : at.get_name(), what);
}

// The words of the command line, the last one first, as CLI11 takes them. It would take a folder [1] for a list of one
// folder, 1; ./[1] is the same folder and no list.
std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty() && words.front() == "report")
    for (std::string& w : words)
      if (w.starts_with('[') && w.ends_with(']')) w.insert(0, "./");
  std::ranges::reverse(words);
  return words;
}

}  // namespace

int CommandLine::parse(int argc, char** argv) {
  try {
    app.parse(words_of(argc, argv));
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    print(chosen.empty() ? app.help() : chosen.front()->help(app.get_name()));
    return 0;
  } catch (const CLI::CallForVersion& e) {
    print(std::string(e.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& e) {
    return fail(usage_message(app, e, argc, argv), exit_usage);
  }
  if (!exit_code) print_error(app.help());
  return exit_code.value_or(exit_usage);
}

}  // namespace program
