// The command `show-data`: what a set of images is, in a few lines, and a contact sheet to look at.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/data/codec.hpp"
#include "implicit_diffusion/data/data_set.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/parallel.hpp"

#include <fmt/format.h>

namespace program {
namespace {

using namespace implicit_diffusion;

// Images that must be decoded one by one are not all looked at; those in memory are.
constexpr std::size_t most_decoded = 10'000;

// What is measured of one image.
struct Measured {
  data::ImageShape shape;
  double brightness;  // mean of all bytes, on the scale of 0 to 1
};

// Every k-th image, so many of them that `most` are not exceeded.
std::vector<std::size_t> evenly(std::size_t size, std::size_t most) {
  const std::size_t count = std::min(size, most);
  std::vector<std::size_t> chosen(count);
  for (std::size_t i = 0; i < count; ++i) chosen[i] = i * size / count;
  return chosen;
}

std::vector<Measured> measure(const data::DataSet& set, const std::vector<std::size_t>& chosen, Workers& workers) {
  std::vector<Measured> all(chosen.size());
  constexpr std::size_t piece = 64;
  workers.for_each((chosen.size() + piece - 1) / piece, 1, [&](std::size_t p) {
    for (std::size_t i = p * piece; i < std::min(chosen.size(), (p + 1) * piece); ++i) {
      const data::Image image = set.image(chosen[i]);
      std::uint64_t sum = 0;
      for (const std::uint8_t b : image.values) sum += b;
      all[i] = {image.shape, static_cast<double>(sum) / (255.0 * static_cast<double>(image.values.size()))};
    }
  });
  return all;
}

std::string between(std::size_t low, std::size_t high) {
  return low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high);
}

std::string describe_classes(const data::DataSet& set) {
  const std::vector<std::string>& names = set.class_names();
  if (names.empty()) return "none";
  std::vector<std::size_t> counts(names.size());
  for (std::size_t i = 0; i < set.size(); ++i) ++counts[*set.label(i)];
  std::string text = fmt::format("{}:", names.size());
  constexpr std::size_t most_named = 20;
  for (std::size_t c = 0; c < std::min(names.size(), most_named); ++c)
    text += fmt::format("{} {} ({})", c == 0 ? "" : ",", names[c], counts[c]);
  if (names.size() > most_named) text += fmt::format(", and {} more", names.size() - most_named);
  return text;
}

// Small images as they are; of the others the middle, in 64 x 64.
data::Image contact_sheet(const data::DataSet& set, std::size_t count, const std::vector<Measured>& measured) {
  constexpr std::size_t largest = 64;
  data::ImageShape shape = measured.front().shape;
  for (const Measured& m : measured) {
    if (m.shape.channels == 3) shape.channels = 3;
    if (m.shape.height != shape.height || m.shape.width != shape.width) shape.height = shape.width = largest;
  }
  if (shape.height > largest || shape.width > largest) shape.height = shape.width = largest;
  std::vector<data::Image> images;
  for (const std::size_t i : evenly(set.size(), count)) images.push_back(data::fit(set.image(i), shape));
  std::size_t columns = 1;
  while (columns * columns < images.size()) ++columns;
  return data::image_grid(images, columns);
}

// A sheet that replaced a part of what it shows would be a loss, and one in a folder of images would be read as one of
// them the next time.
void refuse_input(const std::filesystem::path& file, const std::filesystem::path& path, const data::DataSet& set) {
  std::error_code none;
  const bool exists = std::filesystem::exists(file, none);
  if (!exists && set.kind() != data::Kind::image_folder) return;
  if (is_in(file, path))
    throw Error(ErrorKind::output, io::display(file),
                exists ? "belongs to the data set; --output names another file"
                       : "would become a part of the data set; --output names a file outside of it");
}

}  // namespace

int show_data(const ShowDataOptions& o) {
  const std::filesystem::path file = o.output.empty() ? "contact-sheet.png" : o.output;
  const auto set = data::open_data_set(o.path, {.split = o.test ? data::Split::test : data::Split::train});
  std::error_code none;
  // A file that was not named may be somebody else's: it stays.
  if (o.output.empty() && std::filesystem::exists(file, none))
    throw Error(ErrorKind::output, io::display(file), "exists; --output names another file, or this one to replace it");
  require_no_result(file, "--output", {});
  refuse_input(file, o.path, *set);
  Workers workers(thread_count({}));
  const bool is_in_memory = set->shape().has_value();
  const std::vector<std::size_t> chosen = evenly(set->size(), is_in_memory ? set->size() : most_decoded);
  const std::vector<Measured> measured = measure(*set, chosen, workers);
  data::ImageShape low = measured.front().shape, high = low;
  double brightness = 0;
  for (const Measured& m : measured) {
    low = {std::min(low.channels, m.shape.channels), std::min(low.height, m.shape.height),
           std::min(low.width, m.shape.width)};
    high = {std::max(high.channels, m.shape.channels), std::max(high.height, m.shape.height),
            std::max(high.width, m.shape.width)};
    brightness += m.brightness;
  }
  io::write_file(file, data::png_bytes(contact_sheet(*set, o.count, measured)));

  const std::string of = chosen.size() < set->size() ? fmt::format(" (of {} images)", chosen.size()) : "";
  print(
      fmt::format("kind      {}\n"
                  "images    {}\n"
                  "height    {}{}\n"
                  "width     {}{}\n"
                  "channels  {}{}\n"
                  "classes   {}\n"
                  "mean      {:.4f}{}\n"
                  "sheet     {}\n",
                  to_string(set->kind()), set->size(), between(low.height, high.height), of,
                  between(low.width, high.width), of, between(low.channels, high.channels), of, describe_classes(*set),
                  brightness / static_cast<double>(measured.size()), of, io::display(file)));
  return 0;
}

}  // namespace program
