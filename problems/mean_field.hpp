// The mean-field recursion of langevin/rates.hpp at c = 3 with the proved pair of schedules, c_1 = 1/4: worked out
// apart, in another language; 12 decimals are given.
#pragma once

#include "implicit_diffusion/langevin/rates.hpp"

#include <cstdint>
#include <vector>

namespace implicit_diffusion::problems {

struct MeanFieldAnswers {
  double target = 3, scale = 0.25;
  std::vector<std::int64_t> steps{5, 1000};
  MeanField after_5{.theta = .744312376958, .m = .249960803552, .v = 1.083125059431, .average = .979580131726};
  double theta_after_1000 = 2.989985502679, average_after_1000 = .051689699280;
};

}  // namespace implicit_diffusion::problems
