#include "experiment/registry.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

namespace program {

// Each is defined in the folder of its kind.
ReadExperiment read_langevin, read_langevin_comparison, read_finite_state, read_rates, read_denoising_gaussian,
    read_denoising_mixture;

namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
namespace io = implicit_diffusion::io;

// The table of kinds. The first is that of a file that does not say.
const EnumNames<ReadExperiment*> kinds{{"langevin", read_langevin},
                                       {"langevin-comparison", read_langevin_comparison},
                                       {"finite-state", read_finite_state},
                                       {"rates", read_rates},
                                       {"denoising-gaussian", read_denoising_gaussian},
                                       {"denoising-mixture", read_denoising_mixture}};

ReadExperiment* kind_in(const Document& d) { return TableReader(d).choice("kind", kinds.front().second, kinds); }

}  // namespace

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (const auto& [name, read] : kinds) names.emplace_back(name);
  return names;
}

std::string kind_of(std::string_view text, const std::string& name) {
  return std::string(name_of(kind_in(read_document(text, name, name, ".", {})), kinds));
}

Description read_description(std::string_view text, const std::string& name) {
  const Document d = read_document(text, name, name, ".", {});
  TableReader top(d);
  return {name, top.text("title", ""), top.text("duration", "")};
}

std::unique_ptr<Experiment> read_experiment(std::string_view text, const std::string& name,
                                            const Overrides& overrides) {
  const Document d = read_document(text, name, name, ".", overrides);
  return kind_in(d)(d);
}

std::unique_ptr<Experiment> load_experiment(const std::string& name_or_file, const Overrides& overrides) {
  const auto read = [&](std::string_view text, const std::string& where, const std::string& name,
                        const std::filesystem::path& folder) {
    const Document d = read_document(text, where, name, folder, overrides);
    return kind_in(d)(d);
  };
  const auto& experiments = built_in_experiments();
  if (const auto found = experiments.find(name_or_file); found != experiments.end())
    return read(found->second, found->first + ".toml", found->first, ".");

  const std::filesystem::path path(name_or_file);
  const bool is_name = path.extension() != ".toml" && !path.has_parent_path() && !std::filesystem::exists(path);
  if (is_name) {
    std::vector<std::string> names;
    for (const auto& [name, text] : experiments) names.push_back(name);
    const auto near = nearest(name_or_file, names);
    throw Error(
        ErrorKind::usage, "experiment",
        fmt::format("no experiment is called {}{}", io::excerpt(name_or_file),
                    near ? fmt::format("; did you mean {}?", *near) : "; `implicit-diffusion list` shows them"));
  }
  if (std::error_code none; std::filesystem::exists(path / "config.toml", none))
    throw Error(ErrorKind::missing, io::display(path),
                fmt::format("is a directory, a file is meant; did you mean {}?", io::display(path / "config.toml")));
  constexpr std::size_t longest = 16 << 20;
  return read(io::read_file(path, longest), io::display(path), path.stem().string(),
              path.has_parent_path() ? path.parent_path() : ".");
}

}  // namespace program
