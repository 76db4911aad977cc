// A small experiment with images, which tests of the program share: a tiny network on 40 images that the test makes.
#pragma once

#include "program/run_program.hpp"

#include <cstdlib>
#include <random>

namespace program_test {

// Forty images of 8 x 8: bars that lie or stand, with a label for each.
inline void write_images(const fs::path& folder, int classes = 2, int side = 8) {
  const auto size = static_cast<char>(side);
  std::string images("\0\0\x08\x03\0\0\0\x28\0\0\0", 11), labels("\0\0\x08\x01\0\0\0\x28", 8);
  images += size + std::string("\0\0\0", 3) + size;
  for (int i = 0; i < 40; ++i) {
    labels += static_cast<char>(i % classes);
    for (int y = 0; y < side; ++y)
      for (int x = 0; x < side; ++x) images += static_cast<char>((i % 2 ? y : x) % 4 < 2 ? 200 + i : 10);
  }
  write(folder / "train-images-idx3-ubyte", images);
  write(folder / "train-labels-idx1-ubyte", labels);
}

inline constexpr const char* tiny = R"(kind = "images"
seed = 3
[data]
folder = "data"
shape = [1, 8, 8]
classes = 2
conditional = true
[network]
channels = [8, 8]
attention = [4]
groups = 4
head_width = 4
[classifier]
steps = 8
batch = 8
features = 8
[pretrain]
steps = 7
batch = 5
shard = 2
warm_up = 2
log_every = 2
sample_every = 4
[finetune]
lambda = 5.0
steps_per_sample = 4
slots = 2
batch = 3
shard = 2
steps = 4
warm_up = 1
learning_rate = 0.001
evaluate_every = 2
strip = 4
samples = 8
[sweep]
lambda = [5.0, -5.0]
)";

// A folder with the data, the experiment, and what later stages begin with.
class ImagesTest : public testing::Test {
 protected:
  void SetUp() override {
    write_images(folder.path() / "data");
    write(folder.path() / "tiny.toml", tiny);
  }
  Result good(const Words& words) {
    const Result r = run(folder, words + Words{"--quiet"});
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.err, "");
    return r;
  }
  void pretrained() {
    good({"pretrain", "tiny.toml", "--output", "p"});
    good({"pretrain", "tiny.toml", "--classifier", "--output", "c"});
  }
  const Words finetune{"finetune", "tiny.toml", "--model", "p/model", "--classifier", "c/classifier"};
  // One line, and the exit code.
  void bad(const Words& words, int code, const std::vector<std::string>& needed) {
    const Result r = run(folder, words);
    EXPECT_EQ(r.code, code) << r.err;
    EXPECT_TRUE(is_error_line(r.err, needed));
  }
  // A run is killed at random moments, after it has made its folder, and goes on each time, on another number of
  // threads: it ends with the files of one that nothing disturbed. Some are asked to stop instead. As many kills as
  // IMPLICIT_DIFFUSION_KILLS says.
  void expect_same_after_kills(const Words& words, const std::string& whole, const std::vector<std::string>& files) {
    const char* wanted = std::getenv("IMPLICIT_DIFFUSION_KILLS");
    const int kills = wanted ? std::atoi(wanted) : 3;
    const double longest = 1.2 * json(at(whole) / "summary.json")["seconds"].get<double>();
    std::mt19937 random(1);
    int killed = 0, ended = 0;
    for (int k = 0; killed < kills && k < 20 * kills; ++k) {
      const bool begun = fs::exists(at("s/config.toml"));
      if (!begun) fs::remove_all(at("s"));
      Process p(Launch{.arguments = words + Words{"--output", "s", "--quiet", "--threads", std::to_string(1 + k % 3)} +
                                    (begun ? Words{"--resume"} : Words{}),
                       .folder = folder.path()});
      for (int i = 0; i < 30'000 && !fs::exists(at("s/checkpoints")); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::uniform_real_distribution<>(0, longest)(random) * std::chrono::seconds(1));
      const int signal = k % 4 == 1 ? SIGTERM : SIGKILL;
      p.send(signal);
      const int code = p.wait().code;
      if (code == 128 + SIGKILL) ++killed;
      if (code == 128 + signal) continue;
      EXPECT_EQ(code, 0);
      EXPECT_TRUE(same_bytes(at("s"), at(whole), files)) << "after " << killed << " kills";
      fs::remove_all(at("s"));
      ++ended;
    }
    EXPECT_EQ(killed, kills);
    if (fs::exists(at("s/config.toml"))) {
      const Result r = run(folder, words + Words{"--output", "s", "--resume", "--quiet"});
      EXPECT_EQ(r.code, 0) << r.err;
      EXPECT_TRUE(same_bytes(at("s"), at(whole), files));
      ++ended;
    }
    RecordProperty("kills", killed);
    RecordProperty("runs", ended);
  }

  fs::path at(const std::string& name) const { return folder.path() / name; }

  Folder folder;
};

inline const std::vector<std::string> weights{"model/unet/diffusion_pytorch_model.safetensors", "samples.npy"};

}  // namespace program_test
