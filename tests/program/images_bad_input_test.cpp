// Experiments with images, given what they cannot use: one line, and the exit code.
#include "implicit_diffusion/data/codec.hpp"
#include "program/tiny_images.hpp"

#include <gtest/gtest.h>

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
