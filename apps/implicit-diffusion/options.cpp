// The command line: every option with its help. Commands that need networks are in networks/options.cpp.
#include "command_line.hpp"
#include "commands/commands.hpp"
#include "experiment/launch.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace program {
namespace {

using implicit_diffusion::Isa;

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
  add_run_options(command, *o, "runs/NAME-SEED");
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
  add_portable_bits(command, o->portable_bits);
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

void add_bench(CommandLine& line) {
  const auto [command, o] =
      line.add("bench", "Measure the speed of this machine on fixed problems; each result is verified first.",
               "bench --isa v3", bench);
  add_isa(command, o->isa);
  command
      ->add_option(
          "--only", o->only,
          "particles; networks, where LibTorch is; paper, single steps of the paper's experiments with images, "
          "which take minutes (default: the first two)")
      ->type_name("PART")
      ->check(CLI::IsMember({"particles", "networks", "paper"}).description(""));
}

}  // namespace

void add_portable_bits(CLI::App* command, bool& portable) {
  command->add_flag("--portable-bits", portable,
                    "with networks, use only instructions that give the same bits on every processor with AVX2 (about "
                    "13 % slower)");
}

void add_run_options(CLI::App* command, RunOptions& o, const char* output) {
  command->add_option("NAME", o.experiment, "name of an experiment (see `list`) or FILE.toml")
      ->required()
      ->type_name("");
  add_seed(command, o.seed);
  add_text(command, "--steps", o.steps, "number of outer steps (steps of theta)", "K");
  command->add_option("--repeats", o.repeats, "make N independent runs, with consecutive seeds")
      ->type_name("N")
      ->check(CLI::Range(1, 100000).description(""));
  command->add_option("--threads", o.threads, "number of threads (default: all cores); the results do not depend on it")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  add_isa(command, o.isa);
  const std::string where = fmt::format("folder to write the run to (default: {})", output);
  add_name(command, "--output", o.output, where.c_str(), "DIR");
  add_set(command, o.set);
  command->add_flag("--overwrite", o.overwrite, "replace the run in the output folder");
  command->add_flag("--resume", o.resume, "continue the run in the output folder from its newest checkpoint");
  command->add_flag("--print-config", o.print_config, "print the configuration with all defaults filled in, and exit");
  command->add_flag("--quick", o.quick, "run a shortened form of a long experiment");
  command->add_flag("--quiet", o.quiet, "do not print progress to stderr");
  command->add_flag("--no-report", o.no_report, "do not write report.html");
  add_portable_bits(command, o.portable_bits);
}

int dispatch(int argc, char** argv) {
  // A run is made by all processes that a launcher starts, as are samples of a network, and they are what `bench`
  // measures; everything else is for the first.
  constexpr std::array<std::string_view, 6> for_all{"run", "bench", "pretrain", "finetune", "sample", "evaluate"};
  if (argc < 2 || std::ranges::find(for_all, argv[1]) == for_all.end()) {
    if (!is_first()) return 0;
    leave_to_first();
  }
  for (const NetworkCommand& c : network_commands)
    if (argc > 1 && argv[1] == std::string_view(c.name)) become_networks(c.name);
  start_networks();
  CommandLine line;
  CLI::App& app = line.app;
  app.footer("Example: implicit-diffusion run langevin-reward --seed 1");
  app.set_version_flag("--version", [] {
    const std::string mpi = describe_plugin();
    return fmt::format("implicit-diffusion {} (kernels: {}; {})", IMPLICIT_DIFFUSION_VERSION,
                       to_string(implicit_diffusion::machine_isa()), mpi.empty() ? "without MPI" : "MPI: " + mpi);
  });
  app.require_subcommand(0, 1);
  line.add("list", "List the experiments that come with the program.", "list", list);
  add_run(line);
  add_check(line);
  add_report(line);
  add_show_data(line);
  add_show_model(line);
  add_bench(line);
  add_network_commands(line);
  if (!has_networks())  // help lists them
    for (const NetworkCommand& c : network_commands) app.add_subcommand(c.name, c.help);

  return line.parse(argc, argv);
}

}  // namespace program
