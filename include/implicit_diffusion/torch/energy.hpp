// Networks as energies: V(x, theta), a number for each sample, whose law is proportional to exp(-V)
// (langevin/energy.hpp has the contract).
//
// A step is one evaluation and a product by x; a gradient one evaluation and a product by all weights; both together
// share the evaluation.
//
//     LangevinProblem<NetworkEnergy> problem = LangevinProblem<NetworkEnergy>(NetworkEnergy(network)).fit(data);
#pragma once

#include "implicit_diffusion/langevin/energy.hpp"
#include "implicit_diffusion/torch/network.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstddef>
#include <optional>

namespace implicit_diffusion {

class NetworkEnergy : public TensorTiles {
 public:
  // The network returns a number for each sample, of shape (n) or (n, 1), and has no time.
  explicit NetworkEnergy(Network network, std::size_t shard = default_shard,
                         at::ScalarType type = at::ScalarType::Float);

  Samples samples(std::size_t n, Processes* processes = nullptr) const {
    return {n, network_.sample, type_, shard_, processes};
  }
  std::size_t dimension() const { return static_cast<std::size_t>(elements_of(network_.sample)); }
  bool fits(const Theta& theta) const { return static_cast<std::int64_t>(theta.size()) == parameters_; }
  bool fits(const Samples& x) const { return x.sample_shape() == network_.sample; }
  static std::optional<std::size_t> find_inadmissible(const Theta&) { return std::nullopt; }
  const Network& network() const { return network_; }

  void prepare(const Theta& theta) { weights_.set(network_.layout, theta); }
  void add_values(const Tile& x, double c, double* f) const;
  void add(const Tile& x, const double* w, Sum& sum) const;
  void step(const Tile& x, const LangevinStep& step, bool& nonfinite) const;
  void step_and_add(const Tile& x, const LangevinStep& step, bool& nonfinite, const double* w, Sum& sum) const;
  // For the baseline that differentiates the last step (langevin/baselines.hpp): the graph is differentiated twice.
  static bool has_mixed_derivative() { return true; }
  void add_mixed_derivative(const Tile& x, const Tile& u, Sum& sum) const;

 private:
  // V at x, which may need a gradient.
  at::Tensor values(const at::Tensor& x, const at::Tensor& labels, bool leaves) const;
  at::Tensor weights_as_tensor(const double* w, const Tile& x) const;
  void move(const Tile& x, const at::Tensor& slope, const LangevinStep& step, bool& nonfinite) const;

  Network network_;
  std::size_t shard_;
  at::ScalarType type_;
  std::int64_t parameters_;
  NetworkWeights weights_;
};

}  // namespace implicit_diffusion
