// Experiment files of every kind.
#include "denoising_gaussian/experiment.hpp"
#include "denoising_mixture/experiment.hpp"
#include "experiment/document.hpp"
#include "experiment/registry.hpp"
#include "finite_state/experiment.hpp"
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "langevin/comparison/experiment.hpp"
#include "rates/experiment.hpp"

namespace {

std::string resolve(std::string_view text) {
  const program::Document d = program::read_document(text, "input", "input", ".", {});
  const auto kind = d.table["kind"].value_or<std::string>("langevin");
  if (kind == "langevin-comparison") return program::read_langevin_comparison_configuration(d).resolved.text();
  if (kind == "finite-state") return program::read_finite_state_configuration(d).resolved.text();
  if (kind == "rates") return program::read_rates_configuration(d).resolved.text();
  if (kind == "denoising-gaussian") return program::read_denoising_gaussian_configuration(d).resolved.text();
  if (kind == "denoising-mixture") return program::read_denoising_configuration(d).resolved.text();
  return program::read_langevin_configuration(d).resolved.text();
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (const auto& [name, text] : program::built_in_experiments()) {
    all.push_back(text);
    all.push_back(resolve(text));
  }
  return all;
}

// Accepted or refused, without a crash; and the resolved configuration is its own.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string resolved;
  try {
    resolved = resolve(fuzz::text(data, size));
  } catch (const implicit_diffusion::Error&) {
    return 0;
  }
  fuzz::require(resolve(resolved) == resolved, "the resolved configuration resolves to itself");
  return 0;
}
