#include "configuration.hpp"
#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> all;
  for (const auto& [name, text] : program::built_in_experiments()) {
    all.push_back(text);
    all.push_back(program::read_configuration(text, name, name, ".", {}).resolved);
  }
  return all;
}

// Accepted or refused, without a crash; and the resolved configuration is its own.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  program::Configuration c;
  try {
    c = program::read_configuration(fuzz::text(data, size), "input", "input", ".", {});
  } catch (const implicit_diffusion::Error&) {
    return 0;
  }
  const std::string again = program::read_configuration(c.resolved, "resolved", "resolved", ".", {}).resolved;
  fuzz::require(again == c.resolved, "the resolved configuration resolves to itself");
  return 0;
}
