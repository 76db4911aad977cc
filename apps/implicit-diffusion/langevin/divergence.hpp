// A Langevin run that diverged, in words.
#pragma once

#include "implicit_diffusion/loop/state.hpp"
#include "langevin/configuration.hpp"

#include <span>

namespace program {

// What happened, and what may help.
std::string describe_divergence(const implicit_diffusion::Divergence& d, const LangevinConfiguration& c,
                                std::span<const double> theta);

// What may help, at the last theta; `where` is what was no longer finite, if that is known.
std::string divergence_advice(const LangevinConfiguration& c, std::span<const double> theta,
                              std::optional<implicit_diffusion::Divergence::Where> where);

}  // namespace program
