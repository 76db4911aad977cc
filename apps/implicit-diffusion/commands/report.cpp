#include "langevin/report.hpp"
#include "commands/commands.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"

namespace program {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;

int report(const ReportOptions& o) {
  std::filesystem::path file = o.output.empty() ? "report.html" : o.output;
  if (o.folders.size() == 1) {
    const std::filesystem::path folder = o.folders.front();
    if (o.output.empty()) file = folder / file;
    write_report(folder, file);
  } else {
    // A file that was not named may be somebody else's: it stays.
    std::error_code none;
    if (o.output.empty() && std::filesystem::exists(file, none))
      throw Error(ErrorKind::output, implicit_diffusion::io::display(file),
                  "exists; --output names another file, or this one to replace it");
    std::vector<RunFiles> runs;
    for (const std::string& folder : o.folders) {
      const auto repeats = repeats_of(folder);
      for (const auto& r : repeats) runs.push_back(read_run(r));
      if (repeats.empty()) runs.push_back(read_run(folder));
    }
    implicit_diffusion::io::write_file(file, side_by_side_report(runs));
  }
  print(implicit_diffusion::io::display(file) + "\n");
  return 0;
}

}  // namespace program
