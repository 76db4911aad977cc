// Images made of pixels, such as grids of samples, on a page: PNG files inside it.
//
// The file stands in the page as a data URI, a third longer than it is. Enlarged, every pixel stays a square: small
// images are shown as they are, not smoothed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace implicit_diffusion::report {

// Base64 (RFC 4648), with padding.
std::string base64(std::string_view bytes);

// An element to be the picture of a Figure or of a PictureTable. `description` is for those who cannot see it; every
// pixel is `enlarged` pixels of the page wide, as far as there is room. Throws a usage Error for bytes that are not
// PNG, or an enlargement that is not 1 to 64.
std::string to_img(std::string_view png, const std::string& description, std::size_t enlarged = 1);

}  // namespace implicit_diffusion::report
