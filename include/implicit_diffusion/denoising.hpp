// All that it takes to finetune a denoising diffusion: models, chains, gradients through them, loops, and the front
// door.
#pragma once

#include "implicit_diffusion/denoising/check.hpp"
#include "implicit_diffusion/denoising/gradient.hpp"
#include "implicit_diffusion/denoising/mixture_score.hpp"
#include "implicit_diffusion/denoising/optimise.hpp"
#include "implicit_diffusion/denoising/prediction.hpp"
#include "implicit_diffusion/denoising/reconstruction.hpp"
#include "implicit_diffusion/loop/double_queue.hpp"
#include "implicit_diffusion/loop/nested.hpp"
#include "implicit_diffusion/loop/queue.hpp"
#include "implicit_diffusion/optimizer/adam.hpp"
#include "implicit_diffusion/optimizer/gradient_descent.hpp"
#include "implicit_diffusion/optimizer/rms_prop.hpp"
