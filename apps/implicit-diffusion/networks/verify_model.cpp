// The command `verify-model`: does a model that was exchanged with another program mean the same here?
#include "networks/commands.hpp"

#include "experiment/console.hpp"
#include "implicit_diffusion/io/safetensors.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace program {

int verify_model(const VerifyModelOptions& o) {
  const auto rows = implicit_diffusion::verify_model(o.folder, o.file);
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.name.size());
  std::string text = fmt::format("{:<{}}  largest difference\n", "tensor", width);
  for (const auto& row : rows) text += fmt::format("{:<{}}  {:.2g}\n", row.name, width, row.difference);
  // A misspelt vjp_... must not look like one that agrees.
  std::set<std::string> names{"sample", "timestep", "class_labels", "cotangent"};
  for (const auto& row : rows) names.insert(row.name);
  const implicit_diffusion::io::SafetensorsReader reader(o.file);  // with a name, so that it outlives the loop
  for (const auto& tensor : reader.tensors())
    if (!names.contains(tensor.name))
      text += fmt::format("{:<{}}  not compared\n", implicit_diffusion::io::printable(tensor.name, 200), width);
  print(text);
  const auto worst = std::max_element(rows.begin(), rows.end(),
                                      [](const auto& a, const auto& b) { return a.difference < b.difference; });
  if (worst == rows.end() || worst->difference <= o.tolerance) return 0;
  complain(fmt::format("verify-model: {} differs by {:.2g}, more than the tolerance {:g}", worst->name,
                       worst->difference, o.tolerance));
  return exit_off;
}

}  // namespace program
