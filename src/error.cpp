#include "implicit_diffusion/error.hpp"

#include "require.hpp"

#include <cmath>

namespace implicit_diffusion {

Error::Error(ErrorKind kind, const std::string& where, const std::string& what)
    : std::runtime_error(where + ": " + what), kind_(kind), where_(where.size()) {}

void require_positive(const std::string& name, double value) {
  require(std::isfinite(value) && value > 0, name, "{} must be finite and positive", value);
}

void require_not_negative(const std::string& name, double value) {
  require(std::isfinite(value) && value >= 0, name, "{} must be finite and not negative", value);
}

}  // namespace implicit_diffusion
