// What is measured along a run: means over a population, of V and of R, in the order of all sums over tiles.
#pragma once

#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/langevin/reward.hpp"
#include "implicit_diffusion/parallel/sums.hpp"

namespace implicit_diffusion {

class SampleMeans {
 public:
  explicit SampleMeans(Workers* workers) : workers_(workers) {}  // null: the calling thread alone

  double value(const Potential<float>& v, const Population<float>& x);  // v is prepared
  double reward(const Reward<float>& r, const Population<float>& x);

 private:
  template <class Numbers>
  double mean(const Population<float>& x, Numbers&& numbers);

  Workers* workers_;
  TileSums sums_;  // its memory is kept from step to step
};

}  // namespace implicit_diffusion
