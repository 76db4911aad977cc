#include "images/strip.hpp"

#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <algorithm>
#include <cstdlib>

namespace program {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

std::vector<std::pair<std::int64_t, fs::path>> pictures_by_step(const fs::path& folder) {
  std::vector<std::pair<std::int64_t, fs::path>> all;
  for (const fs::path& p : io::list_directory(folder / "pictures"))
    if (const std::string name = p.filename().string(); name.starts_with("step-") && name.ends_with(".png"))
      all.emplace_back(std::strtoll(name.c_str() + 5, nullptr, 10), p);
  std::ranges::sort(all);
  return all;
}

std::string strip_of(const std::vector<fs::path>& pictures, std::size_t height) {
  std::vector<data::Image> rows;
  constexpr std::size_t padding = 2;  // as in image_grid
  for (const fs::path& file : pictures) {
    const data::Image grid = data::decode_image(io::read_file(file), file.string());
    const std::size_t inner = grid.shape.width - std::min(grid.shape.width, 2 * padding);
    if (grid.shape.height < height + 2 * padding || inner == 0 || (!rows.empty() && rows[0].shape.width != inner) ||
        (!rows.empty() && rows[0].shape.channels != grid.shape.channels))
      throw Error(ErrorKind::data, io::display(file), "is not a picture of this run");
    data::Image row{{grid.shape.channels, height, inner}, {}};
    for (std::size_t c = 0; c < grid.shape.channels; ++c)
      for (std::size_t i = 0; i < height; ++i) {
        const auto from = grid.values.begin() + static_cast<std::ptrdiff_t>(
                                                    (c * grid.shape.height + padding + i) * grid.shape.width + padding);
        row.values.insert(row.values.end(), from, from + static_cast<std::ptrdiff_t>(inner));
      }
    rows.push_back(std::move(row));
  }
  return data::png_bytes(data::image_grid(rows, 1, padding));
}

std::vector<fs::path> halving_pictures(const fs::path& folder) {
  const auto all = pictures_by_step(folder);
  std::vector<fs::path> some;
  for (std::size_t k = all.size(); k-- > 0;) {
    some.push_back(all[k].second);
    const std::int64_t half = all[k].first / 2;
    while (k > 0 && all[k - 1].first > half) --k;
  }
  return some;
}

}  // namespace program
