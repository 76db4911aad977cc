// The command-line program: its streams, and what becomes of errors.
#include "commands/commands.hpp"
#include "experiment/console.hpp"
#include "experiment/launch.hpp"
#include "implicit_diffusion/error.hpp"
#include "networks/environment.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <csignal>
#include <map>
#include <new>
#include <string_view>

namespace program {

namespace {

using implicit_diffusion::ErrorKind;

const std::map<ErrorKind, int> exit_codes{{ErrorKind::usage, exit_usage},
                                          {ErrorKind::data, exit_data},
                                          {ErrorKind::missing, exit_missing},
                                          {ErrorKind::output, exit_output},
                                          {ErrorKind::io, exit_io}};

// A standard stream that is closed would give its number to the next file that is opened, and messages would end up in
// there. It becomes one that cannot be written.
void reserve_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDONLY);
}

}  // namespace
}  // namespace program

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error to report, not a reason to die
  std::signal(SIGXFSZ, SIG_IGN);
  program::reserve_standard_streams();
  program::keep_command_line(argc, argv);
  try {
    program::mute(!program::is_first());
    return program::end_processes(program::dispatch(argc, argv));
  } catch (const implicit_diffusion::Error& e) {
    return program::fail(e.what(), program::exit_codes.at(e.kind()));
  } catch (const std::bad_alloc&) {
    return program::fail("memory: not enough for this run", program::exit_io);
  } catch (const std::exception& e) {
    const std::string_view what = e.what();  // LibTorch's has a stack trace below its first line
    return program::fail(fmt::format("unexpected: {}", what.substr(0, what.find('\n'))), program::exit_io);
  }
}
