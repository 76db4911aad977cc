// The paper's strips of pictures: each row is the same seeds, and only the weights differ from row to row. They are made
// from the pictures that finetuning leaves, of which each row is the first. Nothing in this header needs LibTorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace program {

// pictures/step-NNNNNN.png of a run, by step.
std::vector<std::pair<std::int64_t, std::filesystem::path>> pictures_by_step(const std::filesystem::path& folder);

// The first rows of the pictures, whose images are `height` pixels high, one below the other: a PNG. Throws a data
// Error where the pictures are not alike.
std::string strip_of(const std::vector<std::filesystem::path>& pictures, std::size_t height);

// The same seeds in a run: at the last step, at half of it, and so on to the first one.
std::vector<std::filesystem::path> halving_pictures(const std::filesystem::path& folder);

}  // namespace program
