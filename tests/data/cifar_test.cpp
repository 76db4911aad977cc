#include "implicit_diffusion/data/cifar.hpp"

#include "data/support.hpp"

namespace implicit_diffusion::data {
namespace {

// Records with these labels and pixels that depend on the number of the record.
std::string records(const std::vector<std::string>& labels) {
  std::string bytes;
  for (std::size_t i = 0; i < labels.size(); ++i) bytes += labels[i] + std::string(cifar_values, static_cast<char>(i));
  return bytes;
}

TEST(Cifar, SizesTellTheVariants) {
  const CifarRecords ten = parse_cifar(records({"\x03", "\x09", std::string(1, '\0')}), "x");
  EXPECT_EQ(ten.variant, CifarVariant::cifar10);
  EXPECT_EQ(ten.labels, (std::vector<std::uint8_t>{3, 9, 0}));
  EXPECT_EQ(ten.values.size(), 3 * cifar_values);
  EXPECT_EQ(ten.values[cifar_values], 1);
  EXPECT_EQ(ten.values.back(), 2);
  const CifarRecords hundred = parse_cifar(records({"\x03\x63", std::string("\x13\0", 2)}), "x");
  EXPECT_EQ(hundred.variant, CifarVariant::cifar100);
  EXPECT_EQ(hundred.labels, (std::vector<std::uint8_t>{99, 0}));
  EXPECT_EQ(hundred.values[cifar_values], 1);
}

// 3074 records of CIFAR-10 have as many bytes as 3073 of CIFAR-100.
TEST(Cifar, LabelsDecideWhereTheSizeDoesNot) {
  const std::string ten = records(std::vector<std::string>(3074, "\x07")),
                    hundred = records(std::vector<std::string>(3073, "\x07\x62"));
  ASSERT_EQ(ten.size(), hundred.size());
  EXPECT_EQ(parse_cifar(ten, "x").variant, CifarVariant::cifar10);
  EXPECT_EQ(parse_cifar(hundred, "x").variant, CifarVariant::cifar100);
}

TEST(Cifar, BadInput) {
  const std::string ten = records({"\x03", "\x09"}), hundred = records({"\x03\x63"});
  EXPECT_ERROR(parse_cifar("", "x"), data, "x: byte 0: the file is empty");
  EXPECT_ERROR(
      parse_cifar(ten.substr(0, 6145), "x"), data,
      "x: byte 3073: 6145 bytes are no multiple of 3073 or 3074, the bytes of a record of CIFAR-10 or CIFAR-100");
  EXPECT_ERROR(parse_cifar(records({"\x03", "\x0a"}), "x"), data,
               "x: record 1 (byte 3073): label 10 is above 9, the last of CIFAR-10");
  EXPECT_ERROR(parse_cifar(records({"\x03\x64"}), "x"), data, "x: record 0 (byte 1): label 100 is above 99");
  EXPECT_ERROR(parse_cifar(records({"\x14\x63"}), "x"), data, "x: record 0 (byte 0): label 20 is above 19");
  EXPECT_ERROR(parse_cifar(hundred, "x", CifarVariant::cifar10), data,
               "records are of 3074 bytes, as CIFAR-100 has them, not of 3073 as those of CIFAR-10");
  EXPECT_ERROR(parse_cifar(ten, "x", CifarVariant::cifar100), data, "records are of 3073 bytes, as CIFAR-10 has them");
  EXPECT_ERROR(parse_cifar("<html>404", "x"), data, "x: byte 0: an HTML page");
}

}  // namespace
}  // namespace implicit_diffusion::data
