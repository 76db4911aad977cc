#include "experiment/run_directory.hpp"

#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/checkpoint.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <system_error>
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
                               "samples.npy", "snapshots.npy", "energy.npy",  "report.html"};
constexpr const char* configuration_file = run_files.front();
constexpr const char* checkpoints_folder = "checkpoints";
// The weights of a network, at the end and at their best, each with what says how to use them.
constexpr std::array model_folders{"model", "model-best", "classifier"};
constexpr std::array model_files{"config.json",
                                 "model.safetensors",
                                 "model_index.json",
                                 "unet/config.json",
                                 "unet/diffusion_pytorch_model.safetensors",
                                 "scheduler/scheduler_config.json",
                                 "implicit_diffusion.json",
                                 "classifier.json",
                                 "classifier.safetensors"};
constexpr const char* pictures_folder = "pictures";
// The folder of a comparison's single runs, below which each setting has its own.
constexpr const char* settings_folder = "settings";

bool is_run_file(const fs::path& name) { return std::ranges::find(run_files, name) != run_files.end(); }

bool is_model_file(const fs::path& p) {
  return std::ranges::find(model_files, p.filename()) != model_files.end() &&
         std::ranges::find(model_folders, p.parent_path().filename()) != model_folders.end();
}

// What is in a folder itself: nothing where a link leads elsewhere, to what is not this run's.
std::vector<fs::path> list_own(const fs::path& folder) {
  std::error_code error;
  return fs::is_symlink(folder, error) ? std::vector<fs::path>() : io::list_directory(folder);
}

// The folders that may have a run in them, below one that has: of repeats, and of settings.
std::vector<fs::path> inner_folders(const fs::path& folder) {
  std::vector<fs::path> all = list_own(folder / settings_folder);
  std::ranges::copy_if(io::list_directory(folder), std::back_inserter(all), is_repeat);
  std::erase_if(all, [](const fs::path& p) {
    std::error_code error;
    return !fs::is_directory(fs::symlink_status(p, error));
  });
  return all;
}

// Throws an Error if another run is writing to one of them. They stay locked as long as the result lives.
std::vector<std::unique_ptr<io::FolderLock>> lock_inner(const fs::path& folder) {
  std::vector<std::unique_ptr<io::FolderLock>> all;
  for (const fs::path& p : inner_folders(folder)) {
    all.push_back(std::make_unique<io::FolderLock>(p));
    std::ranges::move(lock_inner(p), std::back_inserter(all));
  }
  return all;
}

// Removes what a run that was killed in the middle of writing a file has left of it.
void clean(const fs::path& folder) {
  io::remove_temporaries(folder);
  io::remove_temporaries(folder / checkpoints_folder);
  io::remove_temporaries(folder / pictures_folder);
  for (const char* model : model_folders)
    for (const char* inner : {"", "unet", "scheduler"}) io::remove_temporaries(folder / model / inner);
  for (const fs::path& p : inner_folders(folder)) clean(p);
}

// A config.toml that this program wrote is in its form, line by line, with keys that it always writes and nobody needs
// to. Any other is somebody else's.
bool has_run(const fs::path& folder) try {
  const std::string text = io::read_file(folder / configuration_file, longest_configuration);
  const ResolvedConfiguration c = ResolvedConfiguration::from_text(text);
  const auto has = [&](std::string_view key) {
    return std::ranges::any_of(c.entries, [&](const auto& e) { return e.table.empty() && e.key == key; });
  };
  return has("experiment") && has("title") && has("seed") && c.text() == text;
} catch (const Error&) {
  return false;
}

bool has_result(const fs::path& folder) {
  const std::vector<fs::path> inner = inner_folders(folder), saved = io::list_directory(folder / checkpoints_folder);
  const auto is_there = [&](const char* name) {
    std::error_code error;
    return name != configuration_file && fs::exists(folder / name, error);
  };
  return std::ranges::any_of(saved, io::is_checkpoint) || std::ranges::any_of(run_files, is_there) ||
         std::ranges::any_of(inner, has_result);
}

void remove_file(const fs::path& p) {
  if (::unlink(p.c_str()) != 0 && errno != ENOENT)
    throw Error(ErrorKind::output, io::display(p), "cannot be removed: " + std::generic_category().message(errno));
}

// Only a folder, and an empty one: not a file, nor a link to a folder, which is somebody else's.
void remove_if_empty(const fs::path& folder) { ::rmdir(folder.c_str()); }

// Removes the files of the run in a folder, and of those further in. What makes it known for a run, its configuration,
// goes last, so that a removal that was cut off can be done again; the one of the folder itself may be kept.
void remove_run(const fs::path& folder, bool with_configuration) {
  for (const fs::path& p : inner_folders(folder)) {
    remove_run(p, true);
    remove_if_empty(p);
  }
  remove_if_empty(folder / settings_folder);
  if (!has_run(folder)) return;
  for (const fs::path& p : list_own(folder / checkpoints_folder))
    if (io::is_checkpoint(p)) remove_file(p);
  remove_if_empty(folder / checkpoints_folder);
  for (const char* model : model_folders) {
    std::error_code error;
    if (fs::is_symlink(folder / model, error)) continue;
    for (const char* name : model_files)
      if (fs::exists(folder / model / name, error)) remove_file(folder / model / name);
    for (const char* inner : {"unet", "scheduler"}) remove_if_empty(folder / model / inner);
    remove_if_empty(folder / model);
  }
  for (const fs::path& p : list_own(folder / pictures_folder))
    if (p.extension() == ".png") remove_file(p);
  remove_if_empty(folder / pictures_folder);
  for (const char* name : run_files)
    if (name != configuration_file) remove_file(folder / name);
  if (with_configuration) remove_file(folder / configuration_file);
}

}  // namespace

std::string_view to_string(Status status) {
  return std::array{"completed", "interrupted", "diverged"}[static_cast<std::size_t>(status)];
}

bool is_replaced(const fs::path& folder, const fs::path& file) {
  // By its own name and by that of what it leads to, if it is a link.
  std::error_code error;
  const fs::path there = fs::weakly_canonical(folder, error);
  const auto is_replaced_there = [&](const fs::path& p) {
    const fs::path inside = p.lexically_relative(there);
    return !inside.empty() && *inside.begin() != ".." &&
           (is_run_file(p.filename()) || io::is_checkpoint(p) || is_model_file(p));
  };
  return is_replaced_there(fs::weakly_canonical(file, error)) ||
         is_replaced_there(fs::weakly_canonical(file.has_parent_path() ? file.parent_path() : ".", error) /
                           file.filename());
}

void require_kept(const char* key, const fs::path& file, const RunOptions& o, const Common& c) {
  if (o.overwrite && is_replaced(output_folder(o, c), file))
    throw Error(ErrorKind::usage, key,
                fmt::format("{} would be removed by --overwrite; choose another --output", io::display(file)));
}

bool is_result(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : ".";
  if (io::is_checkpoint(file) || is_model_file(file)) return has_run(folder / "..");
  return is_run_file(file.filename()) && file.filename() != "report.html" && has_run(folder);
}

bool is_in(const fs::path& file, const fs::path& folder) {
  std::error_code none;
  const fs::path whole = fs::weakly_canonical(fs::absolute(file, none), none), part = fs::canonical(folder, none);
  return !none && std::mismatch(part.begin(), part.end(), whole.begin(), whole.end()).first == part.end();
}

void require_no_result(const fs::path& file, const char* option, const std::vector<std::string>& read) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::output, io::display(file), fmt::format("{}; {} names another file", what, option));
  };
  if (is_result(file)) refuse("belongs to a run");
  for (const std::string& folder : read)
    if (!folder.empty() && is_in(file, folder)) refuse(fmt::format("is in {}, which is read", io::display(folder)));
}

fs::path output_folder(const RunOptions& o, const Common& c) {
  return o.output.empty() ? fs::path("runs") / fmt::format("{}-{}", c.experiment, c.seed) : fs::path(o.output);
}

std::size_t thread_count(const RunOptions& o) {
  if (o.threads) return o.threads;
  // This process's share of the machine, and no more than it is bound to.
  std::size_t count = std::thread::hardware_concurrency() / ranks_on_machine();
  if (cpu_set_t bound; ::sched_getaffinity(0, sizeof bound, &bound) == 0)
    count = std::min(count, static_cast<std::size_t>(CPU_COUNT(&bound)));
  return std::max<std::size_t>(1, count);
}

void write_configuration(const fs::path& folder, const Common& c) {
  io::write_file(folder / configuration_file, c.resolved.text());
}

OpenFolder::OpenFolder(const RunOptions& o, const Common& c) : path(output_folder(o, c)) {
  from_first(processes(), [&] {
    if (o.resume) {
      resume(c);
    } else {
      make(o.overwrite);
      write_configuration(path, c);
    }
    return "";
  });
  when_aborted([this] { undo(); });
}

OpenFolder::Undo::~Undo() {
  when_aborted({});
  if (std::uncaught_exceptions() != exceptions) folder.undo();
}

void OpenFolder::undo() const {
  if (!lock_ || !lock_->is_there()) return;
  try {
    if (is_new_ && !has_result(path)) remove_run(path, true);
    for (const fs::path& p : made_) remove_if_empty(p);
  } catch (const std::exception&) {
    // what cannot be removed stays; the exception that is on its way says what went wrong
  }
}

void OpenFolder::make(bool overwrite) {
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_directory(path, error))
    throw Error(ErrorKind::output, io::display(path), "exists and is not a folder");
  made_ = io::make_directory(path);
  lock_.emplace(path);
  clean(path);
  is_new_ = io::list_directory(path).empty();
  if (is_new_) return;
  if (!has_run(path))
    throw Error(
        ErrorKind::output, io::display(path),
        "is not empty, and there is no run in it that --overwrite could replace; --output names another folder");
  if (!overwrite)
    throw Error(ErrorKind::output, io::display(path),
                "exists and is not empty; --output names another folder, --overwrite replaces the run in it, --resume "
                "continues it");
  const auto locks = lock_inner(path);
  is_new_ = true;
  remove_run(path, false);
}

void OpenFolder::resume(const Common& c) {
  require_run(path);
  const fs::path file = path / configuration_file;
  lock_.emplace(path);
  clean(path);
  Common there;
  there.resolved = ResolvedConfiguration::from_text(io::read_file(file));
  if (there.without_steps() != c.without_steps()) {
    const auto [saved, wanted] = first_difference(there.without_steps(), c.without_steps());
    throw Error(ErrorKind::usage, "--resume",
                fmt::format("{} is of another configuration: {} there, {} here; only steps, --threads and --isa may "
                            "differ",
                            io::display(file), saved, wanted));
  }
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

void require_same_seeds(const fs::path& folder, std::uint64_t first, std::size_t count) {
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::usage, "--resume", fmt::format("{} {}", io::display(folder), what));
  };
  const std::vector<fs::path> repeats = repeats_of(folder);
  if (count == 1 && !repeats.empty())
    refuse(fmt::format("has runs of {} seeds; --repeats continues them", repeats.size()));
  std::error_code error;
  for (const char* name : {checkpoints_folder, "metrics.csv"})
    if (count > 1 && fs::exists(folder / name, error)) refuse("has a single run; continue it without --repeats");
  for (const fs::path& p : repeats)
    if (const std::uint64_t seed = seed_of_repeat(p); count > 1 && (seed < first || seed - first >= count))
      refuse(fmt::format("has a run of seed {}; --repeats {} would leave it out", seed, count));
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
