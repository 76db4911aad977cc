#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>

#include <cmath>

namespace implicit_diffusion {

Error::Error(ErrorKind kind, const std::string& where, const std::string& what)
    : std::runtime_error(where + ": " + what), kind_(kind), where_(where.size()) {}

void require_positive(const std::string& name, double value) {
  if (!std::isfinite(value) || value <= 0)
    throw Error(ErrorKind::usage, name, fmt::format("{} must be finite and positive", value));
}

void require_not_negative(const std::string& name, double value) {
  if (!std::isfinite(value) || value < 0)
    throw Error(ErrorKind::usage, name, fmt::format("{} must be finite and not negative", value));
}

}  // namespace implicit_diffusion
