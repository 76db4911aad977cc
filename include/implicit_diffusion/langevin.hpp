// All that it takes to optimise through Langevin sampling: potentials, rewards, samplers, estimators, loops, and the
// front door.
#pragma once

#include "implicit_diffusion/langevin/baselines.hpp"
#include "implicit_diffusion/langevin/check.hpp"
#include "implicit_diffusion/langevin/differentiated.hpp"
#include "implicit_diffusion/langevin/double_well.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/optimise.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/sampler.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"
