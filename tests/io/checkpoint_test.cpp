// Checkpoints are whole or refused: every byte changed, every length cut.
#include "implicit_diffusion/io/checkpoint.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace implicit_diffusion::io {
namespace {

Checkpoint some() {
  Checkpoint c;
  c.put("text", "theta and more");
  c.put("empty", "");
  c.put_numbers("numbers", std::vector<double>{1.5, -0.0, std::numeric_limits<double>::quiet_NaN()});
  c.put_number<std::int64_t>("step", 42);
  return c;
}

std::optional<Error> refusal(const std::string& bytes) {
  try {
    Checkpoint::from_bytes(bytes, "a file");
    return std::nullopt;
  } catch (const Error& e) {
    return e;
  }
}

TEST(Checkpoint, GivesBackWhatWasPut) {
  const Checkpoint c = Checkpoint::from_bytes(some().to_bytes(), "a file");
  EXPECT_EQ(c.get("text"), "theta and more");
  EXPECT_EQ(c.get("empty"), "");
  EXPECT_EQ(c.number<std::int64_t>("step"), 42);
  const std::vector<double> numbers = c.numbers<double>("numbers");
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers[0], 1.5);
  EXPECT_TRUE(std::signbit(numbers[1]));
  EXPECT_TRUE(std::isnan(numbers[2]));
  EXPECT_EQ(c.to_bytes(), some().to_bytes());
  EXPECT_THROW(c.get("other"), Error);
  EXPECT_THROW(c.numbers<double>("text"), Error);
  EXPECT_THROW(c.number<double>("numbers"), Error);
}

TEST(Checkpoint, IsRefusedWhereAByteIsChangedOrMissing) {
  const std::string whole = some().to_bytes();
  ASSERT_FALSE(refusal(whole));
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto error = refusal(bytes);
      ASSERT_TRUE(error) << "byte " << i << ", bit " << bit;
      EXPECT_EQ(error->kind(), ErrorKind::data);
    }
  for (std::size_t length = 0; length < whole.size(); ++length) EXPECT_TRUE(refusal(whole.substr(0, length))) << length;
  EXPECT_TRUE(refusal(whole + "x"));
  EXPECT_TRUE(refusal(whole + whole));
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::directory_iterator(folder)) names.push_back(e.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(CheckpointFolder, KeepsTheNewestTwo) {
  const TemporaryFolder folder;
  for (const std::int64_t step : {5, 10, 100, 20}) {
    Checkpoint c;
    c.put_number("step", step);
    save_checkpoint(folder / "c", step, c);
  }
  EXPECT_EQ(names_in(folder / "c"), (std::vector<std::string>{"step-100.checkpoint", "step-20.checkpoint"}));
}

TEST(CheckpointFolder, TakesTheNewestThatIsWhole) {
  const TemporaryFolder folder;
  std::vector<std::string> refused;
  const auto newest = [&] {
    refused.clear();
    return newest_checkpoint(folder / "c", [&](const std::string& why) { refused.push_back(why); });
  };
  EXPECT_FALSE(newest());
  std::filesystem::create_directory(folder / "c");
  write_file(folder / "c" / "step-x.checkpoint", "not one of ours");
  write_file(folder / "c" / "notes.txt", "neither");
  EXPECT_FALSE(newest());

  for (const std::int64_t step : {9, 10}) {
    Checkpoint c;
    c.put_number("step", step);
    save_checkpoint(folder / "c", step, c);
  }
  EXPECT_EQ(newest()->number<std::int64_t>("step"), 10);
  EXPECT_TRUE(refused.empty());
  write_file(folder / "c" / "step-10.checkpoint", read_file(folder / "c" / "step-10.checkpoint").substr(1));
  EXPECT_EQ(newest()->number<std::int64_t>("step"), 9);
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_NE(refused[0].find("step-10.checkpoint"), std::string::npos) << refused[0];
  write_file(folder / "c" / "step-9.checkpoint", "");
  EXPECT_THROW(newest(), Error);
  EXPECT_EQ(refused.size(), 2u);
}

}  // namespace
}  // namespace implicit_diffusion::io
