#include "denoising_mixture/results.hpp"

#include "experiment/check_rows.hpp"
#include "experiment/warnings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

Json means_of(const GaussianMixture& law) {
  Json means = Json::array();
  for (const Gaussian& g : law.components) means.push_back(g.mean);
  return means;
}

Json json_of(const DenoisingRow& r) {
  const DenoisingConfiguration& c = *r.configuration;
  Json row{{"loop", to_string(c.loop)},
           {"dynamics", to_string(c.dynamics)},
           {"slots", c.slots},
           {"weights", r.law.weights},
           {"means", means_of(r.law)},
           {"reward", json_number(r.figures.reward)},
           {"path_kl", json_number(r.path_kl)},
           {"model_evaluations", r.cost.evaluations},
           {"products", r.cost.products},
           {"frozen_evaluations", r.cost.frozen_evaluations},
           {"frozen_products", r.cost.frozen_products},
           {"last_step",
            {{"model_evaluations", r.step_cost.evaluations},
             {"products", r.step_cost.products},
             {"frozen_evaluations", r.step_cost.frozen_evaluations},
             {"frozen_products", r.step_cost.frozen_products}}},
           {"seconds", r.seconds},
           {"memory_bytes", r.memory_bytes},
           {"steps_per_sample", c.steps_per_sample},
           {"steps", r.steps},
           {"status", r.status}};
  if (c.network) {  // of a mixture they follow from its weights and means
    row["weights_off"] = json_number(r.off.weights);
    row["means_off"] = json_number(r.off.means);
  }
  return row;
}

Json list_of(const DenoisingCost& c) { return {c.evaluations, c.products, c.frozen_evaluations, c.frozen_products}; }
DenoisingCost cost_of(const Json& j) { return {j[0], j[1], j[2], j[3]}; }
double number_of(const Json& j) { return j.is_number() ? j.get<double>() : Figures::none; }

}  // namespace

std::string pack(const DenoisingRow& r) {
  Json warnings = Json::array();
  for (const Warning& w : r.warnings) warnings.push_back({w.kind, w.message});
  return Json{{"status", r.status},
              {"steps", r.steps},
              {"theta", r.theta},
              {"weights", r.law.weights},
              {"means", means_of(r.law)},
              {"off", {json_number(r.off.weights), json_number(r.off.means)}},
              {"figures",
               {json_number(r.figures.reward), json_number(r.figures.exact_reward), json_number(r.figures.exact_kl)}},
              {"path_kl", json_number(r.path_kl)},
              {"seconds", r.seconds},
              {"cost", list_of(r.cost)},
              {"step_cost", list_of(r.step_cost)},
              {"memory_bytes", r.memory_bytes},
              {"warnings", std::move(warnings)}}
      .dump();
}

DenoisingRow unpack_row(const DenoisingConfiguration& c, const std::string& message) {
  const Json j = Json::parse(message);
  DenoisingRow r{.configuration = &c,
                 .status = j["status"].get<std::string>(),
                 .steps = j["steps"],
                 .law = c.network ? c.base : c.model().law(j["theta"].get<std::vector<double>>()),
                 .off = {number_of(j["off"][0]), number_of(j["off"][1])},
                 .theta = j["theta"].get<std::vector<double>>(),
                 .figures = {.reward = number_of(j["figures"][0]),
                             .exact_reward = number_of(j["figures"][1]),
                             .exact_kl = number_of(j["figures"][2])},
                 .path_kl = number_of(j["path_kl"]),
                 .seconds = j["seconds"],
                 .cost = cost_of(j["cost"]),
                 .step_cost = cost_of(j["step_cost"]),
                 .memory_bytes = j["memory_bytes"]};
  r.law.weights = j["weights"].get<std::vector<double>>();
  for (std::size_t i = 0; i < r.law.weights.size(); ++i)
    r.law.components[i].mean = j["means"][i].get<std::vector<double>>();
  for (const Json& w : j["warnings"]) r.warnings.push_back({w[0].get<std::string>(), w[1].get<std::string>()});
  return r;
}

LawDistance distance(const GaussianMixture& a, const GaussianMixture& b) {
  LawDistance d;
  for (std::size_t i = 0; i < a.weights.size(); ++i) {
    d.weights = std::max(d.weights, std::abs(a.weights[i] - b.weights[i]));
    for (std::size_t j = 0; j < a.dimension(); ++j)
      d.means = std::max(d.means, std::abs(a.components[i].mean[j] - b.components[i].mean[j]));
  }
  return d;
}

GaussianMixture counted_tilted(const DenoisingConfiguration& c) {
  constexpr std::size_t many = 1'000'000;
  const GaussianMixture tilted = c.tilted();
  Population<float> exact(many, c.base.dimension());
  MixtureSampler(tilted, Noise(problem_seed(c.seed, "exact"))).draw(exact, 0);
  return counted(tilted, exact);
}

Summary summary_of(const DenoisingConfiguration& c, const DenoisingRows& rows, std::size_t threads) {
  Summary s = summary_of(static_cast<const Common&>(c), threads);
  const GaussianMixture tilted = c.tilted();
  s.more = {{"steps_per_sample", c.steps_per_sample},
            {"tilted_weights", tilted.weights},
            {"tilted_means", means_of(tilted)},
            {"results", Json::array()}};
  std::vector<NamedWarnings> warnings;
  for (const auto& r : rows) {
    if (!r) continue;
    if (s.more["results"].empty()) {
      s.method = to_string(r->configuration->loop);
      s.steps = r->steps;
      s.status = r->status;
      s.theta = r->theta;
      s.figures = r->figures;
      s.gradient_evaluations = static_cast<std::int64_t>(r->cost.evaluations);
      s.seconds = r->seconds;
    }
    s.more["results"].push_back(json_of(*r));
    const DenoisingConfiguration& of = *r->configuration;
    warnings.push_back(
        {fmt::format("{} {} with {} slots", to_string(of.loop), to_string(of.dynamics), of.slots), r->warnings});
  }
  s.warnings = warnings_over(warnings);
  return s;
}

std::string closing_table(const DenoisingConfiguration& single, std::span<const DenoisingComparison::Setting> settings,
                          const DenoisingRows& rows, const std::string& status, double seconds) {
  std::string text = fmt::format("{} (seed {}): {} in {:.1f} s\n", single.experiment, single.seed, status, seconds);
  text += fmt::format("  {:<13}{:<5}{:>6}{:>6}{:>9}{:>10}{:>10}{:>13}{:>11}{:>9}{:>8}\n", "loop", "", "slots", "T",
                      "reward", "path KL", "KL", "weights off", "means off", "seconds", "MB");
  // Calls of the model and of the frozen one, for a batch each.
  std::string costs =
      fmt::format("  {:<24}{:>23}{:>18}{:>23}{:>19}\n  {:<24}{:>13}{:>10}{:>8}{:>10}{:>13}{:>10}{:>9}{:>10}\n",
                  "calls, each for a batch", "last step: model", "frozen model", "all steps: model", "frozen model", "",
                  "scores", "products", "scores", "products", "scores", "products", "scores", "products");
  const double best = single.mean_reward(single.tilted());
  bool alike = true;  // one optimum for all
  std::string left;   // over by an interrupt
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const auto& [name, c] = settings[k];
    alike = alike && c.mean_reward(c.tilted()) == best;
    if (!rows[k]) continue;
    const DenoisingRow& r = *rows[k];
    const DenoisingCost &s = r.step_cost, &all = r.cost;
    const std::string setting = fmt::format("  {:<13}{:<5}{:>6}", to_string(c.loop), to_string(c.dynamics), c.slots);
    text += setting + fmt::format("{:>6}{:>9}{:>10}{:>10}{:>13}{:>11}{:>9.2f}{:>8.1f}\n", c.steps_per_sample,
                                  figure_text(r.figures.reward, 4), figure_text(r.path_kl, 4),
                                  figure_text(r.figures.exact_kl, 4), figure_text(r.off.weights, 4),
                                  figure_text(r.off.means, 4), r.seconds, static_cast<double>(r.memory_bytes) / 1e6);
    costs += setting + fmt::format("{:>13}{:>10}{:>8}{:>10}{:>13}{:>10}{:>9}{:>10}\n", s.evaluations, s.products,
                                   s.frozen_evaluations, s.frozen_products, all.evaluations, all.products,
                                   all.frozen_evaluations, all.frozen_products);
    if (r.status == "interrupted") left += fmt::format("  {} made {} of {} steps\n", name, r.steps, c.steps);
  }
  if (alike) text += fmt::format("  {:<30}{:>9.4f}\n", "the tilted law", best);
  if (const auto waiting = std::count(rows.begin(), rows.end(), std::nullopt); waiting > 0)
    left += fmt::format("  {} of {} runs had not started\n", waiting, rows.size());
  return text + costs + left + (left.empty() ? "" : "  continue with --resume\n");
}

double training_work(const DenoisingConfiguration& c) {
  if (!c.network) return 0;
  // A gradient of the loss is three evaluations for each sample of a batch; a step of finetuning takes each sample
  // there and back, at five evaluations a step with those of the frozen network.
  const TrainingKeys& t = c.network->training;
  return static_cast<double>(t.steps) * 3 * static_cast<double>(t.batch) /
         (5 * static_cast<double>(c.batch) * static_cast<double>(c.steps_per_sample));
}

std::string describe_divergence(const DenoisingRow& row) {
  const DenoisingConfiguration& c = *row.configuration;
  if (!row.trained)
    return fmt::format("the training of the network diverged; a training.learning_rate smaller than {} may help",
                       c.network->training.learning_rate);
  return fmt::format("a run diverged after {} steps: a sample, the gradient or theta was no longer finite; {}",
                     row.steps,
                     row.steps == 0 ? fmt::format("lambda = {} or the reward may be too large", c.lambda)
                                    : fmt::format("a learning_rate smaller than {} may help", c.learning_rate));
}

}  // namespace program
