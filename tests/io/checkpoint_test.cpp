// Checkpoints are whole or refused: every byte changed, every length cut. They are written and read in place, without a
// copy in memory.
#include "implicit_diffusion/io/checkpoint.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "io/expect_error.hpp"
#include "io/sections.hpp"
#include "io/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>

namespace implicit_diffusion::io {
namespace {

CheckpointWriter some() {
  CheckpointWriter c;
  c.put("text", "theta and more");
  c.put("empty", "");
  save(c, "numbers", std::vector<double>{1.5, -0.0, std::numeric_limits<double>::quiet_NaN()});
  save(c, "step", std::int64_t{42});
  return c;
}

std::optional<Error> refusal(const std::string& bytes) {
  try {
    const CheckpointReader reader(bytes, "a file");
    return std::nullopt;
  } catch (const Error& e) {
    return e;
  }
}

TEST(Checkpoint, GivesBackWhatWasPut) {
  const CheckpointReader c(some().to_bytes(), "a file");
  EXPECT_EQ(c.text("text"), "theta and more");
  EXPECT_EQ(c.text("empty"), "");
  EXPECT_EQ(c.number<std::int64_t>("step"), 42);
  const std::vector<double> numbers = c.numbers<double>("numbers");
  ASSERT_EQ(numbers.size(), 3u);
  EXPECT_EQ(numbers[0], 1.5);
  EXPECT_TRUE(std::signbit(numbers[1]));
  EXPECT_TRUE(std::isnan(numbers[2]));
  EXPECT_EQ(writer_of(sections_of(c)).to_bytes(), some().to_bytes());
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

// The bytes of some(), made by another program from the description of the format.
TEST(Checkpoint, HasTheFormatThatIsDescribed) {
  const std::string_view hex =
      "494443484b5054310400000005000000656d7074790000000000000000051be0c5070000006e756d62657273180000000000000000000000"
      "0000"
      "f83f0000000000000080000000000000f87fa1676991040000007374657008000000000000002a000000000000004c682a47040000007465"
      "7874"
      "0e00000000000000746865746120616e64206d6f72659694330d9a0000000000000026f9a49a";
  std::string expected;
  for (std::size_t i = 0; i < hex.size(); i += 2)
    expected += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  EXPECT_EQ(some().to_bytes(), expected) << "sorted by name, whatever the order in which they were put";
}

// Numbers that tell their place.
template <class T>
std::vector<T> count_to(std::size_t n) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t number = i * 7 + i / 1000;
    v[i] = static_cast<T>(number);
  }
  return v;
}

Population<float> some_population(std::size_t n, std::size_t d) {
  Population<float> x(n, d);
  for (std::size_t j = 0; j < d; ++j)
    for (std::size_t i = 0; i < n; ++i) x(i, j) = static_cast<float>(i) + 0.25f * static_cast<float>(j);
  return x;
}

TEST(CheckpointWriter, WritesFromWhereTheNumbersAre) {
  const TemporaryFolder folder;
  const std::vector<double> theta = count_to<double>(300'000);  // more than two pieces
  const Population<float> x = some_population(1003, 3);         // its coordinates are padded
  CheckpointWriter writer;
  save(writer, "theta", theta);
  save(writer, "samples", x);
  save(writer, "small", count_to<std::uint8_t>(5));
  writer.write(folder / "a");
  EXPECT_EQ(folder.size(), 1);
  EXPECT_TRUE(read_file(folder / "a") == writer.to_bytes());

  CheckpointWriter copied;
  std::vector<float> samples;
  for (std::size_t j = 0; j < 3; ++j) samples.insert(samples.end(), x.coordinate(j).begin(), x.coordinate(j).end());
  copied.put("theta", std::string(bytes_of(std::span(theta))));
  copied.put("samples", std::string(bytes_of(std::span<const float>(samples))));
  copied.put("small", {'\0', '\7', '\16', '\25', '\34'});
  EXPECT_TRUE(copied.to_bytes() == writer.to_bytes());

  const CheckpointReader reader(folder / "a");
  EXPECT_EQ(reader.names(), (std::vector<std::string>{"samples", "small", "theta"}));
  std::vector<double> theta_read(theta.size());
  Population<float> x_read(1003, 3);
  restore(reader, "theta", theta_read);
  restore(reader, "samples", x_read);
  EXPECT_TRUE(theta_read == theta);
  EXPECT_EQ(x_read, x);
  EXPECT_EQ(reader.numbers<float>("samples"), samples);
}

TEST(CheckpointWriter, TakesPiecesOfAnySize) {
  const std::string content = [] {
    const std::vector<std::uint32_t> numbers = count_to<std::uint32_t>(piece_size);
    return std::string(bytes_of(std::span<const std::uint32_t>(numbers)));
  }();
  const std::string expected = writer_of({{"content", content}, {"next", "short"}}).to_bytes();
  for (const std::size_t size : {std::size_t{1013}, piece_size - 1, piece_size, piece_size + 1, content.size()}) {
    const TemporaryFolder folder;
    CheckpointWriter writer;
    writer.put("content", content.size(), [&](const auto& sink) {
      for (std::size_t at = 0; at < content.size(); at += size) sink(std::string_view(content).substr(at, size));
    });
    writer.put("next", "short");
    writer.write(folder / "a");
    ASSERT_TRUE(read_file(folder / "a") == expected) << size;

    const CheckpointReader reader(folder / "a");
    std::string read(content.size(), '\0');
    reader.read("content", content.size(), [&](const auto& fill) {
      for (std::size_t at = 0; at < read.size(); at += size)
        fill(std::span(read).subspan(at, std::min(size, read.size() - at)));
    });
    EXPECT_TRUE(read == content) << size;
    EXPECT_EQ(reader.text("next"), "short");
  }
}

TEST(CheckpointWriter, LeavesNothingWhereItFails) {
  const TemporaryFolder folder;
  write_file(folder / "a", "old");
  for (const std::size_t given : {0u, 9u, 11u}) {
    CheckpointWriter writer;
    writer.put("ten", 10, [&](const auto& sink) { sink(std::string(given, 'x')); });
    EXPECT_ERROR(writer.write(folder / "a"), usage,
                 "section ten was to have 10 bytes and has " + std::to_string(given));
  }
  CheckpointWriter writer;
  writer.put("throws", 10, [](const auto&) { throw Error(ErrorKind::io, "device", "is lost"); });
  EXPECT_ERROR(writer.write(folder / "a"), io, "device: is lost");
  EXPECT_ERROR(writer.put(std::string(5000, 'n'), ""), usage, "too long");
  EXPECT_EQ(folder.size(), 1);
  EXPECT_EQ(read_file(folder / "a"), "old");
}

TEST(CheckpointReader, RefusesOtherSizes) {
  const CheckpointReader reader(some().to_bytes(), "a file");
  EXPECT_TRUE(reader.contains("text"));
  EXPECT_FALSE(reader.contains("other"));
  EXPECT_EQ(reader.text("text"), "theta and more");
  EXPECT_EQ(reader.text("empty"), "");
  EXPECT_EQ(reader.size("numbers"), 24u);
  EXPECT_EQ(reader.number<std::int64_t>("step"), 42);
  EXPECT_ERROR(reader.text("other"), data, "a file: section other is missing");
  EXPECT_ERROR(reader.numbers<double>("text"), data, "a file: section text is not a whole count of numbers");
  EXPECT_ERROR(reader.number<double>("numbers"), data, "a file: section numbers is not one number");
  std::vector<double> two(2), four(4);
  EXPECT_ERROR(reader.read_into("numbers", std::span(two)), data, "a file: section numbers has another size");
  EXPECT_ERROR(reader.read_into("numbers", std::span(four)), data, "a file: section numbers has another size");
  Population<double> x(2, 2);
  EXPECT_ERROR(restore(reader, "numbers", x), data, "a file: section numbers has another size");
  EXPECT_ERROR(restore(reader, "numbers", four), data, "a file: section numbers has another size");
  const auto read = [&](std::vector<double>& to) {
    reader.read("numbers", 24, [&](const auto& fill) { fill(writable_bytes_of(std::span(to))); });
  };
  EXPECT_ERROR(read(two), usage, "less is asked for");
  EXPECT_ERROR(read(four), usage, "more is asked for");
}

std::string file_of(const std::vector<std::pair<std::string, std::string>>& sections) {
  const auto number = [](auto n) { return std::string(reinterpret_cast<const char*>(&n), sizeof n); };
  std::string out = "IDCHKPT1" + number(static_cast<std::uint32_t>(sections.size()));
  for (const auto& [name, content] : sections) {
    std::string section = number(static_cast<std::uint32_t>(name.size()));
    section.append(name).append(number(static_cast<std::uint64_t>(content.size()))).append(content);
    out.append(section).append(number(crc32(section)));
  }
  out += number(static_cast<std::uint64_t>(out.size() + 12));
  return out + number(crc32(out));
}

TEST(CheckpointReader, TakesSectionsInAnyOrderAndNoneTwice) {
  const CheckpointReader reader(file_of({{"b", "2"}, {"a", "1"}, {"c", ""}}), "a file");
  EXPECT_EQ(reader.text("a") + reader.text("b") + reader.text("c"), "12");
  EXPECT_ERROR(CheckpointReader(file_of({{"b", "2"}, {"a", "1"}, {"b", "2"}}), "a file"), data,
               "a file: damaged checkpoint: a section is there twice at byte");
  EXPECT_ERROR(CheckpointReader(file_of({{std::string(5000, 'n'), ""}}), "a file"), data, "too long a name");
}

void change(const std::filesystem::path& file, std::uint64_t at) {
  std::fstream f(file, std::ios::binary | std::ios::in | std::ios::out);
  f.seekg(static_cast<std::streamoff>(at));
  const int byte = f.get();
  f.seekp(static_cast<std::streamoff>(at));
  f.put(static_cast<char>(byte ^ 1));
}

TEST(CheckpointReader, KeepsTheFileThatItChecked) {
  const TemporaryFolder folder;
  CheckpointWriter writer, other;
  save(writer, "theta", count_to<double>(300'000));
  save(writer, "samples", count_to<float>(1000));
  save(other, "theta", std::vector<double>(300'000));
  writer.write(folder / "a");
  const std::uint64_t size = std::filesystem::file_size(folder / "a");

  const CheckpointReader reader(folder / "a");
  other.write(folder / "a");
  EXPECT_TRUE(reader.numbers<double>("theta") == count_to<double>(300'000)) << "it has lost its name only";

  writer.write(folder / "a");
  const CheckpointReader again(folder / "a");
  change(folder / "a", size - 1000);
  EXPECT_ERROR(again.numbers<double>("theta"), data, "/a: section theta changed after the file was checked");
  EXPECT_EQ(again.numbers<float>("samples"), count_to<float>(1000)) << "this one did not";
  change(folder / "a", size - 1000);
  EXPECT_TRUE(again.numbers<double>("theta") == count_to<double>(300'000));
  std::filesystem::resize_file(folder / "a", size - 1000);
  EXPECT_ERROR(again.numbers<double>("theta"), io, "/a: the file changed while it was read");
}

// More than three pieces, so that damage lies within pieces and across their boundaries.
TEST(CheckpointReader, RefusesDamageAnywhereInALargeFile) {
  const TemporaryFolder folder;
  CheckpointWriter writer;
  save(writer, "a", count_to<double>(300'000));
  save(writer, "b", count_to<float>(300'000));
  writer.write(folder / "a");
  const std::uint64_t size = std::filesystem::file_size(folder / "a");
  for (std::uint64_t k = 0; k < 60; ++k) {
    const std::uint64_t at = k < 3 ? (k + 1) * piece_size : (k * 7919 * 7919) % size;
    change(folder / "a", at);
    EXPECT_ERROR(CheckpointReader(folder / "a"), data, "/a: damaged checkpoint: ");
    change(folder / "a", at);
  }
  EXPECT_NO_THROW(CheckpointReader(folder / "a"));
  std::filesystem::resize_file(folder / "a", size - piece_size);
  EXPECT_ERROR(CheckpointReader(folder / "a"), data, "/a: damaged checkpoint: is cut off at byte");
}

// The largest memory that the process has had, in bytes.
std::int64_t peak_memory() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

// A state of 256 MB: writing and reading it takes a piece for the file, one for reading it back, and little else.
TEST(CheckpointWriter, NeedsLittleMemoryBesideTheState) {
  constexpr std::int64_t little = 4 * static_cast<std::int64_t>(piece_size);
  constexpr std::size_t dimension = 16, state_size = std::size_t{256} << 20;
  const TemporaryFolder folder;
  Population<float> x = some_population(state_size / sizeof(float) / dimension, dimension);
  CheckpointWriter writer;
  save(writer, "samples", x);

  std::int64_t before = peak_memory();
  writer.write(folder / "a");
  EXPECT_LT(peak_memory() - before, little) << "writing";
  const float last = x(x.size() - 1, dimension - 1);
  x(x.size() - 1, dimension - 1) = 0;
  before = peak_memory();
  restore(CheckpointReader(folder / "a"), "samples", x);
  EXPECT_LT(peak_memory() - before, little) << "reading";
  EXPECT_EQ(x(x.size() - 1, dimension - 1), last);

  // A copy of a quarter is seen: memory that was used before and is free by now does not hide it.
  const std::vector<char> copy(state_size / 4, 'x');
  EXPECT_GT(peak_memory() - before, static_cast<std::int64_t>(state_size / 8)) << copy.back();
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
    CheckpointWriter c;
    save(c, "step", step);
    save_checkpoint(folder / "c", step, c);
  }
  EXPECT_EQ(names_in(folder / "c"), (std::vector<std::string>{"step-100.checkpoint", "step-20.checkpoint"}));
}

TEST(CheckpointFolder, IsNotMadeWhereTheRunIsGone) {
  const TemporaryFolder folder;
  EXPECT_ERROR(save_checkpoint(folder / "gone/c", 5, CheckpointWriter()), output, "/gone: was moved or removed");
  EXPECT_FALSE(std::filesystem::exists(folder / "gone"));
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
    CheckpointWriter c;
    save(c, "step", step);
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
