#include "implicit_diffusion/io/safetensors.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "io/expect_error.hpp"
#include "io/temporary_folder.hpp"
#include "models/fixtures.hpp"

namespace implicit_diffusion::io {
namespace {

using Sizes = std::vector<std::int64_t>;

std::string length_of(std::uint64_t n) { return {reinterpret_cast<const char*>(&n), sizeof n}; }

// A file with this header and so many bytes of data.
std::string tensors_with_header(const std::string& header, std::size_t data = 0) {
  return length_of(header.size()) + header + std::string(data, '\0');
}
std::string with_tensor(const std::string& dtype, const std::string& shape, const std::string& offsets,
                        std::size_t data) {
  return tensors_with_header(
      R"({"t":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}", data);
}

SafetensorsReader parse_tensors(std::string bytes) { return {std::move(bytes), "m.safetensors"}; }

TEST(Safetensors, ReadsTheExampleOfTheReference) {
  const std::string bytes = length_of(64) + R"({"test":{"dtype":"I32","shape":[2,2],"data_offsets":[0,16]}})" +
                            std::string(4, ' ') + std::string(16, '\0');
  const SafetensorsReader reader = parse_tensors(bytes);
  ASSERT_EQ(reader.tensors().size(), 1U);
  const TensorInfo& t = reader.tensors().front();
  EXPECT_EQ(t.name, "test");
  EXPECT_EQ(t.dtype, Dtype::i32);
  EXPECT_EQ(t.shape, (Sizes{2, 2}));
  EXPECT_EQ(reader.numbers<std::int32_t>("test"), std::vector<std::int32_t>(4));
  EXPECT_EQ(reader.find("other"), nullptr);
}

// The bytes that the reference implementation writes for the same tensors: larger types first, then by name, the header
// padded to a multiple of eight.
TEST(Safetensors, WritesTheBytesOfTheReference) {
  const std::vector<float> a{1, 2}, b{3};
  const std::vector<std::int64_t> n{7};
  const std::vector<std::uint8_t> u{9};
  SafetensorsWriter writer;
  writer.put("b", {1, 1}, std::span<const float>(b));
  writer.put("a", {2}, std::span<const float>(a));
  writer.put("u", {}, std::span<const std::uint8_t>(u));
  writer.put("n", {1}, std::span<const std::int64_t>(n));
  std::string header =
      R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},"b":{"dtype":"F32","shape":[1,1],"data_offsets":[16,20]},)"
      R"("u":{"dtype":"U8","shape":[],"data_offsets":[20,21]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const std::string data("\7\0\0\0\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40\x09", 21);
  EXPECT_EQ(writer.to_bytes(), length_of(header.size()) + header + data);

  const TemporaryFolder folder;
  writer.write(folder / "m.safetensors");
  EXPECT_EQ(read_file(folder / "m.safetensors"), writer.to_bytes());
  EXPECT_EQ(folder.size(), 1);
  const SafetensorsReader reader(folder / "m.safetensors");
  EXPECT_EQ(reader.metadata(), (std::map<std::string, std::string>{{"format", "pt"}}));
  EXPECT_EQ(reader.numbers<float>("a"), a);
  EXPECT_EQ(reader.numbers<std::int64_t>("n"), n);
}

TEST(Safetensors, FixturesAreWrittenAgainByteForByte) {
  if (!have_fixtures()) GTEST_SKIP() << no_fixtures;
  std::size_t tensors = 0;
  for (const char* name : {"scheduler.safetensors", "timestep_embedding.safetensors",
                           "unet_google_style/io.safetensors", "unet_google_style/diffusion_pytorch_model.safetensors",
                           "unet_mnist_class/diffusion_pytorch_model.safetensors"}) {
    const SafetensorsReader reader(fixtures() / name);
    SafetensorsWriter writer;
    writer.metadata = reader.metadata();
    for (const TensorInfo& t : reader.tensors())
      writer.put(t.name, t.dtype, t.shape, [&reader, &t](const PieceSink& sink) {
        std::string bytes(t.bytes(), '\0');
        reader.read(t.name, std::span(bytes));
        sink(bytes);
      });
    EXPECT_TRUE(writer.to_bytes() == read_file(fixtures() / name)) << name;
    tensors += reader.tensors().size();
  }
  EXPECT_GT(tensors, 300U);
}

TEST(Safetensors, EveryShapeAndTypeIsReadBack) {
  SafetensorsWriter writer;
  writer.metadata = {{"a \"quoted\" key", "\xc3\xa9\n"}};
  std::set<std::string> names;
  int n = 0;
  for (const Sizes& shape :
       {Sizes{}, Sizes{0}, Sizes{2, 0}, Sizes{2, 4}, Sizes(32, 1), Sizes{0, std::int64_t{1} << 47}})
    for (int dtype = 0; dtype <= static_cast<int>(Dtype::u64); ++dtype) {
      const auto type = static_cast<Dtype>(dtype);
      if ((type == Dtype::f4 || type == Dtype::f6_e2m3 || type == Dtype::f6_e3m2) &&
          (shape.empty() || shape.size() == 32))
        continue;  // no whole byte
      const std::string name = fmt::format("{} \"{}\" \xe2\x82\xac", to_string(type), n++);
      std::uint64_t count = 1;
      for (const std::int64_t s : shape) count *= static_cast<std::uint64_t>(s);
      const std::uint64_t bits = type == Dtype::f4                                  ? 4
                                 : type == Dtype::f6_e2m3 || type == Dtype::f6_e3m2 ? 6
                                 : type < Dtype::i16                                ? 8
                                 : type < Dtype::i32                                ? 16
                                 : type < Dtype::c64                                ? 32
                                                                                    : 64;
      writer.put(name, type, shape, [size = count * bits / 8](const PieceSink& sink) {
        for (std::uint64_t i = 0; i < size; ++i) sink("x");
      });
      names.insert(name);
    }
  const SafetensorsReader reader = parse_tensors(writer.to_bytes());
  EXPECT_EQ(reader.metadata(), writer.metadata);
  for (const TensorInfo& t : reader.tensors()) EXPECT_EQ(names.erase(t.name), 1U) << t.name;
  EXPECT_TRUE(names.empty());
}

TEST(Safetensors, FloatsBecomeSingle) {
  SafetensorsWriter writer;
  const auto put = [&](const char* name, Dtype dtype, const auto& values) {
    writer.put(name, dtype, {static_cast<std::int64_t>(values.size())}, [&values](const PieceSink& sink) {
      sink({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(values[0])});
    });
  };
  // One, the smallest and the largest subnormal, the smallest normal, the largest, minus two, minus zero.
  const std::vector<std::uint16_t> half{0x3C00, 0x0001, 0x03FF, 0x0400, 0x7BFF, 0xC000, 0x8000};
  const std::vector<std::uint16_t> bfloat{0x3F80, 0x0001, 0x7F7F, 0xC000};
  const std::vector<double> wide{1.0 / 3, -1e-300, 16777217};
  put("half", Dtype::f16, half);
  put("bfloat", Dtype::bf16, bfloat);
  put("wide", Dtype::f64, wide);
  const SafetensorsReader reader = parse_tensors(writer.to_bytes());
  const auto floats = [&](const char* name, std::size_t count) {
    std::vector<float> values(count);
    reader.read_finite(name, values);
    return values;
  };
  const std::vector<float> of_half = floats("half", 7);
  EXPECT_EQ(of_half, (std::vector<float>{1, 0x1p-24F, 0x3FFp-24F, 0x1p-14F, 65504, -2, 0}));
  EXPECT_TRUE(std::signbit(of_half.back()));
  EXPECT_EQ(floats("bfloat", 4), (std::vector<float>{1, 0x1p-133F, 0x1.FEp127F, -2}));
  EXPECT_EQ(floats("wide", 3), (std::vector<float>{1.0F / 3, 0, 16777216}));
}

TEST(Safetensors, ValuesThatAreNotFiniteAreNamed) {
  for (const std::size_t size : {1U, 511U, 512U, 300'000U})
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      std::vector<float> values(size, 1e38F), back(size);
      SafetensorsWriter writer;
      writer.put("w", {static_cast<std::int64_t>(size)}, std::span<const float>(values));
      parse_tensors(writer.to_bytes()).read_finite("w", back);
      EXPECT_EQ(back, values);
      values.back() = bad;
      const SafetensorsReader reader = parse_tensors(writer.to_bytes());
      EXPECT_ERROR(reader.read_finite("w", back), data,
                   fmt::format("m.safetensors: tensor 'w': value {} is {}, at byte ", size - 1, bad));
      reader.read("w", std::span(back));  // not asked
    }
  std::vector<float> one(1);
  const std::vector<double> huge{1e300};
  SafetensorsWriter writer;
  writer.put("w", {1}, std::span<const double>(huge));
  EXPECT_ERROR(parse_tensors(writer.to_bytes()).read_finite("w", one), data, "value 0 is inf");
}

TEST(Safetensors, ReadingNamesWhatDoesNotFit) {
  const SafetensorsReader reader = parse_tensors(with_tensor(R"("I64")", "[2]", "[0,16]", 16));
  std::vector<float> floats(2);
  std::string bytes(3, '\0');
  EXPECT_ERROR(reader.read("u", std::span(floats)), data, "m.safetensors: tensor 'u' is missing");
  EXPECT_ERROR(reader.read("t", std::span(floats)), data,
               "tensor 't': its values are I64, F16, BF16, F32 or F64 is meant");
  EXPECT_ERROR(reader.numbers<float>("t"), data, "its values are I64, F32 is meant");
  EXPECT_ERROR(reader.read("t", std::span(bytes)), usage, "has 16 bytes, 3 are asked for");
}

std::string many_entries(int count) {
  std::string header = R"({"__metadata__":{"a":"")";
  for (int k = 1; k < count; ++k) header += ",\"" + std::to_string(k) + "\":\"\"";
  return header + "}}";
}

// Each of these is refused in one line that names the file; none asks for much memory first.
TEST(Safetensors, RefusesWhatIsNoSafetensorsFile) {
  const auto tensor = [](const char* name, const char* offsets) {
    return fmt::format(R"("{}":{{"dtype":"I32","shape":[2,2],"data_offsets":{}}})", name, offsets);
  };
  const std::string good = R"("t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  struct Row {
    std::string bytes, message;
  };
  std::vector<Row> rows{
      {"", "byte 0: the file is empty"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:1", "byte 0: a Git LFS pointer in place of the file"},
      {"<!DOCTYPE html>\n<html><head>", "byte 0: an HTML page"},
      {"PK\x03\x04 this is what torch.save writes", "byte 0: a zip archive"},
      {std::string(8, '\0'), "the header does not begin with '{'"},
      {length_of(1000) + "{}", "a header of 1000 bytes, but the file has 2 more"},
      {length_of(~std::uint64_t{0}) + "{}", "a header of 18446744073709551615 bytes, but the file has 2 more"},
      {length_of(~std::uint64_t{0} - 7) + "{}", "a header of 18446744073709551608 bytes"},
      {std::string("\x3c\0\0\0\0\xff\xff\xff{}", 10), "bytes, but the file has 2 more"},
      {tensors_with_header("\xff"), "the header does not begin with '{'"},
      {tensors_with_header("{"), "the header is not valid JSON"},
      {tensors_with_header("[]"), "the header does not begin with '{'"},
      {tensors_with_header(" {}"), "the header does not begin with '{'"},
      {tensors_with_header("{}x"), "byte 11: the header is not valid JSON"},
      {tensors_with_header(std::string("{}\0", 3)), "byte 10: a zero byte in the header"},
      {tensors_with_header("{\"\xff\":1}"), "the header is not valid JSON"},
      {tensors_with_header("{\"t\":}"), "the header is not valid JSON"},
      {tensors_with_header(R"({"t":)" + std::string(10'000, '[')),
       "an array in place of dtype, shape and data_offsets"},
      {tensors_with_header(std::string(R"({"t":{"dtype":)") + std::string(10'000, '{')),
       "tensor 't': an object in place of the name of a dtype"},
      {tensors_with_header("{" + good + "," + good + "}", 8), "tensor 't': is there twice"},
      {tensors_with_header(R"({"__metadata__":{"a":1}})"), "a number in place of a text in __metadata__"},
      {tensors_with_header(R"({"__metadata__":[]})"), "an array in place of an object with metadata"},
      {tensors_with_header(R"({"__metadata__":{"a":"1","a":"2"}})"), "__metadata__ has a key twice"},
      {tensors_with_header(many_entries(100'001)), "__metadata__ has more than 100000 entries"},
      {tensors_with_header(R"({"__metadata__":{},"__metadata__":{}})"), "__metadata__ is there twice"},
      {tensors_with_header(R"({"t":null})"), "tensor 't': null in place of dtype, shape and data_offsets"},
      {tensors_with_header(R"({"t":{}})"), "tensor 't': lacks dtype, shape or data_offsets"},
      {tensors_with_header(R"({"t":{"dtype":"F32","dtype":"F32"}})"), "tensor 't': has the key dtype twice"},
      {tensors_with_header(R"({"t":{"strides":[1]}})"), "tensor 't': has the unknown key 'strides'"},
      {with_tensor(R"("F33")", "[2]", "[0,8]", 8), "tensor 't': 'F33' is not a known dtype"},
      {with_tensor("1", "[2]", "[0,8]", 8), "tensor 't': a number in place of the name of a dtype"},
      {with_tensor(R"("F32")", "2", "[0,8]", 8), "tensor 't': a number in place of a list of sizes"},
      {with_tensor(R"("F32")", "[[2]]", "[0,8]", 8), "tensor 't': an array in place of a whole number"},
      {with_tensor(R"("F32")", "[-2]", "[0,8]", 8), "tensor 't': the number -2 in place of a whole number"},
      {with_tensor(R"("F32")", "[2.0]", "[0,8]", 8), "tensor 't': the number '2.0' in place of a whole number"},
      {with_tensor(R"("F32")", "[1e3]", "[0,8]", 8), "tensor 't': the number '1e3' in place of a whole number"},
      {with_tensor(R"("F32")", "[1e999]", "[0,8]", 8), "the header is not valid JSON"},
      {with_tensor(R"("F32")", "[02]", "[0,8]", 8), "the header is not valid JSON"},
      {with_tensor(R"("F32")", "[true]", "[0,8]", 8), "tensor 't': true or false in place of a whole number"},
      {with_tensor(R"("F32")", "[\"2\"]", "[0,8]", 8), "tensor 't': a text in place of"},
      {with_tensor(R"("F32")", "[18446744073709551616]", "[0,8]", 8), "the number '18446744073709551616' in place of"},
      {with_tensor(R"("I32")", "[2,18446744073709551614]", "[0,16]", 16), "is more than 2^48 - 1"},
      {with_tensor(R"("I32")", "[2,9223372036854775807]", "[0,16]", 16), "is more than 2^48 - 1"},
      {with_tensor(R"("I32")", "[281474976710655,281474976710655]", "[0,16]", 16), "is too large"},
      {with_tensor(R"("I64")", "[281474976710655,65536]", "[0,16]", 16), "is too large"},  // times 64 bits
      {with_tensor(R"("U8")",
                   "[" +
                       std::string(64, '1').replace(1, 63,
                                                    [] {
                                                      std::string ones;
                                                      for (int i = 0; i < 32; ++i) ones += ",1";
                                                      return ones;
                                                    }()) +
                       "]",
                   "[0,1]", 1),
       "tensor 't': more than 32 dimensions"},
      {with_tensor(R"("F32")", "[2]", "[8,0]", 8), "tensor 't': data_offsets end at 0, before they begin at 8"},
      {with_tensor(R"("F32")", "[2]", "[0]", 8), "tensor 't': data_offsets are not two numbers"},
      {with_tensor(R"("F32")", "[2]", "[0,8,9]", 8), "tensor 't': data_offsets are not two numbers"},
      {with_tensor(R"("F32")", "[2]", "[4,12]", 12), "tensor 't': begins at byte 4 of the data, and the one before it"},
      {with_tensor(R"("I32")", "[2,2]", "[0,4]", 4),
       "tensor 't': shape [2, 2] of I32 takes 16 bytes, but data_offsets have 4"},
      {with_tensor(R"("F4")", "[3]", "[0,2]", 2), "tensor 't': shape [3] of F4 is no whole number of bytes"},
      {with_tensor(R"("F32")", "[2]", "[0,8]", 6), "the tensors take 8 bytes, but the file has 6 here: it is cut off"},
      {with_tensor(R"("F32")", "[2]", "[0,8]", 8) + "extra_bogus_data", "16 bytes follow the last tensor"},
      {tensors_with_header("{" + tensor("a", "[0,16]") + "," + tensor("b", "[20,36]") + "}", 36),
       "tensor 'b': begins at byte 20 of the data, and the one before it ends at 16"},
      {tensors_with_header("{}", 1), "byte 10: 1 bytes follow the last tensor"},
  };
  for (std::size_t n = 1; n < 8; ++n)
    rows.push_back({std::string(n, '{'), fmt::format("a file of {} bytes is no safetensors file", n)});
  std::string overlapping = "{";
  for (int i = 0; i < 10; ++i) overlapping += (i ? "," : "") + tensor(fmt::format("weight_{}", i).c_str(), "[0,16]");
  rows.push_back(
      {tensors_with_header(overlapping + "}", 16), "begins at byte 0 of the data, but the one before it ends at 16"});

  const TemporaryFolder folder;
  for (const Row& row : rows) {
    EXPECT_ERROR(parse_tensors(row.bytes), data, row.message);
    EXPECT_ERROR(parse_tensors(row.bytes), data, "m.safetensors: ");
    std::ofstream(folder / "m.safetensors", std::ios::binary) << row.bytes;
    EXPECT_ERROR(SafetensorsReader(folder / "m.safetensors"), data, row.message);
  }
}

TEST(Safetensors, AcceptsWhatIsUnusual) {
  EXPECT_TRUE(parse_tensors(tensors_with_header("{}")).tensors().empty());
  EXPECT_TRUE(parse_tensors(tensors_with_header("{} \r\n\t ")).tensors().empty());
  EXPECT_EQ(parse_tensors(with_tensor(R"("F32")", "[2,0]", "[0,0]", 0)).tensors().front().elements(), 0U);
  EXPECT_EQ(parse_tensors(with_tensor(R"("F32")", "[]", "[0,4]", 4)).tensors().front().elements(), 1U);
  EXPECT_EQ(parse_tensors(tensors_with_header(R"({"":{"shape":[1],"data_offsets":[0,1],"dtype":"BOOL"}})", 1))
                .tensors()
                .size(),
            1U);
}

// A hundred million bytes are said to be the header: of a file that has them, and none of it is JSON.
TEST(Safetensors, HeadersHaveALimit) {
  const TemporaryFolder folder;
  const auto sparse = [&](std::uint64_t length) {
    const std::filesystem::path path = folder / "m.safetensors";
    write_file(path, length_of(length) + "{");
    EXPECT_EQ(::truncate(path.c_str(), 200'000'000), 0);
    return path;
  };
  EXPECT_ERROR(SafetensorsReader(sparse(100'000'001)), data, "a header of 100000001 bytes, more than 100000000");
  EXPECT_ERROR(SafetensorsReader(sparse(100'000'000)), data, "byte 9: a zero byte in the header");
  // A name without an end.
  std::string endless = "{\"" + std::string(std::size_t{17} << 20, 'a');
  EXPECT_ERROR(parse_tensors(tensors_with_header(endless)), data, "a word of more than 16777216 bytes");
}

TEST(Safetensors, FilesThatAreNotThere) {
  const TemporaryFolder folder;
  EXPECT_ERROR(SafetensorsReader(folder / "m.safetensors"), missing, "no such file");
  EXPECT_ERROR(SafetensorsReader(folder.path()), missing, "is a directory");
}

TEST(Safetensors, WriterRefusesWhatNoFileCanHold) {
  SafetensorsWriter writer;
  const std::vector<float> one{1};
  const std::span<const float> values(one);
  writer.put("a", {1}, values);
  EXPECT_ERROR(writer.put("a", {1}, values), usage, "tensor 'a' is there twice");
  EXPECT_ERROR(writer.put("__metadata__", {1}, values), usage, "has a reserved name");
  EXPECT_ERROR(writer.put("\xff", {1}, values), usage, "has a name that is not UTF-8");
  EXPECT_ERROR(writer.put("b", {-1}, values), usage, "has a shape that no file can hold");
  EXPECT_ERROR(writer.put("b", {1 << 30, 1 << 30}, values), usage, "has a shape that no file can hold");
  writer.put("c", {2}, values);
  EXPECT_ERROR(writer.to_bytes(), usage, "tensor 'c' was to have 8 bytes and has 4");
  const TemporaryFolder folder;
  EXPECT_ERROR(writer.write(folder / "m.safetensors"), usage, "tensor 'c'");
  EXPECT_EQ(folder.size(), 0);  // nothing half-written
}

// While one thread cuts the file off and fills it again, another reads it: an Error or the values, never a signal.
TEST(Safetensors, AFileThatShrinksIsAnError) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "m.safetensors";
  const std::vector<float> values(100'000, 1);
  SafetensorsWriter writer;
  writer.put("w", {100'000}, std::span<const float>(values));
  writer.write(path);
  const auto whole = static_cast<off_t>(std::filesystem::file_size(path));
  std::atomic<bool> done = false;
  std::thread truncator([&] {
    for (unsigned round = 0; !done; ++round)
      (void)!::truncate(path.c_str(), round % 2 == 0 ? static_cast<off_t>(round * 7919 % 400'000) : whole);
  });
  int refused = 0;
  std::vector<float> back(values.size());
  for (int round = 0; round < 300; ++round) try {
      SafetensorsReader(path).read_finite("w", back);
    } catch (const Error& e) {
      EXPECT_TRUE(e.kind() == ErrorKind::io || e.kind() == ErrorKind::data) << e.what();
      ++refused;
    }
  done = true;
  truncator.join();
  EXPECT_GT(refused, 0);
  // The same without a race: it shrinks after the header was read.
  writer.write(path);
  const SafetensorsReader reader(path);
  ASSERT_EQ(::truncate(path.c_str(), whole / 2), 0);
  EXPECT_ERROR(reader.read("w", std::span(back)), io, "the file changed while it was read");
  // A file that another replaces is still the one that was opened.
  writer.write(path);
  const SafetensorsReader old(path);
  write_file(path, "something else");
  old.read_finite("w", back);
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace implicit_diffusion::io
