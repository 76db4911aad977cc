#include "experiment/run_directory.hpp"

#include "experiment/registry.hpp"
#include "langevin/checkpoints.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>
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

}  // namespace

std::string_view to_string(Status status) {
  switch (status) {
    case Status::completed:
      return "completed";
    case Status::interrupted:
      return "interrupted";
    case Status::diverged:
      return "diverged";
  }
  return "";
}

bool is_replaced(const fs::path& folder, const fs::path& file) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(file, error).lexically_relative(fs::weakly_canonical(folder, error));
  if (inside.empty()) return false;
  const bool is_run_file = std::find(run_files.begin(), run_files.end(), *inside.begin()) != run_files.end();
  return is_run_file || is_repeat(*inside.begin()) || *inside.begin() == settings_folder;
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
  std::istringstream a(there), b(here);
  std::string one, other;
  while (true) {
    const bool more_a = static_cast<bool>(std::getline(a, one)), more_b = static_cast<bool>(std::getline(b, other));
    if (!more_a && !more_b) return {};
    if (more_a && more_b && one == other) continue;
    constexpr std::size_t longest = 60;
    return fmt::format(": {} there, {} here", more_a ? io::excerpt(one, longest) : "nothing more",
                       more_b ? io::excerpt(other, longest) : "nothing more");
  }
}

io::FolderLock resume_directory(const fs::path& folder, const std::string& configuration) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw Error(ErrorKind::missing, io::display(folder), "no such folder");
  const fs::path file = folder / "config.toml";
  if (!fs::exists(file, error))
    throw Error(ErrorKind::missing, io::display(folder), "has no config.toml: not the folder of a run");
  io::FolderLock lock(folder);
  clean(folder);
  if (const std::string there = without_steps(io::read_file(file)); there != configuration)
    throw Error(ErrorKind::usage, "--resume",
                fmt::format("{} is of another configuration{}; only steps, --threads and --isa may differ",
                            io::display(file), first_difference(there, configuration)));
  return lock;
}

fs::path output_folder(const RunOptions& o, const Common& c) {
  return o.output.empty() ? fs::path("runs") / fmt::format("{}-{}", c.experiment, c.seed) : fs::path(o.output);
}

std::size_t thread_count(const RunOptions& o) {
  return o.threads ? o.threads : std::max(1U, std::thread::hardware_concurrency());
}

void write_configuration(const fs::path& folder, const Common& c) {
  io::write_file(folder / "config.toml", c.resolved);
}

OpenFolder open_folder(const RunOptions& o, const Common& c) {
  const fs::path path = output_folder(o, c);
  OpenFolder folder{
      path, o.resume ? resume_directory(path, without_steps(c.resolved)) : prepare_directory(path, o.overwrite)};
  if (!o.resume) write_configuration(path, c);
  return folder;
}

int close_run(const fs::path& folder, const std::string& table, const RunOptions& o, int code,
              const std::function<std::string()>& report) {
  if (!o.no_report) io::write_file(folder / "report.html", report());
  print(table + fmt::format("  {:<29}{}\n", o.no_report ? "files" : "report",
                            io::display(o.no_report ? folder : folder / "report.html")));
  return code;
}

std::vector<fs::path> repeats_of(const fs::path& folder) {
  std::vector<fs::path> runs;
  std::error_code error;
  for (const fs::path& p : io::list_directory(folder))
    if (is_repeat(p) && fs::exists(p / "config.toml", error)) runs.push_back(p);
  std::sort(runs.begin(), runs.end(), [](const fs::path& a, const fs::path& b) {
    const std::string x = a.filename().string(), y = b.filename().string();
    return x.size() != y.size() ? x.size() < y.size() : x < y;
  });
  return runs;
}

RunFiles read_run(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw Error(ErrorKind::missing, io::display(folder), "no such folder");
  if (!fs::exists(folder / "config.toml", error))
    throw Error(ErrorKind::missing, io::display(folder), "has no config.toml: not the folder of a run");
  RunFiles run;
  run.folder = folder;
  const Experiment experiment = load_experiment((folder / "config.toml").string(), {});
  if (!std::holds_alternative<Configuration>(experiment))
    throw Error(ErrorKind::usage, io::display(folder),
                "is not the folder of a single Langevin run: it cannot be compared");
  run.configuration = std::get<Configuration>(experiment);
  run.summary = read_summary(io::read_file(folder / "summary.json"), io::display(folder / "summary.json"));
  io::CsvTable metrics = io::read_csv(folder / "metrics.csv", io::EmptyCell::nan);
  run.header = std::move(metrics.header);
  run.columns = std::move(metrics.columns);
  for (const char* name : {"step", "gradient_evaluations", "seconds", "reward"})
    if (std::find(run.header.begin(), run.header.end(), name) == run.header.end())
      throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), fmt::format("has no column {}", name));
  if (run.columns.front().empty()) throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), "has no rows");
  const auto at = std::find(run.header.begin(), run.header.end(), "step") - run.header.begin();
  for (const double step : run.columns[static_cast<std::size_t>(at)])
    if (!std::isfinite(step))
      throw Error(ErrorKind::data, io::display(folder / "metrics.csv"), "has a row without a step");

  const io::Array theta = io::read_npy(folder / "theta.npy");
  const std::size_t p = run.configuration.start.theta.size();
  if (theta.shape.size() != 2 || theta.shape[1] != p || theta.shape[0] != run.columns.front().size())
    throw Error(
        ErrorKind::data, io::display(folder / "theta.npy"),
        fmt::format("not of shape ({}, {}), as metrics.csv and config.toml say", run.columns.front().size(), p));
  for (std::size_t i = 0; i < theta.shape[0]; ++i)
    run.theta.emplace_back(theta.values.begin() + static_cast<std::ptrdiff_t>(i * p),
                           theta.values.begin() + static_cast<std::ptrdiff_t>((i + 1) * p));
  const Potential<float> potential = make_potential(run.configuration.potential);
  for (std::size_t i = 0; i < run.theta.size(); ++i) {
    const bool finite =
        std::all_of(run.theta[i].begin(), run.theta[i].end(), [](double v) { return std::isfinite(v); });
    if (!finite || potential.find_inadmissible(run.theta[i]))
      throw Error(ErrorKind::data, io::display(folder / "theta.npy"),
                  fmt::format("row {} is not a parameter of the potential", i + 1));
  }
  if (fs::exists(folder / "samples.npy", error))
    run.samples = read_population(folder / "samples.npy", potential.dimension());
  if (fs::exists(folder / "snapshots.npy", error)) {
    const io::Array a = io::read_npy(folder / "snapshots.npy");
    const auto& steps = run.configuration.snapshots;
    if (a.shape.size() != 3 || a.shape[0] > steps.size() || a.shape[2] != potential.dimension())
      throw Error(ErrorKind::data, io::display(folder / "snapshots.npy"), "has another shape than config.toml says");
    const std::size_t each = a.shape[1] * a.shape[2];
    for (std::size_t k = 0; k < a.shape[0]; ++k) {
      Population<float> x(a.shape[1], a.shape[2]);
      for (std::size_t i = 0; i < each; ++i)
        x(i / a.shape[2], i % a.shape[2]) = static_cast<float>(a.values[k * each + i]);
      run.snapshots.emplace_back(steps[k], std::move(x));
    }
  }
  return run;
}

void write_run(const fs::path& folder, const RunResult& result, const Recorder& recorder, const Summary& summary) {
  io::write_file(folder / "metrics.csv", io::csv_bytes(recorder.header(), recorder.rows()));
  const std::size_t p = result.state.theta.size();
  io::write_file(folder / "theta.npy", io::npy_bytes(recorder.theta(), std::array{recorder.theta().size() / p, p}));
  if (result.outcome.status != Status::diverged) {
    const Population<float>& x = result.state.population;
    std::vector<float> rows(x.size() * x.dimension());
    for (std::size_t i = 0; i < x.size(); ++i)
      for (std::size_t j = 0; j < x.dimension(); ++j) rows[i * x.dimension() + j] = x(i, j);
    io::write_file(folder / "samples.npy", io::npy_bytes(rows, std::array{x.size(), x.dimension()}));
  }
  if (const std::size_t each = result.state.population.size() * result.state.population.dimension();
      !recorder.snapshots().empty())
    io::write_file(folder / "snapshots.npy",
                   io::npy_bytes(recorder.snapshots(),
                                 std::array{recorder.snapshots().size() / each, result.state.population.size(),
                                            result.state.population.dimension()}));
  io::write_file(folder / "summary.json", to_json(summary));
}

}  // namespace program
