// The potentials and rewards that come with the library, all of them: kernels for every level, the choice among the
// levels and the reference in double are made from these lists. What a part is called in a file, and its keys, are in
// the specs of the program (apps/implicit-diffusion/langevin/potential_specs.hpp, reward_specs.hpp).
#pragma once

#include "implicit_diffusion/langevin/double_well.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/wells.hpp"

namespace implicit_diffusion {

template <class... T>
struct TypeList {};

using BuiltinPotentials = TypeList<Quadratic, SoftmaxWells, LogisticWells, Mixture, DoubleWell>;
using BuiltinRewards = TypeList<HardReward, SmoothReward, BumpReward, QuadraticReward, RadiusReward>;

}  // namespace implicit_diffusion
