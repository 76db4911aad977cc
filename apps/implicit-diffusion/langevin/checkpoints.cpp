#include "langevin/checkpoints.hpp"

#include "implicit_diffusion/io/checkpoint.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace program {
namespace {

using namespace implicit_diffusion;

bool all_finite(const auto& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](auto v) { return std::isfinite(v); });
}

}  // namespace

std::string without_steps(const std::string& resolved) {
  std::istringstream lines(resolved);
  std::string text;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("steps = ")) text += line + "\n";
  return text;
}

Checkpoints::Checkpoints(const Configuration& c, const std::filesystem::path& folder)
    : configuration_(c), folder_(folder / "checkpoints"), when_(std::chrono::steady_clock::now()) {}

void Checkpoints::operator()(const RunState& state, const Recorder& recorder) {
  const std::int64_t every = configuration_.checkpoint_every;
  if (state.step == 0 || state.step == last_) return;
  if (every > 0 ? state.step % every != 0 : std::chrono::steady_clock::now() - when_ < std::chrono::seconds(10)) return;
  write(make(state, recorder), state.step);
}

std::optional<io::Checkpoint> Checkpoints::make(const RunState& state, const Recorder& recorder) const {
  const std::vector<double> memory = state.optimizer.memory();
  if (find_nonfinite(state.population) || !all_finite(state.theta) || !all_finite(memory)) return std::nullopt;
  io::Checkpoint c;
  c.put("configuration", without_steps(configuration_.resolved));
  c.put_number("step", state.step);
  c.put_numbers("theta", state.theta);
  c.put_numbers("optimizer", memory);
  std::vector<float> samples;
  samples.reserve(state.population.size() * state.population.dimension());
  for (std::size_t j = 0; j < state.population.dimension(); ++j)
    for (const float v : state.population.coordinate(j)) samples.push_back(v);
  c.put_numbers("samples", samples);
  recorder.save(c);
  return c;
}

void Checkpoints::write(const std::optional<io::Checkpoint>& checkpoint, std::int64_t step) {
  if (!checkpoint || step == last_) return;
  io::save_checkpoint(folder_, step, *checkpoint);
  last_ = step;
  when_ = std::chrono::steady_clock::now();
}

bool Checkpoints::resume(RunState& state, Recorder& recorder,
                         const std::function<void(const std::string& why)>& refused) {
  const std::optional<io::Checkpoint> c = io::newest_checkpoint(folder_, refused);
  if (!c) return false;
  if (c->get("configuration") != without_steps(configuration_.resolved))
    c->refuse("configuration", "is not that of this run");
  const std::vector<double> theta = c->numbers<double>("theta");
  const std::vector<float> samples = c->numbers<float>("samples");
  const std::size_t n = state.population.size(), d = state.population.dimension();
  if (theta.size() != state.theta.size()) c->refuse("theta", "has another size");
  if (samples.size() != n * d) c->refuse("samples", "has another size");
  const std::vector<double> memory = c->numbers<double>("optimizer");
  if (!state.optimizer.restore(memory, theta.size())) c->refuse("optimizer", "is of another kind");
  for (const auto& [name, finite] : {std::pair{"theta", all_finite(theta)}, std::pair{"samples", all_finite(samples)},
                                     std::pair{"optimizer", all_finite(memory)}})
    if (!finite) c->refuse(name, "is not finite");
  state.step = c->number<std::int64_t>("step");
  if (state.step < 0) c->refuse("step", "is negative");
  state.theta = theta;
  for (std::size_t j = 0; j < d; ++j)
    std::copy_n(samples.begin() + static_cast<std::ptrdiff_t>(j * n), n, state.population.coordinate(j).begin());
  recorder.restore(*c);
  last_ = state.step;
  return true;
}

}  // namespace program
