#include "implicit_diffusion/optimise.hpp"

#include "require.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace implicit_diffusion {

std::string describe(const Divergence& d) {
  switch (d.where) {
    case Divergence::Where::sample:
      return fmt::format("coordinate {} of sample {} is not finite", d.coordinate + 1, d.sample);
    case Divergence::Where::gradient:
      return fmt::format("coordinate {} of the gradient is not finite", d.coordinate + 1);
    case Divergence::Where::parameter:
      return fmt::format("coordinate {} of theta is not finite or left its domain", d.coordinate + 1);
  }
  return "";
}

void add_speed_note(const char* what, const char* reason, RunReport& report) {
  if (reason) report.notes.push_back(fmt::format("{} {}", what, reason));
}

void require_noise_for(const std::string& name, std::size_t samples, std::size_t dimension) {
  constexpr std::size_t most = std::size_t{1} << 34;  // numbers
  require(samples <= most / std::max<std::size_t>(dimension, 1), name,
          "{} samples of dimension {}: at most 2^34 numbers have noise of their own", samples, dimension);
}

std::string divergence_note(double step_size, std::optional<double> largest_stable) {
  if (largest_stable && step_size >= *largest_stable)
    return fmt::format("step_size is {:.6g}, the chain is stable below {:.6g}", step_size, *largest_stable);
  return "a smaller learning rate or a smaller step_size may help";
}

std::string describe(const RunReport& r) {
  std::string text;
  switch (r.outcome.status) {
    case Status::completed:
      text = fmt::format("completed {} steps\n", r.steps);
      break;
    case Status::interrupted:
      text = fmt::format("stopped after {} steps\n", r.steps);
      break;
    case Status::diverged:
      text = fmt::format("diverged at step {}", r.steps + 1);
      if (r.outcome.divergence) text += ": " + describe(*r.outcome.divergence);
      text += '\n';
      break;
  }
  text += fmt::format("theta = ({:.6g}{})\n", fmt::join(r.first_parameters, ", "),
                      r.parameters > r.first_parameters.size() ? fmt::format(", ... {} in all", r.parameters) : "");
  if (r.objective) text += fmt::format("objective = {:.6g}\n", *r.objective);
  if (r.reward) text += fmt::format("reward = {:.6g}\n", *r.reward);
  if (r.path_kl) text += fmt::format("path KL = {:.6g}\n", *r.path_kl);
  for (const std::string& note : r.notes) text += "note: " + note + '\n';
  return text;
}

}  // namespace implicit_diffusion
