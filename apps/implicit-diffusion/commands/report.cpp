#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/experiment.hpp"

namespace program {

using namespace implicit_diffusion;

int report(const ReportOptions& o) {
  std::filesystem::path file = o.output.empty() ? "report.html" : o.output;
  if (o.folders.size() == 1) {
    const std::filesystem::path folder = o.folders.front();
    if (o.output.empty()) file = folder / file;
    require_run(folder);
    io::write_file(file, load_experiment((folder / "config.toml").string(), {})->report(folder));
  } else {
    // A file that was not named may be somebody else's: it stays.
    std::error_code none;
    if (o.output.empty() && std::filesystem::exists(file, none))
      throw Error(ErrorKind::output, io::display(file),
                  "exists; --output names another file, or this one to replace it");
    io::write_file(file, side_by_side_report({o.folders.begin(), o.folders.end()}));
  }
  print(io::display(file) + "\n");
  return 0;
}

}  // namespace program
