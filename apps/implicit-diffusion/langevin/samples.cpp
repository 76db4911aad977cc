#include "langevin/samples.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/samples.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "implicit_diffusion/population_arrays.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

Population<float> read_population(const std::filesystem::path& path, std::size_t dimension) {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::data, io::display(path), what); };
  const io::Array a = io::read_samples(path);
  if (a.shape[1] != dimension) refuse(fmt::format("{} columns, the potential has dimension {}", a.shape[1], dimension));
  Population<float> x = from_rows<float, double>(a.values, dimension);
  if (const auto bad = find_nonfinite(x))
    refuse(fmt::format("row {}, column {} is too large for single precision", bad->sample + 1, bad->coordinate + 1));
  return x;
}

const Population<float>& SampleFile::samples(std::size_t dimension) const {
  std::call_once(once_, [&] { samples_ = read_population(path_, dimension); });
  return *samples_;
}

namespace {

std::string section_of(const std::string& key) { return "crc-" + key; }

}  // namespace

void SampleHashes::add(const std::string& key, const SampleFile& file, std::size_t dimension) {
  const Population<float>& x = file.samples(dimension);
  Entry e{key, file.path()};
  for (std::size_t j = 0; j < x.dimension(); ++j) e.crc = io::crc32(io::bytes_of(x.coordinate(j)), e.crc);
  entries_.push_back(std::move(e));
}

void SampleHashes::save(io::CheckpointWriter& to) const {
  for (const Entry& e : entries_) io::save(to, section_of(e.key), e.crc);
}

void SampleHashes::compare(const io::CheckpointReader& from) const {
  for (const Entry& e : entries_)
    if (const std::string section = section_of(e.key);
        from.contains(section) && from.number<std::uint32_t>(section) != e.crc)
      throw Error(ErrorKind::usage, e.key,
                  fmt::format("{} has changed since this run began: --resume needs it as it was", io::display(e.file)));
}

}  // namespace program
