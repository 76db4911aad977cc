// What can go wrong at the boundary of the library: a file, an option, a shape.
//
// Everything the library throws on purpose is an Error: where (a file with its line or byte, an option, a field), what
// (one line, naming the value), and the kind, from which a program derives its exit code. Numerical trouble inside a
// loop is not an Error but a value: see loop/state.hpp.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace implicit_diffusion {

enum class ErrorKind {
  usage,    // an option, a key or an argument is wrong
  data,     // a file's content is wrong: shape, NaN, damage
  missing,  // a named file or folder does not exist, or is of the wrong type
  output,   // an output folder or file cannot be made
  io,       // reading or writing failed on the way: disk full, broken pipe
};

class Error : public std::runtime_error {
 public:
  // what() is "where: what", one line.
  Error(ErrorKind kind, const std::string& where, const std::string& what);

  ErrorKind kind() const noexcept { return kind_; }
  std::string where() const { return std::string(what()).substr(0, where_); }
  std::string reason() const { return std::string(what()).substr(where_ + 2); }

 private:
  ErrorKind kind_;
  std::size_t where_;  // its length
};

// Throw a usage Error unless the value is finite and positive (or finite and not negative).
void require_positive(const std::string& name, double value);
void require_not_negative(const std::string& name, double value);

}  // namespace implicit_diffusion
