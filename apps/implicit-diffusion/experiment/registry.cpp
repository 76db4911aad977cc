#include "experiment/registry.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

namespace program {
namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
namespace io = implicit_diffusion::io;

enum class Kind { langevin, comparison, finite_state, rates, denoising_gaussian, denoising_mixture };
const Words<Kind> kinds{{"langevin", Kind::langevin},
                        {"langevin-comparison", Kind::comparison},
                        {"finite-state", Kind::finite_state},
                        {"rates", Kind::rates},
                        {"denoising-gaussian", Kind::denoising_gaussian},
                        {"denoising-mixture", Kind::denoising_mixture}};

Experiment read_experiment(const Document& d) {
  Section top(d);
  switch (top.word("kind", Kind::langevin, kinds)) {
    case Kind::langevin:
      return read_configuration(d);
    case Kind::comparison:
      return read_comparison(d);
    case Kind::finite_state:
      return read_finite_state(d);
    case Kind::rates:
      return read_rates(d);
    case Kind::denoising_gaussian:
      return read_denoising_gaussian(d);
    case Kind::denoising_mixture:
      return read_denoising(d);
  }
  throw Error(ErrorKind::usage, d.where, "kind: unknown");
}

}  // namespace

Description read_description(std::string_view text, const std::string& name) {
  const Document d = read_document(text, name, name, ".", {});
  Section top(d);
  return {name, top.text("title", ""), top.text("duration", "")};
}

Experiment load_experiment(const std::string& name_or_file, const Overrides& overrides) {
  const auto& experiments = built_in_experiments();
  if (const auto found = experiments.find(name_or_file); found != experiments.end())
    return read_experiment(read_document(found->second, found->first + ".toml", found->first, ".", overrides));

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
  const std::string text = io::read_file(path, longest);
  return read_experiment(read_document(text, io::display(path), path.stem().string(),
                                       path.has_parent_path() ? path.parent_path() : ".", overrides));
}

}  // namespace program
