// The executable with networks, as a user meets it: through the program, which execs it.
#include "models/fixtures.hpp"
#include "program/run_program.hpp"

#include <gtest/gtest.h>

namespace program_test {
namespace {

TEST(Networks, AreListedByTheProgram) {
  Folder folder;
  EXPECT_NE(run(folder, {"--help"}).out.find("verify-model"), std::string::npos);
}

TEST(Networks, ThatWereNotBuiltAreNamedInTheError) {
  Folder folder;
  fs::create_directory(folder.path() / "bin");
  const fs::path alone = folder.path() / "bin/implicit-diffusion";
  fs::copy_file(IMPLICIT_DIFFUSION_PROGRAM, alone);
  const Result r = run(Launch{.arguments = {"verify-model", "a", "b"}, .folder = folder.path(), .program = alone});
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(is_error_line(r.err, {"verify-model", "make build"}));
  EXPECT_EQ(r.out, "");
}

TEST(Networks, BenchTakesOnePartOnly) {
  const Folder folder;
  const Result r = run(folder, {"bench", "--only", "everything"});
  EXPECT_EQ(r.code, 2);
  EXPECT_TRUE(is_error_line(r.err, {"--only", "everything", "networks"})) << r.err;
}

#ifdef IMPLICIT_DIFFUSION_NETWORKS
using implicit_diffusion::fixtures;
using implicit_diffusion::have_fixtures;
using implicit_diffusion::no_fixtures;

TEST(Networks, HaveHelpAndRefuseBadUsage) {
  Folder folder;
  const Result help = run(folder, {"verify-model", "--help"});
  EXPECT_EQ(help.code, 0);
  for (const char* word : {"--tolerance", "--portable-bits", "Example: implicit-diffusion verify-model"})
    EXPECT_NE(help.out.find(word), std::string::npos) << word;
  EXPECT_EQ(run(folder, {"verify-model"}).code, 2);
  for (const char* tolerance : {"-1", "nan", "abc"}) {
    const Result bad = run(folder, {"verify-model", "a", "b", "--tolerance", tolerance});
    EXPECT_EQ(bad.code, 2);
    EXPECT_TRUE(is_error_line(bad.err, {"--tolerance", std::string(tolerance) + " is not a number of 0 or more"}));
  }
  const Result unknown = run(folder, {"verify-model", "a", "b", "--tolerence", "1"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(is_error_line(unknown.err, {"--tolerence", "did you mean --tolerance?"}));
  const Result missing = run(folder, {"verify-model", "nowhere", "b.safetensors"});
  EXPECT_EQ(missing.code, 66);
  EXPECT_TRUE(is_error_line(missing.err, {"nowhere"}));
}

TEST(Networks, VerifyModelsOfAnotherProgram) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  Folder folder;
  for (const char* name : {"unet_google_style", "unet_mnist_class"}) {
    const std::string model = (fixtures() / name).string(), file = (fixtures() / name / "io.safetensors").string();
    const Result good = run(folder, {"verify-model", model, file});
    EXPECT_EQ(good.code, 0) << good.err;
    EXPECT_EQ(good.err, "");
    EXPECT_NE(good.out.find("\noutput "), std::string::npos) << good.out;
    EXPECT_NE(good.out.find("\nvjp_sample "), std::string::npos) << good.out;
    // Rounding is not zero: a difference is seen, and named.
    const Result off = run(folder, {"verify-model", model, file, "--tolerance", "0"});
    EXPECT_EQ(off.code, 1);
    EXPECT_TRUE(is_error_line(off.err, {"verify-model", "tolerance"}));
    EXPECT_EQ(off.out, good.out) << "the same bits again";
  }
  // The instructions that give portable bits are others, or the same; what they give is as good.
  const std::string model = (fixtures() / "unet_mnist_class").string();
  EXPECT_EQ(run(folder, {"verify-model", model, model + "/io.safetensors", "--portable-bits"}).code, 0);
}

// Started by itself it begins again with the environment that LibTorch needs, and does so once.
TEST(Networks, CanBeStartedByThemselves) {
  Folder folder;
  const fs::path networks = fs::path(IMPLICIT_DIFFUSION_PROGRAM).parent_path() / "implicit-diffusion-networks";
  const Result r = run(Launch{
      .arguments = {"verify-model", "nowhere", "b", "--portable-bits"}, .folder = folder.path(), .program = networks});
  EXPECT_EQ(r.code, 66);
  EXPECT_TRUE(is_error_line(r.err, {"nowhere"}));
}
#endif

}  // namespace
}  // namespace program_test
