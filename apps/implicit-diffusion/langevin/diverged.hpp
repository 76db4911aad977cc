// A Langevin run that diverged, in words.
#pragma once

#include "implicit_diffusion/loop/state.hpp"
#include "langevin/configuration.hpp"

namespace program {

// What happened, and what may help.
std::string describe_divergence(const implicit_diffusion::Divergence& d, const LangevinConfiguration& c);

// What may help; `where` is what was no longer finite, if that is known.
std::string divergence_advice(const LangevinConfiguration& c,
                              std::optional<implicit_diffusion::Divergence::Where> where);

}  // namespace program
