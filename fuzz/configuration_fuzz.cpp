// Experiment files of every kind.
#include "experiment/document.hpp"
#include "experiment/registry.hpp"
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"

namespace {

std::string resolve(std::string_view text) {
  return program::read_experiment(program::read_document(text, "input", "input", ".", {}))->common().resolved.text();
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (const auto& [name, text] : program::built_in_experiments()) {
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
