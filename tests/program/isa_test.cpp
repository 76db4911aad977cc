// The levels of the kernels: v3 and v4 give the same bits; the baseline, which has no fma, very nearly the same run.
#include <algorithm>
#include <cmath>
#include <iostream>

#include "implicit_diffusion/simd/isa.hpp"
#include "program/run_program.hpp"

namespace program_test {
namespace {

using implicit_diffusion::Isa;
using implicit_diffusion::machine_isa;

// The run at a level, in a folder of that name.
void run_at(const Folder& folder, const std::string& level, Words arguments) {
  arguments.insert(arguments.begin(), "run");
  arguments.insert(arguments.end(), {"--quiet", "--no-report", "--isa", level, "--output", level});
  const Result result = run(folder, arguments);
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(json(folder / (level + "/summary.json"))["isa"], level);
}

class InstructionSet : public testing::TestWithParam<Words> {};

TEST_P(InstructionSet, V3AndV4GiveTheSameBits) {
  if (machine_isa() < Isa::v4) GTEST_SKIP() << "this machine's best level is " << to_string(machine_isa());
  const Folder folder;
  run_at(folder, "v3", GetParam());
  run_at(folder, "v4", GetParam());
  EXPECT_TRUE(same_bytes(folder / "v3", folder / "v4", {"theta.npy", "samples.npy", "config.toml"}));
}

// 1003 particles: the last group of lanes is not full.
INSTANTIATE_TEST_SUITE_P(
    Program, InstructionSet,
    testing::Values(Words{"langevin-reward", "--steps", "300", "--set", "particles=1003", "--set", "method=implicit"},
                    Words{"langevin-reward", "--steps", "100", "--set", "particles=1003", "--set", "method=nested"},
                    Words{"langevin-reward", "--steps", "300", "--set", "particles=1003", "--set", "method=unrolled"},
                    Words{"langevin-reward", "--steps", "300", "--set", "particles=1003", "--set", "method=guided"},
                    Words{"ebm-wells", "--steps", "200", "--set", "particles=1003"},
                    Words{"ebm-mixture", "--steps", "200", "--set", "particles=1003"}),
    [](const auto& words) {
      std::string name = words.param.back().starts_with("method=") ? words.param.back().substr(7) : words.param.front();
      std::erase(name, '-');
      return name;
    });

TEST(InstructionSets, BaselineGivesVeryNearlyTheSameRun) {
  if (machine_isa() < Isa::v3) GTEST_SKIP() << "this machine has the baseline only";
  const Folder folder;
  const std::string best(to_string(machine_isa()));
  run_at(folder, best, {"langevin-reward"});
  run_at(folder, "baseline", {"langevin-reward"});
  const io::Array a = io::read_npy(folder / (best + "/theta.npy")), b = io::read_npy(folder / "baseline/theta.npy");
  ASSERT_EQ(a.shape, b.shape);
  double largest = 0, at_the_end = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double difference = std::abs(a.values[i] - b.values[i]);
    largest = std::max(largest, difference);
    if (i + a.shape[1] >= a.values.size()) at_the_end = std::max(at_the_end, difference);
  }
  std::cout << "baseline against " << best << ", largest difference of theta: " << at_the_end << " after 5000 steps, "
            << largest << " on the way\n";
  EXPECT_LT(at_the_end, 1e-3);
}

TEST(InstructionSets, ThatTheMachineLacksIsRefused) {
  if (machine_isa() == Isa::v4) GTEST_SKIP() << "this machine has them all";
  const Folder folder;
  const Result result = run(folder, {"run", "langevin-reward", "--isa", "v4"});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(is_error_line(result.err, {"--isa: ", "v4"}));
  EXPECT_FALSE(fs::exists(folder / "runs"));
}

}  // namespace
}  // namespace program_test
