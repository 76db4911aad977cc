// The kind `denoising-gaussian`: the denoising diffusion that can be solved (denoising/gaussian_theory.hpp). theta after twice the horizon, by
// the delay equation, by the recursion of the means and by a queue of samples, as the horizon grows and for eta in the three regimes.
#include "experiment/experiment.hpp"
#include "denoising_gaussian/check.hpp"
#include "denoising_gaussian/report.hpp"
#include "denoising_gaussian/run.hpp"

namespace program {
namespace {

class DenoisingGaussianExperiment final : public Experiment {
 public:
  explicit DenoisingGaussianExperiment(DenoisingGaussianConfiguration c) : c_(std::move(c)) {}

  const Common& common() const override { return c_; }
  int run(const RunOptions& o) const override {
    return run_denoising_gaussian(c_, o, [this](const std::filesystem::path& folder) { return report(folder); });
  }
  std::string report(const std::filesystem::path& folder) const override {
    return denoising_gaussian_report(c_, folder);
  }
  std::vector<Problem> checks() const override {
    return {{c_.experiment, [c = c_] { return check_denoising_gaussian(c); }}};
  }
  std::vector<Problem> standard_checks() const override {
    std::vector<Problem> all = checks();
    all.insert(all.begin(), {"reverse chains", check_chains});
    return all;
  }
  // It repeats each of its loops already.
  Repeats repeats() const override { return {.key = "repeats", .refusal = {}}; }

 private:
  DenoisingGaussianConfiguration c_;
};

}  // namespace

std::unique_ptr<Experiment> read_denoising_gaussian(const Document& d) {
  return std::make_unique<DenoisingGaussianExperiment>(read_denoising_gaussian_configuration(d));
}

}  // namespace program
