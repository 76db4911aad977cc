// What the program says to input that is wrong: the exit code, one line that names the place and the value, and nothing
// left behind.
#include <cmath>
#include <limits>

#include "program/run_program.hpp"

namespace program_test {
namespace {

using Files = std::map<std::string, std::string>;  // a name that ends in / is a folder

struct Row {
  std::string name;
  Words arguments;
  int code;
  Words words;  // in the message
  Files files{};
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

// A run of the user's file x.toml, changed in one place.
Row file(std::string name, std::string_view from, std::string_view to, int code, Words words, Files files = {}) {
  files["x.toml"] = changed(small_experiment, from, to);
  return {std::move(name), {"run", "x.toml"}, code, std::move(words), std::move(files)};
}
// A file with these bytes.
Row text(std::string name, std::string bytes, int code, Words words) {
  return {std::move(name), {"run", "x.toml"}, code, std::move(words), {{"x.toml", std::move(bytes)}}};
}
// A change of a built-in experiment on the command line.
Row set(std::string name, std::string assignment, Words words, std::string experiment = "langevin-reward") {
  words.push_back("--set " + assignment.substr(0, assignment.find('=')) + ": ");
  return {std::move(name), {"run", std::move(experiment), "--set", std::move(assignment)}, 2, std::move(words)};
}
Row option(std::string name, Words options, Words words) {
  options.insert(options.begin(), {"run", "langevin-reward"});
  return {std::move(name), std::move(options), 2, std::move(words)};
}
// A change of the built-in mixture in a file, found by its line.
Row mixture(std::string name, std::string table, Words words) {
  std::string toml = R"(method = "implicit"
[potential]
kind = "mixture"
components = 1
dimension = 2
[reward]
kind = "quadratic"
centre = [0.0, 0.0]
[start]
)" + std::move(table);
  return {std::move(name), {"run", "x.toml"}, 2, std::move(words), {{"x.toml", std::move(toml)}}};
}
// Data of the user's for the one-dimensional experiment.
Row data(std::string name, std::string data_file, std::string bytes, int code, Words words) {
  words.push_back(data_file);
  return file(std::move(name), "[start]", "[reference]\ndata = \"" + data_file + "\"\n\n[start]", code,
              std::move(words), {{data_file, std::move(bytes)}});
}

// The same, given to `check` in place of `run`.
Row checked(Row row) {
  row.arguments.front() = "check";
  return row;
}

// KEY.KEY. ... .KEY, doubled until it is long enough: every test of this program makes those of all tests.
std::string dotted(std::size_t parts) {
  std::string key = "a";
  while (key.size() < 2 * parts) key += '.' + key;
  return key.substr(0, 2 * parts - 1);
}
// [0,1,2, ...]
std::string numbers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += (i ? "," : "[") + std::to_string(i);
  return list + "]";
}

std::string npy(std::vector<double> values, std::vector<std::size_t> shape) { return io::npy_bytes(values, shape); }

std::vector<Row> rows() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<Row> all{
      // The command line.
      {"UnknownCommand", {"reprt"}, 2, {"reprt", "unknown command", "did you mean report?"}},
      {"UnknownOptionOfTheProgram", {"--versoin"}, 2, {"--versoin", "unknown option", "did you mean --version?"}},
      {"UnknownExperiment", {"run", "langevin-rewrd"}, 2, {"'langevin-rewrd'", "did you mean langevin-reward?"}},
      {"UnknownExperimentFarFromAll", {"run", "zzz"}, 2, {"'zzz'", "list"}},
      {"EmptyExperiment", {"run", ""}, 2, {"no experiment is called ''"}},
      {"NoExperiment", {"run"}, 2, {"run: ", "NAME is required"}},
      {"NoFolderToReport", {"report"}, 2, {"report: ", "DIR is required"}},
      {"ArgumentTooMany", {"list", "more"}, 2, {"more", "unknown argument"}},
      {"VeryLongCommand", {std::string(5000, 'k')}, 2, {": kkk", "k...k", "k: unknown command"}},
      {"ControlCharacterOfTwoBytes", {"run", "a\u009bb"}, 2, {"no experiment is called 'a\\xc2\\x9bb'"}},
      option("UnknownOption", {"--sed", "3"}, {"--sed", "unknown option", "did you mean --seed?"}),
      option("IsaUnknown", {"--isa", "v5"}, {"--isa: 'v5' is not one of baseline, v3, v4"}),
      option("IsaMissing", {"--isa"}, {"--isa: ", "missing"}),
      option("ResumeAndOverwrite", {"--resume", "--overwrite"}, {"--resume", "--overwrite"}),
      option("SeedNegative", {"--seed", "-1"}, {"--seed: -1 must be at least 0"}),
      option("SeedTooLarge", {"--seed", "9223372036854775808"}, {"--seed: 9223372036854775808 is too large"}),
      option("SeedFarTooLarge", {"--seed", "99999999999999999999999"}, {"--seed: ", "is too large"}),
      option("SeedNotANumber", {"--seed", "abc"}, {"--seed: ", "'abc'", "an integer is needed"}),
      option("SeedNotWhole", {"--seed", "1.5"}, {"--seed: ", "1.5", "an integer is needed"}),
      option("SeedEmpty", {"--seed", ""}, {"--seed: ", "''"}),
      option("SeedMissing", {"--seed"}, {"--seed: ", "missing"}),
      option("SeedTwice", {"--seed", "1", "--seed", "2"}, {"--seed: "}),
      option("SeedsBeyondTheLargest", {"--seed", "9223372036854775807", "--repeats", "2"}, {"--repeats: 2", "seeds"}),
      option("StepsTwice", {"--steps", "1", "--set", "steps=2"}, {"--steps", "--set steps", "one of them is meant"}),
      option("StepsNegative", {"--steps", "-1"}, {"--steps: -1 must be at least 0"}),
      option("StepsNotANumber", {"--steps", "many"}, {"--steps: ", "'many'", "an integer is needed"}),
      option("StepsTooManyToWriteDown", {"--steps", "1000000000000000"}, {"log_every: 10 needs", "GB of memory"}),
      option("NoThreads", {"--threads", "0"}, {"--threads: ", "0", "1 to 1024"}),
      option("TooManyThreads", {"--threads", "1000000"}, {"--threads: ", "1000000", "1 to 1024"}),
      option("NoRepeats", {"--repeats", "0"}, {"--repeats: ", "0"}),
      option("RepeatsNegative", {"--repeats", "-1"}, {"--repeats: ", "-1"}),
      option("SetWithoutValue", {"--set", "steps"}, {"--set: 'steps' is not of the form key=value"}),
      option("SetWithoutKey", {"--set", "=3"}, {"--set: '=3' is not of the form key=value"}),

      // Keys by --set.
      set("SetUnknownKey", "step_sise=1", {"unknown key; did you mean step_size?"}),
      set("SetUnknownKeyInTable", "potential.widht=3", {"unknown key; did you mean potential.width?"}),
      set("SetUnknownTable", "potental.width=3", {"potental: unknown key; did you mean potential?"}),
      set("SetKeyOfAnotherTable", "softness=1", {"unknown key; did you mean smooth_reward.softness?"}),
      set("SetBelowAValue", "potential.kind.x=2", {"kind is not a table"}),
      set("SetEmptyTable", ".width=2", {"a table is missing"}),
      set("SetEmptyKey", "potential.=2", {"a key is missing"}),
      set("SetKeyOfManyParts", dotted(33) + "=2", {"a key of more than 32 parts"}),
      set("SetTableOfUnknownKind", "potential={kind=\"wellz\"}", {"potential.kind: 'wellz' is not one of"}),
      set("SetTableWithAWrongType", "potential={centres=[[\"a\"]]}", {"potential.centres: the string 'a' is given"}),
      set("SetTableWithoutItsKeys", "potential={width=1}", {"potential.centres: missing"}),
      set("SetTwoLines", "steps=1\nx=2", {"one value is needed"}),
      set("SetStepSizeZero", "step_size=0", {"0 must be positive"}),
      set("SetStepSizeNegative", "step_size=-0.1", {"-0.1 must be positive"}),
      set("SetStepSizeNan", "step_size=nan", {"nan is not finite"}),
      set("SetStepSizeInfinite", "step_size=inf", {"inf is not finite"}),
      set("SetStepSizeText", "step_size=large", {"'large'", "a number is needed"}),
      set("SetLearningRateNegative", "learning_rate=-1", {"-1 must not be negative"}),
      set("SetNoParticles", "particles=0", {"0 must be at least 1"}),
      set("SetOneParticle", "particles=1", {"1 particle has no covariance"}),
      set("SetParticlesNotWhole", "particles=1.5", {"1.5", "an integer is needed"}),
      set("SetParticlesTooMany", "particles=1000000000000", {"1000000000000 needs", "GB of memory, this machine has"}),
      set("SetParticlesTooManyAsPower", "particles=1e12", {"1000000000000 needs", "GB of memory, this machine has"}),
      set("SetParticlesBeyondIntegers", "particles=1e30", {"1e+30", "an integer is needed"}),
      set("SetLogEveryZero", "log_every=0", {"0 must be at least 1"}),
      set("SetInnerStepsZero", "inner_steps=0", {"0 must be between 1 and 4294967296"}),
      set("SetInnerStepsBeyondTheNoise", "inner_steps=4294967297", {"4294967297 must be between 1 and 4294967296"}),
      set("SetSeedNegative", "seed=-1", {"-1 must be at least 0"}),
      set("SetMethod", "method=implict", {"'implict' is not one of implicit, nested", "did you mean implicit?"}),
      set("SetMethodNumber", "method=3", {"the integer 3 is given", "implicit, nested"}),
      set("SetThetaOfWrongLength", "start.theta=[1,2]", {"2 numbers, the potential has 6 parameters"}),
      set("SetThetaWithNan", "start.theta=[1,2,3,4,5,nan]", {"nan is not finite"}),
      set("SetThetaNotClosed", "start.theta=[1,2", {"'[1,2'", "an array of numbers is needed"}),
      set("SetThetaOptOfWrongLength", "theta_opt=[1]", {"1 numbers, the potential has 6 parameters"}),
      set("SetCentresRagged", "potential.centres=[[1,2],[3]]", {"centres of 2 and of 1 coordinates"}),
      set("SetCentresEmpty", "potential.centres=[]", {"no centre is given"}),
      set("SetWidthZero", "potential.width=0", {"0 must be positive"}),
      set("SetRewardCentre", "reward.centre=[1]", {"1 numbers, the potential has dimension 2"}),
      set("SetRewardNotATable", "reward=3", {"the integer 3 is given, a table is needed"}),
      set("SetExperimentWithSlash", "experiment=a/b", {"'a/b' cannot name a folder"}),
      set("SetExperimentWithZeroByte", "experiment=\"a\\u0000b\"", {"cannot name a folder"}),
      set("SetExperimentWithControlCharacter", "experiment=\"a\\u0085b\"", {"'a\\xc2\\x85b' cannot name a folder"}),
      set("SetTooManyThresholds", "thresholds=" + numbers(1001), {"1001 numbers, there can be at most 1000"}),
      {"SetSnapshotsBeyondMemory",
       {"run", "langevin-reward", "--set", "particles=100000000", "--set", "snapshots=" + numbers(1000)},
       2,
       {"--set snapshots: 1000 needs", "GB of memory, this machine has"}},
      {"SetStepsBeyondCounting",
       {"run", "langevin-reward", "--set", "method=nested", "--set", "inner_steps=4294967296", "--steps",
        "9223372036854775807"},
       2,
       {"--steps: 9223372036854775807 with 4294967296 inner steps each are more than can be counted"}},
      set("SetScaleBeyondSinglePrecision", "start.scale=1e39", {"1e+39 is too large for single precision"}),
      set("SetMeanBeyondSinglePrecision", "start.mean=[0,-1e39]", {"-1e+39 is too large for single precision"}),
      set("SetStepSizeTooSmall", "step_size=1e-50", {"1e-50 is too small for single precision"}),
      set("SetStepSizeSubnormal", "step_size=1e-40", {"1e-40 is too small for single precision"}),
      set("SetStepSizeTooLarge", "step_size=1e50", {"1e+50 is too large for single precision"}),
      set("SetLearningRateTooSmall", "learning_rate=1e-50", {"1e-50 is too small for single precision"}),
      set("SetLearningRateTooLarge", "learning_rate=1e50", {"1e+50 is too large for single precision"}),
      set("SetWidthTooSmall", "potential.width=1e-50", {"1e-50 is too small for single precision"}),
      set("SetWidthTooLarge", "potential.width=1e50", {"1e+50 is too large for single precision"}),
      set("SetKappaTooLarge", "potential.kappa=1e50", {"1e+50 is too large for single precision"}, "ebm-mixture"),
      set("SetRewardWidthTooSmall", "reward.width=1e-50", {"1e-50 is too small for single precision"}),
      set("SetDenominatorTooSmall", "reward.denominator=1e-50", {"1e-50 is too small for single precision"}),
      set("SetSoftnessTooSmall", "smooth_reward.softness=1e-50", {"1e-50 is too small for single precision"}),
      set("SetLambdaTooLarge", "reward.lambda=-1e50", {"-1e+50 is too large for single precision"}),
      set("SetBetaTooLarge", "reference.beta=1e50", {"1e+50 is too large for single precision"}, "ebm-wells"),
      set("SetRewardCentreTooFar", "reward.centre=[1e25,0]", {"1e+25 is too large for single precision"}),
      set("SetCentresTooFar", "potential.centres=[[1e5,0],[0,0],[0,0],[0,0],[0,0],[0,0]]",
          {"100000 is too far from the origin for a standard deviation of 1", "0.0119 apart", "shift centres"}),
      set("SetCovarianceNotPositive", "start.covariances=[[[1,2],[2,1]],[[1,0],[0,1]]]", {"positive definite"},
          "ebm-mixture"),
      set("SetMeansTooFew", "reference.means=[[1,2]]", {"1 given, the mixture has 2 components"}, "ebm-mixture"),
      set("SetLogitsTooMany", "start.logits=[1,2,3]", {"3 given, the mixture has 2 components"}, "ebm-mixture"),
      set("SetCovariancesTooFew", "reference.covariances=[[[1,0],[0,1]]]", {"1 given, the mixture has 2 components"},
          "ebm-mixture"),
      set("SetMeanOfAnotherDimension", "start.means=[[1,2],[3]]", {"mean 2 has 1 coordinates, the dimension is 2"},
          "ebm-mixture"),
      set("SetCovarianceNotSymmetric", "start.covariances=[[[1,0],[0,1]],[[1,0.5],[0.25,1]]]",
          {"matrix 2 is not symmetric: entries 0.25 and 0.5 at (2, 1)"}, "ebm-mixture"),
      set("SetCovarianceInOneRow", "start.covariances=[[[1,0,0,1]],[[1,0],[0,1]]]", {"matrix 1 is not 2 x 2"},
          "ebm-mixture"),
      set("SetCovarianceRagged", "start.covariances=[[[1,0,0],[1]],[[1,0],[0,1]]]", {"matrix 1 is not 2 x 2"},
          "ebm-mixture"),
      set("SetCovarianceEmpty", "start.covariances=[[],[[1,0],[0,1]]]", {"matrix 1 is not 2 x 2"}, "ebm-mixture"),
      set("SetCovarianceNoMatrix", "start.covariances=[1,2]", {"an array of arrays of numbers is needed"},
          "ebm-mixture"),
      set("SetThetaOptNotPositive", "theta_opt=[0,0,0,0,0,0,1,2,2,1,1,0,0,1]", {"number 10", "not positive definite"},
          "ebm-mixture"),
      set("SetThetaOptNotSymmetric", "theta_opt=[0,0,0,0,0,0,1,0.5,0,1,1,0,0,1]",
          {"the covariance of component 1 is not symmetric: entries 0 and 0.5 at (2, 1)"}, "ebm-mixture"),
      set("SetMeansTooFar", "start.means=[[0,0],[0,-1e6]]", {"-1000000 is too far from the origin", "shift"},
          "ebm-mixture"),
      set("SetCovarianceTooSmall", "start.covariances=[[[1e-50,0],[0,1]],[[1,0],[0,1]]]",
          {"a variance of 1e-50 does not fit into single precision"}, "ebm-mixture"),
      set("SetThetaOptTooFar", "theta_opt=[0,0,1e6,0,0,0,1,0,0,1,1,0,0,1]", {"1000000 is too far from the origin"},
          "ebm-mixture"),
      set("SetBatchTooLarge", "reference.batch=1000000000000", {"1000000000000 needs", "GB of memory"}, "ebm-wells"),
      set("SetBatchTooLargeAsPower", "reference.batch=1e12", {"1000000000000 needs", "GB of memory"}, "ebm-mixture"),
      {"SetMissingThetaFile",
       {"run", "langevin-reward", "--set", "start.theta_file=no.npy"},
       66,
       {"no.npy: no such file"}},
      {"SetMissingSamples", {"run", "langevin-reward", "--set", "start.samples=no.npy"}, 66, {"no.npy: no such file"}},
      {"SetMissingData", {"run", "ebm-wells", "--set", "reference.data=no.csv"}, 66, {"no.csv: no such file"}},

      // Keys in a file, with their line.
      file("UnknownKey", "particles", "partcles", 2, {"x.toml:1: partcles: unknown key; did you mean particles?"}),
      file("UnknownKeyInTable", "precision", "precison", 2,
           {"x.toml:8: potential.precison: unknown key; did you mean potential.precision?"}),
      file("UnknownTable", "[reward]", "[rewrd]", 2, {"x.toml:10: rewrd: unknown key; did you mean reward?"}),
      file("UnknownKind", "particles", "knd = \"rates\"\nparticles", 2,
           {"x.toml:1: knd: unknown key; did you mean kind?"}),
      file("UnknownTableWithoutWhichNothingIsRead", "[potential]", "[potental]", 2,
           {"x.toml:6: potental: unknown key; did you mean potential?"}),
      text("UnknownKeyOfOneThatHasADefault",
           "[potential]\nkind = \"double-well\"\ndimensoin = 1\n[reward]\nkind = \"quadratic\"\ncentre = [1.0]\n"
           "[start]\ntheta = [1.0]\n",
           2, {"x.toml:3: potential.dimensoin: unknown key; did you mean potential.dimension?"}),
      text("UnknownKeyLikeOneThatIsThere",
           "step = 50\nsteps = 60\n[potential]\nkind = \"quadratic\"\nprecision = [[1.0]]\n[reward]\nkind = "
           "\"quadratic\"\ncentre = [1.0]\n[start]\ntheta = [1.0]\n",
           2, {"x.toml:1: step: unknown key; did you mean steps?"}),
      text("TwoUnknownKeys",
           "step = 50\n[potential]\nkind = \"quadratic\"\nprecison = [[1.0]]\n[reward]\nkind = \"quadratic\"\ncentre = "
           "[1.0]\n[start]\ntheta = [1.0]\n",
           2, {"x.toml:4: potential.precison: unknown key; did you mean potential.precision?"}),
      {"LineInQuick",
       {"run", "x.toml", "--quick"},
       2,
       {"x.toml:17: steps: -5 must be at least 0"},
       {{"x.toml", std::string(small_experiment) + "[quick]\nsteps = -5\n"}}},
      set("SetQuick", "quick.steps=7", {"--set quick.steps: has no effect"}),
      file("MissingKey", "precision = [[1.0]]\n", "", 2, {"x.toml: potential.precision: missing"}),
      file("KeyOfAnotherTable", "[start]", "[start]\nprecision = 1", 2,
           {"x.toml:15: start.precision: unknown key; did you mean potential.precision?"}),
      file("KeyOfTheTopInATable", "[reward]", "[reward]\nsteps = 3", 2,
           {"x.toml:11: reward.steps", "did you mean steps?"}),
      file("WrongType", "0.1", "\"0.1\"", 2, {"x.toml:3: step_size: the string '0.1' is given, a number is needed"}),
      file("WrongTypeDate", "0.1", "1979-05-27", 2, {"x.toml:3: step_size: a date is given"}),
      file("WrongTypeInArray", "[0.0]", "[true]", 2, {"x.toml:15: start.theta: true is given, a number is needed"}),
      file("WrongTypeOfTable", "[start]", "[[start]]", 2, {"x.toml:14: start: an array is given, a table is needed"}),
      file("WrongTypeOfDuration", "steps = 5", "duration = 3", 2, {"x.toml:2: duration: ", "a string is needed"}),
      file("NumberOutOfRange", "steps = 5", "steps = -5", 2, {"x.toml:2: steps: -5 must be at least 0"}),
      file("TooManyParticles", "= 100", "= 1e12", 2, {"x.toml:1: particles: 1000000000000 needs", "GB of memory"}),
      file("PrecisionNotSymmetric", "[[1.0]]", "[[2.0, 1.0], [0.5, 2.0]]", 2,
           {"x.toml:8: potential.precision: not symmetric", "0.5"}),
      file("PrecisionNotPositive", "[[1.0]]", "[[-1.0]]", 2, {"x.toml:8: potential.precision: not positive definite"}),
      file("PrecisionNotSquare", "[[1.0]]", "[[1.0, 2.0]]", 2, {"x.toml:8: potential.precision", "square"}),
      file("PrecisionEmpty", "[[1.0]]", "[]", 2, {"x.toml:8: potential.precision"}),
      file("FloorTooSmall", "kind = \"quadratic\"\nprecision = [[1.0]]",
           "kind = \"logistic-wells\"\ncentres = [[0.0]]\nfloor = 1e-50", 2,
           {"x.toml:9: potential.floor: 1e-50 is too small for single precision"}),
      file("PrecisionTooSmall", "[[1.0]]", "[[1e-50]]", 2,
           {"x.toml:8: potential.precision: 1e-50", "single precision"}),
      file("PrecisionTooLarge", "[[1.0]]", "[[1e50]]", 2, {"x.toml:8: potential.precision: 1e+50", "single precision"}),
      file("ThetaTooFar", "theta = [0.0]", "theta = [1e7]", 2,
           {"x.toml:15: start.theta: 10000000 is too far from the origin for a standard deviation of 1", "shift"}),
      file("RewardOfAnotherDimension", "centre = [1.0]", "centre = [1.0, 2.0]", 2,
           {"x.toml:12: reward.centre: 2 numbers, the potential has dimension 1"}),
      file("NoObjective", "[reward]\nkind = \"quadratic\"\ncentre = [1.0]\n", "", 2,
           {"x.toml: method: implicit needs an objective"}),
      file("NoStart", "theta = [0.0]", "", 2, {"x.toml: start.theta: missing"}),
      file("NoSmoothReward", "steps = 5", "method = \"guided\"", 2,
           {"x.toml:2: method: guided needs a table smooth_reward"}),
      file("UnrolledWithAReference", "steps = 5\n",
           "method = \"unrolled\"\nsmooth_reward = {kind = \"quadratic\", centre = [1.0]}\nreference = {theta = "
           "[0.0]}\n",
           2, {"x.toml:4: reference: unrolled differentiates smooth_reward alone", "no effect"}),
      file("UnrolledWithABase", "steps = 5\n",
           "method = \"unrolled\"\nsmooth_reward = {kind = \"quadratic\", centre = [1.0]}\nbase = {theta = [0.0]}\n", 2,
           {"x.toml:4: base: unrolled differentiates smooth_reward alone", "no effect"}),
      file("ThresholdsWithoutThetaOpt", "steps = 5", "thresholds = [-2.0]", 2, {"x.toml:2: thresholds", "theta_opt"}),
      file("TwoWaysToStart", "theta = [0.0]", "theta = [0.0]\ntheta_file = \"t.npy\"", 2,
           {"x.toml:16: start.theta_file"}),
      mixture("CovarianceNotPositive", "means = [[0.0, 0.0]]\ncovariances = [[[1.0, 2.0], [2.0, 1.0]]]\n",
              {"x.toml:11: start.covariances", "positive definite"}),
      mixture("CovarianceNotSquare", "means = [[0.0, 0.0]]\ncovariances = [[[1.0]]]\n",
              {"x.toml:11: start.covariances: matrix 1 is not 2 x 2"}),
      mixture("CovarianceNotSymmetric", "means = [[0.0, 0.0]]\ncovariances = [[[1.0, 0.5], [0.0, 1.0]]]\n",
              {"x.toml:11: start.covariances: matrix 1 is not symmetric"}),
      mixture("ThetaNotSymmetric", "theta = [0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 1.0]\n",
              {"x.toml:10: start.theta: the covariance of component 1 is not symmetric"}),
      mixture("ThetaNotPositive", "theta = [0.0, 0.0, 0.0, 1.0, 2.0, 1.0]\n", {"x.toml:10: start.theta"}),

      // The file as such.
      file("SyntaxError", "steps = 5", "steps = ", 2, {"x.toml:2: "}),
      file("SyntaxErrorInATableHeader", "steps = 5", "[[[steps", 2, {"x.toml:2: "}),
      file("KeyTwice", "steps = 5", "steps = 5\nsteps = 6", 2, {"x.toml:3: ", "'steps'"}),
      file("NotUtf8", "steps = 5", "title = \"\xff\"", 2, {"x.toml:2: ", "utf-8"}),
      file("ControlCharacters", "steps = 5", "st\x1b[31meps = 5", 2, {"x.toml:2: "}),
      text("EmptyFile", "", 2, {"x.toml: potential.centres: missing"}),
      text("KeyOfManyParts", "\n" + dotted(25'000) + " = 1\n", 2, {"x.toml:2: a key of more than 32 parts"}),
      text("TableOfManyParts", "[" + dotted(200'000) + "]\n", 2, {"x.toml:1: a key of more than 32 parts"}),
      text("TableOfManyQuotedParts", "x = 1 # a.a\n['a'" + dotted(200'000).substr(1) + "]\n", 2,
           {"x.toml:2: a key of"}),
      text("InlineTableOfManyParts", "x = '''\n\"''' \ny = {b = 1.5, " + dotted(200'000) + " = 1}\n", 2,
           {"x.toml:3: a key of more than 32 parts"}),
      text("InlineTableBehindQuotes", "x = {y = \"\"\"a\"\"\"\"\", " + dotted(200'000) + " = 1}\n", 2,
           {"x.toml:1: a key of"}),
      text("KeyWithOtherLetters", "title = \"θ\" # θ\nθ = 1\n", 2, {"x.toml:2: 'θ': ", "in quotes"}),
      text("ZeroByte", std::string("a\0b = 1", 7), 2, {"x.toml:1: "}),
      {"FileNameNotUtf8", {"run", "x\xff.toml"}, 2, {"UTF-8"}, {{"x\xff.toml", small_experiment}}},
      {"FileIsADirectory", {"run", "x.toml"}, 66, {"x.toml: is a directory"}, {{"x.toml/", ""}}},
      {"FolderOfARun",
       {"run", "r"},
       66,
       {"r: is a directory", "did you mean r/config.toml?"},
       {{"r/config.toml", small_experiment}}},
      {"FileWithAVeryLongName",
       {"run", std::string(5000, 'k') + ".toml"},
       66,
       {": kkk", "k...k", ": File name too long"}},
      {"FileIsMissing", {"run", "x.toml"}, 66, {"x.toml: no such file"}},
      {"FolderOfFileIsMissing", {"run", "no/x.toml"}, 66, {"no/x.toml: no such file"}},
      {"FileIsADevice", {"run", "/dev/null"}, 66, {"/dev/null: is not a regular file"}},

      // Data.
      file("DataMissing", "[start]", "[reference]\ndata = \"no.csv\"\n[start]", 66, {"no.csv: no such file"}),
      data("DataIsADirectory", "d.csv/", "", 66, {"is a directory"}),
      data("DataColumns", "d.csv", "1,2\n3,4\n", 65, {"2 columns, the potential has dimension 1"}),
      data("DataRagged", "d.csv", "1\n2,3\n", 65, {"line 2"}),
      data("DataNan", "d.csv", "1\n2\nnan\n", 65, {"row 3, column 1", "nan"}),
      data("DataInfinite", "d.csv", "x\ninf\n", 65, {"row 1, column 1", "inf"}),
      data("DataTooLarge", "d.csv", "1\n1e39\n", 65, {"row 2, column 1", "single precision"}),
      data("DataTooFar", "d.csv", "1e7\n1.0000001e7\n", 65,
           {"column 1: its mean 10000000", "too far from the origin", "shift"}),
      data("DataText", "d.csv", "x\n1\ntwo\n", 65, {"line 3, column 1", "'two'"}),
      data("DataEmpty", "d.csv", "", 65, {"no samples"}),
      data("DataNamesOnly", "d.csv", "x\n", 65, {"no samples"}),
      data("DataExtension", "d.xls", "1\n2\n", 2, {".npy or .csv"}),
      data("DataNpyShape", "d.npy", npy({1, 2, 3, 4}, {2, 2}), 65, {"2 columns, the potential has dimension 1"}),
      data("DataNpyCube", "d.npy", npy({1, 2, 3, 4}, {2, 2, 1}), 65, {"shape (2, 2, 1)"}),
      data("DataNpyNan", "d.npy", npy({1, nan}, {2, 1}), 65, {"row 2, column 1"}),
      data("DataNpyTruncated", "d.npy", npy({1, 2}, {2, 1}).substr(0, 140), 65, {}),
      data("DataNpyGarbage", "d.npy", "1\n2\n", 65, {}),
      file("SamplesOfWrongCount", "[start]", "[start]\nsamples = \"s.npy\"", 65, {"s.npy: 2 samples, 100 particles"},
           {{"s.npy", npy({1, 2}, {2, 1})}}),
      file("ThetaFileDamaged", "theta = [0.0]", "theta_file = \"t.npy\"", 65, {"t.npy"}, {{"t.npy", "\x93NUMPY"}}),
      file("ThetaFileOfWrongLength", "theta = [0.0]", "theta_file = \"t.npy\"", 65,
           {"t.npy: 2 numbers, the potential has 1 parameters"}, {{"t.npy", npy({1, 2}, {1, 2})}}),
      file("ThetaFileWithNan", "theta = [0.0]", "theta_file = \"t.npy\"", 65, {"t.npy", "nan"},
           {{"t.npy", npy({nan}, {1, 1})}}),

      // A check reads what a run would.
      {"CheckUnknownExperiment", {"check", "langevin-rewrd"}, 2, {"'langevin-rewrd'", "did you mean langevin-reward?"}},
      {"CheckEmpty", {"check", ""}, 2, {"check: ", "'' is not a name"}},
      {"CheckUnknownOption", {"check", "--steps", "3"}, 2, {"--steps", "unknown option"}},
      {"CheckIsaUnknown", {"check", "--isa", "v5"}, 2, {"--isa: 'v5' is not one of baseline, v3, v4"}},
      {"CheckSeedNegative", {"check", "--seed", "-1"}, 2, {"--seed: -1 must be at least 0"}},
      {"CheckSetUnknownKey",
       {"check", "langevin-reward", "--set", "step_sise=1"},
       2,
       {"--set step_sise: unknown key; did you mean step_size?"}},
      {"CheckSetWithoutAnExperiment",
       {"check", "--set", "step_size=1"},
       2,
       {"--set: ", "needs an experiment to change"}},
      checked(text("CheckSyntaxError", "steps = \n", 2, {"x.toml:1: "})),
      checked(file("CheckPrecisionNotPositive", "[[1.0]]", "[[-1.0]]", 2, {"x.toml:8: potential.precision"})),
      {"CheckFileIsMissing", {"check", "x.toml"}, 66, {"x.toml: no such file"}},
      {"CheckFileIsADirectory", {"check", "x.toml"}, 66, {"x.toml: is a directory"}, {{"x.toml/", ""}}},
      checked(
          file("CheckDataMissing", "[start]", "[reference]\ndata = \"no.csv\"\n[start]", 66, {"no.csv: no such file"})),
      checked(data("CheckDataColumns", "d.csv", "1,2\n3,4\n", 65, {"2 columns, the potential has dimension 1"})),
      checked(data("CheckDataNan", "d.csv", "1\n2\nnan\n", 65, {"row 3, column 1", "nan"})),
      checked(file("CheckSamplesOfWrongCount", "[start]", "[start]\nsamples = \"s.npy\"", 65,
                   {"s.npy: 2 samples, 100 particles"}, {{"s.npy", npy({1, 2}, {2, 1})}})),
      checked(file("CheckThetaFileDamaged", "theta = [0.0]", "theta_file = \"t.npy\"", 65, {"t.npy"},
                   {{"t.npy", "\x93NUMPY"}})),

      // The output folder.
      option("OutputEmpty", {"--output", ""}, {"--output: '' is not a name"}),
      {"OutputNotEmpty",
       {"run", "x.toml", "--output", "r"},
       73,
       {"r: ", "not empty", "--overwrite"},
       {{"x.toml", small_experiment}, {"r/notes.txt", "mine"}}},
      {"OutputIsAFile",
       {"run", "x.toml", "--output", "x.toml"},
       73,
       {"x.toml: ", "not a folder"},
       {{"x.toml", small_experiment}}},
      {"OutputUnderAFile",
       {"run", "x.toml", "--output", "x.toml/r"},
       73,
       {"x.toml/r: "},
       {{"x.toml", small_experiment}}},
      {"OutputHoldsTheSamples",
       {"run", "x.toml", "--output", "r", "--overwrite", "--set", "start.samples=r/samples.npy", "--set",
        "particles=2"},
       2,
       {"start.samples: ", "r/samples.npy", "--overwrite"},
       {{"x.toml", small_experiment}, {"r/samples.npy", npy({1, 2}, {2, 1})}}},

      // Reports.
      {"ReportOfNothing", {"report", "r"}, 66, {"r: no such folder"}},
      {"ReportOfNoRun", {"report", "r"}, 66, {"r: ", "no config.toml"}, {{"r/", ""}}},
      {"ReportOfAFile", {"report", "r"}, 66, {"r: "}, {{"r", "text"}}},
      {"ReportIntoNothing", {"report", "r", "--output", ""}, 2, {"--output: '' is not a name"}, {{"r/", ""}}},
      {"ReportOfAVeryLongName", {"report", std::string(5000, 'k')}, 66, {"k...k", ": no such folder"}},
      {"ReportOfSeveralOneMissing", {"report", "r", "s"}, 66, {"r: no such folder"}},
  };
  return all;
}

void lay_out(const Folder& folder, const Files& files) {
  for (const auto& [name, bytes] : files) {
    if (name.ends_with('/'))
      fs::create_directories(folder / name);
    else
      write(folder / name, bytes);
  }
}

class BadInput : public testing::TestWithParam<Row> {};

TEST_P(BadInput, IsRefusedInOneLineAndLeavesNothing) {
  const Row& row = GetParam();
  const Folder folder;
  lay_out(folder, row.files);
  const auto before = names(folder.path());

  const Result result = run(folder, row.arguments);

  EXPECT_EQ(result.code, row.code) << result.err;
  EXPECT_TRUE(is_error_line(result.err, row.words));
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(names(folder.path()), before);
}

INSTANTIATE_TEST_SUITE_P(Program, BadInput, testing::ValuesIn(rows()), [](const auto& row) { return row.param.name; });

TEST(Program, WithoutACommandPrintsTheHelp) {
  const Folder folder;
  const Result result = run(folder, {});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, run(folder, {"--help"}).out);
}

TEST(Program, RefusesAConfigurationThatIsFarTooLong) {
  const Folder folder;
  std::string comment;
  comment.resize(20'000'000, '#');
  write(folder / "x.toml", comment);
  const Result result = run(folder, {"run", "x.toml"});
  EXPECT_EQ(result.code, 65);
  EXPECT_TRUE(is_error_line(result.err, {"x.toml: 20000000 bytes"}));
  EXPECT_EQ(names(folder.path()), Words{"x.toml"});
}

// Dots in strings, comments, numbers and many short keys are no key of many parts.
TEST(Program, ReadsTextWithManyDots) {
  const Folder folder;
  const std::string dots(200, '.');
  std::string snapshots = "0";
  for (int i = 1; i < 200; ++i) snapshots += ", " + std::to_string(i) + ".0";
  write(folder / "x.toml", "title = \"\\\"" + dots + "\" # it's " + dots + "\nduration = '''\n" + dots +
                               "'''\nsnapshots = [" + snapshots + "]\nquick.start.mean = [0.0]\n" + small_experiment);
  const Result result = run(folder, {"run", "x.toml", "--quiet"});
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(Program, ReadsAByteOrderMarkAndCarriageReturns) {
  const Folder folder;
  std::string toml = "\xEF\xBB\xBF";
  for (const std::string& line : lines(small_experiment)) toml += line + "\r\n";
  write(folder / "x.toml", toml);
  const Result result = run(folder, {"run", "x.toml"});
  EXPECT_EQ(result.code, 0) << result.err;
}

// Files of a run, damaged one at a time: the report says which, and the report that was there stays.
struct Damage {
  std::string name, file;
  std::string bytes;
  Words words;
  int code = 65;
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedRun : public testing::TestWithParam<Damage> {};

TEST_P(DamagedRun, IsRefusedByReport) {
  const Damage& damage = GetParam();
  const Folder folder;
  write(folder / "x.toml", small_experiment);
  ASSERT_EQ(run(folder, {"run", "x.toml", "--output", "r"}).code, 0);
  write(folder / ("r/" + damage.file), damage.bytes);
  const auto before = tree(folder.path());

  for (const Words& command : {Words{"report", "r"}, Words{"report", "r", "r"}}) {
    const Result result = run(folder, command);
    EXPECT_EQ(result.code, damage.code) << result.err;
    Words words = damage.words;
    words.push_back(damage.file);
    EXPECT_TRUE(is_error_line(result.err, words));
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(tree(folder.path()) == before) << "files have changed";
  }
}

const std::string metrics_header = "step,gradient_evaluations,seconds,reward,exact_reward,exact_kl,log_likelihood\n";

INSTANTIATE_TEST_SUITE_P(
    Program, DamagedRun,
    testing::ValuesIn(std::vector<Damage>{
        {"MetricsEmpty", "metrics.csv", "", {"no column step"}},
        {"MetricsWithoutRows", "metrics.csv", metrics_header, {"no rows"}},
        {"MetricsWithoutNames", "metrics.csv", "0,0,0,0,,,\n", {"no column step"}},
        {"MetricsRagged", "metrics.csv", metrics_header + "0,0,0\n", {"line 2"}},
        {"MetricsText", "metrics.csv", metrics_header + "0,0,zero,0,,,\n", {"line 2, column 3", "'zero'"}},
        {"MetricsWithoutSteps", "metrics.csv", metrics_header + ",,,,,,\n,,,,,,\n,,,,,,\n,,,,,,\n", {"step"}},
        {"MetricsShort", "metrics.csv", metrics_header + "0,0,0,0,,,\n", {}},
        {"ThetaTruncated", "theta.npy", npy({0, 0, 0, 0}, {4, 1}).substr(0, 150), {}},
        {"ThetaEmpty", "theta.npy", "", {}},
        {"ThetaOfWrongShape", "theta.npy", npy({0, 0, 0, 0}, {2, 2}), {"(4, 1)"}},
        {"ThetaWithNan", "theta.npy", npy({0, 0, std::nan(""), 0}, {4, 1}), {"row 3"}},
        {"SamplesTruncated", "samples.npy", npy({0, 0}, {2, 1}).substr(0, 130), {}},
        {"SamplesOfWrongShape", "samples.npy", npy({0, 0}, {1, 2}), {"2 columns"}},
        {"SummaryEmpty", "summary.json", "", {"not JSON"}},
        {"SummaryTruncated", "summary.json", "{\"experiment\": \"x\",", {"not JSON"}},
        {"SummaryNotAnObject", "summary.json", "[1, 2]", {"not a JSON object"}},
        {"SummaryStatus", "summary.json", "{\"status\": 3}", {"status"}},
        {"ConfigSyntax", "config.toml", "steps = \n", {":1: "}, 2},
    }),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace program_test
