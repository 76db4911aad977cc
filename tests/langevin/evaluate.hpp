// A potential at one point, and numbers one by one.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace implicit_diffusion {

struct Evaluation {
  double value;
  std::vector<double> grad_x, grad_theta;
};

template <class P>
Evaluation evaluate(P potential, std::vector<double> x, const std::vector<double>& theta) {
  Evaluation e{0, std::vector<double>(potential.dimension()), std::vector<double>(potential.parameters())};
  potential.prepare(theta);
  e.value = potential.evaluate(x.data(), e.grad_x.data(), e.grad_theta.data());
  return e;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance) << "coordinate " << i;
}

}  // namespace implicit_diffusion
