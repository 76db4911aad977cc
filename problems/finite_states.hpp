// Two small finite sets with all their numbers: a Gibbs law on four states, a chain on three.
//
// The answers are by programs that share no code with ours; the digits printed are all right.
#pragma once

#include "implicit_diffusion/finite/chain.hpp"
#include "implicit_diffusion/finite/gibbs.hpp"

#include <vector>

namespace implicit_diffusion::problems {

// V = E + B theta and the reward R.
struct FourStates {
  LinearPotential potential{{.2, -.1, .5, 0.}, {1., -.5, .3, .8, -.7, .2, 0., 1.5}};
  std::vector<double> theta{.4, -.6};
  std::vector<double> reward{1, 0, 2, -1};

  std::vector<double> law{.075922179099, .295807485661, .168967916964, .459302418276};
  std::vector<double> gradient{-.158524880345, -.617453615971};  // of -E R
  // Gamma at a p that is not the law.
  std::vector<double> p{.1, .2, .3, .4};
  std::vector<double> gradient_at_p{-.305, -.761};
};

// P = softmax over each row of A_0 + theta A_1, and f.
struct ThreeStates {
  SoftmaxChain chain{
      TransitionMatrix::dense(3), {0., .5, -.2, .3, 0., .1, -.4, .2, 0.}, {{.2, -.1, .4, 0., .6, -.3, .5, .1, -.2}}};
  std::vector<double> theta{.7};
  std::vector<double> f{1, -2, .5};

  std::vector<double> law{.326501648159, .409001115831, .26449723601};
  std::vector<double> derivative{.012373026462, .034703658854, -.047076685315};  // of the law
  std::vector<double> u{.991933197894, -1.97096585396, .465061359112};           // (I - P + 1 pi')^-1 f
  std::vector<double> gradient{-.080572633903};                                  // of pi . f
};

}  // namespace implicit_diffusion::problems
