// What `check` compares of the recursion that the rates of the theorems are measured on.
#pragma once

#include "experiment/check_rows.hpp"

#include <vector>

namespace program {

std::vector<CheckRow> check_rates();

}  // namespace program
