#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/registry.hpp"
#include "experiment/run_directory.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "langevin/experiment.hpp"

#include <fmt/format.h>

namespace program {

using namespace implicit_diffusion;

namespace {

// Throws an output Error where the file is one that a report is made of, or another run's.
void refuse_input(const std::filesystem::path& file, const std::vector<std::string>& folders) {
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::output, io::display(file), what); };
  require_no_result(file, "--output", {});
  std::error_code none;
  for (const std::filesystem::path folder : folders) {
    require_run(folder);
    const std::unique_ptr<Experiment> experiment = load_experiment((folder / "config.toml").string(), {});
    for (const std::filesystem::path& input : experiment->common().inputs)
      if (std::filesystem::equivalent(input, file, none))
        refuse(fmt::format("is data of {}; --output names another file", io::display(folder)));
  }
}

}  // namespace

int report(const ReportOptions& o) {
  std::filesystem::path file = o.output.empty() ? "report.html" : o.output;
  if (!o.output.empty()) refuse_input(file, o.folders);
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
