// What samples of a model are judged by, for finetuning and for `evaluate`. Needs LibTorch.
#pragma once

#include "experiment/summary.hpp"
#include "images/experiment.hpp"
#include "implicit_diffusion/data/data_set.hpp"
#include "implicit_diffusion/images/classifier_folder.hpp"
#include "implicit_diffusion/images/diffusion.hpp"
#include "implicit_diffusion/images/rewards.hpp"
#include "implicit_diffusion/images/statistics.hpp"

#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace program {

using implicit_diffusion::ClassifierModel;
using implicit_diffusion::MeanAndError;
using implicit_diffusion::TensorReward;
using implicit_diffusion::Workers;

// The reward of that name. `classifier` may be null where the name is not "class". Throws a usage Error for what does
// not fit the images.
TensorReward reward_called(const std::string& name, std::int64_t chosen, const ClassifierModel* classifier,
                           std::int64_t channels);

// The classifier of a folder, for a model of such images. Throws a data Error where it is for other images, or for
// other labels than the model's.
ClassifierModel classifier_for(const std::string& folder, const implicit_diffusion::Diffusion& model);

// The data, as far as samples are compared with it: up to 60,000 images.
struct DataFigures {
  std::vector<double> rewards;
  std::vector<std::uint32_t> labels;  // empty where there are none
  implicit_diffusion::Judged judged;  // empty without a classifier
  std::optional<implicit_diffusion::FeatureGaussian> features;
  std::size_t classes = 0;

  // The Frechet distance of so many of the images to the others; NaN without features.
  double floor(std::size_t n) const;
  // The law of data tilted by this ratio, within classes for a conditional model; and the entropy of its classes.
  implicit_diffusion::Oracle oracle(double ratio, bool conditional) const;
  double oracle_entropy(const implicit_diffusion::Oracle& o) const;
};
// Is thrown where an evaluation is asked to stop.
struct Stopped : std::exception {};
DataFigures figures_of_data(const std::filesystem::path& folder, const implicit_diffusion::data::ImageShape& shape,
                            const TensorReward& reward, const ClassifierModel* classifier, Workers* workers,
                            implicit_diffusion::Processes* processes = nullptr, const std::stop_token& stop = {});
// Throws a data Error where the data of that folder has other classes than the classifier (null: none) was trained on.
void require_same_labels(const implicit_diffusion::data::DataSet& set, const std::filesystem::path& folder,
                         const ClassifierModel* classifier);
// The data of a folder in that shape. Throws a usage Error where no folder is given; a data Error where its images have
// another shape.
std::unique_ptr<implicit_diffusion::data::DataSet> open_images(const std::filesystem::path& folder,
                                                               const implicit_diffusion::data::ImageShape& shape);

// A hash by which a data set is told from another: of its size, and of a hundred of its images with their labels.
std::string fingerprint_of(const implicit_diffusion::data::DataSet& set);

// Of a set of samples. Numbers are NaN where nothing tells them.
struct SampleFigures {
  MeanAndError reward, path_kl{Figures::none, Figures::none};
  double reward_clipped = Figures::none, recognised = Figures::none, confidence = Figures::none,
         entropy = Figures::none, diversity = Figures::none, frechet = Figures::none;
  std::vector<double> histogram;
};
SampleFigures figures_of(const implicit_diffusion::ImageSamples& samples, const TensorReward& reward,
                         const ClassifierModel* classifier, const DataFigures* data, Workers* workers);

// A PNG of the first samples, `columns` in a row.
std::string picture_of(const implicit_diffusion::TensorSamples& samples, std::size_t count, std::size_t columns);
// samples.npy, of shape (n, C, H, W).
std::string npy_of(const implicit_diffusion::TensorSamples& samples);

}  // namespace program
