#include "denoising_gaussian/results.hpp"

#include "experiment/table_reader.hpp"

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<DecayRegime> regimes{{"exponential", DecayRegime::exponential},
                                     {"critical", DecayRegime::critical},
                                     {"oscillating", DecayRegime::oscillating}};

}  // namespace

double fitted_rate(const DenoisingGaussianConfiguration& c, double eta) {
  return fit_decay(c.model(eta, 1), decay_horizons()).rate;
}

Json json_of(const DenoisingGaussianConfiguration& c, const GaussianResults& r) {
  Json results = Json::array(), rates = Json::array(), paths = Json::array();
  for (const GaussianRow& row : r.rows)
    results.push_back({{"horizon", row.horizon},
                       {"eta", row.eta},
                       {"theta", row.theta},
                       {"standard_error", row.standard_error},
                       {"expected_error", row.expected_error},
                       {"mean_field", row.mean_field},
                       {"delay_equation", row.delay_equation},
                       {"target", c.target}});
  for (const double eta : c.etas)
    rates.push_back({{"eta", eta},
                     {"regime", name_of(decay_regime(eta), regimes)},
                     {"fitted", fitted_rate(c, eta)},
                     {"theory", decay_rate(eta)}});
  for (const GaussianPath& p : r.paths)
    paths.push_back(
        {{"horizon", c.path_horizon}, {"eta", p.eta}, {"theta", p.theta}, {"standard_error", p.standard_error}});
  return {{"results", std::move(results)}, {"decay_rates", std::move(rates)}, {"paths", std::move(paths)}};
}

GaussianResults read_results(const std::filesystem::path& file) {
  const SummaryFile summary(file);
  const auto number = [&](const Json& row, const char* key) { return summary.number(row, key); };
  GaussianResults r;
  for (const Json& row : summary.rows("results"))
    r.rows.push_back({number(row, "horizon"), number(row, "eta"), number(row, "theta"), number(row, "standard_error"),
                      number(row, "expected_error"), number(row, "mean_field"), number(row, "delay_equation")});
  for (const Json& row : summary.rows("paths"))
    r.paths.push_back({number(row, "eta"), summary.numbers(row, "theta"), summary.numbers(row, "standard_error")});
  return r;
}

}  // namespace program
