#include "langevin/potential_specs.hpp"

#include "experiment/limits.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/finite/implicit_function.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace program {
namespace {

using namespace implicit_diffusion;
using Sign = TableReader::Sign;

const EnumNames<CovarianceForm> covariance_forms{{"direct", CovarianceForm::direct},
                                                 {"cholesky", CovarianceForm::cholesky}};

void check_centres(const TableReader& t, const Matrix& centres, double width) {
  for (const std::vector<double>& c : centres) {
    check_coordinates(t, "centres", c);
    for (const double x : c)
      if (const auto what = describe_if_too_far(x, std::sqrt(width / 2))) t.fail("centres", *what);
  }
}

std::string wrong_number(std::size_t given, std::size_t parameters) {
  return fmt::format("{} numbers, the potential has {} parameters", given, parameters);
}

// The last row of a theta.npy.
std::vector<double> read_theta(const std::filesystem::path& path, std::size_t parameters) {
  const io::Array a = io::read_npy(path);
  const auto fail = [&](const std::string& what) { throw Error(ErrorKind::data, io::display(path), what); };
  if (a.shape.empty() || a.shape.size() > 2 || a.values.empty())
    fail("not an array of parameters, shape (rows, p) or (p,)");
  const std::size_t p = a.shape.back();
  std::vector<double> theta(a.values.end() - static_cast<std::ptrdiff_t>(p), a.values.end());
  for (std::size_t j = 0; j < p; ++j)
    if (!std::isfinite(theta[j])) fail(fmt::format("column {} of the last row is {}", j + 1, theta[j]));
  if (p != parameters) fail(wrong_number(p, parameters));
  return theta;
}

// What is wrong with a law for single precision, after the key of that part of it.
std::optional<std::pair<const char*, std::string>> find_misfit(const GaussianMixture& law) {
  constexpr double smallest = 1e-37, largest = 1e37;  // the inverse is needed too
  for (const Gaussian& g : law.components)
    for (std::size_t a = 0; a < g.mean.size(); ++a) {
      const double variance = g.covariance[a * g.mean.size() + a];
      if (!(variance >= smallest && variance <= largest))
        return {{"covariances", fmt::format("a variance of {:.6g} does not fit into single precision", variance)}};
      if (const auto what = describe_if_too_far(g.mean[a], std::sqrt(variance))) return {{"means", *what}};
    }
  return std::nullopt;
}

}  // namespace

void QuadraticSpec::read(TableReader& t) {
  precision = t.matrix("precision");
  for (std::size_t i = 0; i < precision.size(); ++i)
    for (std::size_t j = 0; j < precision[i].size(); ++j)
      if (const double v = precision[i][j];
          std::abs(v) > TableReader::largest || (i == j && v > 0 && !TableReader::fits(v)))
        t.fail("precision", fmt::format("{} does not fit into single precision", v));
}

void WellsSpec::read(TableReader& t) {
  centres = t.matrix("centres");
  width = t.number("width", width, Sign::positive);
  check_centres(t, centres, width);
}

void LogisticWellsSpec::read(TableReader& t) {
  centres = t.matrix("centres");
  width = t.number("width", width, Sign::positive);
  floor = t.number("floor", floor, Sign::positive);
  check_centres(t, centres, width);
}

void MixtureSpec::read(TableReader& t) {
  components = static_cast<std::size_t>(t.integer("components", 2, 1, 10000));
  dimension = static_cast<std::size_t>(t.integer("dimension", 2, 1, 32));
  covariance = t.choice("covariance", CovarianceForm::direct, covariance_forms);
  kappa = t.number("kappa", 0.5, Sign::positive);
}

std::vector<ThetaPart> MixtureSpec::theta_parts() const {
  std::vector<ThetaPart> parts{{"weights, as logits", components}};
  for (std::size_t i = 0; i < components; ++i) parts.push_back({fmt::format("mean {}", i + 1), dimension});
  const char* const spread = covariance == CovarianceForm::direct ? "covariance" : "Cholesky factor";
  for (std::size_t i = 0; i < components; ++i)
    parts.push_back({fmt::format("{} {}", spread, i + 1), make().covariance_size()});
  return parts;
}

std::vector<double> conditional_deviations(const Gaussian& g) {
  const std::size_t d = g.mean.size();
  const ImplicitFunction system(g.covariance, d);
  std::vector<double> unit(d), column(d), deviations;
  for (std::size_t k = 0; k < d; ++k) {
    unit.assign(d, 0.0);
    unit[k] = 1;
    system.solve(unit, column);
    deviations.push_back(1 / std::sqrt(column[k]));
  }
  return deviations;
}

// A mean and a row of a Cholesky factor move their component by its deviation; an entry of S, which is 2 kappa times
// the covariance, by a square of that.
double MixtureSpec::scale(std::span<const double> theta, std::size_t j) const {
  const Mixture mixture = make();
  if (j < components) return 1;
  const bool is_mean = j < mixture.covariance_at(0), direct = covariance == CovarianceForm::direct;
  const std::size_t d = dimension, size = is_mean ? d : mixture.covariance_size();
  const std::size_t from = j - (is_mean ? mixture.mean_at(0) : mixture.covariance_at(0)), at = from % size;
  std::size_t a = at, b = at;  // row and column
  if (!is_mean && direct) {
    a = at / d;
    b = at % d;
  } else if (!is_mean) {  // row a of a lower triangle begins at a (a + 1) / 2
    for (a = 0; (a + 1) * (a + 2) / 2 <= at;) ++a;
    b = at - a * (a + 1) / 2;
    if (a == b) return 1;
  }
  const std::vector<double> deviations = conditional_deviations(mixture.law(theta).components[from / size]);
  return is_mean || !direct ? deviations[a] : 2 * kappa * deviations[a] * deviations[b];
}

std::optional<std::string> MixtureSpec::find_mistake(std::span<const double> theta) const {
  if (covariance != CovarianceForm::direct) return std::nullopt;
  const Mixture mixture = make();
  for (std::size_t i = 0; i < components; ++i)
    if (const auto what = find_asymmetry(theta.subspan(mixture.covariance_at(i), dimension * dimension), dimension))
      return fmt::format("the covariance of component {} is not symmetric: {}", i + 1, *what);
  return std::nullopt;
}

std::vector<double> MixtureSpec::read_law(TableReader& t) const {
  if (!t.has("means")) return {};
  const std::vector<double> logits = t.numbers("logits", std::vector<double>(components));
  const auto means = t.matrix("means");
  const auto spreads = t.matrices("covariances");
  for (const auto& [given, count] :
       {std::pair{"logits", logits.size()}, {"means", means.size()}, {"covariances", spreads.size()}})
    if (count != components) t.fail(given, fmt::format("{} given, the mixture has {} components", count, components));
  std::vector<Gaussian> parts;
  const std::size_t d = dimension;
  for (std::size_t i = 0; i < components; ++i) {
    if (means[i].size() != d)
      t.fail("means", fmt::format("mean {} has {} coordinates, the dimension is {}", i + 1, means[i].size(), d));
    if (spreads[i].size() != d || std::ranges::any_of(spreads[i], [d](const auto& row) { return row.size() != d; }))
      t.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, d, d));
    parts.push_back({means[i], {}});
    for (const std::vector<double>& row : spreads[i])
      parts[i].covariance.insert(parts[i].covariance.end(), row.begin(), row.end());
    if (const auto what = find_asymmetry(parts[i].covariance, d))
      t.fail("covariances", fmt::format("matrix {} is not symmetric: {}", i + 1, *what));
  }
  const Mixture mixture = make();
  std::vector<double> theta;
  try {
    theta = mixture.parameters_of(logits, parts);
  } catch (const Error& e) {
    t.fail("covariances", e.what());
  }
  if (const auto bad = find_misfit(mixture.law(theta))) t.fail(bad->first, bad->second);
  return theta;
}

void DoubleWellSpec::read(TableReader& t) {
  dimension = static_cast<std::size_t>(t.integer("dimension", 2, 1, 10000));
  half_distance = t.number("half_distance", half_distance, Sign::positive);
  variance = t.number("variance", variance, Sign::positive);
}

void PotentialSpec::read(TableReader& t) {
  choose_spec(part, t);
  std::visit([&](auto& spec) { spec.read(t); }, part);
  try {
    (void)make();
  } catch (const Error& e) {  // where() is a field of the part, which is a key of the table
    t.fail(e.where(), e.reason());
  }
}

void check_parameters(const TableReader& t, std::string_view key, const PotentialSpec& spec,
                      std::span<const double> theta) {
  const Potential<float> potential = spec.make();
  if (theta.size() != potential.parameters()) t.fail(key, wrong_number(theta.size(), potential.parameters()));
  if (const auto j = potential.find_inadmissible(theta))
    t.fail(key, spec.describe().covariances
                    ? fmt::format("number {} makes a covariance that is not positive definite", *j + 1)
                    : fmt::format("number {}, {}, is outside the domain of the potential", *j + 1, theta[*j]));
  std::visit(
      [&](const auto& part) {
        if constexpr (requires { part.find_mistake(theta); })
          if (const auto what = part.find_mistake(theta)) t.fail(key, *what);
      },
      spec.part);
  if (const auto law = potential.law(theta))
    if (const auto bad = find_misfit(*law)) t.fail(key, bad->second);
}

std::vector<double> read_parameters(TableReader& t, const PotentialSpec& spec, const std::filesystem::path& folder) {
  const bool given = t.has("theta");
  for (const char* way : {"theta_file", "data", "means"})
    if (given && t.contains(way)) t.fail(way, "theta is given too; one of them is meant");
  std::vector<double> theta;
  if (given) {
    theta = t.numbers("theta", {});
  } else if (t.has("theta_file")) {
    theta = read_theta(t.locate("theta_file", folder), spec.make().parameters());
    t.record("theta", to_toml(theta));  // the file may be gone or changed when this run is repeated
  } else {
    return std::visit(
        [&](const auto& part) {
          if constexpr (requires { part.read_law(t); }) return part.read_law(t);
          return std::vector<double>();
        },
        spec.part);
  }
  check_parameters(t, given ? "theta" : "theta_file", spec, theta);
  return theta;
}

}  // namespace program
