// Mixtures of Gaussians with all their figures: what pi*(theta) is, exactly, for most built-in potentials.
//
// Everything here is double precision and for tests, metrics, reference samples and pictures, not for the inside of a
// loop.
#pragma once

#include "implicit_diffusion/langevin/constants.hpp"
#include "implicit_diffusion/population.hpp"
#include "implicit_diffusion/random/noise.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct Gaussian {
  std::vector<double> mean;        // d
  std::vector<double> covariance;  // d x d, row by row
};

struct GaussianMixture {
  std::vector<double> weights;  // sum to 1
  std::vector<Gaussian> components;

  std::size_t dimension() const { return components.empty() ? 0 : components.front().mean.size(); }
};

// log of the normalised density. Built once for a mixture, then called at many points.
class MixtureLogDensity {
 public:
  explicit MixtureLogDensity(const GaussianMixture& mixture);
  double operator()(std::span<const double> x) const;

 private:
  struct Component {
    std::vector<double> mean, inverse_factor;  // L^-1 of covariance = L L', lower triangle in a d x d array
    double offset;                             // log weight - log det L - d/2 log 2 pi
  };
  std::size_t dimension_;
  std::vector<Component> components_;
};

// Samples counted to the component of a mixture that most likely made each of them: the same mixture with their shares
// as its weights and their means as its means. A component without samples keeps its mean. To compare two sets of
// samples by it leaves out what the rule itself does: exact samples of a mixture have other shares than its weights.
GaussianMixture counted(const GaussianMixture& mixture, const Population<float>& samples);

// A mixture as its sampler takes it along: the upper bounds of the components in the unit interval, and for each
// component its mean and the lower triangle, row by row, of the Cholesky factor of its covariance.
struct MixtureTable {
  std::size_t size = 0, dimension = 0;
  Constants bounds, components;

  std::size_t numbers_per_component() const { return dimension + dimension * (dimension + 1) / 2; }
};

// Independent exact samples, a pure function of the seed and the round. The component is chosen by 24 random bits.
class MixtureSampler {
 public:
  MixtureSampler(const GaussianMixture& mixture, Noise noise);

  void draw(Population<float>& x, std::int64_t round) const;
  void draw(Population<double>& x, std::int64_t round) const;  // the same samples

 private:
  MixtureTable table_;
  Noise noise_;
};

// What an adaptive quadrature may cost, and how exact it is to be.
struct DivergenceEffort {
  double tolerance = 1e-5;        // of the divergence
  double most_evaluations = 1e7;  // of a component's density, about 20 ns each
};

// KL(reference || model) by quadrature. Where no component is narrower than half another one of the reference, it is
// Gauss-Hermite with `nodes` per axis and component of the reference: for wells of comparable widths, four of them
// apart, 24 nodes are exact to 4e-5, 48 to 3e-7 and 64 to 3e-8; the cost grows as nodes^d, so it is offered for d <= 3
// only. A narrow component would fall between the nodes; then, and where a coarser rule beside the first differs by
// more than 0.001, the quadrature is adaptive, with cells as small as the components of either law.
class MixtureDivergence {
 public:
  static constexpr std::size_t largest_dimension = 3;

  explicit MixtureDivergence(GaussianMixture reference, std::size_t nodes = 24, DivergenceEffort effort = {});
  // Nothing where the adaptive quadrature's own estimate of its error is above 100 tolerances, and above 1000
  // tolerances of the divergence: with the default effort 0.001 and one percent.
  std::optional<double> operator()(const GaussianMixture& model) const;

 private:
  struct Rule {
    std::vector<double> nodes, weights, log_reference;
  };
  Rule make_rule(std::size_t nodes) const;
  double integrate(const Rule& rule, const MixtureLogDensity& model) const;

  GaussianMixture reference_;
  DivergenceEffort effort_;
  Rule rule_, coarse_;
};

// Nodes and weights with sum_i w_i f(x_i) = E f(X), X ~ N(0, 1), exact for polynomials of degree 2n - 1.
struct Quadrature {
  std::vector<double> nodes, weights;
};
Quadrature gauss_hermite(std::size_t n);
// The same for the integral of f from -1 to 1.
Quadrature gauss_legendre(std::size_t n);

}  // namespace implicit_diffusion
