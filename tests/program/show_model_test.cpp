// The command show-model: what it prints of a good folder, and what it says of a bad one.
#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <functional>

#include "models/small_model.hpp"
#include "program/run_program.hpp"

namespace program_test {
namespace {

using namespace implicit_diffusion;

constexpr const char* weights = "m/unet/diffusion_pytorch_model.safetensors";

TEST(ShowModel, DescribesAFolder) {
  const Folder folder;
  ModelFolder model = small_model();
  model.origin->base = {"runs/base/model", std::string(64, 'b')};
  write_model_folder(folder / "m", model, small_theta());
  const auto before = tree(folder.path());
  const Result result = run(folder, {"show-model", "m"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const std::size_t tensors = parameter_layout(model.network).size();
  EXPECT_EQ(result.out, R"(network     UNet2DModel, 2 levels
images      1 channel, 8 x 8 pixels, in patches of 2 x 2, 3 classes
widths      8, 8 with attention; 1 layer each, 4 groups
parameters  )" + std::to_string(small_theta().size()).insert(2, ",") +
                            " in " + std::to_string(tensors) +
                            R"( tensors
prediction  v_prediction
schedule    betas of its own, 988 times; tau 1.22e-06 to 3.97, horizon 3.97
sampling    fixed_small, clipped to 1
trained     schedule cosine, horizon 4
base        runs/base/model (bbbbbbbbbbbb...)
weights     )" + std::to_string(tensors) +
                            R"( tensors in
            m/unet/diffusion_pytorch_model.safetensors
state       complete, and every value is finite
)");
  EXPECT_EQ(tree(folder.path()), before);  // nothing is written
}

std::string length_of(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

TEST(ShowModel, SaysInOneLineWhatIsWrong) {
  // A good folder in which one file is another.
  struct Row {
    std::string name;
    std::function<void(const Folder&)> spoil;
    int code;
    Words words;
  };
  const auto replace = [](const char* file, std::string text) {
    return [file, text = std::move(text)](const Folder& f) { write(f / file, text); };
  };
  const auto with_value = [](float value) {
    return [value](const Folder& f) {
      std::string bytes = contents(f / weights);
      std::memcpy(bytes.data() + bytes.size() - 4, &value, 4);
      write(f / weights, bytes);
    };
  };
  std::string many = "{";
  for (int i = 0; i < 1'000'001; ++i)
    many += "\"" + std::to_string(i) + R"(":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)";
  many.back() = '}';
  const std::vector<Row> rows{
      {"no folder", [](const Folder& f) { fs::remove_all(f / "m"); }, 66, {"m: no such folder"}},
      {"a file", [](const Folder& f) { fs::remove_all(f / "m"), write(f / "m", "x"); }, 66, {"m: is not a folder"}},
      {"no configuration", [](const Folder& f) { fs::remove(f / "m/unet/config.json"); }, 66, {"has no config.json"}},
      {"no weights", [](const Folder& f) { fs::remove(f / weights); }, 66, {weights, "no such file"}},
      {"a pickle",
       [](const Folder& f) { fs::rename(f / weights, f / "m/unet/diffusion_pytorch_model.bin"); },
       66,
       {"only Python can read", "safetensors.torch"}},
      {"weights are a folder",
       [](const Folder& f) { fs::remove(f / weights), fs::create_directory(f / weights); },
       66,
       {weights, "is a directory"}},
      {"a pipe",
       [](const Folder& f) { fs::remove(f / weights), ::mkfifo((f / weights).c_str(), 0600); },
       66,
       {weights}},
      {"empty", replace(weights, ""), 65, {weights, "the file is empty"}},
      {"seven bytes", replace(weights, "1234567"), 65, {weights, "a file of 7 bytes"}},
      {"no header", replace(weights, length_of(0)), 65, {"does not begin with '{'"}},
      {"a longer header", replace(weights, length_of(100) + "{}"), 65, {"100 bytes, but the file has 2 more"}},
      {"the longest header", replace(weights, length_of(~std::uint64_t{0})), 65, {"18446744073709551615 bytes"}},
      {"an LFS pointer", replace(weights, "version https://git-lfs.github.com/spec/v1\n"), 65, {"Git LFS pointer"}},
      {"a page", replace(weights, "<!DOCTYPE html><html>"), 65, {"an HTML page"}},
      {"another network's",
       replace(weights, length_of(2) + "{}"),
       65,
       {"tensor 'conv_in.weight' is missing", "wrong in all"}},
      {"many tensors", replace(weights, length_of(many.size()) + many), 65, {"more than 1000000 tensors"}},
      {"deep", replace(weights, length_of(10'001) + "{" + std::string(10'000, '[')), 65, {"not valid JSON"}},
      {"cut off",
       [](const Folder& f) { fs::resize_file(f / weights, fs::file_size(f / weights) - 1); },
       65,
       {weights, "it is cut off"}},
      {"longer", [](const Folder& f) { write(f / weights, contents(f / weights) + "x"); }, 65, {"1 bytes follow"}},
      {"not a number", with_value(NAN), 65, {weights, "value ", " is nan"}},
      {"infinite", with_value(-INFINITY), 65, {weights, " is -inf"}},
      {"configuration is a page", replace("m/unet/config.json", "<html>"), 65, {"config.json: an HTML page"}},
      {"another class",
       replace("m/unet/config.json", R"({"_class_name": "VQModel"})"),
       65,
       {"'VQModel' is not supported"}},
      {"schedule", replace("m/scheduler/scheduler_config.json", "{\n\"beta_end\":}"), 65, {"line 2: not valid JSON"}},
      {"index", replace("m/model_index.json", "[]"), 65, {"model_index.json: is an array"}},
      {"origin", replace("m/implicit_diffusion.json", R"({"horizon": "x"})"), 65, {"horizon: \"x\" is not a number"}},
  };
  const Folder good;
  write_model_folder(good / "m", small_model(), small_theta());
  for (const Row& row : rows) {
    const Folder folder;
    fs::copy(good / "m", folder / "m", fs::copy_options::recursive);
    row.spoil(folder);
    [[maybe_unused]] const std::uintmax_t size =
        fs::is_regular_file(folder / weights) ? fs::file_size(folder / weights) : 0;
    const auto count = std::distance(fs::recursive_directory_iterator(folder.path()), {});
    Launch launch{.arguments = {"show-model", "m"}, .folder = folder.path()};
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    // No more memory than the file and 64 MB, beside the 60 MB of addresses that the program itself takes.
    launch.most_memory = size + (rlim_t{124} << 20);
#endif
    const Result result = run(launch);
    EXPECT_EQ(result.code, row.code) << row.name << ": " << result.err;
    EXPECT_TRUE(is_error_line(result.err, row.words)) << row.name;
    EXPECT_EQ(std::distance(fs::recursive_directory_iterator(folder.path()), {}), count) << row.name;
  }
}

}  // namespace
}  // namespace program_test
