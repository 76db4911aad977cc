// Arguments that are refused, in one line.
#pragma once

#include "implicit_diffusion/error.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace implicit_diffusion {

// Throws a usage Error, with the message made from the values, unless the condition holds.
template <class... Values>
void require(bool holds, std::string_view where, fmt::format_string<Values...> message, Values&&... values) {
  if (!holds) throw Error(ErrorKind::usage, std::string(where), fmt::format(message, std::forward<Values>(values)...));
}

}  // namespace implicit_diffusion
