#include "denoising_mixture/model_spec.hpp"

#include "experiment/limits.hpp"
#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;

const EnumNames<Spread> spreads{
    {"isotropic", Spread::isotropic}, {"diagonal", Spread::diagonal}, {"cholesky", Spread::cholesky}};

}  // namespace

void MixtureModelSpec::read(TableReader& t) {
  const std::vector<double> weights = t.numbers("weights", {});
  const Matrix means = t.matrix("means");
  std::vector<Matrix> covariances;
  if (t.contains("covariances") && t.contains("deviations")) t.fail("deviations", "the covariances are given already");
  const char* spread_key = t.contains("covariances") ? "covariances" : "deviations";
  if (t.contains("covariances")) {
    covariances = t.matrices("covariances");
  } else {
    (void)t.has("covariances");
    const std::vector<double> deviations = t.numbers("deviations", std::vector<double>(means.size(), 1.0));
    for (const double s : deviations) {
      if (!(s >= 1e-3 && s <= 1e3)) t.fail("deviations", fmt::format("{} must be between 0.001 and 1000", s));
      const std::size_t n = means.empty() ? 0 : means.front().size();
      Matrix m(n, std::vector<double>(n, 0.0));
      for (std::size_t j = 0; j < n; ++j) m[j][j] = s * s;
      covariances.push_back(std::move(m));
    }
  }
  spread = t.choice("spread", t.contains("covariances") ? Spread::cholesky : Spread::isotropic, spreads);
  using Model = MixtureScore<Spread::cholesky>;  // the limits are those of all forms
  if (means.empty() || means.size() > Model::most_components)
    t.fail("means", fmt::format("{} components, there can be 1 to {}", means.size(), Model::most_components));
  const std::size_t n = means.size(), dimension = means.front().size();
  if (dimension == 0 || dimension > Model::largest_dimension)
    t.fail("means", fmt::format("{} coordinates, there can be 1 to {}", dimension, Model::largest_dimension));
  if (weights.size() != n) t.fail("weights", fmt::format("{} given, there are {} means", weights.size(), n));
  if (covariances.size() != n) t.fail(spread_key, fmt::format("{} given, there are {} means", covariances.size(), n));
  double sum = 0;
  for (const double w : weights) {
    if (!(w > 0)) t.fail("weights", fmt::format("{} must be positive", w));
    if (!(w >= 1e-12 && w <= 1e12)) t.fail("weights", fmt::format("{} must be between 1e-12 and 1e12", w));
    sum += w;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if (means[i].size() != dimension)
      t.fail("means", fmt::format("mean {} has {} coordinates, the first has {}", i + 1, means[i].size(), dimension));
    for (const double x : means[i])
      if (std::abs(x) > 1e4) t.fail("means", fmt::format("{} is too far from the origin", x));
    Gaussian g{means[i], {}};
    bool square = covariances[i].size() == dimension;
    for (const auto& row : covariances[i]) {
      square = square && row.size() == dimension;
      g.covariance.insert(g.covariance.end(), row.begin(), row.end());
    }
    if (!square) t.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, dimension, dimension));
    for (std::size_t a = 0; a < dimension; ++a)
      if (const double v = g.covariance[a * dimension + a]; !(v <= 1e6 && (v <= 0 || v >= 1e-6)))
        t.fail(spread_key, fmt::format("matrix {} has a variance of {}, it must be between 1e-6 and 1e6", i + 1, v));
    if (const auto what = find_asymmetry(g.covariance, dimension))
      t.fail("covariances", fmt::format("matrix {} is not symmetric: {}", i + 1, *what));
    law.weights.push_back(weights[i] / sum);
    law.components.push_back(std::move(g));
  }
  const auto find_misfit = [](const auto& model, const GaussianMixture& given) -> std::optional<std::string> {
    try {
      (void)model.parameters_of(given);
    } catch (const Error& e) {
      return e.reason();
    }
    return std::nullopt;
  };
  if (const auto why = find_misfit(make(), law)) t.fail(spread_key, *why);
  for (std::size_t i = 0; i < n; ++i) {  // in every direction, not along the axes alone
    GaussianMixture less{{1.0}, {law.components[i]}};
    for (std::size_t a = 0; a < dimension; ++a) less.components[0].covariance[a * (dimension + 1)] -= 0.999e-6;
    if (find_misfit(Model(1, dimension), less))
      t.fail(spread_key, fmt::format("matrix {} has a direction with a variance below 1e-6", i + 1));
  }
}

}  // namespace program
