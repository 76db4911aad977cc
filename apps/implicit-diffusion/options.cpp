// The command line: every option with its help. The only file that includes CLI11, which is slow to compile.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <functional>
#include <memory>

namespace program {
namespace {

using implicit_diffusion::Level;

using Action = std::function<int()>;

void add_list(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("list", "The experiments that come with the program.");
  command->footer("Example: implicit-diffusion list");
  command->callback([&action] { action = list; });
}

Level level_called(const std::string& name) {
  for (const Level level : {Level::baseline, Level::v3, Level::v4})
    if (to_string(level) == name) return level;
  throw CLI::ValidationError("--isa",
                             fmt::format("{} is not one of baseline, v3, v4", implicit_diffusion::io::excerpt(name)));
}

// The option --isa of a command, into `chosen`, which must live as long as the command.
void add_isa(CLI::App& command, std::optional<Level>& chosen) {
  const std::string levels =
      fmt::format("instructions to use: baseline, v3 or v4 (default {}, the best of this machine)",
                  to_string(implicit_diffusion::machine_level()));
  command
      .add_option_function<std::string>(
          "--isa", [&chosen](const std::string& v) { chosen = level_called(v); }, levels)
      ->type_name("LEVEL");
}

// An empty name would mean the default, which nobody asks for in this way.
CLI::Validator not_empty() {
  return {[](const std::string& name) { return name.empty() ? "'' is not a name" : ""; }, ""};
}

// The options --seed and --set of a command on an experiment, into what must live as long as the command.
void add_seed(CLI::App& command, std::optional<std::string>& seed) {
  command
      .add_option_function<std::string>(
          "--seed", [&seed](const std::string& v) { seed = v; }, "seed of all noise")
      ->type_name("N");
}
void add_set(CLI::App& command, std::vector<std::string>& set) {
  command.add_option("--set", set, "change a key of the experiment's file; may be repeated")
      ->type_name("KEY=VALUE")
      ->take_all()
      ->allow_extra_args(false);
}

void add_run(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("run", "Run an experiment: one that comes with the program, or a TOML file of yours.");
  command->footer("Example: implicit-diffusion run langevin-reward --seed 1 --set method=nested --set inner_steps=10");
  const auto o = std::make_shared<RunOptions>();
  command->add_option("NAME", o->experiment, "name of an experiment (see list) or FILE.toml")
      ->required()
      ->type_name("");
  add_seed(*command, o->seed);
  command
      ->add_option_function<std::string>(
          "--steps", [o](const std::string& v) { o->steps = v; }, "outer steps")
      ->type_name("K");
  command->add_option("--repeats", o->repeats, "so many independent runs, with the seed and those after it")
      ->type_name("N")
      ->check(CLI::Range(1, 100000).description(""));
  command->add_option("--threads", o->threads, "threads (default: all cores); results do not depend on it")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  add_isa(*command, o->isa);
  command->add_option("--output", o->output, "folder of the run (default runs/NAME-SEED)")
      ->type_name("DIR")
      ->check(not_empty());
  add_set(*command, o->set);
  command->add_flag("--overwrite", o->overwrite, "replace the run that is in the folder");
  command->add_flag("--resume", o->resume, "go on with the run that is in the folder, from its newest checkpoint");
  command->add_flag("--print-config", o->print_config, "print the resolved configuration and stop");
  command->add_flag("--quick", o->quick, "a shortened form, where the experiment is long");
  command->add_flag("--quiet", o->quiet, "no progress on stderr");
  command->add_flag("--no-report", o->no_report, "no report.html");
  command->callback([o, &action] { action = [o] { return run(*o); }; });
}

void add_check(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "check",
      "Compare estimators and samplers with closed forms and finite differences; exit code 1 where one is off.");
  command->footer("Example: implicit-diffusion check langevin-reward --set potential.width=1");
  const auto o = std::make_shared<CheckOptions>();
  command->add_option("NAME", o->experiment, "name of an experiment (see list) or FILE.toml (default: all, and more)")
      ->type_name("")
      ->check(not_empty());
  add_seed(*command, o->seed);
  add_isa(*command, o->isa);
  add_set(*command, o->set);
  command->callback([o, &action] { action = [o] { return check(*o); }; });
}

void add_report(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("report", "Make the HTML report of a run again, or one that compares several.");
  command->footer("Example: implicit-diffusion report runs/langevin-reward-0 runs/langevin-reward-1");
  const auto o = std::make_shared<ReportOptions>();
  command->add_option("DIR", o->folders, "folders of runs; one: its own report.html is made anew")
      ->required()
      ->type_name("");
  command->add_option("--output", o->output, "the file (default: report.html, of one run in its folder)")
      ->type_name("FILE")
      ->check(not_empty());
  command->callback([o, &action] { action = [o] { return report(*o); }; });
}

// CLI11's complaint, with the nearest word for an option or command that does not exist.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
  const auto chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> words;
  for (const CLI::App* s : at.get_subcommands([](const CLI::App*) { return true; })) words.push_back(s->get_name());
  for (const CLI::Option* o : at.get_options()) words.push_back(o->get_name());
  if (extras || (chosen.empty() && argc > 1)) {
    const auto unknown = [&]() -> std::string {
      if (chosen.empty()) return argv[1];
      const auto rest = chosen.front()->remaining();
      return rest.empty() ? std::string() : rest.front();
    }();
    if (!unknown.empty()) {
      const std::string kind = unknown.starts_with("-") ? "option" : chosen.empty() ? "command" : "argument";
      const auto near = nearest(unknown.substr(0, unknown.find('=')), words);
      return fmt::format("{}: unknown {}{}", unknown, kind,
                         near ? fmt::format("; did you mean {}?", *near) : "; see --help");
    }
  }
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (what.starts_with("--")) return what;  // it names the option
  return fmt::format("{}: {}", chosen.empty() ? "command line" : chosen.front()->get_name(), what);
}

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("bench", "Fixed problems, verified, then timed.");
  command->footer("Example: implicit-diffusion bench --isa v3");
  const auto o = std::make_shared<BenchOptions>();
  add_isa(*command, o->isa);
  command->callback([o, &action] { action = [o] { return bench(*o); }; });
}

}  // namespace

int dispatch(int argc, char** argv) {
  CLI::App app(
      "Optimization through sampling: find the parameter of a sampling process so that the law it samples is good.",
      "implicit-diffusion");
  app.footer("Example: implicit-diffusion run langevin-reward --seed 1");
  app.set_version_flag("--version", fmt::format("implicit-diffusion {} (kernels: {})", IMPLICIT_DIFFUSION_VERSION,
                                                to_string(implicit_diffusion::machine_level())));
  app.require_subcommand(0, 1);
  Action action;
  add_list(app, action);
  add_run(app, action);
  add_check(app, action);
  add_report(app, action);
  add_bench(app, action);

  try {
    app.parse(argc, argv);
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
  if (!action) {
    print_error(app.help());
    return exit_usage;
  }
  return action();
}

}  // namespace program
