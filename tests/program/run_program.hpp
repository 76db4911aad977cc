// Runs the command-line program as a user does: in a folder of its own, with its streams captured.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/npy.hpp"
#include "io/temporary_folder.hpp"

namespace program_test {

namespace fs = std::filesystem;
namespace io = implicit_diffusion::io;
using Folder = io::TemporaryFolder;
using Json = nlohmann::json;

// Arguments of the program.
using Words = std::vector<std::string>;
inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Result {
  int code = -1;  // 128 + its number where a signal ended the program
  std::string out, err;
  double seconds = 0;
};

enum class Stream { captured, closed, full };  // full: /dev/full, where every write fails

struct Launch {
  std::vector<std::string> arguments;
  fs::path folder;  // the working folder
  Stream out = Stream::captured, err = Stream::captured;
  std::vector<std::string> environment{};  // NAME=value, beside what is there
  rlim_t largest_file = RLIM_INFINITY;
  rlim_t most_memory = RLIM_INFINITY;
  fs::path program = IMPLICIT_DIFFUSION_PROGRAM;
};

#ifdef IMPLICIT_DIFFUSION_FAULT
// The environment of a program with tests/reliability/fault.cpp in between.
inline std::vector<std::string> with_shim(std::vector<std::string> variables) {
  variables.insert(variables.end(),
                   {std::string("LD_PRELOAD=") + IMPLICIT_DIFFUSION_FAULT, "ASAN_OPTIONS=verify_asan_link_order=0"});
  return variables;
}
#endif

// A program on its way. One that is still running at the end of the scope is killed.
class Process {
 public:
  explicit Process(const Launch& launch) : out_(std::tmpfile()), err_(std::tmpfile()), begin_(Clock::now()) {
    std::vector<std::string> words{launch.program.string()};
    words.insert(words.end(), launch.arguments.begin(), launch.arguments.end());
    std::vector<char*> argv, environment;
    for (std::string& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    std::vector<std::string> variables = launch.environment;
    for (std::string& v : variables) environment.push_back(v.data());
    for (char** v = environ; *v != nullptr; ++v) environment.push_back(*v);
    environment.push_back(nullptr);
    const std::string folder = launch.folder.string();

    pid_ = ::fork();
    if (pid_ != 0) return;
    redirect(STDOUT_FILENO, launch.out, ::fileno(out_.get()));
    redirect(STDERR_FILENO, launch.err, ::fileno(err_.get()));
    restrict(RLIMIT_FSIZE, launch.largest_file);
    restrict(RLIMIT_AS, launch.most_memory);
    if (::chdir(folder.c_str()) == 0) ::execve(argv[0], argv.data(), environment.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (running_) ::kill(pid_, SIGKILL);
    if (running_) ::waitpid(pid_, nullptr, 0);
  }

  void send(int signal) const { ::kill(pid_, signal); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  static constexpr double patience = 1200;  // seconds
#else
  static constexpr double patience = 120;
#endif
  // Waits for the end. A program that takes longer than the limit is killed, and the test fails.
  Result wait(double limit = patience) {
    int status = 0;
    while (true) {
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended == pid_ || (ended < 0 && errno != EINTR)) break;
      if (elapsed() > limit) {
        ADD_FAILURE() << "the program is still running after " << limit << " s";
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    }
    running_ = false;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text(out_.get()), text(err_.get()),
            elapsed()};
  }

 private:
  using Clock = std::chrono::steady_clock;
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };

  static void restrict(int resource, rlim_t most) {
    const rlimit limit{most, most};
    if (most != RLIM_INFINITY) ::setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  }
  static void redirect(int fd, Stream stream, int captured) {
    if (stream == Stream::captured) ::dup2(captured, fd);
    if (stream == Stream::closed) ::close(fd);
    if (stream == Stream::full) ::dup2(::open("/dev/full", O_WRONLY), fd);
  }
  static std::string text(std::FILE* f) {
    std::string all;
    char buffer[4096];
    std::rewind(f);
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, f)) > 0;) all.append(buffer, n);
    return all;
  }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }

  std::unique_ptr<std::FILE, Close> out_, err_;
  Clock::time_point begin_;
  pid_t pid_ = -1;
  bool running_ = true;
};

inline Result run(const Launch& launch) { return Process(launch).wait(); }
inline Result run(const Folder& folder, std::vector<std::string> arguments) {
  return run(Launch{.arguments = std::move(arguments), .folder = folder.path()});
}

inline std::string contents(const fs::path& file) { return io::read_file(file); }
inline Json json(const fs::path& file) { return Json::parse(contents(file)); }
inline void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

// Everything below a folder: names relative to it, and the bytes of files.
inline std::map<std::string, std::string> tree(const fs::path& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    all[entry.path().lexically_relative(folder).string()] = entry.is_regular_file() ? contents(entry.path()) : "folder";
  return all;
}
inline const Words files_of_a_run{"checkpoints", "config.toml",  "metrics.csv", "report.html",
                                  "samples.npy", "summary.json", "theta.npy"};
// What is in a folder, without the files in `checkpoints`.
inline std::vector<std::string> names(const fs::path& folder) {
  std::vector<std::string> all;
  for (const auto& [name, bytes] : tree(folder))
    if (name.find("checkpoints/") == std::string::npos) all.push_back(name);
  return all;
}

inline std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) all.push_back(line);
  return all;
}

inline std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// One line, `implicit-diffusion: ...`, that has all the words.
inline testing::AssertionResult is_error_line(const std::string& text, const std::vector<std::string>& words) {
  if (!text.starts_with("implicit-diffusion: ") || !text.ends_with('\n') || lines(text).size() != 1)
    return testing::AssertionFailure() << "not one line that begins with the program's name: " << text;
  for (const std::string& word : words)
    if (text.find(word) == std::string::npos)
      return testing::AssertionFailure() << "\"" << word << "\" is not in: " << text;
  return testing::AssertionSuccess();
}

// A command line that is a usage error, and what its line says.
struct Refused {
  const char* name;
  Words arguments, words;
};
inline void PrintTo(const Refused& r, std::ostream* out) { *out << r.name; }

inline testing::AssertionResult same_bytes(const fs::path& a, const fs::path& b,
                                           const std::vector<std::string>& files = {"theta.npy", "samples.npy"}) {
  for (const std::string& name : files)
    if (contents(a / name) != contents(b / name))
      return testing::AssertionFailure() << name << " differs in " << a << " and " << b;
  return testing::AssertionSuccess();
}

// A column of metrics.csv; an empty cell is NaN.
inline std::vector<double> column(const fs::path& run, const std::string& name) {
  const io::CsvTable table = io::read_csv(run / "metrics.csv", io::EmptyCell::nan);
  for (std::size_t k = 0; k < table.header.size(); ++k)
    if (table.header[k] == name) return table.columns[k];
  ADD_FAILURE() << "no column " << name;
  return {};
}

// A small experiment of a user's: a Gaussian whose mean, theta, is to earn a quadratic reward.
inline constexpr const char* small_experiment = R"(particles = 100
steps = 5
step_size = 0.1
log_every = 2

[potential]
kind = "quadratic"
precision = [[1.0]]

[reward]
kind = "quadratic"
centre = [1.0]

[start]
theta = [0.0]
)";

// The text with one part of it replaced.
inline std::string changed(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no such part: " + std::string(from));
  return text.replace(at, from.size(), to);
}

}  // namespace program_test
