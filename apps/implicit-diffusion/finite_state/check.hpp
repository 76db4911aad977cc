// What `check` compares on finite sets. All noise is a function of the seed.
#pragma once

#include "experiment/check_rows.hpp"
#include "finite_state/configuration.hpp"

#include <cstdint>
#include <vector>

namespace program {

// Fixed problems.
std::vector<CheckRow> check_gibbs(std::uint64_t seed);
std::vector<CheckRow> check_softmax_chain(std::uint64_t seed);
std::vector<CheckRow> check_ring(std::uint64_t seed);

// The ring of a finite-state experiment, at its first theta.
std::vector<CheckRow> check_finite_state(const FiniteStateConfiguration& c);

}  // namespace program
