// The stages of an experiment with images, each a run in a folder. Needs LibTorch.
#pragma once

#include "experiment/runs.hpp"
#include "images/evaluation.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"

#include <map>
#include <memory>

namespace program {

// Over how many steps the rate of a training falls; 0: it stays. One that falls cannot be made longer when it is
// continued: its rates would have been others. Throws a usage Error then.
inline std::int64_t decay_of(const TrainingKeys& k) { return k.decay ? k.steps : 0; }
void require_same_decay(const implicit_diffusion::io::CheckpointReader& reader, const TrainingKeys& k);

FinishedRun run_classifier(const ImagesConfiguration& c, const RunContext& context);
FinishedRun run_pretraining(const ImagesConfiguration& c, const RunContext& context);

// What runs of a sweep share: figures of the data, and of the samples before finetuning. It is made by the first that
// asks for it.
struct SharedFigures {
  std::optional<DataFigures> data;
  std::optional<SampleFigures> before;
  std::optional<std::string> picture_before;
};
FinishedRun run_finetuning(const ImagesConfiguration& c, const RunContext& context, SharedFigures& shared);

}  // namespace program
