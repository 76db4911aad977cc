// The reward experiment on the hexagon: the paper's reward, five samples, and what every estimator makes of them.
//
// The answers are quadratures or plain sums by programs that share no code with ours; the digits printed are all right.
#pragma once

#include "implicit_diffusion/langevin/rewards.hpp"
#include "implicit_diffusion/langevin/wells.hpp"
#include "implicit_diffusion/population.hpp"
#include "problems/hexagon.hpp"

#include <cstddef>
#include <vector>

namespace implicit_diffusion::problems {

inline SoftmaxWells hexagon_wells() { return {hexagon(), 2.0}; }
inline HardReward hard_reward() { return {{4, 3.8}, 20.0, 2.5}; }
inline SmoothReward smooth_reward() { return {{4, 3.8}, 20.0, 0.7, 0.5}; }

// The start of the experiment, and another theta from which its law is judged.
inline std::vector<double> hexagon_start() { return {1.5, 0, 1.5, 0, 1.5, 0}; }
inline std::vector<double> hexagon_elsewhere() { return {.3, -.2, .1, .4, 0, -.5}; }

template <class Real>
Population<Real> population_of(const std::vector<std::vector<double>>& rows) {
  Population<Real> x(rows.size(), rows.front().size());
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows[i].size(); ++j) x(i, j) = static_cast<Real>(rows[i][j]);
  return x;
}

inline std::vector<std::vector<double>> five_points() { return {{3, 2}, {1, -1}, {-2, 3}, {.5, .5}, {4, 4}}; }
inline std::vector<std::vector<double>> three_references() { return {{4, 0}, {-2, hexagon()[1][1]}, {0, 0}}; }

struct HexagonAnswers {
  // At the five points.
  std::vector<double> hard{.323585879027, .080597251393, 0, .12577122061, .399200799467};
  std::vector<double> smooth{1.152806332461, .253535084, .004113524876, .328379034899, 1.425239026524};
  std::vector<double> smooth_slope_at_first{.120981544512, .207505139843};

  // E R_hard under N(c_i, I), c_i the corners.
  std::vector<double> hard_by_well{.1886280527962, .2982960077064, .004476878770976,
                                   3.075874902e-6, 4.088310876e-4, .02724055921388};

  // Gradients from the five points at the start: of -E R_hard with the normaliser n; of KL(reference || pi) with the
  // three references; of 1.3 times the one plus 0.7 times the other.
  std::vector<double> reward_gradient{-1.082701750268e-3, -4.891829239953e-2, 3.905679807254e-2,
                                      4.234060266432e-5,  8.746870181016e-4,  1.002716845649e-2};
  std::vector<double> reference_gradient{-.083143631554, .301762006039,  -.192457528052,
                                         -.01975138567,  -.082103180263, .075693719499};
  std::vector<double> combined_gradient{-.059608054363, .147639624108, -.083946432142,
                                        -.013770927185, -.05633513306, .066020922643};

  // Exactly, under pi*(theta): E R_hard and its negative gradient at the start; KL(pi*(start) || pi*(elsewhere)) and
  // the reverse, with gradients at elsewhere.
  double expected_reward = .072532884332;
  std::vector<double> exact_reward_gradient{-.031638815515, -.013728318679, .018546951033,
                                            .004410429433,  .019655595017,  .002754158711};
  double divergence = .162680557875;
  std::vector<double> divergence_gradient{-.053027814521, .057522478143,  -.084464545316,
                                          .154618257878,  -.101369115924, .026720739739};
  std::vector<double> reverse_divergence_gradient{-.089073045249, .054810667603,  -.100824939356,
                                                  .228058648788,  -.107157409791, .014186078005};

  // Unrolling through one step of size 0.2 from the five points with `unrolled_noise`, smooth reward, at the start.
  std::vector<std::vector<double>> unrolled_noise{{.3, -.2}, {-.5, .1}, {.7, .4}, {0, -.6}, {.2, .2}};
  double unrolled_objective = -.641620903718;
  std::vector<double> unrolled_gradient{-.005405651177, -.007614541346, .005069955274,
                                        .0001664896,    .001631878116,  .006151869532};
};

}  // namespace implicit_diffusion::problems
