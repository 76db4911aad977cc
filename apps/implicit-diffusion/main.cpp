// The command-line program: options, and what becomes of errors.
#include "commands.hpp"
#include "configuration.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

namespace program {

void print(const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw implicit_diffusion::Error(implicit_diffusion::ErrorKind::io, "stdout", std::strerror(errno));
    done += static_cast<std::size_t>(n);
  }
}

void print_error(const std::string& text) { std::fputs(text.c_str(), stderr); }

void complain(const std::string& message) {
  print_error(fmt::format("implicit-diffusion: {}\n", implicit_diffusion::io::printable(message)));
}

namespace {

int exit_code(implicit_diffusion::ErrorKind kind) {
  switch (kind) {
    case implicit_diffusion::ErrorKind::usage:
      return exit_usage;
    case implicit_diffusion::ErrorKind::data:
      return 65;
    case implicit_diffusion::ErrorKind::missing:
      return 66;
    case implicit_diffusion::ErrorKind::output:
      return 73;
    case implicit_diffusion::ErrorKind::io:
      return exit_io;
  }
  return exit_io;
}

// CLI11's complaint, with the nearest word for an option or command that does not exist.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error);
  const auto chosen = app.get_subcommands();
  const CLI::App& at = chosen.empty() ? app : *chosen.front();
  std::vector<std::string> words;
  for (const CLI::App* s : at.get_subcommands([](const CLI::App*) { return true; })) words.push_back(s->get_name());
  for (const CLI::Option* o : at.get_options()) words.push_back(o->get_name());
  if (extras || (chosen.empty() && argc > 1)) {
    const auto unknown = [&]() -> std::string {
      if (chosen.empty()) return argv[1];
      const auto rest = chosen.front()->remaining();
      return rest.empty() ? std::string() : rest.front();
    }();
    if (!unknown.empty()) {
      const std::string kind = unknown.starts_with("-") ? "option" : chosen.empty() ? "command" : "argument";
      const auto near = nearest(unknown.substr(0, unknown.find('=')), words);
      return fmt::format("{}: unknown {}{}", unknown, kind,
                         near ? fmt::format("; did you mean {}?", *near) : "; see --help");
    }
  }
  std::string what = error.what();
  std::replace(what.begin(), what.end(), '\n', ' ');
  if (what.starts_with("--")) return what;  // it names the option
  return fmt::format("{}: {}", chosen.empty() ? "command line" : chosen.front()->get_name(), what);
}

// A standard stream that is closed would give its number to the next file that is opened, and messages would end up in
// there. It becomes one that cannot be written.
void reserve_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
}

int run(int argc, char** argv) {
  CLI::App app(
      "Optimization through sampling: find the parameter of a sampling process so that the law it samples is good.",
      "implicit-diffusion");
  app.footer("Example: implicit-diffusion run langevin-reward --seed 1");
  app.set_version_flag("--version", "implicit-diffusion " IMPLICIT_DIFFUSION_VERSION);
  app.require_subcommand(0, 1);
  Action action;
  add_list(app, action);
  add_run(app, action);
  add_report(app, action);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    print((chosen.empty() ? app : *chosen.front()).help());
    return 0;
  } catch (const CLI::CallForVersion& e) {
    print(std::string(e.what()) + "\n");
    return 0;
  } catch (const CLI::ParseError& e) {
    complain(usage_message(app, e, argc, argv));
    return exit_usage;
  }
  if (!action) {
    print_error(app.help());
    return exit_usage;
  }
  return action();
}

}  // namespace
}  // namespace program

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error to report, not a reason to die
  std::signal(SIGXFSZ, SIG_IGN);
  program::reserve_standard_streams();
  try {
    return program::run(argc, argv);
  } catch (const implicit_diffusion::Error& e) {
    program::complain(e.what());
    return program::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    program::complain("memory: not enough for this run");
    return program::exit_io;
  } catch (const std::exception& e) {
    program::complain(fmt::format("unexpected: {}", e.what()));
    return program::exit_io;
  }
}
