// What a neural energy is to learn: a law in the plane whose density is known, or points of the user's.
#pragma once

#include "experiment/table_reader.hpp"
#include "figures/law_pictures.hpp"
#include "implicit_diffusion/langevin/terms.hpp"
#include "langevin/samples.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace program {

class EbmTarget {
 public:
  enum class Law { eight_gaussians, two_moons, checkerboard };

  // The table `target`, with files relative to the folder.
  void read(TableReader& t, const std::filesystem::path& folder);

  // "eight Gaussians on a circle", "the data in points.csv".
  std::string name() const;
  const SampleFile* data() const { return data_.get(); }  // null where it is a law

  // A batch for each step. Throws an Error where a file is bad.
  std::unique_ptr<implicit_diffusion::Reference<float>> batches(const implicit_diffusion::Noise& noise) const;
  // The log of its density; empty where it is data.
  std::function<double(std::span<const double> x)> log_density() const;
  // Of each mode of a law; nothing where there is none.
  std::optional<double> deviation() const;
  // Points to show: all data, or so many drawn from the law.
  Population<float> points(std::size_t count, const implicit_diffusion::Noise& noise) const;
  // What pictures show of the plane.
  Window window() const;

 private:
  GaussianMixture mixture() const;

  Law law_ = Law::eight_gaussians;
  double deviation_ = 0.3;
  std::shared_ptr<const SampleFile> data_;
  std::size_t batch_ = 1000;  // 0: all data
};

}  // namespace program
