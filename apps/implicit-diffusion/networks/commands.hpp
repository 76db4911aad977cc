// The subcommands of the executable with networks, as commands/commands.hpp has those of the program.
#pragma once

#include "implicit_diffusion/torch/model.hpp"

#include <string>

namespace program {

struct VerifyModelOptions {
  std::string folder, file;
  double tolerance = implicit_diffusion::model_tolerance;
  bool portable_bits = false;  // read by set_network_environment()
};
int verify_model(const VerifyModelOptions& o);

}  // namespace program
