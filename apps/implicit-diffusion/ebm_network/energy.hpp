// The energy of a configuration, its objective, and its law by quadrature. For files that have LibTorch.
#pragma once

#include "ebm_network/experiment.hpp"
#include "implicit_diffusion/langevin/estimator.hpp"
#include "implicit_diffusion/langevin/plane_laws.hpp"
#include "implicit_diffusion/torch/mlp.hpp"
#include "implicit_diffusion/torch/points.hpp"

#include <memory>
#include <optional>
#include <utility>

namespace program {

inline implicit_diffusion::NetworkEnergy make_energy(const EbmConfiguration& c,
                                                     at::ScalarType type = at::ScalarType::Float) {
  return implicit_diffusion::NetworkEnergy(
      implicit_diffusion::make_mlp_energy({.inputs = 2, .widths = c.widths, .confinement = c.confinement}),
      static_cast<std::size_t>(c.shard), type);
}

// Where theta begins.
inline implicit_diffusion::TensorParameters first_theta(const EbmConfiguration& c,
                                                        const implicit_diffusion::NetworkEnergy& energy) {
  return implicit_diffusion::initial_parameters(energy.network().layout, implicit_diffusion::Noise(c.seed));
}

// KL(target || pi*(theta)).
inline implicit_diffusion::GradientEstimator<implicit_diffusion::NetworkEnergy>::Terms terms_of(
    std::unique_ptr<implicit_diffusion::Reference<implicit_diffusion::NetworkEnergy>> batches) {
  implicit_diffusion::GradientEstimator<implicit_diffusion::NetworkEnergy>::Terms terms;
  terms.push_back(
      std::make_unique<implicit_diffusion::ReferenceTerm<implicit_diffusion::NetworkEnergy>>(std::move(batches)));
  return terms;
}

// The law at theta: nothing where it is too wide for a quadrature. Processes share the work.
inline std::optional<implicit_diffusion::PlaneEnergy> integrate(implicit_diffusion::NetworkEnergy& energy,
                                                                const implicit_diffusion::TensorParameters& theta,
                                                                implicit_diffusion::Workers* workers,
                                                                implicit_diffusion::Processes* processes = nullptr) {
  energy.prepare(theta);
  return implicit_diffusion::integrate_energy(
      [&](std::span<const double> points) { return energies_at(energy, points, workers, processes); });
}

}  // namespace program
