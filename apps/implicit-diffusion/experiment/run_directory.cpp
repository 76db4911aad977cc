#include "experiment/run_directory.hpp"

#include "experiment/console.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <thread>

namespace program {
namespace {

using namespace implicit_diffusion;
namespace fs = std::filesystem;

bool is_repeat(const fs::path& p) {
  const std::string name = p.filename().string();
  return name.starts_with("seed-") && name.size() > 5 && name.find_first_not_of("0123456789", 5) == std::string::npos;
}

constexpr std::array run_files{"config.toml", "summary.json",  "metrics.csv", "theta.npy",
                               "samples.npy", "snapshots.npy", "report.html", "checkpoints"};
// The folder of a comparison's single runs, below which each setting has its own.
constexpr const char* settings_folder = "settings";

// Removes what a run that was killed in the middle of writing a file has left of it.
void clean(const fs::path& folder) {
  io::remove_temporaries(folder);
  io::remove_temporaries(folder / "checkpoints");
  for (const fs::path& p : io::list_directory(folder))
    if (is_repeat(p)) clean(p);
  for (const fs::path& p : io::list_directory(folder / settings_folder)) clean(p);
}

io::FolderLock prepare_directory(const fs::path& folder, bool overwrite) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error))
    throw Error(ErrorKind::output, io::display(folder), "exists and is not a folder");
  io::make_directory(folder);
  io::FolderLock lock(folder);
  clean(folder);
  if (const std::vector<fs::path> there = io::list_directory(folder); !there.empty()) {
    if (!overwrite)
      throw Error(ErrorKind::output, io::display(folder),
                  fmt::format("exists and is not empty; --output names another folder, --overwrite replaces the run in "
                              "it{}",
                              fs::exists(folder / "config.toml", error) ? ", --resume goes on with it" : ""));
    std::vector<fs::path> old;
    for (const char* name : run_files) old.push_back(folder / name);
    std::copy_if(there.begin(), there.end(), std::back_inserter(old),
                 [](const fs::path& p) { return is_repeat(p) || p.filename() == settings_folder; });
    for (const fs::path& p : old) {
      fs::remove_all(p, error);
      if (error) throw Error(ErrorKind::output, io::display(p), "cannot be removed: " + error.message());
    }
  }
  return lock;
}

// The first line in which two configurations differ, in words.
std::string first_difference(const std::string& there, const std::string& here) {
  const std::vector<std::string> a = split(there, '\n'), b = split(here, '\n');
  const auto [one, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  constexpr std::size_t longest = 60;
  return fmt::format(": {} there, {} here", one != a.end() ? io::excerpt(*one, longest) : "nothing more",
                     other != b.end() ? io::excerpt(*other, longest) : "nothing more");
}

io::FolderLock resume_directory(const fs::path& folder, const std::string& configuration) {
  require_run(folder);
  const fs::path file = folder / "config.toml";
  io::FolderLock lock(folder);
  clean(folder);
  Common there;
  there.resolved = ResolvedConfiguration::from_text(io::read_file(file));
  if (there.without_steps() != configuration)
    throw Error(ErrorKind::usage, "--resume",
                fmt::format("{} is of another configuration{}; only steps, --threads and --isa may differ",
                            io::display(file), first_difference(there.without_steps(), configuration)));
  return lock;
}

}  // namespace

std::string_view to_string(Status status) {
  return std::array{"completed", "interrupted", "diverged"}[static_cast<std::size_t>(status)];
}

bool is_replaced(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(folder, error));
  if (inside.empty()) return false;
  const bool is_run_file = std::find(run_files.begin(), run_files.end(), *inside.begin()) != run_files.end();
  return is_run_file || is_repeat(*inside.begin()) || *inside.begin() == settings_folder;
}

fs::path output_folder(const RunOptions& o, const Common& c) {
  return o.output.empty() ? fs::path("runs") / fmt::format("{}-{}", c.experiment, c.seed) : fs::path(o.output);
}

std::size_t thread_count(const RunOptions& o) {
  return o.threads ? o.threads : std::max(1U, std::thread::hardware_concurrency());
}

void write_configuration(const fs::path& folder, const Common& c) {
  io::write_file(folder / "config.toml", c.resolved.text());
}

OpenFolder open_folder(const RunOptions& o, const Common& c) {
  const fs::path path = output_folder(o, c);
  OpenFolder folder{path, o.resume ? resume_directory(path, c.without_steps()) : prepare_directory(path, o.overwrite)};
  if (!o.resume) write_configuration(path, c);
  return folder;
}

void close_run(const fs::path& folder, const std::string& table, const RunOptions& o, const Experiment& experiment) {
  if (!o.no_report) io::write_file(folder / "report.html", experiment.report(folder));
  print(table + fmt::format("  {:<29}{}\n", o.no_report ? "files" : "report",
                            io::display(o.no_report ? folder : folder / "report.html")));
}

void require_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw Error(ErrorKind::missing, io::display(folder), "no such folder");
  if (!fs::exists(folder / "config.toml", error))
    throw Error(ErrorKind::missing, io::display(folder), "has no config.toml: not the folder of a run");
}

std::vector<fs::path> repeats_of(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const fs::path& p : io::list_directory(folder))
    if (is_repeat(p) && fs::exists(p / "config.toml", error)) runs.push_back(p);
  std::ranges::sort(runs, {}, seed_of_repeat);
  return runs;
}

std::uint64_t seed_of_repeat(const fs::path& folder) {
  return std::strtoull(folder.filename().string().c_str() + std::string_view("seed-").size(), nullptr, 10);
}

RunTable read_run_table(const fs::path& folder, const std::vector<std::string>& needed) {
  RunTable run;
  run.folder = folder;
  run.summary = read_summary(io::read_file(folder / "summary.json"), io::display(folder / "summary.json"));
  const fs::path file = folder / "metrics.csv";
  static_cast<io::CsvTable&>(run) = io::read_csv(file, io::EmptyCell::nan);
  const auto refuse = [&](const std::string& what) { throw Error(ErrorKind::data, io::display(file), what); };
  for (const std::string& name : needed)
    if (!column(run, name)) refuse(fmt::format("has no column {}", name));
  if (run.columns.front().empty()) refuse("has no rows");
  for (const double step : *column(run, "step"))
    if (!std::isfinite(step)) refuse("has a row without a step");
  return run;
}

const std::vector<double>* column(const RunTable& run, std::string_view name) {
  const auto found = std::ranges::find(run.header, name);
  return found == run.header.end() ? nullptr : &run.columns[static_cast<std::size_t>(found - run.header.begin())];
}

}  // namespace program
