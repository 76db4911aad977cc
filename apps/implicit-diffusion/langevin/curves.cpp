#include "langevin/curves.hpp"

#include "figures/law_pictures.hpp"
#include "figures/tables.hpp"
#include "langevin/recorder.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

const std::array curves{
    CurveSpec{.column = "reward",
              .title = "Reward",
              .y_label = "reward",
              .second = "exact_reward",
              .second_label = "under π*(θ)",
              .meaning = "Larger is better."},
    CurveSpec{.column = "log_likelihood",
              .title = "Log-likelihood of the samples under θ_opt",
              .y_label = "mean of −V(x, θ_opt), nats",
              .meaning = "This tells how likely the samples are at the parameters θ_opt of the configuration."},
    CurveSpec{.column = "exact_kl",
              .title = "KL divergence from the reference",
              .y_label = "KL(reference ‖ π*(θ)), nats",
              .log_y = true,
              .meaning = "Smaller is better; 0 means that π*(θ) equals the reference."},
    CurveSpec{.column = "base_kl",
              .title = "KL divergence from the base",
              .y_label = "KL(π*(θ) ‖ base), nats",
              .meaning = "How far the distribution has moved from the base: the other part of the objective."},
    CurveSpec{.column = "data_log_likelihood",
              .title = "Log-likelihood of the data",
              .y_label = "mean of log π*(θ), nats",
              .meaning = "Larger is better."}};

// The log-likelihood that points of the reference have, where it is a law: samples that follow it have the same.
double reference_log_likelihood(LangevinConfiguration c) {
  if (!c.reference || c.reference->theta.empty() || c.theta_opt.empty()) return Figures::none;
  const Potential<float> potential = c.potential.make();
  Population<float> points(20'000, potential.dimension());
  MixtureSampler(*potential.law(c.reference->theta), Noise(c.seed)).draw(points, 0);
  c.reference.reset();  // nothing of it is needed, and its figures are costly
  return Measures(c, nullptr).log_likelihood(points);
}

}  // namespace

void add_langevin_curves(report::Page& page, const std::vector<Group>& groups, const LangevinConfiguration& c,
                         Axis axis) {
  const bool alone = groups.size() == 1;
  // -KL is the reward of an energy-based model: one picture of it is enough.
  const std::span<const CurveSpec> drawn = std::span(curves).subspan(c.reward ? 0 : 1);
  add_curves(page, groups, axis, drawn, [&](const CurveSpec& spec, report::LineChart& chart, std::string& caption) {
    if (chart.series.size() > 1 && alone)
      caption += fmt::format(" The two curves agree where the samples follow {}.", the_law);
    if (spec.column != "log_likelihood") return;
    for (const double t : c.thresholds) chart.reference_lines.push_back({t, minus(toml_number(t))});
    if (!c.thresholds.empty()) caption += " Dotted lines are its thresholds.";
    if (const double level = reference_log_likelihood(c); alone && std::isfinite(level))
      chart.reference_lines.push_back({level, "reference"});
  });
}

}  // namespace program
