#include "implicit_diffusion/images/statistics.hpp"

#include "implicit_diffusion/error.hpp"

#include <ATen/ATen.h>
#include <Eigen/Eigenvalues>

#include <algorithm>
#include <cmath>
#include <limits>

namespace implicit_diffusion {

MeanAndError mean_and_error(std::span<const double> numbers) {
  const auto n = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const double x : numbers) sum += x;
  const double mean = sum / n;
  for (const double x : numbers) squares += (x - mean) * (x - mean);
  return {mean, numbers.size() > 1 ? std::sqrt(squares / (n - 1) / n) : std::numeric_limits<double>::quiet_NaN()};
}

namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::Map<const Matrix> matrix_of(const std::vector<double>& v, std::size_t width) {
  const auto w = static_cast<Eigen::Index>(width);
  return {v.data(), w, w};
}

}  // namespace

FeatureGaussian feature_gaussian(std::span<const double> features, std::size_t width) {
  if (width == 0 || features.size() % width != 0 || features.size() / width < 2)
    throw Error(ErrorKind::usage, "features", "a Gaussian needs two rows at least");
  const auto n = static_cast<Eigen::Index>(features.size() / width), w = static_cast<Eigen::Index>(width);
  const Eigen::Map<const Matrix> rows(features.data(), n, w);
  const Eigen::RowVectorXd mean = rows.colwise().mean();
  const Matrix centred = rows.rowwise() - mean;
  const Matrix covariance = centred.transpose() * centred / static_cast<double>(n - 1);
  FeatureGaussian g;
  g.mean.assign(mean.data(), mean.data() + w);
  g.covariance.assign(covariance.data(), covariance.data() + w * w);
  return g;
}

double frechet_distance(const FeatureGaussian& a, const FeatureGaussian& b) {
  if (a.mean.size() != b.mean.size()) throw Error(ErrorKind::usage, "features", "they are of different widths");
  const std::size_t width = a.mean.size();
  double sum = 0;
  for (std::size_t j = 0; j < width; ++j) sum += (a.mean[j] - b.mean[j]) * (a.mean[j] - b.mean[j]);
  const Matrix ca = matrix_of(a.covariance, width), cb = matrix_of(b.covariance, width);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of_a(ca);
  const Eigen::MatrixXd root =
      of_a.eigenvectors() * of_a.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() * of_a.eigenvectors().transpose();
  const Eigen::MatrixXd product = root * cb * root;
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> of_product(product, Eigen::EigenvaluesOnly);
  return sum + ca.trace() + cb.trace() - 2 * of_product.eigenvalues().cwiseMax(0).cwiseSqrt().sum();
}

Judged judge(const ClassifierConfig& config, const TensorParameters& weights, const TensorSamples& images,
             Workers* workers) {
  const Network features = make_classifier_features(config), scores = make_classifier(config);
  if (images.sample_shape() != scores.sample)
    throw Error(ErrorKind::usage, "classifier", "it is for images of another size");
  const std::vector<at::Tensor> w = weights_of(scores.layout, weights);
  const auto width = static_cast<std::size_t>(config.features);
  // A row for each image: its features, the confidence, the class.
  const std::size_t row = width + 2;
  TensorNumbers rows = TensorTiles::numbers(images, row);
  TensorTiles::for_each(workers, TensorTiles::tiles(images), [&](std::size_t k) {
    const at::NoGradGuard no_graph;
    const TensorTile tile = TensorTiles::tile(images, k);
    const at::Tensor x = detail::fill_up(tile.x, tile.shard).clamp(-1, 1);
    const at::Tensor f = evaluate(features, w, {x, {}, {}}).to(at::kDouble).contiguous();
    const at::Tensor p = at::softmax(evaluate(scores, w, {x, {}, {}}).to(at::kDouble), 1);
    const auto [largest, which] = p.max(1);
    double* to = TensorTiles::numbers_of(rows, k);
    for (std::int64_t i = 0; i < tile.size(); ++i) {
      to = std::copy_n(f.data_ptr<double>() + i * config.features, width, to);
      *to++ = largest.data_ptr<double>()[i];
      *to++ = static_cast<double>(which.data_ptr<std::int64_t>()[i]);
    }
  });
  const std::vector<double> all = gathered(rows);
  Judged judged{width, {}, {}, {}};
  for (auto at = all.begin(); at != all.end(); at += static_cast<std::ptrdiff_t>(row)) {
    const auto end = at + static_cast<std::ptrdiff_t>(width);
    judged.features.insert(judged.features.end(), at, end);
    judged.confidence.push_back(end[0]);
    judged.predicted.push_back(static_cast<std::int64_t>(end[1]));
  }
  return judged;
}

std::vector<double> class_histogram(std::span<const std::int64_t> predicted, std::size_t classes) {
  std::vector<double> shares(classes, 0.0);
  for (const std::int64_t c : predicted)
    shares[static_cast<std::size_t>(c)] += 1 / static_cast<double>(predicted.size());
  return shares;
}

double entropy(std::span<const double> shares) {
  double sum = 0;
  for (const double p : shares)
    if (p > 0) sum -= p * std::log(p);
  return sum;
}

double mean_pairwise_distance(std::span<const double> features, std::size_t width) {
  const std::size_t n = features.size() / width;
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < i; ++j) {
      double square = 0;
      for (std::size_t k = 0; k < width; ++k) {
        const double d = features[i * width + k] - features[j * width + k];
        square += d * d;
      }
      sum += std::sqrt(square);
    }
  return n < 2 ? 0 : sum / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
}

double recognised(const Judged& judged, const at::Tensor& labels) {
  double count = 0;
  for (std::size_t i = 0; i < judged.predicted.size(); ++i)
    count += labels.defined() ? (judged.predicted[i] == labels.data_ptr<std::int64_t>()[i] ? 1 : 0)
                              : (judged.confidence[i] > 0.9 ? 1 : 0);
  return count / static_cast<double>(judged.predicted.size());
}

}  // namespace implicit_diffusion
