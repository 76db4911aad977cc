#include "images/evaluation.hpp"

#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/images/source.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/sha256.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace program {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

TensorReward reward_called(const std::string& name, std::int64_t chosen, const ClassifierModel* classifier,
                           std::int64_t channels) {
  if (name == "redness" && channels != 3)
    throw Error(ErrorKind::usage, "reward", "redness is for images of three channels");
  if (name == "class" && !classifier)
    throw Error(ErrorKind::usage, "reward", "class needs a classifier, whose log-probability it is");
  if (name == "brightness") return brightness_reward();
  if (name == "redness") return redness_reward();
  if (name == "contrast") return contrast_reward();
  if (name == "class") return class_reward(classifier->config, classifier->theta, chosen);
  const std::vector<std::string> names{"brightness", "redness", "contrast", "class"};
  const auto near = nearest(name, names);
  throw Error(ErrorKind::usage, "reward",
              fmt::format("{} is not one of {}{}", io::excerpt(name), fmt::join(names, ", "),
                          near ? fmt::format("; did you mean {}?", *near) : ""));
}

ClassifierModel classifier_for(const std::string& folder, const Diffusion& model) {
  ClassifierModel c = load_classifier(folder);
  const std::vector<std::int64_t> images{c.config.channels, c.config.height, c.config.width};
  if (images != model.network.sample)
    throw Error(ErrorKind::data, folder,
                fmt::format("the classifier is for images of {}, the model makes {}", fmt::join(images, " x "),
                            fmt::join(model.network.sample, " x ")));
  if (model.classes() > 0 && model.classes() != c.config.classes)
    throw Error(
        ErrorKind::data, folder,
        fmt::format("the classifier was trained on {} classes, the model on {}", c.config.classes, model.classes()));
  return c;
}

std::unique_ptr<data::DataSet> open_images(const fs::path& folder, const data::ImageShape& shape) {
  if (folder.empty())
    throw Error(ErrorKind::usage, "data.folder", "no folder is given; --set data.folder=DIR names that of the images");
  auto set = data::open_data_set(folder);
  if (const auto is = set->shape(); is && *is != shape)
    throw Error(ErrorKind::data, io::display(folder),
                fmt::format("has images of {} x {} x {}, and {} x {} x {} are wanted", is->channels, is->height,
                            is->width, shape.channels, shape.height, shape.width));
  return set;
}

void require_same_labels(const data::DataSet& set, const fs::path& folder, const ClassifierModel* classifier) {
  if (!classifier || set.class_names().empty()) return;
  if (const auto classes = static_cast<std::int64_t>(set.class_names().size()); classes != classifier->config.classes)
    throw Error(
        ErrorKind::data, io::display(folder),
        fmt::format("has labels of {} classes, the classifier was trained on {}", classes, classifier->config.classes));
  if (!classifier->class_names.empty() && set.class_names() != classifier->class_names)
    throw Error(ErrorKind::data, io::display(folder), "the classifier was trained on other labels");
}

std::string fingerprint_of(const data::DataSet& set) {
  io::Sha256 hash;
  const auto add = [&](std::size_t number) { hash.update(fmt::format("{} ", number)); };
  add(set.size());
  constexpr std::size_t looked_at = 100;
  for (std::size_t k = 0; k < std::min(looked_at, set.size()); ++k) {
    const std::size_t i = k * set.size() / std::min(looked_at, set.size());
    const data::Image image = set.image(i);
    add(image.shape.channels), add(image.shape.height), add(image.shape.width);
    hash.update({reinterpret_cast<const char*>(image.values.data()), image.values.size()});
    if (const auto label = set.label(i)) add(*label);
  }
  return hash.digits();
}

DataFigures figures_of_data(const fs::path& folder, const data::ImageShape& shape, const TensorReward& reward,
                            const ClassifierModel* classifier, Workers* workers, Processes* processes,
                            const std::stop_token& stop) {
  const auto set = open_images(folder, shape);
  constexpr std::size_t most = 60'000, at_once = 6'000, shard = 250;
  const std::size_t n = std::min(set->size(), most);
  require_same_labels(*set, folder, classifier);
  const std::vector<std::uint32_t> order = data::epoch_order(0, 0, set->size());
  DataFigures figures;
  figures.classes = classifier ? static_cast<std::size_t>(classifier->config.classes) : set->class_names().size();
  for (std::size_t first = 0; first < n; first += at_once) {
    if (stop.stop_requested()) throw Stopped();
    const TensorSamples x = images_of(*set, shape, first, std::min(at_once, n - first), true, shard, order, processes);
    const std::vector<double> r = rewards_of(x, reward, workers);
    figures.rewards.insert(figures.rewards.end(), r.begin(), r.end());
    if (const at::Tensor labels = gathered_labels(x); labels.defined())
      for (std::int64_t i = 0; i < labels.size(0); ++i)
        figures.labels.push_back(static_cast<std::uint32_t>(labels.data_ptr<std::int64_t>()[i]));
    if (!classifier) continue;
    Judged part = judge(classifier->config, classifier->theta, x, workers);
    figures.judged.width = part.width;
    figures.judged.features.insert(figures.judged.features.end(), part.features.begin(), part.features.end());
    figures.judged.predicted.insert(figures.judged.predicted.end(), part.predicted.begin(), part.predicted.end());
  }
  if (classifier && n > 1) figures.features = feature_gaussian(figures.judged.features, figures.judged.width);
  return figures;
}

double DataFigures::floor(std::size_t n) const {
  const std::size_t width = judged.width, all = width == 0 ? 0 : judged.features.size() / width;
  if (n < 2 || all < n + 2) return Figures::none;
  const std::span<const double> rows(judged.features);
  return frechet_distance(feature_gaussian(rows.first(n * width), width),
                          feature_gaussian(rows.subspan(n * width), width));
}

Oracle DataFigures::oracle(double ratio, bool conditional) const {
  return tilted_data(rewards, conditional ? labels : std::vector<std::uint32_t>(), ratio);
}

double DataFigures::oracle_entropy(const Oracle& o) const {
  if (labels.empty() || classes == 0) return Figures::none;
  std::vector<double> shares(classes, 0.0);
  for (std::size_t i = 0; i < labels.size(); ++i) shares[labels[i]] += o.weights[i];
  return entropy(shares);
}

SampleFigures figures_of(const ImageSamples& samples, const TensorReward& reward, const ClassifierModel* classifier,
                         const DataFigures* data, Workers* workers) {
  SampleFigures f;
  f.reward = mean_and_error(rewards_of(samples.images, reward, workers));
  f.reward_clipped = mean_and_error(clipped_rewards_of(samples.images, reward, workers)).mean;
  if (!samples.path_kl.empty()) f.path_kl = mean_and_error(samples.path_kl);
  if (!classifier) return f;
  const Judged judged = judge(classifier->config, classifier->theta, samples.images, workers);
  f.recognised = recognised(judged, gathered_labels(samples.images));
  f.confidence = mean_and_error(judged.confidence).mean;
  f.histogram = class_histogram(judged.predicted, static_cast<std::size_t>(classifier->config.classes));
  f.entropy = entropy(f.histogram);
  const std::size_t few = std::min<std::size_t>(samples.images.total(), 500);
  f.diversity = mean_pairwise_distance(std::span(judged.features).first(few * judged.width), judged.width);
  if (data && data->features && samples.images.total() > 1)
    f.frechet = frechet_distance(feature_gaussian(judged.features, judged.width), *data->features);
  return f;
}

namespace {

std::span<const float> values_of(const TensorSamples& x, std::size_t count) {
  return {x.x().data_ptr<float>(), count * x.dimension()};
}
data::ImageShape shape_of(const TensorSamples& x) {
  const auto s = x.sample_shape();
  return {static_cast<std::size_t>(s[0]), static_cast<std::size_t>(s[1]), static_cast<std::size_t>(s[2])};
}

}  // namespace

std::string picture_of(const TensorSamples& spread, std::size_t count, std::size_t columns) {
  const TensorSamples samples = gathered(spread);
  return data::png_bytes(
      data::image_grid(values_of(samples, std::min(count, samples.size())), shape_of(samples), columns));
}

std::string npy_of(const TensorSamples& spread) {
  const TensorSamples samples = gathered(spread);
  const data::ImageShape s = shape_of(samples);
  return io::npy_bytes(values_of(samples, samples.size()), std::array{samples.size(), s.channels, s.height, s.width});
}

}  // namespace program
