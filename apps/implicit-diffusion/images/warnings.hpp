// What finetuning of images warns of. Nothing in this header needs LibTorch.
#pragma once

#include "experiment/warnings.hpp"

#include <vector>

namespace program {

struct MeasuredMean {
  double mean, standard_error;
};

// What a finetuned model is judged by. Numbers that nothing tells are NaN.
struct FinetuningFigures {
  double lambda, beta;
  MeasuredMean reward_before, reward, path_kl;     // of the evaluation samples
  double entropy_before, entropy, oracle_entropy;  // of classes
  std::vector<double> population_reward;           // of the training population, over the run
  double judge_accuracy;                           // of the classifier, on test images
  double population_share;                         // its size, over that of the evaluation samples
};

//     kl-runaway       beta KL is above lambda times the change of the reward, by four standard errors, though a model
//                      that does not move has 0 for both; or the KL is above 100 nats
//     class-collapse   the entropy is below half of what it was, and not above half of the oracle's
//     population-only  the reward of the training population moved as wanted, by four standard errors of its size; that
//                      of the evaluation samples did not
//     weak-judge       the classifier is wrong for more than half of the test images
std::vector<Warning> warnings_of(const FinetuningFigures& f);

}  // namespace program
