// The kind `denoising-mixture`: a mixture with its exact score is finetuned to a linear reward with the path KL as the price. The optimum is known:
// the law p_base exp(lambda R / beta), again a mixture. All loops of finite horizon can be compared.
#include "experiment/experiment.hpp"
#include "denoising_mixture/check.hpp"
#include "denoising_mixture/report.hpp"
#include "denoising_mixture/run.hpp"
#include "figures/run_tables.hpp"

namespace program {
namespace {

class DenoisingMixtureExperiment final : public Experiment {
 public:
  explicit DenoisingMixtureExperiment(DenoisingComparison e) : e_(std::move(e)) {}

  const Common& common() const override { return e_; }
  int run(const RunOptions& o) const override {
    const auto make_report = [this](const std::filesystem::path& folder) { return report(folder); };
    return e_.settings.empty() ? run_or_repeat(e_.single, o, run_denoising, make_report)
                               : run_denoising_settings(e_, o, make_report);
  }
  std::string report(const std::filesystem::path& folder) const override {
    return repeats_of(folder).empty() ? denoising_report(e_, folder) : repeats_report(e_, folder);
  }
  std::vector<Problem> checks() const override {
    return {{e_.experiment, [c = e_.single] { return check_denoising_mixture(c); }}};
  }
  Repeats repeats() const override {
    if (e_.settings.empty()) return {};
    return {.key = {},
            .refusal =
                "each setting of a comparison is run once; with --set comparison.settings=[] there is one run to "
                "repeat"};
  }

 private:
  DenoisingComparison e_;
};

}  // namespace

std::unique_ptr<Experiment> read_denoising_mixture(const Document& d) {
  return std::make_unique<DenoisingMixtureExperiment>(read_denoising_configuration(d));
}

}  // namespace program
