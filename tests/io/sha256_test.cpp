#include "implicit_diffusion/io/sha256.hpp"

#include <gtest/gtest.h>

#include "implicit_diffusion/io/file.hpp"
#include "io/temporary_folder.hpp"

namespace implicit_diffusion::io {
namespace {

std::string sha256(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes);
  return sha.digits();
}

// The examples of FIPS 180-4, and a million letters a.
TEST(Sha256, HasTheKnownDigests) {
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnPieces) {
  const std::string text(200, 'x');
  for (std::size_t piece = 1; piece < 130; ++piece) {
    Sha256 sha;
    for (std::size_t at = 0; at < text.size(); at += piece) sha.update(std::string_view(text).substr(at, piece));
    EXPECT_EQ(sha.digits(), sha256(text)) << piece;
  }
  const TemporaryFolder folder;
  const std::string large(3 * piece_size + 5, 'y');
  write_file(folder / "f", large);
  EXPECT_EQ(sha256_of_file(folder / "f"), sha256(large));
}

}  // namespace
}  // namespace implicit_diffusion::io
