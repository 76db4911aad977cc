// Derivatives of roots and argmins against finite differences of solutions found by Newton's method.
#include "implicit_diffusion/finite/implicit_function.hpp"

#include "io/expect_error.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace implicit_diffusion {
namespace {

// A(x, theta) in R^3, two parameters; its Jacobian is not symmetric, so a transpose too few or too many is seen.
struct Root {
  static std::vector<double> value(const std::vector<double>& x, const std::vector<double>& t) {
    return {2 * x[0] + std::sin(x[1]) - t[0], x[1] + 0.3 * x[0] * x[2] - t[0] * t[1],
            std::exp(0.2 * x[2]) + x[0] - t[1]};
  }
  static std::vector<double> jacobian(const std::vector<double>& x) {
    return {2, std::cos(x[1]), 0, 0.3 * x[2], 1, 0.3 * x[0], 1, 0, 0.2 * std::exp(0.2 * x[2])};
  }
  // dA/dtheta_j.
  static std::vector<double> partial(const std::vector<double>& t, std::size_t j) {
    return j == 0 ? std::vector<double>{-1, -t[1], 0} : std::vector<double>{0, -t[0], -1};
  }
  static std::vector<double> solve(const std::vector<double>& t) {
    std::vector<double> x{0, 0, 0}, step(3);
    for (int k = 0; k < 50; ++k) {
      ImplicitFunction(jacobian(x), 3).solve(value(x, t), step);
      for (std::size_t i = 0; i < 3; ++i) x[i] -= step[i];
    }
    return x;
  }
};

// F = x_0 x_1 + x_2^2.
double objective(const std::vector<double>& x) { return x[0] * x[1] + x[2] * x[2]; }

TEST(ImplicitFunction, DifferentiatesARoot) {
  const std::vector<double> theta{0.7, 1.4}, x = Root::solve(theta);
  for (const double a : Root::value(x, theta)) ASSERT_NEAR(a, 0, 1e-14);
  const ImplicitFunction implicit(Root::jacobian(x), 3);
  std::vector<double> w(3), dx(3);
  implicit.adjoint(std::vector<double>{x[1], x[0], 2 * x[2]}, w);
  for (std::size_t j = 0; j < 2; ++j) {
    // Errors of the difference quotient: h^2 times third derivatives, some 10, and 1e-15 / h.
    const double h = 1e-5;
    std::vector<double> up = theta, down = theta;
    up[j] += h;
    down[j] -= h;
    const std::vector<double> above = Root::solve(up), below = Root::solve(down);
    const std::vector<double> partial = Root::partial(theta, j);
    implicit.derivative(partial, dx);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(dx[i], (above[i] - below[i]) / (2 * h), 1e-8);
    const double gradient = w[0] * partial[0] + w[1] * partial[1] + w[2] * partial[2];
    EXPECT_NEAR(gradient, (objective(above) - objective(below)) / (2 * h), 1e-8);
    EXPECT_NEAR(gradient, x[1] * dx[0] + x[0] * dx[1] + 2 * x[2] * dx[2], 1e-13);
    // The transposed Jacobian would be noticed.
    implicit.solve(std::vector<double>{x[1], x[0], 2 * x[2]}, dx);
    EXPECT_GT(std::abs(-(dx[0] * partial[0] + dx[1] * partial[1] + dx[2] * partial[2]) - gradient), 1e-3);
  }
}

// Ridge regression: argmin of |A x - y|^2 / 2 + theta |x|^2 / 2, dx/dtheta = -(A'A + theta)^-1 x. With A = diag(1, 2,
// 3), x_i = a y / (a^2 + theta).
TEST(ImplicitFunction, DifferentiatesAnArgmin) {
  const double theta = 0.5;
  const std::vector<double> y{1, -2, 0.3};
  std::vector<double> hessian(9, 0.0), x(3), dx(3);
  for (std::size_t i = 0; i < 3; ++i) {
    const double a = static_cast<double>(i + 1);
    hessian[4 * i] = a * a + theta;
    x[i] = a * y[i] / (a * a + theta);
  }
  ImplicitFunction(hessian, 3).derivative(x, dx);
  for (std::size_t i = 0; i < 3; ++i) {
    const double a = static_cast<double>(i + 1);
    EXPECT_NEAR(dx[i], -a * y[i] / ((a * a + theta) * (a * a + theta)), 1e-15);
  }
}

// The argmin of sum_i a_i x_i^2 / 2 - theta b_i x_i over sum x = 1: dx/dtheta = (b - mean) / a, the mean weighted by 1
// / a; it keeps the mass.
TEST(ImplicitFunction, ABorderKeepsTheMass) {
  const std::vector<double> a{1, 2, 4}, b{0.5, -1, 3};
  double weight = 0, mean = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    weight += 1 / a[i];
    mean += b[i] / a[i];
  }
  mean /= weight;
  const std::vector<double> matrix{a[0], 0, 0, 0, a[1], 0, 0, 0, a[2]};
  std::vector<double> dx(4);
  ImplicitFunction(bordered(matrix, 3), 4).derivative(std::vector<double>{-b[0], -b[1], -b[2], 0}, dx);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(dx[i], (b[i] - mean) / a[i], 1e-15);
  EXPECT_NEAR(dx[0] + dx[1] + dx[2], 0, 1e-15);
  std::vector<double> without(3);
  ImplicitFunction(matrix, 3).derivative(std::vector<double>{-b[0], -b[1], -b[2]}, without);
  EXPECT_GT(std::abs(without[0] + without[1] + without[2]), 0.1);
}

TEST(ImplicitFunction, RefusesWhatHasNoDerivative) {
  EXPECT_ERROR(ImplicitFunction(std::vector<double>{1, 2, 2, 4}, 2), usage, "jacobian: it is singular");
  EXPECT_ERROR(ImplicitFunction(std::vector<double>{1, 2, NAN, 4}, 2), usage, "jacobian: it is not finite");
  EXPECT_ERROR(ImplicitFunction(std::vector<double>{1, 2, 3}, 2), usage, "jacobian: 3 numbers are not a 2 x 2 matrix");
}

}  // namespace
}  // namespace implicit_diffusion
