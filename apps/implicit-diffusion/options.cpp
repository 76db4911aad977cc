// The command line: every option with its help. The only file that includes CLI11, which is slow to compile.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>

namespace program {
namespace {

using implicit_diffusion::Isa;

// The program's commands are added one by one; parsing calls the one that was named, and keeps its exit code.
struct CommandLine {
  CLI::App app{
      "Optimization through sampling: tune the parameters of a sampling process until the distribution of its samples "
      "is a good one.",
      "implicit-diffusion"};
  std::optional<int> exit_code;

  // A command, with an example of its use, and its options, which live as long.
  template <class Options>
  std::pair<CLI::App*, Options*> add(const char* name, const char* help, const std::string& example,
                                     int (*call)(const Options&)) {
    CLI::App* command = app.add_subcommand(name, help);
    command->footer("Example: implicit-diffusion " + example);
    const auto options = std::make_shared<Options>();
    command->callback([this, call, options] { exit_code = call(*options); });
    return {command, options.get()};
  }
};

Isa isa_called(const std::string& name) {
  for (const Isa level : {Isa::baseline, Isa::v3, Isa::v4})
    if (to_string(level) == name) return level;
  throw CLI::ValidationError("--isa",
                             fmt::format("{} is not one of baseline, v3, v4", implicit_diffusion::io::excerpt(name)));
}

void add_isa(CLI::App* command, ChosenIsa& chosen) {
  const std::string help =
      fmt::format("instruction set to use: baseline, v3 or v4 (default: {}, the best that this machine has)",
                  to_string(implicit_diffusion::machine_isa()));
  const auto choose = [&chosen](const std::string& name) { chosen = isa_called(name); };
  command->add_option_function<std::string>("--isa", choose, help)->type_name("LEVEL");
}

// A text that is taken as it is typed, an empty one too.
void add_text(CLI::App* command, const char* name, std::optional<std::string>& text, const char* help,
              const char* type) {
  const auto take = [&text](const std::string& typed) { text = typed; };
  command->add_option_function<std::string>(name, take, help)->type_name(type);
}

// A name. An empty one would mean the default, which nobody asks for in this way.
void add_name(CLI::App* command, const char* option, std::string& name, const char* help, const char* type) {
  const auto check = [](const std::string& typed) { return typed.empty() ? "'' is not a name" : ""; };
  command->add_option(option, name, help)->type_name(type)->check(CLI::Validator(check, ""));
}

// What run and check have in common.
void add_seed(CLI::App* command, std::optional<std::string>& seed) {
  add_text(command, "--seed", seed, "seed of all random numbers", "N");
}
void add_set(CLI::App* command, std::vector<std::string>& set) {
  command->add_option("--set", set, "change a key of the experiment's file; you can repeat this option")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

void add_run(CommandLine& line) {
  const auto [command, o] =
      line.add("run", "Run an experiment: one that comes with the program, or your own TOML file.",
               "run langevin-reward --seed 1 --set method=nested --set inner_steps=10", run);
  command->add_option("NAME", o->experiment, "name of an experiment (see `list`) or FILE.toml")
      ->required()
      ->type_name("");
  add_seed(command, o->seed);
  add_text(command, "--steps", o->steps, "number of outer steps (steps of theta)", "K");
  command->add_option("--repeats", o->repeats, "make N independent runs, with consecutive seeds")
      ->type_name("N")
      ->check(CLI::Range(1, 100000).description(""));
  command
      ->add_option("--threads", o->threads, "number of threads (default: all cores); the results do not depend on it")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  add_isa(command, o->isa);
  add_name(command, "--output", o->output, "folder to write the run to (default: runs/NAME-SEED)", "DIR");
  add_set(command, o->set);
  command->add_flag("--overwrite", o->overwrite, "replace the run in the output folder");
  command->add_flag("--resume", o->resume, "continue the run in the output folder from its newest checkpoint");
  command->add_flag("--print-config", o->print_config, "print the configuration with all defaults filled in, and exit");
  command->add_flag("--quick", o->quick, "run a shortened form of a long experiment");
  command->add_flag("--quiet", o->quiet, "do not print progress to stderr");
  command->add_flag("--no-report", o->no_report, "do not write report.html");
}

void add_check(CommandLine& line) {
  const auto [command, o] = line.add(
      "check",
      "Compare gradients and samplers with closed forms and finite differences. The exit code is 1 if one is off.",
      "check langevin-reward --set potential.width=1", check);
  add_name(command, "NAME", o->experiment,
           "name of an experiment (see `list`) or FILE.toml (default: all built-in ones)", "");
  add_seed(command, o->seed);
  add_isa(command, o->isa);
  add_set(command, o->set);
}

void add_report(CommandLine& line) {
  const auto [command, o] =
      line.add("report", "Remake the HTML report of one run, or make one that compares several runs.",
               "report runs/langevin-reward-0 runs/langevin-reward-1", report);
  command->add_option("DIR", o->folders, "folders of runs; with one folder, its own report.html is remade")
      ->required()
      ->type_name("");
  add_name(command, "--output", o->output,
           "file to write (default: report.html, in the folder of the run if there is only one)", "FILE");
}

void add_show_model(CommandLine& line) {
  const auto [command, o] =
      line.add("show-model",
               "Show what a model folder holds: network, parameters, noise schedule, and what is wrong with it. Every "
               "value is read; the exit code is 65 if one is missing, unexpected, of another shape or not finite.",
               "show-model ddpm-cifar10-32", show_model);
  command->add_option("DIR", o->folder, "folder of a model, as diffusers saves it")->required()->type_name("");
}

void add_show_data(CommandLine& line) {
  const auto [command, o] =
      line.add("show-data",
               "Describe a set of images (IDX, CIFAR, LMDB or a folder of PNG, JPEG and WebP) and draw some of them.",
               "show-data /usr/share/datasets/fashion-mnist --output fashion.png", show_data);
  command->add_option("PATH", o->path, "folder or file of the data set")->required()->type_name("");
  command->add_flag("--test", o->test, "the test images, where there are both training and test images");
  command->add_option("--count", o->count, "number of images on the contact sheet (default: 64)")
      ->type_name("N")
      ->check(CLI::Range(1, 10000).description(""));
  add_name(command, "--output", o->output, "PNG file to write (default: contact-sheet.png)", "FILE");
}

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

int dispatch(int argc, char** argv) {
  CommandLine line;
  CLI::App& app = line.app;
  app.footer("Example: implicit-diffusion run langevin-reward --seed 1");
  app.set_version_flag("--version", fmt::format("implicit-diffusion {} (kernels: {})", IMPLICIT_DIFFUSION_VERSION,
                                                to_string(implicit_diffusion::machine_isa())));
  app.require_subcommand(0, 1);
  line.add("list", "List the experiments that come with the program.", "list", list);
  add_run(line);
  add_check(line);
  add_report(line);
  add_show_data(line);
  add_show_model(line);
  const auto [command, isa] =
      line.add("bench", "Measure the speed of this machine on fixed problems; each result is verified first.",
               "bench --isa v3", bench);
  add_isa(command, *isa);

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
    complain(usage_message(app, e, argc, argv));
    return exit_usage;
  }
  if (!line.exit_code) print_error(app.help());
  return line.exit_code.value_or(exit_usage);
}

}  // namespace program
