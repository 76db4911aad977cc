// Experiment files of the kinds langevin and langevin-comparison.
#include "experiment/registry.hpp"
#include "experiment/table_reader.hpp"
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "langevin/configuration.hpp"

namespace {

std::string kind_of(const program::Document& d) { return d.table["kind"].value_or<std::string>("langevin"); }

std::string resolve(std::string_view text) {
  const program::Document d = program::read_document(text, "input", "input", ".", {});
  return kind_of(d) == "langevin-comparison" ? program::read_comparison(d).resolved
                                             : program::read_configuration(d).resolved;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (const auto& [name, text] : program::built_in_experiments())
    if (kind_of(program::read_document(text, name, name, ".", {})).starts_with("langevin")) {
      all.push_back(text);
      all.push_back(resolve(text));
    }
  return all;
}

// Accepted or refused, without a crash; and the resolved configuration is its own.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string resolved;
  try {
    resolved = resolve(fuzz::text(data, size));
  } catch (const implicit_diffusion::Error&) {
    return 0;
  }
  fuzz::require(resolve(resolved) == resolved, "the resolved configuration resolves to itself");
  return 0;
}
