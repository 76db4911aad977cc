#include "langevin/diverged.hpp"

#include "langevin/method.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace program {

using namespace implicit_diffusion;

// Weights of the objective that are out of proportion are named first.
std::string divergence_advice(const LangevinConfiguration& c, std::optional<Divergence::Where> where) {
  // At the theta of the beginning: a theta that ran away has a limit that would blame any step size.
  const auto& theta = c.method == Method::langevin_optimised ? c.theta_opt : c.start.theta;
  const Potential<float> potential = prepared(c.potential.make(), theta);
  if (const auto stable = potential.largest_stable_step(); stable && c.step_size >= *stable)
    return fmt::format("step_size is {}, the chain is stable below {:.6g}", c.step_size, *stable);

  constexpr double strong = 100;
  std::vector<std::string> changes;
  const bool learns = moves_theta(c.method);
  const bool smooth = c.method == Method::guided || c.method == Method::unrolled;
  if (const auto& r = smooth ? c.smooth_reward : c.reward; r && (learns || smooth)) {
    const char* table = smooth ? "smooth_reward" : "reward";
    if (std::abs(r->lambda) > (learns ? strong : 0))
      changes.push_back(fmt::format("{}.lambda nearer to 0 than {}", table, r->lambda));
    if (const auto denominator = r->denominator(); denominator && *denominator < 1 / strong)
      changes.push_back(fmt::format("{}.denominator larger than {}", table, *denominator));
  }
  if (learns && !smooth && c.reference && c.reference->beta > strong)
    changes.push_back(fmt::format("reference.beta smaller than {}", c.reference->beta));
  if (learns && !smooth && c.base && c.base->beta > strong)
    changes.push_back(fmt::format("base.beta smaller than {}", c.base->beta));
  const bool overflows = learns && where == Divergence::Where::gradient && !changes.empty();
  if (learns && !overflows) changes.push_back(fmt::format("learning_rate smaller than {}", c.learning_rate));
  if (!overflows) changes.push_back(fmt::format("step_size smaller than {}", c.step_size));
  return fmt::format("a {} may help", fmt::join(changes, " or a "));
}

std::string describe_divergence(const Divergence& d, const LangevinConfiguration& c) {
  std::string what = "of theta left the domain of the potential";
  if (d.where == Divergence::Where::sample) what = fmt::format("of sample {} is not finite", d.sample);
  if (d.where == Divergence::Where::gradient) what = "of the gradient is not finite";
  return fmt::format("diverged at step {}: coordinate {} {}; {}", d.step, d.coordinate + 1, what,
                     divergence_advice(c, d.where));
}

}  // namespace program
