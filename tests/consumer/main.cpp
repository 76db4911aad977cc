// What a user's project does with the installed library: a potential of its own through the front door, on the
// library's kernels and noise, and the samples to a file and back.
#include <implicit_diffusion/error.hpp>
#include <implicit_diffusion/io/file.hpp>
#include <implicit_diffusion/io/npy.hpp>
#include <implicit_diffusion/io/samples.hpp>
#include <implicit_diffusion/langevin.hpp>
#include <implicit_diffusion/population_arrays.hpp>

#include <cmath>
#include <cstdio>
#include <vector>

namespace imd = implicit_diffusion;

struct Shifted {
  static constexpr bool any_number = true;
  double centre = 0;

  std::size_t dimension() const { return 1; }
  std::size_t parameters() const { return 1; }
  void prepare(std::span<const double> theta) { centre = theta[0]; }

  template <class Real>
  Real evaluate(const Real* x, Real* grad_x, Real* grad_theta) const {
    const Real u = x[0] - Real(imd::Scalar<Real>(centre));
    if (grad_x) grad_x[0] = u;
    if (grad_theta) grad_theta[0] = -u;
    return u * u / 2;
  }
};

int main() {
  try {
    const auto own = imd::optimise(imd::LangevinProblem(Shifted{}, imd::QuadraticReward({3.0})), {0.0},
                                   imd::GradientDescent{0.02}, {.particles = 500, .step_size = 0.1, .steps = 500});
    const auto built_in =
        imd::optimise(imd::LangevinProblem(imd::SoftmaxWells({{-1.0}, {1.0}}, 2.0), imd::BumpReward({1.0}, 1.0)),
                      {0.0, 0.0}, imd::Adam(0.05), {.particles = 500, .step_size = 0.1, .steps = 200});
    std::printf("theta = %.3f; %.3f and %.3f\n", own.theta[0], built_in.theta[0], built_in.theta[1]);

    const std::vector<std::size_t> shape{own.samples.size(), 1};
    imd::io::write_file("consumer.npy", imd::io::npy_bytes(imd::to_rows(own.samples), shape));
    const imd::io::Array read = imd::io::read_samples("consumer.npy");
    // theta is 3 within 0.1, many standard deviations; the well with the reward weighs more than the other.
    const bool found = own.completed() && std::abs(own.theta[0] - 3) < 0.1 && built_in.theta[1] > built_in.theta[0];
    return found && read.shape == shape && read.values[7] == static_cast<double>(own.samples(7, 0)) ? 0 : 1;
  } catch (const imd::Error& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 1;
  }
}
