// What sets of images are judged by.
//
// Features f (64 numbers of a classifier) of two sets are compared as Gaussians, by the Frechet distance
//
//     |m_1 - m_2|^2 + tr(C_1 + C_2 - 2 (C_1^1/2 C_2 C_1^1/2)^1/2)
//
// which for finite samples is positive even where the laws agree: its floor is what data against data gives for the
// same number of samples.
#pragma once

#include "implicit_diffusion/torch/classifier.hpp"
#include "implicit_diffusion/torch/tiles.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace implicit_diffusion {

struct MeanAndError {
  double mean = 0, standard_error = 0;
};
// Of independent numbers; the error of one number is not finite.
MeanAndError mean_and_error(std::span<const double> numbers);

// The Gaussian of features, row by row of `width` numbers.
struct FeatureGaussian {
  std::vector<double> mean, covariance;  // the second width x width
};
FeatureGaussian feature_gaussian(std::span<const double> features, std::size_t width);
double frechet_distance(const FeatureGaussian& a, const FeatureGaussian& b);

// What a classifier says of images, whose pixels are clipped to [-1, 1] first. Of images that processes share, all have
// all of it.
struct Judged {
  std::size_t width = 0;                // of the features
  std::vector<double> features;         // row by row
  std::vector<double> confidence;       // of the likeliest class, for each image
  std::vector<std::int64_t> predicted;  // that class
};
Judged judge(const ClassifierConfig& config, const TensorParameters& weights, const TensorSamples& images,
             Workers* workers = nullptr);

// How many images are predicted to be of each class, as shares; and the entropy of shares, in nats.
std::vector<double> class_histogram(std::span<const std::int64_t> predicted, std::size_t classes);
double entropy(std::span<const double> shares);
// The mean distance |f_i - f_j| over all pairs of rows.
double mean_pairwise_distance(std::span<const double> features, std::size_t width);
// The share of images that the classifier recognises: as their label or, without labels, with a confidence above 0.9.
// Labels are those of all images.
double recognised(const Judged& judged, const at::Tensor& labels);

}  // namespace implicit_diffusion
