#include "experiment/recorder.hpp"

#include "implicit_diffusion/io/csv.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/npy.hpp"

#include <algorithm>
#include <array>

namespace program {

using namespace implicit_diffusion;

std::vector<std::string> with_common_columns(const std::vector<std::string>& own) {
  std::vector<std::string> all{"step",     "gradient_evaluations", "seconds", "reward", "exact_reward",
                               "exact_kl", "log_likelihood"};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}

void RowRecorder::add(std::int64_t step, std::vector<double> row, std::span<const double> theta) {
  last_step_ = step;
  rows_.push_back(std::move(row));
  theta_.insert(theta_.end(), theta.begin(), theta.end());
}

void RowRecorder::add_last(std::vector<double> row, std::span<const double> theta) {
  add(last_step_, std::move(row), theta);
  beyond_ = 1;
}

std::vector<double> RowRecorder::column(std::string_view name) const {
  const auto at = static_cast<std::size_t>(std::ranges::find(header_, name) - header_.begin());
  std::vector<double> values;
  if (at < header_.size())
    for (const std::vector<double>& row : rows_) values.push_back(row[at]);
  return values;
}

double RowRecorder::seconds() const {
  if (!begin_) return seconds_before_;
  return seconds_before_ + std::chrono::duration<double>(std::chrono::steady_clock::now() - *begin_).count();
}

void RowRecorder::write(const std::filesystem::path& folder) const {
  io::write_file(folder / "metrics.csv", io::csv_bytes(header_, rows_));
  if (!theta_.empty())
    io::write_file(folder / "theta.npy", io::npy_bytes(theta_, std::array{rows_.size(), theta_.size() / rows_.size()}));
}

void RowRecorder::save(io::CheckpointWriter& c, const char* last_step) const {
  const std::size_t kept = rows_.size() - beyond_, p = rows_.empty() ? 0 : theta_.size() / rows_.size();
  std::vector<double> rows;
  for (std::size_t i = 0; i < kept; ++i) rows.insert(rows.end(), rows_[i].begin(), rows_[i].end());
  io::save(c, "rows", std::move(rows));
  io::save(c, "row_theta", std::vector<double>(theta_.begin(), theta_.begin() + static_cast<std::ptrdiff_t>(kept * p)));
  io::save(c, last_step, last_step_);
  io::save(c, "seconds", seconds());
}

void RowRecorder::restore(const io::CheckpointReader& c, std::size_t parameters, const char* last_step) {
  const std::vector<double> rows = c.numbers<double>("rows");
  const std::size_t width = header_.size();
  if (rows.size() % width != 0) c.refuse("rows", "is not made of whole rows");
  rows_.clear();
  for (auto row = rows.begin(); row != rows.end(); row += static_cast<std::ptrdiff_t>(width))
    rows_.emplace_back(row, row + static_cast<std::ptrdiff_t>(width));
  theta_ = c.numbers<double>("row_theta");
  if (theta_.size() != rows_.size() * parameters) c.refuse("row_theta", "has another size");
  last_step_ = c.number<std::int64_t>(last_step);
  seconds_before_ = c.number<double>("seconds");
}

}  // namespace program
