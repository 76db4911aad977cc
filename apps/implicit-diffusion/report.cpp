#include "commands.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "run_report.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

namespace program {

void add_report(CLI::App& app, Action& action) {
  struct Options {
    std::vector<std::string> folders;
    std::string output;
  };
  const auto o = std::make_shared<Options>();
  CLI::App* report = app.add_subcommand("report", "Make the HTML report of a run again, or one that compares several.");
  report->footer("Example: implicit-diffusion report runs/langevin-reward-0 runs/langevin-reward-1");
  report->add_option("DIR", o->folders, "folders of runs; one: its own report.html is made anew")->required();
  report->add_option("--output", o->output, "the file (default: report.html, of one run in its folder)");
  report->callback([o, &action] {
    action = [o] {
      if (o->folders.size() == 1) {
        const std::filesystem::path folder = o->folders.front();
        const std::filesystem::path file =
            o->output.empty() ? folder / "report.html" : std::filesystem::path(o->output);
        write_report(folder, file);
        print(implicit_diffusion::io::display(file) + "\n");
        return 0;
      }
      const std::string output = o->output.empty() ? "report.html" : o->output;
      std::vector<RunFiles> runs;
      for (const std::string& folder : o->folders) {
        const auto repeats = repeats_of(folder);
        for (const auto& r : repeats) runs.push_back(read_run(r));
        if (repeats.empty()) runs.push_back(read_run(folder));
      }
      implicit_diffusion::io::write_file(output, comparison_report(runs));
      print(implicit_diffusion::io::display(output) + "\n");
      return 0;
    };
  });
}

}  // namespace program
