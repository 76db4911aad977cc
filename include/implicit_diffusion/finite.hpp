// All that it takes to optimise through sampling on a finite set.
#pragma once

#include "implicit_diffusion/finite/estimator.hpp"
#include "implicit_diffusion/finite/ring.hpp"
#include "implicit_diffusion/finite/sampler.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/single.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
