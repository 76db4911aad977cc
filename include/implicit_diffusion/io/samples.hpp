// Samples that a user brings: a population, reference data.
#pragma once

#include <filesystem>

#include "implicit_diffusion/io/npy.hpp"

namespace implicit_diffusion::io {

// An array of shape (n, d), n and d at least 1, all values finite: from a .npy file of shape (n, d), or (n,) for d = 1,
// or from a text file
// (.csv, .tsv, .txt, .dat) with a line a sample. The extension decides. Throws Error: usage for another extension;
// data, naming row and column, for what is not such an array; and what read_file throws.
Array read_samples(const std::filesystem::path& path);

}  // namespace implicit_diffusion::io
