// The executable with networks: the commands that need LibTorch, every option with its help.
#include "command_line.hpp"
#include "commands/commands.hpp"
#include "networks/commands.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>
#include <malloc.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
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

void add_pretrain(CommandLine& line) {
  const auto [command, o] =
      line.add("pretrain", help_of("pretrain"), "pretrain mnist --set data.folder=mnist", pretrain);
  add_run_options(command, *o, "runs/pretrain-NAME-SEED");
  command->add_flag("--classifier", o->classifier, "train the classifier, the judge of samples, instead");
}

void add_finetune(CommandLine& line) {
  const auto [command, o] =
      line.add("finetune", help_of("finetune"),
               "finetune mnist --model runs/pretrain-mnist-0/model --set finetune.lambda=60", finetune);
  add_run_options(command, *o, "runs/finetune-NAME-SEED");
  add_name(command, "--model", o->model, "folder of the model, of `pretrain` or of diffusers", "DIR");
  add_name(command, "--classifier", o->classifier, "folder of a classifier, of `pretrain --classifier`", "DIR");
}

void add_threads(CLI::App* command, std::uint64_t& threads) {
  command->add_option("--threads", threads, "number of threads (default: all cores); the results do not depend on it")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
}
template <class Number>
void add_number(CLI::App* command, const char* name, Number& number, std::int64_t least, std::int64_t most,
                const std::string& help) {
  command->add_option(name, number, help)->type_name("N")->check(CLI::Range(least, most).description(""));
}
template <class Text>
void add_grid(CLI::App* command, Text& grid, const char* whose) {
  command
      ->add_option("--grid", grid,
                   fmt::format("noise levels{}: log-linear, uniform or cosine (default: log-linear)", whose))
      ->type_name("NAME")
      ->check(CLI::IsMember({"log-linear", "uniform", "cosine"}).description(""));
}
constexpr std::int64_t many = 1'000'000, largest = std::numeric_limits<std::int64_t>::max();

void add_shard(CLI::App* command, std::int64_t& shard) {
  add_number(command, "--shard", shard, 1, many,
             fmt::format("samples that are evaluated together on one thread; results depend on it in the last digits "
                         "(default: {})",
                         shard));
}

void add_sample(CommandLine& line) {
  const auto [command, o] =
      line.add("sample", help_of("sample"), "sample runs/pretrain-mnist-0/model --count 100", sample);
  add_name(command, "MODEL_DIR", o->model, "folder of a model, of ours or of diffusers", "")->required();
  add_number(command, "--count", o->count, 1, many, "number of samples (default: 64)");
  add_number(command, "--seed", o->seed, 0, largest, "seed of all random numbers (default: 0)");
  command
      ->add_option("--labels", o->labels, "labels of the samples, repeated as often as needed (default: all in turn)")
      ->type_name("L,L,...")
      ->delimiter(',')
      ->check(CLI::Range(std::int64_t{0}, largest).description(""));
  command
      ->add_option("--sampler", o->sampler,
                   "sde or ode, the chains of finetuning; ddpm or ddim, as diffusers (default: sde)")
      ->type_name("NAME")
      ->check(CLI::IsMember({"sde", "ode", "ddpm", "ddim"}).description(""));
  add_grid(command, o->grid, " of sde and ode");
  add_number(command, "--steps", o->steps, 2, many, "steps of a sample (default: 64, of ddpm and ddim 50)");
  command->add_option("--eta", o->eta, "noise of ddim: 0 has none, 1 that of ddpm (default: 0)")
      ->type_name("X")
      ->check(CLI::Range(0.0, 1.0).description(""));
  add_shard(command, o->shard);
  add_threads(command, o->threads);
  add_name(command, "--output", o->output, "folder to write samples.png and samples.npy to (default: samples)", "DIR");
  add_name(command, "--noise", o->noise,
           "file to write the noise of the samples to (.safetensors), so that another program can make them too",
           "FILE");
  add_portable_bits(command, o->portable_bits);
}

void add_evaluate(CommandLine& line) {
  const auto [command, o] = line.add(
      "evaluate", help_of("evaluate"),
      "evaluate runs/finetune-mnist-0/model --base runs/pretrain-mnist-0/model --lambda-over-beta 30", evaluate);
  add_name(command, "MODEL_DIR", o->model, "folder of a model", "")->required();
  add_name(command, "--base", o->base, "folder of the model that it was finetuned from: for the path KL", "DIR");
  add_name(command, "--data", o->data, "folder of the images that it learnt from", "DIR");
  add_name(command, "--classifier", o->classifier, "folder of a classifier", "DIR");
  add_name(command, "--reward", o->reward, "brightness, redness, contrast or class (default: brightness)", "NAME");
  add_number(command, "--class", o->chosen, 0, many, "whose log-probability the reward `class` is (default: 0)");
  command->add_option("--lambda-over-beta", o->ratio, "the oracle: data tilted by this times the reward")
      ->type_name("X")
      ->check(CLI::Validator(
          [](const std::string& typed) {
            double value = 0;
            return CLI::detail::lexical_cast(typed, value) && std::isfinite(value) ? std::string()
                                                                                   : typed + " is not a finite number";
          },
          ""));
  add_number(command, "--count", o->count, 2, many, "number of samples (default: 1000)");
  add_number(command, "--seed", o->seed, 0, largest, "seed of all random numbers (default: 777)");
  add_number(command, "--steps", o->steps, 2, many, "steps of a sample (default: 32)");
  add_grid(command, o->grid, "");
  add_shard(command, o->shard);
  add_threads(command, o->threads);
  add_name(command, "--output", o->output, "JSON file to write (default: evaluation.json)", "FILE");
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

void add_network_commands(CommandLine& line) {
  add_pretrain(line);
  add_finetune(line);
  add_sample(line);
  add_evaluate(line);
  add_verify_model(line);
}

}  // namespace program
