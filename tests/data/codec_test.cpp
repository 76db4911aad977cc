#include "implicit_diffusion/data/codec.hpp"

#include <cstdio>  // jpeglib.h does not include it

#include <jpeglib.h>

#include <cstdlib>

#include "data/support.hpp"

namespace implicit_diffusion::data {
namespace {

// Another program wrote these files, and says what is in them. JPEG and WebP are defined up to rounding, but the
// libraries' decoders are the same.
TEST(Codec, ReadsWhatPillowWrote) {
  for (const Encoded& one : encoded) {
    SCOPED_TRACE(one.name);
    const Image expected = image_of(one), got = decode_image(from_hex(one.file), "x");
    ASSERT_EQ(got.shape, expected.shape);
    int worst = 0;
    for (std::size_t i = 0; i < got.values.size(); ++i)
      worst = std::max(worst, std::abs(got.values[i] - expected.values[i]));
    EXPECT_LE(worst, std::string_view(one.name).find("PNG") == std::string_view::npos ? 1 : 0);
  }
}

TEST(Codec, ReadsBackThePngThatItWrote) {
  for (const ImageShape& shape : {ImageShape{1, 1, 1}, {3, 1, 1}, {1, 28, 28}, {3, 32, 17}, {3, 5, 300}}) {
    const Image image = random_image(shape, shape.values());
    EXPECT_EQ(decode_image(png_bytes(image), "x"), image);
  }
}

TEST(Codec, RefusesWhatIsNoImage) {
  EXPECT_ERROR(decode_image("", "x.png"), data, "x.png: byte 0: the file is empty; a PNG, JPEG or WebP image is meant");
  EXPECT_ERROR(decode_image("GIF89a", "x.png"), data, "x.png: byte 0: not a PNG, JPEG or WebP image");
  EXPECT_ERROR(decode_image("version https://git-lfs.github.com/spec/v1\n", "x.png"), data, "a Git LFS pointer");
  EXPECT_ERROR(decode_image("<!DOCTYPE html><title>404", "x.png"), data, "an HTML page");
}

// A progressive image of 8 x 8 pixels with a scan for each coefficient: the first ones, then 189. With `refined`, all
// but the last bit of each comes first, which doubles the scans.
std::string jpeg_of_many_scans(bool refined) {
  std::vector<jpeg_scan_info> scans;
  const auto pass = [&](int high, int low) {
    scans.push_back({3, {0, 1, 2}, 0, 0, high, low});
    for (int component = 0; component < 3; ++component)
      for (int k = 1; k < 64; ++k) scans.push_back({1, {component, 0, 0, 0}, k, k, high, low});
  };
  pass(0, refined ? 1 : 0);
  if (refined) pass(1, 0);

  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = jpeg.image_height = 8;
  jpeg.input_components = 3;
  jpeg.in_color_space = JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg.scan_info = scans.data();
  jpeg.num_scans = static_cast<int>(scans.size());
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<unsigned char> row(24);
  for (unsigned i = 0; i < row.size(); ++i) row[i] = static_cast<unsigned char>(i * 83);
  JSAMPROW rows = row.data();
  while (jpeg.next_scanline < jpeg.image_height) jpeg_write_scanlines(&jpeg, &rows, 1);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string out(reinterpret_cast<const char*>(bytes), size);
  std::free(bytes);
  return out;
}

// Each scan passes over all pixels, so a small file could take minutes.
TEST(Codec, RefusesAJpegOfVeryManyScans) {
  EXPECT_EQ(decode_image(jpeg_of_many_scans(false), "x").shape, (ImageShape{3, 8, 8}));
  EXPECT_ERROR(decode_image(jpeg_of_many_scans(true), "x.jpg"), data, "damaged JPEG: it has more than 200 scans");
}

// Every beginning of every file but the whole, and every bit of a PNG, which has check sums. A truncated file may lack
// only what says nothing of pixels, such as the mark at the end of a JPEG: then it may be read, to the same pixels.
TEST(Codec, RefusesEveryTruncation) {
  for (const Encoded& one : encoded) {
    SCOPED_TRACE(one.name);
    const std::string bytes = from_hex(one.file);
    const Image whole = decode_image(bytes, "x");
    std::size_t refused = 0;
    for (std::size_t n = 0; n < bytes.size(); ++n) try {
        EXPECT_EQ(decode_image(bytes.substr(0, n), "x"), whole) << n;
      } catch (const Error& e) {
        ++refused;
        EXPECT_EQ(e.kind(), ErrorKind::data);
        EXPECT_TRUE(std::string(e.what()).starts_with("x: byte ")) << e.what();
      }
    EXPECT_GE(refused, bytes.size() - 12);
  }
}

TEST(Codec, RefusesEveryChangedBitOfAPng) {
  const Image image = random_image({3, 6, 5}, 1);
  const std::string bytes = png_bytes(image);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string other = bytes;
    other[bit / 8] = static_cast<char>(other[bit / 8] ^ (1 << bit % 8));
    try {
      EXPECT_EQ(decode_image(other, "x"), image) << "bit " << bit;  // of a chunk that says nothing of pixels
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::data);
    }
  }
}

// A PNG header that declares 2^31 - 1 pixels a side, and one whose size its few bytes cannot hold.
TEST(Codec, DoesNotBelieveSizes) {
  const auto declared = [](std::uint32_t width, std::uint32_t height) {
    std::string bytes = png_bytes(random_image({1, 2, 2}, 1));
    for (std::size_t k = 0; k < 4; ++k) {
      bytes[16 + k] = static_cast<char>(width >> (24 - 8 * k));
      bytes[20 + k] = static_cast<char>(height >> (24 - 8 * k));
    }
    const auto crc = static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()) + 12, 17));
    for (std::size_t k = 0; k < 4; ++k) bytes[29 + k] = static_cast<char>(crc >> (24 - 8 * k));
    return bytes;
  };
  EXPECT_ERROR(decode_image(declared(2, 3), "x"), data, "damaged PNG");
  EXPECT_ERROR(decode_image(declared(0x7fffffff, 0x7fffffff), "x"), data, "x: byte");
  EXPECT_ERROR(decode_image(declared(9000, 9000), "x"), data, "9000 x 9000 pixels, more than 67108864");
  EXPECT_ERROR(decode_image(declared(1, 70'000), "x"), data, "70000 x 1 pixels, with a side of more than 65535");
  EXPECT_ERROR(decode_image(declared(1000, 1000), "x"), data, "1000 x 1000 pixels, more than its bytes can hold");
  EXPECT_ERROR(decode_image(png_bytes(random_image({1, 10, 10}, 1)), "x", 99), data, "10 x 10 pixels, more than 99");
}

// As torchvision's make_grid: rows of `columns`, two pixels of black between and around.
TEST(ImageGrid, LaysOutRowsWithPadding) {
  std::vector<Image> images;
  for (std::uint8_t k = 1; k <= 5; ++k) images.push_back({{1, 2, 3}, std::vector<std::uint8_t>(6, k)});
  const Image grid = image_grid(images, 3);
  EXPECT_EQ(grid.shape, (ImageShape{1, 2 + 2 * (2 + 2), 2 + 3 * (3 + 2)}));
  std::size_t not_black = 0;
  for (const std::uint8_t v : grid.values) not_black += v != 0;
  EXPECT_EQ(not_black, 5U * 6U);
  const auto at = [&](std::size_t i, std::size_t j) { return grid.values[i * grid.shape.width + j]; };
  EXPECT_EQ(at(2, 2), 1);
  EXPECT_EQ(at(3, 4), 1);
  EXPECT_EQ(at(2, 7), 2);
  EXPECT_EQ(at(2, 12), 3);
  EXPECT_EQ(at(6, 2), 4);
  EXPECT_EQ(at(7, 9), 5);
  EXPECT_EQ(at(6, 12), 0);
  EXPECT_EQ(image_grid(std::span(images).first(2), 8).shape.width, 2U + 2 * 5);
  EXPECT_EQ(image_grid(images, 3, 0).shape, (ImageShape{1, 4, 9}));
}

TEST(ImageGrid, TakesNumbersInMinusOneToOne) {
  const std::vector<float> values{-1, 1, 0, -2, 2, 0.5F, -0.5F, 1 / 127.5F - 1};
  const Image grid = image_grid(values, {1, 2, 2}, 2, 0);
  EXPECT_EQ(grid.values, (std::vector<std::uint8_t>{0, 255, 255, 191, 128, 0, 64, 1}));
}

TEST(ImageGrid, RefusesWhatDoesNotFit) {
  EXPECT_ERROR(image_grid(std::vector<Image>{}), usage, "no images");
  EXPECT_ERROR(image_grid(std::vector<Image>{random_image({1, 2, 2}, 1), random_image({1, 2, 3}, 1)}), usage,
               "image 1 is 1 x 2 x 3, not 1 x 2 x 2");
  EXPECT_ERROR(image_grid(std::vector<float>(5), {1, 2, 2}), usage, "5 numbers for images of 4");
  EXPECT_ERROR(png_bytes({{2, 1, 1}, {0, 0}}), usage, "2 channels");
}

}  // namespace
}  // namespace implicit_diffusion::data
