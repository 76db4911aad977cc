// The stages of an experiment with images, each a run in a folder. Needs LibTorch.
#pragma once

#include "experiment/runs.hpp"
#include "images/evaluation.hpp"

#include <map>
#include <memory>

namespace program {

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
