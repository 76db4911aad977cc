#include "langevin/files.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/population_arrays.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

RunFiles read_run(const fs::path& folder, LangevinConfiguration configuration, std::uint64_t seed) {
  require_run(folder);
  configuration.set_seed(seed);
  RunFiles run{read_run_table(folder, {"step", "gradient_evaluations", "seconds", "reward"}), std::move(configuration)};
  const auto refuse = [&](const char* file, const std::string& what) {
    throw Error(ErrorKind::data, io::display(folder / file), what);
  };
  const io::Array theta = io::read_npy(folder / "theta.npy");
  const std::size_t p = run.configuration.start.theta.size(), rows = run.columns.front().size();
  if (theta.shape != std::vector{rows, p})
    refuse("theta.npy", fmt::format("not of shape ({}, {}), as metrics.csv and config.toml say", rows, p));
  const Potential<float> potential = run.configuration.potential.make();
  for (auto row = theta.values.begin(); row != theta.values.end(); row += static_cast<std::ptrdiff_t>(p)) {
    run.theta.emplace_back(row, row + static_cast<std::ptrdiff_t>(p));
    if (first_nonfinite(run.theta.back()) || potential.find_inadmissible(run.theta.back()))
      refuse("theta.npy", fmt::format("row {} is not a parameter of the potential", run.theta.size()));
  }
  std::error_code error;
  if (fs::exists(folder / "samples.npy", error))
    run.samples = read_population(folder / "samples.npy", potential.dimension());
  if (fs::exists(folder / "snapshots.npy", error)) {
    const io::Array a = io::read_npy(folder / "snapshots.npy");
    const auto& steps = run.configuration.snapshots;
    if (a.shape.size() != 3 || a.shape[0] > steps.size() || a.shape[2] != potential.dimension())
      refuse("snapshots.npy", "has another shape than config.toml says");
    const std::size_t each = a.shape[1] * a.shape[2];
    for (std::size_t k = 0; k < a.shape[0]; ++k)
      run.snapshots.emplace_back(
          steps[k], from_rows<float>(std::span<const double>(a.values).subspan(k * each, each), a.shape[2]));
  }
  return run;
}

}  // namespace program
