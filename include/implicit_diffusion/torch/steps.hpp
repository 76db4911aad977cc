// Networks as score models: reverse steps of a denoising diffusion, and their adjoint (denoising/steps.hpp has the
// contract).
//
// A network predicts the noise eps, the velocity v or the score itself from y and a time t, which is tau unless `time`
// says otherwise. With a = e^-tau, s^2 = 1 - e^-2tau the score is
//
//     -eps / s          -(a / s) v - y          as it is
//
// A step back is one evaluation with its graph and one vector-Jacobian product, by y and all weights at once; with a
// path KL one more evaluation of the frozen network and one product by y alone. The frozen network is the same function
// at other weights, but may have learnt another prediction. Nothing is kept from step to step: the
// memory of a gradient is that of one step, beside the path.
//
//     const DenoisingProblem<NetworkSteps> problem(NetworkSteps(network), reward);
//     const auto result = optimise(problem.stay_close(theta, 0.1), theta, BasicAdam<TensorParameters>(1e-4), {});
#pragma once

#include "implicit_diffusion/denoising/steps.hpp"
#include "implicit_diffusion/torch/network.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstddef>
#include <functional>
#include <optional>

namespace implicit_diffusion {

enum class Prediction { epsilon, v, score };

// What the numbers of a network mean.
struct NetworkMeaning {
  Prediction prediction = Prediction::epsilon;
  std::function<double(double tau)> time = {};  // what the network is told at noise level tau; none: tau
};

struct NetworkStepsOptions {
  Prediction prediction = Prediction::epsilon;
  std::function<double(double tau)> time = {};  // what the network is told at noise level tau; none: tau
  // Of the frozen network, where its numbers mean something else: both become scores first.
  std::optional<NetworkMeaning> frozen = {};
  Noise noise{};
  Workers* workers = nullptr;                   // null: the calling thread alone
  std::size_t shard = default_shard;            // samples that are evaluated together
  at::ScalarType type = at::ScalarType::Float;  // of samples
  // Where it is positive, samples without labels are given some: uniform below it, a pure function of (noise, birth of
  // the batch, sample). (Stream::component, round = birth.)
  std::int64_t classes = 0;
};

class NetworkSteps : public TensorTiles {
 public:
  using Model = NetworkWeights;

  explicit NetworkSteps(Network network, NetworkStepsOptions options = {});

  // The same with other noise and workers.
  NetworkSteps with(const Noise& noise, Workers* workers) const {
    NetworkSteps other = *this;
    other.options_.noise = noise;
    other.options_.workers = workers;
    return other;
  }
  // n samples at the origin, all here or spread over processes.
  Samples samples(std::size_t n, Processes* processes = nullptr) const {
    return {n, network_.sample, options_.type, options_.shard, processes};
  }
  std::size_t dimension() const { return static_cast<std::size_t>(elements_of(network_.sample)); }

  static Model model() { return {}; }
  bool prepare(Model& model, const Theta& theta, const TimeGrid&, std::size_t, std::size_t) const {
    return model.set(network_.layout, theta);
  }
  void forward(const Model& model, const Model* frozen, const ReverseStep& step, const Tile& from, const Tile& to,
               double* u) const;
  void backward(const Model& model, const Model* frozen, const ReverseStep& step, double beta, const Tile& at,
                const Tile& a, Sum& sum) const;

  bool fits(const Theta& theta) const { return static_cast<std::int64_t>(theta.size()) == parameters_; }
  bool fits(const Samples& x) const { return x.sample_shape() == network_.sample; }
  static bool fits(const Model&) { return true; }  // it has no network of its own
  static std::optional<std::size_t> find_inadmissible(const Theta&) { return std::nullopt; }
  Workers* workers() const { return options_.workers; }
  const Network& network() const { return network_; }
  const NetworkStepsOptions& options() const { return options_; }

 private:
  // score = factor out + share y
  struct Conversion {
    double factor, share;
  };
  static Conversion conversion(Prediction prediction, double tau);
  Conversion conversion_of_frozen(double tau) const;
  // What the network is given for a tile, filled up to a whole shard; and the frozen one, for the same tile.
  NetworkInput input(const Tile& y, const ReverseStep& step) const;
  NetworkInput input_of_frozen(NetworkInput in, const ReverseStep& step) const;
  at::Tensor predict(const std::vector<at::Tensor>& weights, const NetworkInput& in) const;

  Network network_;
  NetworkStepsOptions options_;
  std::int64_t parameters_;
};

}  // namespace implicit_diffusion
