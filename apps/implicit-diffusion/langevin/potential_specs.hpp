// The built-in potentials as files have them: their keys, the ways to give their parameters, and what reports and
// checks need to know of these.
#pragma once

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/langevin/double_well.hpp"
#include "implicit_diffusion/langevin/mixture.hpp"
#include "implicit_diffusion/langevin/potential.hpp"
#include "implicit_diffusion/langevin/quadratic.hpp"
#include "implicit_diffusion/langevin/wells.hpp"

#include <fmt/format.h>

#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace program {

// What theta is of the law, for reports.
struct ThetaDescription {
  bool by_well;      // a parameter for each well, whose centre and width stay
  bool covariances;  // they depend on theta
};

// A stretch of theta and what it means, for people.
struct ThetaPart {
  std::string name;
  std::size_t count;
};

// Of each coordinate of a Gaussian, the deviation where the others are fixed: 1 / sqrt(Q_kk), Q the inverse covariance.
std::vector<double> conditional_deviations(const implicit_diffusion::Gaussian& g);

struct QuadraticSpec {
  static constexpr const char* name = "quadratic";
  static constexpr ThetaDescription describe{.by_well = false, .covariances = false};
  Matrix precision;

  void read(TableReader& t);
  implicit_diffusion::Quadratic make() const { return implicit_diffusion::Quadratic(precision); }
  std::vector<ThetaPart> theta_parts() const { return {{"mean", precision.size()}}; }
  double scale(std::span<const double>, std::size_t) const { return std::numeric_limits<double>::infinity(); }
};

struct WellsSpec {
  static constexpr const char* name = "wells";
  static constexpr ThetaDescription describe{.by_well = true, .covariances = false};
  Matrix centres;
  double width = 2.0;  // q

  void read(TableReader& t);
  implicit_diffusion::SoftmaxWells make() const { return {centres, width}; }
  std::vector<ThetaPart> theta_parts() const {
    return {{fmt::format("wells 1 to {}", centres.size()), centres.size()}};
  }
  double scale(std::span<const double>, std::size_t) const { return 1; }
};

struct LogisticWellsSpec : WellsSpec {
  static constexpr const char* name = "logistic-wells";
  double floor = 0.1;  // the smallest weight

  LogisticWellsSpec() { width = 1.0; }
  void read(TableReader& t);
  implicit_diffusion::LogisticWells make() const { return {centres, width, floor}; }
};

struct MixtureSpec {
  static constexpr const char* name = "mixture";
  static constexpr ThetaDescription describe{.by_well = false, .covariances = true};
  std::size_t components = 2, dimension = 2;
  implicit_diffusion::CovarianceForm covariance{};
  double kappa = 0.5;

  void read(TableReader& t);
  implicit_diffusion::Mixture make() const { return {components, dimension, {covariance, kappa}}; }
  std::vector<ThetaPart> theta_parts() const;
  double scale(std::span<const double> theta, std::size_t j) const;
  // Its parameters may also be given as logits, means and covariances; empty where they are not.
  std::vector<double> read_law(TableReader& t) const;
  // What is wrong with parameters that are given as numbers.
  std::optional<std::string> find_mistake(std::span<const double> theta) const;
};

struct DoubleWellSpec {
  static constexpr const char* name = "double-well";
  static constexpr ThetaDescription describe{.by_well = false, .covariances = false};
  std::size_t dimension = 2;
  double half_distance = 1.0, variance = 1.0;  // a, s

  void read(TableReader& t);
  implicit_diffusion::DoubleWell make() const { return {dimension, half_distance, variance}; }
  std::vector<ThetaPart> theta_parts() const { return {{"height of the barrier", 1}}; }
  double scale(std::span<const double> theta, std::size_t) const { return theta[0]; }
};

// The list of them. The default is wells.
struct PotentialSpec {
  std::variant<QuadraticSpec, WellsSpec, LogisticWellsSpec, MixtureSpec, DoubleWellSpec> part = WellsSpec();

  void read(TableReader& t);
  // Real is float, which runs use, or double, which they are checked with.
  template <class Real = float>
  implicit_diffusion::Potential<Real> make() const {
    return std::visit([](const auto& spec) -> implicit_diffusion::Potential<Real> { return spec.make(); }, part);
  }
  ThetaDescription describe() const {
    return std::visit([](const auto& spec) { return spec.describe; }, part);
  }
  std::vector<ThetaPart> theta_parts() const {
    return std::visit([](const auto& spec) { return spec.theta_parts(); }, part);
  }
  // By how much parameter j may move before V, as a function of it, is another: 1 for the logarithm of a weight or a
  // diagonal, the deviation of a component for its mean, however light the component is. Infinite where V is a square.
  double scale(std::span<const double> theta, std::size_t j) const {
    return std::visit([&](const auto& spec) { return spec.scale(theta, j); }, part);
  }
};

// The parameters of the potential, in whichever way they are given: theta itself, the file of another run, or what its
// law is made of. Empty where none is given. Throws a usage Error where the potential has no law there, or none that
// can be sampled.
std::vector<double> read_parameters(TableReader& t, const PotentialSpec& potential,
                                    const std::filesystem::path& folder);
// The same for parameters that are there.
void check_parameters(const TableReader& t, std::string_view key, const PotentialSpec& potential,
                      std::span<const double> theta);

}  // namespace program
