// The folder of a run: making it ready, and what all kinds write there and read back.
#pragma once

#include "experiment/experiment.hpp"
#include "experiment/summary.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/loop/state.hpp"

#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace program {

std::string_view to_string(implicit_diffusion::Status status);

// The folder that the options name for an experiment; other runs are kept out of it until the lock goes. A new run: it
// is made or, with --overwrite, the files of the run that was there go and nothing else; the configuration is written.
// If an exception, or another process, ends the run before it has written a result, the configuration goes, and what
// was made for it. With --resume: it must be that of a run with the same configuration, but for the number of steps;
// config.toml stays as it is until write_configuration, when it is certain that the run goes on. Of several processes
// the first one does all this, and the others wait until it is done.
class OpenFolder {
 public:
  OpenFolder(const RunOptions& o, const Common& c);
  OpenFolder(const OpenFolder&) = delete;
  OpenFolder& operator=(const OpenFolder&) = delete;

  const std::filesystem::path path;

 private:
  struct Undo {
    const OpenFolder& folder;
    int exceptions = std::uncaught_exceptions();
    Undo(const OpenFolder& of) : folder(of) {}
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    ~Undo();
  };
  void undo() const;
  void make(bool overwrite);
  void resume(const Common& c);

  bool is_new_ = false;                      // what is in it is of this run
  std::vector<std::filesystem::path> made_;  // the innermost first
  std::optional<implicit_diffusion::io::FolderLock> lock_;
  Undo undo_{*this};  // the last: it goes first
};
void write_configuration(const std::filesystem::path& folder, const Common& c);
std::filesystem::path output_folder(const RunOptions& o, const Common& c);
// How many threads the options give a run.
std::size_t thread_count(const RunOptions& o);
// What is left to do once the files of a run are there: its report, and the closing table with the name of that.
void close_run(const std::filesystem::path& folder, const std::string& table, const RunOptions& o,
               const Experiment& experiment);

// True if the file is one that --overwrite removes from the folder.
bool is_replaced(const std::filesystem::path& folder, const std::filesystem::path& file);
// Throws a usage Error, for the key that names it, where --overwrite would remove a file that the run reads.
void require_kept(const char* key, const std::filesystem::path& file, const RunOptions& o, const Common& c);
// True if a run keeps what it has done under that name: the files of a run, but for its report.
bool is_result(const std::filesystem::path& file);
// True if the file, which need not exist, is in the folder or below; through links as well.
bool is_in(const std::filesystem::path& file, const std::filesystem::path& folder);
// Throws an output Error where a command that an option told to write a file would replace a result of a run, or write
// into one of the folders that it reads; empty names are passed over.
void require_no_result(const std::filesystem::path& file, const char* option, const std::vector<std::string>& read);

// Throws a missing Error unless there is a run in the folder.
void require_run(const std::filesystem::path& folder);
// Throws a usage Error unless runs with these seeds can go on with what is in the folder: a single run is not one of
// repeats, and no seed that is there may be left out.
void require_same_seeds(const std::filesystem::path& folder, std::uint64_t first, std::size_t count);
// The folders of the single runs of one with --repeats; empty for a single run.
std::vector<std::filesystem::path> repeats_of(const std::filesystem::path& folder);
// The seed that the name of one of them says.
std::uint64_t seed_of_repeat(const std::filesystem::path& folder);

// What the files of all runs with a loop tell: metrics.csv, and summary.json.
struct RunTable : implicit_diffusion::io::CsvTable {
  std::filesystem::path folder;
  Summary summary;
};
// Throws a data Error where one of these columns is missing, or a step.
RunTable read_run_table(const std::filesystem::path& folder, const std::vector<std::string>& needed);
// The column of that name; null where there is none.
const std::vector<double>* column(const RunTable& run, std::string_view name);

}  // namespace program
