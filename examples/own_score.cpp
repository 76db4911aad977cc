// A score model of your own: data N(theta, v I) in the plane with a known variance, its score at noise time tau, and
// the products that gradients are made of. The reward is -|x - (1, 2)|^2, so the best theta is (1, 2), and a queue of
// eight slots finds it.
#include <implicit_diffusion/denoising.hpp>

#include <cmath>
#include <cstdio>

namespace imd = implicit_diffusion;

// s(y, tau) = -(y - a theta) / c, a = e^-tau, c = a^2 v + 1 - a^2.
struct Shifted {
  std::vector<double> theta{0, 0};
  double variance = 0.5;

  std::size_t dimension() const { return 2; }
  std::size_t parameters() const { return 2; }
  void prepare(std::span<const double> t) { theta.assign(t.begin(), t.end()); }

  struct NoiseLevel {
    double a, precision, mean[2];

    template <class N>
    void score(const N* y, N* s) const {
      using Real = imd::Scalar<N>;
      for (int j = 0; j < 2; ++j) s[j] = N(Real(precision)) * (N(Real(mean[j])) - y[j]);
    }
    // back = s_y' c; sums += c, of which add_gradient makes s_theta' c. sums may be null.
    template <class N>
    void pull_back(const N*, const N*, const N* c, N* back, N* sums) const {
      for (int j = 0; j < 2; ++j) {
        back[j] = N(imd::Scalar<N>(-precision)) * c[j];
        if (sums) sums[j] = sums[j] + c[j];
      }
    }
    std::size_t sums() const { return 2; }
    void add_gradient(const double* sums, double* gradient) const {
      for (int j = 0; j < 2; ++j) gradient[j] += precision * a * sums[j];
    }
  };
  NoiseLevel level(double tau) const {
    const double a = std::exp(-tau);
    return {a, 1 / (a * a * variance + 1 - a * a), {a * theta[0], a * theta[1]}};
  }
};

struct Near {
  static constexpr bool any_number = true;
  template <class N>
  N operator()(const N* x) const {
    return -(x[0] - 1) * (x[0] - 1) - (x[1] - 2) * (x[1] - 2);
  }
};

int main() {
  const std::vector<double> start{0, 0};
  const imd::ScoreCheck check = imd::check_score_model(Shifted{}, start, 0.3);
  std::printf("products off by %.0e and %.0e\n", check.state_error, check.parameter_error);

  const auto result =
      imd::optimise(imd::DenoisingProblem(Shifted{}, Near{}), start, imd::GradientDescent{0.02},
                    {.batch = 500, .grid = imd::uniform_grid(3, 64), .slots = 8, .steps = 400, .seed = 1});
  std::puts(imd::describe(result).c_str());
  std::puts("the best theta is (1, 2)");
  const bool found = std::abs(result.theta[0] - 1) < 0.1 && std::abs(result.theta[1] - 2) < 0.1;
  return result.completed() && found && check.state_error < 1e-6 && check.parameter_error < 1e-6 ? 0 : 1;
}
