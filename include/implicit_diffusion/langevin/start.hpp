// Where chains begin: at samples of N(mean, scale^2 I), or at given ones.
#pragma once

#include "implicit_diffusion/langevin/sampler.hpp"

#include <cstdint>
#include <variant>
#include <vector>

namespace implicit_diffusion {

template <class Real>
struct GaussianStart {
  std::vector<double> mean;
  double scale = 1;
  Noise noise{};

  void draw(Population<Real>& x, std::int64_t round) const {
    StandardNormalStart<Real>{noise}.draw(x, round);
    for (std::size_t j = 0; j < x.dimension(); ++j)
      for (Real& v : x.coordinate(j)) v = static_cast<Real>(mean[j] + scale * static_cast<double>(v));
  }
};

// The same samples in every round.
template <class Real>
struct SampleStart {
  Population<Real> samples;

  void draw(Population<Real>& x, std::int64_t) const {
    if (x.processes())
      x.take_from(samples);
    else
      x = samples;
  }
};

template <class Real>
struct AnyStart {
  std::variant<GaussianStart<Real>, SampleStart<Real>> choice;

  void draw(Population<Real>& x, std::int64_t round) const {
    std::visit([&](const auto& start) { start.draw(x, round); }, choice);
  }
};

}  // namespace implicit_diffusion
