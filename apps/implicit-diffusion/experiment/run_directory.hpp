// The folder of a run: which files it has, and reading them back for a report.
#pragma once

#include "commands/commands.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/loop/state.hpp"
#include "langevin/recorder.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace program {

std::string_view to_string(implicit_diffusion::Status status);

// Makes the folder ready for a new run, and keeps other runs out of it until the lock goes. An existing one that is not
// empty is refused, unless `overwrite`: then the files of the run that was there go, and nothing else.
implicit_diffusion::io::FolderLock prepare_directory(const std::filesystem::path& folder, bool overwrite);
// The folder of a run that goes on; other runs are kept out likewise. Throws an Error: missing where there is no run in
// it, usage where its configuration, without the number of steps, is another.
implicit_diffusion::io::FolderLock resume_directory(const std::filesystem::path& folder,
                                                    const std::string& configuration);
// The folder that the options name for an experiment, as one of these two, with the configuration in it; with --resume that stays as it is
// until write_configuration, when it is certain that the run goes on.
struct OpenFolder {
  std::filesystem::path path;
  implicit_diffusion::io::FolderLock lock;
};
OpenFolder open_folder(const RunOptions& o, const Common& c);
void write_configuration(const std::filesystem::path& folder, const Common& c);
std::filesystem::path output_folder(const RunOptions& o, const Common& c);
// How many threads the options give a run.
std::size_t thread_count(const RunOptions& o);
// What is left to do once the files of a run are there: its report, and the closing table with the name of that. Returns
// `code`.
int close_run(const std::filesystem::path& folder, const std::string& table, const RunOptions& o, int code,
              const std::function<std::string()>& report);

// True if the file is one that --overwrite removes from the folder.
bool is_replaced(const std::filesystem::path& folder, const std::filesystem::path& file);

// A run as its files tell it.
struct RunFiles {
  std::filesystem::path folder;
  Configuration configuration;
  Summary summary;
  std::vector<std::string> header;  // of metrics.csv
  std::vector<std::vector<double>> columns;
  std::vector<std::vector<double>> theta;                             // a row for each row of metrics.csv
  Population<float> samples;                                          // empty where the run diverged
  std::vector<std::pair<std::int64_t, Population<float>>> snapshots;  // after those steps
};
RunFiles read_run(const std::filesystem::path& folder);

// The folders of the single runs of one with --repeats; empty for a single run.
std::vector<std::filesystem::path> repeats_of(const std::filesystem::path& folder);

// Writes the files of a finished run but its configuration, which is there from its beginning, and the report.
void write_run(const std::filesystem::path& folder, const RunResult& result, const Recorder& recorder,
               const Summary& summary);

}  // namespace program
