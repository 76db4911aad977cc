// The rows of metrics.csv and theta.npy, and the seconds of a loop. Where rows are added without a theta, which is too
// long for a network, there is no theta.npy.
#pragma once

#include "implicit_diffusion/io/checkpoint.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

// The columns of metrics.csv that all runs have, and those of its own.
std::vector<std::string> with_common_columns(const std::vector<std::string>& own);

class RowRecorder {
 public:
  RowRecorder(std::vector<std::string> header, std::int64_t log_every)
      : header_(std::move(header)), log_every_(log_every) {}

  // True at a step that has a row and has not got it yet.
  bool is_due(std::int64_t step) const { return step % log_every_ == 0 && step != last_step_; }
  void add(std::int64_t step, std::vector<double> row, std::span<const double> theta);
  // The row of the last state, where that is not at a step that has one. A longer run would not have it, so it is not
  // part of a checkpoint.
  bool needs_last(std::int64_t step) const { return step != last_step_; }
  void add_last(std::vector<double> row, std::span<const double> theta);

  const std::vector<double>& last_row() const { return rows_.back(); }
  // All values of a column so far; empty where there is no column of that name.
  std::vector<double> column(std::string_view name) const;

  // Since the clock was started, with the seconds of the runs that this one goes on from.
  void start_clock() {
    if (!begin_) begin_ = std::chrono::steady_clock::now();  // only once: to ask for the time at every step costs 1 %
  }
  double seconds() const;

  // theta.npy only where rows have a theta.
  void write(const std::filesystem::path& folder) const;

  // To and from a checkpoint, in which the step of the last row goes by the name `last_step`.
  void save(implicit_diffusion::io::CheckpointWriter& c, const char* last_step) const;
  void restore(const implicit_diffusion::io::CheckpointReader& c, std::size_t parameters, const char* last_step);

 private:
  std::vector<std::string> header_;
  std::int64_t log_every_, last_step_ = -1;
  std::vector<std::vector<double>> rows_;
  std::vector<double> theta_;  // row by row
  std::size_t beyond_ = 0;     // rows at the end that are not part of a checkpoint: 0 or 1
  double seconds_before_ = 0;
  std::optional<std::chrono::steady_clock::time_point> begin_;
};

}  // namespace program
