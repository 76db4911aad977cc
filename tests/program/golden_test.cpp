// Results that stay: a short run of every method, loop, potential, reward, term and schedule, compared with hashes of
// what an earlier version computed. golden.tsv has a line for each run:
//
//     name    samples    figures    arguments
//
// `samples` is the hash of theta.npy, samples.npy and snapshots.npy ("none" where there are none), which is the same on
// every machine at the levels v3 and v4; `figures` is that of metrics.csv and summary.json without times and memory,
// where closed forms call exp and log of the C library. Each run is made at both levels, if this machine has them: v3
// on one thread, v4 on three.
//
// The first argument is an experiment of the program or a file in golden/, KEY=VALUE means --set KEY=VALUE, and the
// rest are options. A change that is meant to move results writes the table anew, and its commit says which lines moved
// and why:
//
//     IMPLICIT_DIFFUSION_GOLDEN=write build/release/tests/golden_test
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <set>

#include "implicit_diffusion/simd/isa.hpp"
#include "program/run_program.hpp"
#include "program/same_run.hpp"

namespace program_test {
namespace {

using implicit_diffusion::Isa;
using implicit_diffusion::machine_isa;

const fs::path folder_of_cases = IMPLICIT_DIFFUSION_GOLDEN;
const fs::path table = folder_of_cases.parent_path() / "golden.tsv";

struct Hashes {
  std::string samples, figures;
  friend bool operator==(const Hashes&, const Hashes&) = default;
};

struct Case {
  std::string name;
  Hashes expected;
  Words arguments;
};
// What GoogleTest prints for a parameter.
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

bool is_case(const std::string& line) { return !line.empty() && line.front() != '#'; }

Words split(const std::string& line, char at) {
  Words words;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, at);) words.push_back(word);
  return words;
}

std::vector<Case> read_cases() {
  std::vector<Case> all;
  std::set<std::string> names;
  for (const std::string& line : lines(contents(table))) {
    if (!is_case(line)) continue;
    const Words fields = split(line, '\t');
    if (fields.size() != 4 || !names.insert(fields[0]).second)
      throw std::runtime_error("golden.tsv: four columns and a name of its own are needed: " + line);
    all.push_back({fields[0], {fields[1], fields[2]}, split(fields[3], ' ')});
  }
  return all;
}

// FNV-1a, 64 bits.
class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char c : bytes) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  std::string text() const {
    if (state_ == start) return "none";
    std::ostringstream s;
    s << std::hex << std::setw(16) << std::setfill('0') << state_;
    return s.str();
  }

 private:
  static constexpr std::uint64_t start = 0xcbf29ce484222325;
  std::uint64_t state_ = start;
};

// Drops what depends on the clock or on how the program keeps its data, at any depth.
void drop_costs(Json& j) {
  if (j.is_object())
    for (const char* key : {"seconds", "memory_bytes", "peak_memory_bytes"}) j.erase(key);
  if (j.is_structured())
    for (Json& part : j) drop_costs(part);
}

// The figures of a summary, by name: a key that is added changes no hash.
std::string figures(const fs::path& summary) {
  const Json all = json(summary);
  Json chosen;
  for (const char* key : {"method",
                          "seed",
                          "steps",
                          "status",
                          "theta",
                          "reward",
                          "exact_reward",
                          "exact_kl",
                          "log_likelihood",
                          "data_log_likelihood",
                          "first_step_at",
                          "gradient_evaluations",
                          "gradient_evaluations_at",
                          "permutation",
                          "results",
                          "variants",
                          "optimum",
                          "best_reward",
                          "best_objective",
                          "loops",
                          "slopes",
                          "decay_rates",
                          "paths",
                          "steps_per_sample",
                          "tilted_weights",
                          "tilted_means"})
    if (all.contains(key)) chosen[key] = all[key];
  drop_costs(chosen);
  return chosen.dump();
}

// All runs in a folder, by path.
Hashes hashes_of(const fs::path& run) {
  Hash samples, numbers;
  for (const std::string& name : names(run)) {
    const fs::path file = run / name;
    const std::string kind = file.filename().string();
    if (kind == "theta.npy" || kind == "samples.npy" || kind == "snapshots.npy") {
      samples.add(name);
      samples.add(contents(file));
    } else if (kind == "metrics.csv" || kind == "summary.json") {
      numbers.add(name);
      numbers.add(kind == "metrics.csv" ? metrics(file.parent_path()) : figures(file));
    }
  }
  return {samples.text(), numbers.text()};
}

Hashes run_case(const Words& arguments, Isa level) {
  const Folder folder;
  Words words{"run"};
  words.push_back(arguments.front().ends_with(".toml") ? (folder_of_cases / arguments.front()).string()
                                                       : arguments.front());
  for (std::size_t i = 1; i < arguments.size(); ++i)
    words = words + (arguments[i].starts_with("--") ? Words{arguments[i]} : Words{"--set", arguments[i]});
  const Result result =
      run(folder, words + Words{"--quiet", "--no-report", "--output", "run", "--isa", std::string(to_string(level)),
                                "--threads", level == Isa::v3 ? "1" : "3"});
  constexpr int diverged = 70;
  EXPECT_TRUE(result.code == 0 || result.code == diverged) << result.err;
  return hashes_of(folder / "run");
}

bool writes() {
  const char* mode = std::getenv("IMPLICIT_DIFFUSION_GOLDEN");
  return mode != nullptr && std::string_view(mode) == "write";
}

// What the cases of this process came to, by name.
std::map<std::string, Hashes>& found() {
  static std::map<std::string, Hashes> all;
  return all;
}

class Golden : public testing::TestWithParam<Case> {
 protected:
  static void TearDownTestSuite() {
    if (!writes()) return;
    std::string text;
    for (const std::string& line : lines(contents(table))) {
      const Words fields = is_case(line) ? split(line, '\t') : Words();
      const auto at = fields.empty() ? found().end() : found().find(fields[0]);
      text += at == found().end()
                  ? line + "\n"
                  : fields[0] + "\t" + at->second.samples + "\t" + at->second.figures + "\t" + fields[3] + "\n";
    }
    write(table, text);
  }
};

TEST_P(Golden, RunsAsBefore) {
  if (machine_isa() < Isa::v3) GTEST_SKIP() << "this machine has neither v3 nor v4";
  const Case& c = GetParam();
  const Hashes v3 = run_case(c.arguments, Isa::v3);
  if (machine_isa() >= Isa::v4) {
    const Hashes v4 = run_case(c.arguments, Isa::v4);
    EXPECT_EQ(v3.samples, v4.samples) << "v3 and v4";
    EXPECT_EQ(v3.figures, v4.figures) << "v3 and v4";
  }
  found()[c.name] = v3;
  if (writes()) return;
  EXPECT_EQ(v3.samples, c.expected.samples) << "theta.npy, samples.npy";
  EXPECT_EQ(v3.figures, c.expected.figures) << "metrics.csv, summary.json";
}

INSTANTIATE_TEST_SUITE_P(Program, Golden, testing::ValuesIn(read_cases()), [](const auto& c) {
  std::string name = c.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

// The comparison can fail: one constant of a run differs, in its last digit, and both hashes with it.
TEST(GoldenTable, AnotherConstantGivesOtherHashes) {
  if (machine_isa() < Isa::v3) GTEST_SKIP() << "this machine has neither v3 nor v4";
  for (const char* file : {"wells-2.toml", "diffusion-2.toml"}) {
    const Hashes one = run_case({file, "learning_rate=0.1"}, Isa::v3);
    EXPECT_EQ(one, run_case({file, "learning_rate=0.1"}, Isa::v3)) << file;
    const Hashes other = run_case({file, "learning_rate=0.10000000000000002"}, Isa::v3);
    EXPECT_NE(one.samples, other.samples) << file;
    EXPECT_NE(one.figures, other.figures) << file;
  }
}

TEST(GoldenTable, SaysWhichLevelsItHasSeen) {
  std::cout << "golden results compared at:" << (machine_isa() >= Isa::v3 ? " v3" : "")
            << (machine_isa() >= Isa::v4 ? " v4" : "; this machine has no v4") << "\n";
}

}  // namespace
}  // namespace program_test
