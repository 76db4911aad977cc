#include "experiment/registry.hpp"

#include "experiment/table_reader.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {

// Each is defined in the folder of its kind.
ReadExperiment read_langevin, read_langevin_comparison, read_finite_state, read_rates, read_denoising_gaussian,
    read_denoising_mixture, read_ebm_network, read_images;

namespace {

using namespace implicit_diffusion;

// The table of kinds. The first is that of a file that does not say.
const EnumNames<ReadExperiment*> kinds{{"langevin", read_langevin},
                                       {"langevin-comparison", read_langevin_comparison},
                                       {"finite-state", read_finite_state},
                                       {"rates", read_rates},
                                       {"denoising-gaussian", read_denoising_gaussian},
                                       {"denoising-mixture", read_denoising_mixture},
                                       {"ebm-network", read_ebm_network},
                                       {"images", read_images}};

ReadExperiment* kind_in(const Document& d) { return TableReader(d).choice("kind", kinds.front().second, kinds); }

// Whether the document can be read, unknown keys aside.
bool can_be_read(const Document& d) {
  try {
    return kind_in(d)(d) != nullptr;
  } catch (const UnknownKey&) {
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Throws if the document can be read once a key that was never asked for is spelt like one that was and is not there:
// then that key is what is wrong, whatever its absence led to.
void blame_misspelling(const Document& d, const std::string& inside, int& tries) {
  const TableReader reader = inside.empty() ? TableReader(d) : TableReader(d).table(inside);
  const std::string prefix = inside.empty() ? "" : inside + ".";
  const toml::table& table = inside.empty() ? d.table : *d.table[inside].as_table();
  std::vector<std::string> known;
  for (const std::string& name : *d.asked)
    if (const std::string key = name.substr(std::min(prefix.size(), name.size()));
        name.starts_with(prefix) && key.find('.') == std::string::npos)
      known.push_back(key);
  for (const auto& [key, node] : table) {
    const auto near = nearest(key.str(), known);
    if (!near || table.contains(*near) || d.asked->contains(prefix + std::string(key.str())) || tries-- <= 0) continue;
    Document corrected = d;
    toml::table& there = inside.empty() ? corrected.table : *corrected.table[inside].as_table();
    there.insert(*near, node);
    there.erase(key.str());
    if (can_be_read(corrected))
      reader.refuse_unknown(node, key.str(), fmt::format("did you mean {}{}?", prefix, *near));
  }
}

}  // namespace

std::unique_ptr<Experiment> read_experiment(const Document& d) {
  try {
    return kind_in(d)(d);
  } catch (const UnknownKey&) {
    throw;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::usage) throw;
    int tries = 20;  // each reads the document once more
    blame_misspelling(d, "", tries);
    for (const auto& [key, node] : d.table)
      if (node.is_table()) blame_misspelling(d, std::string(key.str()), tries);
    throw;
  }
}

std::vector<std::unique_ptr<Experiment>> read_experiments(const Experiments& texts, const Overrides& overrides) {
  std::vector<std::unique_ptr<Experiment>> all;
  for (const auto& [kind, reads] : kinds)
    for (const auto& [name, text] : texts)
      if (const Document d = read_document(text, name, name, ".", overrides); kind_in(d) == reads)
        all.push_back(read_experiment(d));
  return all;
}

std::unique_ptr<Experiment> load_experiment(const std::string& name_or_file, const Overrides& overrides) {
  std::vector<std::string> names;
  for (const auto& [name, text] : built_in_experiments()) {
    if (name == name_or_file) return read_experiment(read_document(text, name + ".toml", name, ".", overrides));
    names.push_back(name);
  }
  const std::filesystem::path path(name_or_file);
  std::error_code error;
  if (path.extension() != ".toml" && !path.has_parent_path() &&
      !std::filesystem::exists(std::filesystem::symlink_status(path, error))) {
    const auto near = nearest(name_or_file, names);
    throw Error(
        ErrorKind::usage, "experiment",
        fmt::format("no experiment is called {}{}", io::excerpt(name_or_file),
                    near ? fmt::format("; did you mean {}?", *near) : "; `implicit-diffusion list` shows them"));
  }
  if (std::filesystem::exists(path / "config.toml", error))
    throw Error(ErrorKind::missing, io::display(path),
                fmt::format("is a directory, a file is meant; did you mean {}?", io::display(path / "config.toml")));
  return read_experiment(read_document(io::read_file(path, longest_configuration), io::display(path),
                                       path.stem().string(), path.has_parent_path() ? path.parent_path() : ".",
                                       overrides));
}

}  // namespace program
