// Experiments with images, given what they cannot use: one line, and the exit code.
#include "implicit_diffusion/data/codec.hpp"
#include "program/tiny_images.hpp"

#include <gtest/gtest.h>

#include <cstring>

namespace program_test {
namespace {

#ifdef IMPLICIT_DIFFUSION_NETWORKS

TEST_F(ImagesTest, RefusesBadConfigurations) {
  const auto set = [&](const std::string& change, const std::vector<std::string>& needed) {
    bad({"pretrain", "tiny.toml", "--set", change}, 2, needed);
  };
  set("finetune.slots=3", {"finetune.slots", "3 does not divide the 4 steps"});
  set("finetune.reward=brightnes", {"finetune.reward", "did you mean brightness?"});
  set("finetune.reward=redness", {"redness is for images of three channels"});
  set("network.groups=3", {"network"});
  set("network.patch=3", {"network.patch", "does not divide"});
  set("pretrain.average=1", {"pretrain.average", "below 1"});
  set("data.shape=[2,8,8]", {"data.shape", "1 or 3"});
  set("data.folder=", {"data.folder", "no folder is given"});
  bad({"run", "tiny.toml", "--set", "stage=both"}, 2, {"stage"});
  bad({"run", "tiny.toml", "--set", "finetune.lambda=7"}, 2, {"finetune.lambda", "sweep.lambda"});
  bad({"run", "tiny.toml", "--set", "size=smal"}, 2, {"size", "small, paper"});
  bad({"run", "tiny.toml", "--steps", "3"}, 2, {"--steps", "pretrain.steps"});
  bad({"run", "tiny.toml", "--repeats", "2"}, 2, {"--repeats"});
  bad({"pretrain", "langevin-reward"}, 2, {"langevin-reward", "is not an experiment with images"});
  EXPECT_FALSE(fs::exists(at("runs")));
}

TEST_F(ImagesTest, RefusesBadData) {
  bad({"pretrain", "tiny.toml", "--set", "data.folder=nowhere"}, 66, {"nowhere"});
  bad({"pretrain", "tiny.toml", "--set", "data.shape=[1,12,12]"}, 65, {"has images of 1 x 8 x 8"});
  bad({"pretrain", "tiny.toml", "--set", "data.classes=3"}, 65, {"has labels of 2 classes"});
  // Labels beyond those that the model would know.
  write_images(at("three"), 3);
  bad({"pretrain", "tiny.toml", "--set", "data.folder=three"}, 65, {"has labels of 3 classes, data.classes says 2"});
}

TEST_F(ImagesTest, RefusesBadModels) {
  pretrained();
  bad({"finetune", "tiny.toml"}, 2, {"finetune.model", "--model"});
  bad({"finetune", "tiny.toml", "--model", "nowhere"}, 66, {"nowhere"});
  bad({"finetune", "tiny.toml", "--model", "p/model", "--set", "finetune.reward=class"}, 2, {"finetune.classifier"});
  bad({"sample", "p/model", "--labels", "2"}, 2, {"labels", "classes 0 to 1"});
  bad({"sample", "p/model", "--sampler", "euler"}, 2, {"--sampler"});
  bad({"sample", "p/model", "--eta", "0"}, 2, {"--eta: ", "--sampler ddim alone"});
  bad({"sample", "p/model", "--sampler", "ddim", "--grid", "uniform"}, 2, {"--grid: ", "sde and ode alone"});
  bad({"evaluate", "p/model", "--class", "1"}, 2, {"--class: ", "--reward class alone"});
  bad({"evaluate", "p/model", "--reward", "brightnes"}, 2, {"reward", "did you mean brightness?"});
  bad({"evaluate", "p/model", "--reward", "class"}, 2, {"reward", "needs a classifier"});

  // Of other images, of another shape, of other labels.
  write(at("other.toml"), changed(changed(tiny, "conditional = true", "conditional = false"), "[8, 8]\nattention = [4]",
                                  "[8, 16]\nattention = [4]"));
  good({"pretrain", "other.toml", "--output", "o", "--steps", "1"});
  bad({"evaluate", "p/model", "--base", "o/model"}, 65, {"another shape"});
  bad(finetune + Words{"--set", "data.shape=[1,12,12]"}, 65, {"the model makes images of 1 x 8 x 8"});
  write_images(at("three"), 3);
  write(at("three.toml"), changed(changed(tiny, "\"data\"", "\"three\""), "classes = 2", "classes = 3"));
  good({"pretrain", "three.toml", "--classifier", "--output", "c3"});
  bad({"finetune", "tiny.toml", "--model", "p/model", "--classifier", "c3/classifier"}, 65,
      {"trained on 3 classes, the model on 2"});

  // Data, and a classifier, of another size than the model's images.
  write_images(at("large"), 2, 12);
  bad(finetune + Words{"--set", "data.folder=large"}, 65, {"large", "has images of 1 x 12 x 12, and 1 x 8 x 8 are"});
  bad({"evaluate", "p/model", "--data", "large"}, 65, {"large", "has images of 1 x 12 x 12, and 1 x 8 x 8 are wanted"});
  write(at("large.toml"), changed(changed(tiny, "\"data\"", "\"large\""), "[1, 8, 8]", "[1, 12, 12]"));
  good({"pretrain", "large.toml", "--classifier", "--output", "c12"});
  bad({"finetune", "tiny.toml", "--model", "p/model", "--classifier", "c12/classifier"}, 65,
      {"for images of 1 x 12 x 12, the model makes 1 x 8 x 8"});
  // As many labels, but others: known before the work.
  for (const char* name : {"cats", "dogs"})
    write(at("pets") / name / "one.png",
          implicit_diffusion::data::png_bytes({{1, 8, 8}, std::vector<std::uint8_t>(64)}));
  bad(finetune + Words{"--set", "data.folder=pets", "--output", "none"}, 65, {"pets", "trained on other labels"});
  bad({"evaluate", "p/model", "--classifier", "c/classifier", "--data", "pets"}, 65,
      {"pets", "trained on other labels"});

  // A folder that lacks a file.
  fs::remove(at("p/model/unet/diffusion_pytorch_model.safetensors"));
  bad(finetune, 66, {"p/model"});
  fs::remove(at("c/classifier/classifier.json"));
  bad(finetune, 66, {"p/model"});
}

// What a run begins with is not removed by --overwrite, and is the same when it goes on.
TEST_F(ImagesTest, KeepsWhatItBeginsWith) {
  pretrained();
  const auto whole = tree(folder.path());
  bad({"finetune", "tiny.toml", "--model", "p/model", "--output", "p", "--overwrite"}, 2,
      {"finetune.model", "p/model"});
  bad(finetune + Words{"--output", "c", "--overwrite"}, 2, {"finetune.classifier", "c/classifier"});
  bad({"run", "tiny.toml", "--set", "finetune.model=p/model", "--output", "p", "--overwrite"}, 2, {"finetune.model"});
  EXPECT_EQ(tree(folder.path()), whole);

  const Words begun = finetune + Words{"--set", "finetune.decay=false", "--output", "f", "--quiet"};
  good(finetune + Words{"--set", "finetune.decay=false", "--output", "f"});
  const Words on = begun + Words{"--resume", "--steps", "6"};
  const auto with_another = [&](const fs::path& file, const fs::path& other, const std::string& key) {
    const std::string kept = contents(file);
    fs::copy_file(other, file, fs::copy_options::overwrite_existing);
    bad(on, 2, {key, "has changed since this run began"});
    write(file, kept);
  };
  good({"pretrain", "tiny.toml", "--output", "p2", "--seed", "9"});
  good({"pretrain", "tiny.toml", "--classifier", "--output", "c2", "--seed", "9"});
  with_another(at("p") / weights[0], at("p2") / weights[0], "finetune.model");
  with_another(at("c/classifier/classifier.safetensors"), at("c2/classifier/classifier.safetensors"),
               "finetune.classifier");
  std::string images = contents(at("data/train-images-idx3-ubyte"));
  images.back() = static_cast<char>(images.back() + 1);
  write(at("other-images"), images);
  with_another(at("data/train-images-idx3-ubyte"), at("other-images"), "data.folder");
  EXPECT_EQ(run(folder, on).code, 0);
}

// A model whose samples are not finite, and sizes that no file has.
// What a command is told to write replaces no result of a run, and nothing of what it reads.
TEST_F(ImagesTest, KeepsWhatBelongsToRunsAndModels) {
  pretrained();
  const Words few{"--count", "2", "--steps", "4"};
  fs::copy(at("p/model"), at("copy"), fs::copy_options::recursive);
  const std::vector<std::string> kept{"p/config.toml", "p/samples.npy", "copy/unet/config.json"};
  write(at("p/samples.npy"), "those of the run");
  std::vector<std::string> before;
  for (const std::string& file : kept) before.push_back(contents(at(file)));
  bad(Words{"evaluate", "copy", "--output", "p/config.toml"} + few, 73, {"p/config.toml", "belongs to a run"});
  bad(Words{"evaluate", "copy", "--output", "copy/unet/config.json"} + few, 73, {"is in copy, which is read"});
  bad(Words{"sample", "copy", "--output", "s", "--noise", "p/config.toml"} + few, 73, {"belongs to a run", "--noise"});
  bad(Words{"sample", "copy", "--output", "p"} + few, 73, {"p/samples.npy", "belongs to a run"});
  bad({"show-data", "data", "--output", "p/config.toml"}, 73, {"p/config.toml", "belongs to a run"});
  EXPECT_FALSE(fs::exists(at("s")));
  bad({"sample", "p"}, 66, {"p: has no config.json", "there is a model in p/model"});
  for (std::size_t i = 0; i < kept.size(); ++i) EXPECT_EQ(contents(at(kept[i])), before[i]) << kept[i];
}

// The weights alone say neither what they predict nor at which noise levels.
TEST_F(ImagesTest, SaysThatAModelHasNoScheduler) {
  pretrained();
  fs::copy(at("p/model/unet"), at("alone"), fs::copy_options::recursive);
  const Result r = run(folder, {"sample", "alone", "--count", "2", "--steps", "4", "--output", "s"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.err.find("warning: alone: there is no scheduler"), std::string::npos) << r.err;
}

TEST_F(ImagesTest, RefusesModelsThatCannotBeUsed) {
  pretrained();
  good({"pretrain", "tiny.toml", "--output", "huge"});
  std::string bytes = contents(at("huge") / weights[0]);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  const float large = 3e38F;
  for (std::size_t i = 8 + header; i + sizeof large <= bytes.size(); i += sizeof large)
    std::memcpy(&bytes[i], &large, sizeof large);
  write(at("huge") / weights[0], bytes);
  bad({"sample", "huge/model", "--count", "2", "--steps", "4", "--output", "none"}, 65, {"huge/model", "not finite"});
  EXPECT_FALSE(fs::exists(at("none")));
  bad({"evaluate", "huge/model", "--count", "2", "--steps", "4"}, 65, {"huge/model", "not finite"});
  bad({"finetune", "tiny.toml", "--model", "huge/model", "--output", "f", "--quiet"}, 70, {"huge/model", "first step"});

  const std::string origin = contents(at("p/model/implicit_diffusion.json"));
  write(at("p/model/implicit_diffusion.json"), changed(origin, "\"horizon\": 4.0", "\"horizon\": 1e9"));
  bad({"sample", "p/model"}, 65, {"implicit_diffusion.json", "horizon", "at most 30"});
  write(at("p/model/implicit_diffusion.json"), changed(origin, "\"horizon\": 4.0", "\"horizon\": 0.005"));
  bad({"sample", "p/model"}, 65, {"p/model", "horizon", "0.005"});
  write(at("p/model/implicit_diffusion.json"), origin);

  bad({"evaluate", "p/model", "--lambda-over-beta", "nan"}, 2, {"--lambda-over-beta"});
  bad({"evaluate", "p/model", "--output", "nowhere/x.json"}, 73, {"nowhere/x.json"});
  bad({"sample", "p/model", "--noise", "nowhere/n.safetensors"}, 73, {"nowhere/n.safetensors"});
  bad({"sample", "p/model", "--sampler", "ddpm", "--steps", "989", "--output", "none"}, 2, {"--steps", "988 times"});
  EXPECT_FALSE(fs::exists(at("none")));
  bad({"sample", "p/model", "--labels", "0,x"}, 2, {"--labels"});

  const fs::path judge = at("c/classifier/classifier.json");
  const std::string sizes = contents(judge);
  write(judge, changed(changed(sizes, "\"height\": 8", "\"height\": 16384"), "\"width\": 8", "\"width\": 16384"));
  bad({"evaluate", "p/model", "--classifier", "c/classifier"}, 65, {"classifier.safetensors", "features.weight"});
  // A list of names may be missing: then the number of classes counts.
  write_images(at("three"), 3);
  write(at("none.toml"), changed(changed(tiny, "conditional = true", "conditional = false"), "\"data\"", "\"three\""));
  good({"pretrain", "none.toml", "--output", "u"});
  const std::size_t names = sizes.find("\"class_names\"");
  std::string nameless = sizes;
  nameless.replace(names, sizes.find(']', names) + 1 - names, "\"class_names\": []");
  write(judge, nameless);
  bad({"finetune", "none.toml", "--model", "u/model", "--classifier", "c/classifier", "--output", "f3"}, 65,
      {"three", "labels of 3 classes, the classifier was trained on 2"});
}

// Adam divides by the square of the gradient: where that is not finite it stands still, and says so.
TEST_F(ImagesTest, GradientsBeyondTheirSquaresDiverge) {
  pretrained();
  bad(finetune + Words{"--set", "finetune.lambda=1e30", "--output", "f", "--quiet"}, 70, {"finetuning diverged"});
  EXPECT_EQ(json(at("f/summary.json"))["status"], "diverged");
}

// The disk is full when the model is written: nothing of it is there, and the run can be continued to the same bytes.
TEST_F(ImagesTest, LeavesNoHalfModelOnAFullDisk) {
  pretrained();
  good(finetune + Words{"--output", "f"});
  for (const auto& [words, whole] : {std::pair{Words{"pretrain", "tiny.toml"}, "p"}, std::pair{finetune, "f"}}) {
    const std::string full = std::string("full-") + whole;
    const Words all = words + Words{"--output", full, "--quiet"};
    const Result r =
        run(Launch{.arguments = all,
                   .folder = folder.path(),
                   .environment = with_shim({"FAULT=write:ENOSPC@1+", "FAULT_PATH=" + full + "/model/unet"})});
    EXPECT_EQ(r.code, 74) << r.err;
    EXPECT_TRUE(is_error_line(r.err, {full + "/model/unet", "No space left"}));
    EXPECT_FALSE(fs::exists(at(full) / weights[0]));
    EXPECT_FALSE(fs::exists(at(full) / "model/model_index.json"));
    for (const auto& [name, bytes] : tree(at(full))) EXPECT_EQ(name.find(".tmp"), std::string::npos) << name;
    EXPECT_EQ(run(folder, all + Words{"--resume"}).code, 0);
    EXPECT_TRUE(same_bytes(at(full), at(whole), weights));
  }
}

#endif

}  // namespace
}  // namespace program_test
