#include "configuration.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/file.hpp"
#include "implicit_diffusion/io/samples.hpp"
#include "implicit_diffusion/io/text.hpp"
#include "problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

namespace program {

std::string written(double v) {
  const std::string s = fmt::format("{}", v);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;

template <class E>
using Words = std::vector<std::pair<std::string_view, E>>;

const Words<Method> methods{{"implicit", Method::implicit},
                            {"nested", Method::nested},
                            {"unrolled", Method::unrolled},
                            {"guided", Method::guided},
                            {"langevin-initial", Method::langevin_initial},
                            {"langevin-optimised", Method::langevin_optimised}};
const Words<ScheduleKind> schedules{{"constant", ScheduleKind::constant},
                                    {"inverse-sqrt", ScheduleKind::inverse_sqrt},
                                    {"cube-root", ScheduleKind::cube_root}};
const Words<OptimizerKind> optimizers{{"gradient-descent", OptimizerKind::gradient_descent},
                                      {"adam", OptimizerKind::adam}};
const Words<Order> orders{{"paper", Order::paper}, {"authors", Order::authors}};
const Words<Normaliser> normalisers{{"n", Normaliser::n}, {"n-1", Normaliser::n_minus_1}};
const Words<PotentialKind> potentials{{"quadratic", PotentialKind::quadratic},
                                      {"wells", PotentialKind::wells},
                                      {"logistic-wells", PotentialKind::logistic_wells},
                                      {"mixture", PotentialKind::mixture}};
const Words<CovarianceForm> covariances{{"direct", CovarianceForm::direct}, {"cholesky", CovarianceForm::cholesky}};
const Words<RewardKind> rewards{{"hard", RewardKind::hard},
                                {"smooth", RewardKind::smooth},
                                {"quadratic", RewardKind::quadratic},
                                {"bump", RewardKind::bump}};

// A value that is of the wrong type, in words.
std::string what_is(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "the string " + implicit_diffusion::io::excerpt(*node.value<std::string>());
    case toml::node_type::integer:
      return fmt::format("the integer {}", *node.value<std::int64_t>());
    case toml::node_type::floating_point:
      return fmt::format("the number {}", *node.value<double>());
    case toml::node_type::boolean:
      return *node.value<bool>() ? "true" : "false";
    default:
      return "a date";
  }
}

std::string toml_string(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}
std::string written_list(const std::vector<double>& v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + written(v[i]);
  return s + "]";
}
using Matrix = std::vector<std::vector<double>>;  // row by row
std::string written_matrix(const Matrix& m) {
  std::string s = "[";
  for (std::size_t i = 0; i < m.size(); ++i) s += (i ? ", " : "") + written_list(m[i]);
  return s + "]";
}

// One table of the file: hands out its values by key, checked, remembers which keys exist, and writes down what it
// handed out.
class Section {
 public:
  Section(const toml::table* table, std::string prefix, const std::string& file,
          const std::map<std::string, std::string>& from_command_line)
      : table_(table), prefix_(std::move(prefix)), file_(file), from_command_line_(from_command_line) {}

  bool has(std::string_view key) {
    know(key);
    return contains(key);
  }
  bool contains(std::string_view key) const { return table_ && table_->contains(key); }

  std::string text(std::string_view key, const std::string& fallback) {
    const toml::node* n = find(key);
    std::string value = fallback;
    if (n) {
      if (!n->is_string()) wrong_type(*n, key, "a string");
      value = *n->value<std::string>();
    }
    note(key, toml_string(value));
    return value;
  }

  // For a key that is there to be read by people.
  void check_text(std::string_view key) {
    if (const toml::node* n = find(key); n && !n->is_string()) wrong_type(*n, key, "a string");
  }

  template <class E>
  E word(std::string_view key, E fallback, const Words<E>& words) {
    const toml::node* n = find(key);
    E value = fallback;
    if (n) {
      std::vector<std::string> names;
      for (const auto& [name, e] : words) names.emplace_back(name);
      if (!n->is_string()) wrong_type(*n, key, fmt::format("one of {}", fmt::join(names, ", ")));
      const std::string given = *n->value<std::string>();
      const auto found = std::find_if(words.begin(), words.end(), [&](const auto& w) { return w.first == given; });
      if (found == words.end()) {
        const auto near = nearest(given, names);
        fail(*n, key,
             fmt::format("{} is not one of {}{}", implicit_diffusion::io::excerpt(given), fmt::join(names, ", "),
                         near ? fmt::format("; did you mean {}?", *near) : ""));
      }
      value = found->second;
    }
    for (const auto& [name, e] : words)
      if (e == value) note(key, toml_string(name));
    return value;
  }

  bool flag(std::string_view key, bool fallback) {
    const toml::node* n = find(key);
    if (n && !n->is_boolean()) wrong_type(*n, key, "true or false");
    const bool value = n ? *n->value<bool>() : fallback;
    note(key, value ? "true" : "false");
    return value;
  }

  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t lowest,
                       std::int64_t highest = std::numeric_limits<std::int64_t>::max()) {
    const toml::node* n = find(key);
    std::int64_t value = fallback;
    if (n) {
      // 1e12 is a whole number too.
      if (const auto d = n->value<double>(); n->is_floating_point() && d && *d == std::floor(*d) && std::abs(*d) < 9e18)
        value = static_cast<std::int64_t>(*d);
      else if (n->is_integer())
        value = *n->value<std::int64_t>();
      else
        wrong_type(*n, key, "an integer");
      if (value < lowest || value > highest)
        fail(*n, key,
             highest == std::numeric_limits<std::int64_t>::max()
                 ? fmt::format("{} must be at least {}", value, lowest)
                 : fmt::format("{} must be between {} and {}", value, lowest, highest));
    }
    note(key, fmt::format("{}", value));
    return value;
  }

  // The particles and what moves them are single precision: a number must be one there, and its inverse too, with room
  // for a few factors.
  static constexpr double smallest = 1e-30, largest = 1e30;
  static bool fits(double v) { return std::abs(v) >= smallest && std::abs(v) <= largest; }

  enum class Sign { any, positive, not_negative };
  double number(std::string_view key, double fallback, Sign sign) {
    const toml::node* n = find(key);
    double value = fallback;
    if (n) {
      value = as_number(*n, key);
      if (sign == Sign::positive && !(value > 0)) fail(*n, key, fmt::format("{} must be positive", value));
      if (sign == Sign::not_negative && !(value >= 0)) fail(*n, key, fmt::format("{} must not be negative", value));
      if (value != 0 && !fits(value))
        fail(*n, key,
             fmt::format("{} is too {} for single precision: its size must be between {} and {}", value,
                         std::abs(value) < smallest ? "small" : "large", smallest, largest));
    }
    note(key, written(value));
    return value;
  }

  std::vector<double> numbers(std::string_view key, std::vector<double> fallback) {
    const toml::node* n = find(key);
    std::vector<double> value = n ? as_numbers(*n, key) : std::move(fallback);
    note(key, written_list(value));
    return value;
  }

  Matrix matrix(std::string_view key) {
    const toml::node& n = need(key, "an array of arrays of numbers");
    Matrix value = as_matrix(n, key);
    note(key, written_matrix(value));
    return value;
  }

  std::vector<Matrix> matrices(std::string_view key) {
    const toml::node& n = need(key, "an array of matrices");
    if (!n.is_array()) wrong_type(n, key, "an array of matrices");
    std::vector<Matrix> value;
    std::string text = "[";
    for (const toml::node& m : *n.as_array()) {
      text += value.empty() ? "" : ", ";
      value.push_back(as_matrix(m, key));
      text += written_matrix(value.back());
    }
    note(key, text + "]");
    return value;
  }

  // A file named relative to `folder`.
  std::filesystem::path locate(std::string_view key, const std::filesystem::path& folder) {
    const toml::node* n = find(key);
    if (!n) return {};
    if (!n->is_string()) wrong_type(*n, key, "the name of a file");
    return std::filesystem::absolute(folder / *n->value<std::string>()).lexically_normal();
  }
  // The same, noted as an absolute path, so that the resolved configuration can be moved.
  std::filesystem::path file(std::string_view key, const std::filesystem::path& folder) {
    const std::filesystem::path path = locate(key, folder);
    if (!path.empty()) note(key, toml_string(path.string()));
    return path;
  }

  // Null where the table is absent.
  const toml::table* table(std::string_view key) {
    const toml::node* n = find(key);
    if (!n) return nullptr;
    if (!n->is_table()) wrong_type(*n, key, "a table");
    return n->as_table();
  }
  Section section(std::string_view key) {
    return {table(key), prefix_ + std::string(key) + ".", file_, from_command_line_};
  }

  // A key that was never asked for is a mistake. `others` are the tables that it may have been meant for.
  void finish(const std::vector<const Section*>& others) const {
    if (!table_) return;
    for (const auto& [key, node] : *table_) {
      if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
      for (const Section* other : others)
        if (std::find(other->known_.begin(), other->known_.end(), key.str()) != other->known_.end())
          fail(node, key.str(), fmt::format("unknown key; did you mean {}{}?", other->prefix_, key.str()));
      const auto near = nearest(key.str(), known_);
      fail(node, key.str(),
           near ? fmt::format("unknown key; did you mean {}{}?", prefix_, *near)
                : fmt::format("unknown key; known here are {}", fmt::join(known_, ", ")));
    }
  }

  [[noreturn]] void fail(const toml::node& node, std::string_view key, const std::string& what) const {
    const std::string name = prefix_ + std::string(key);
    if (const auto option = from_command_line_.find(name); option != from_command_line_.end())
      throw Error(ErrorKind::usage, option->second, what);
    // A table may be there only because the command line gave a key of it.
    const auto inside = from_command_line_.lower_bound(name + ".");
    if (node.source().begin.line == 0 && inside != from_command_line_.end() && inside->first.starts_with(name + "."))
      throw Error(ErrorKind::usage, inside->second, fmt::format("{}: {}", name, what));
    throw Error(ErrorKind::usage, fmt::format("{}:{}", file_, node.source().begin.line),
                fmt::format("{}: {}", name, what));
  }
  [[noreturn]] void fail(std::string_view key, const std::string& what) const {
    if (const toml::node* n = table_ ? table_->get(key) : nullptr) fail(*n, key, what);
    throw Error(ErrorKind::usage, file_, fmt::format("{}{}: {}", prefix_, key, what));
  }

  // Writes a key down for the resolved configuration.
  void note(std::string_view key, std::string_view value) { lines_ += fmt::format("{} = {}\n", key, value); }

  // The lines written so far, under a heading unless this is the top of the file.
  std::string lines() const {
    if (!table_ || lines_.empty()) return {};
    return (prefix_.empty() ? "" : fmt::format("\n[{}]\n", prefix_.substr(0, prefix_.size() - 1))) + lines_;
  }

 private:
  void know(std::string_view key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  }
  const toml::node* find(std::string_view key) {
    know(key);
    return table_ ? table_->get(key) : nullptr;
  }
  const toml::node& need(std::string_view key, std::string_view what) {
    const toml::node* n = find(key);
    if (!n) throw Error(ErrorKind::usage, file_, fmt::format("{}{}: missing, {} is needed", prefix_, key, what));
    return *n;
  }
  [[noreturn]] void wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const {
    fail(n, key, fmt::format("{} is given, {} is needed", what_is(n), wanted));
  }
  double as_number(const toml::node& n, std::string_view key) const {
    if (!n.is_number()) wrong_type(n, key, "a number");
    const double value = *n.value<double>();
    if (!std::isfinite(value)) fail(n, key, fmt::format("{} is not finite", value));
    return value;
  }
  std::vector<double> as_numbers(const toml::node& n, std::string_view key) const {
    if (!n.is_array()) wrong_type(n, key, "an array of numbers");
    std::vector<double> value;
    for (const toml::node& v : *n.as_array()) value.push_back(as_number(v, key));
    return value;
  }
  Matrix as_matrix(const toml::node& n, std::string_view key) const {
    if (!n.is_array()) wrong_type(n, key, "an array of arrays of numbers");
    Matrix value;
    for (const toml::node& row : *n.as_array()) value.push_back(as_numbers(row, key));
    return value;
  }

  const toml::table* table_;
  std::string prefix_, file_;
  const std::map<std::string, std::string>& from_command_line_;
  std::vector<std::string> known_;
  std::string lines_;
};

toml::table parse(std::string_view text, const std::string& where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& e) {
    throw Error(ErrorKind::usage, fmt::format("{}:{}", where, e.source().begin.line),
                implicit_diffusion::io::printable(e.description(), 200));
  }
}

// Puts `key = value` into the table, making the tables on the way. A value that is not TOML is taken as a string: --set
// method=nested. Returns the table it went into.
toml::table& set_key(toml::table& table, const Override& o) {
  const auto fail = [&](const std::string& what) { throw Error(ErrorKind::usage, o.option, what); };
  if (o.key.starts_with('.') || o.key.find("..") != std::string::npos) fail("the name of a table is missing");
  toml::table parsed;
  try {
    parsed = toml::parse("value = " + o.value);
  } catch (const toml::parse_error&) {
    const std::string_view digits = std::string_view(o.value).substr(o.value.starts_with("-") ? 1 : 0);
    if (digits.size() > 18 && digits.find_first_not_of("0123456789") == std::string_view::npos)
      fail(fmt::format("{} is too large", implicit_diffusion::io::printable(o.value, 40)));
    parsed.insert_or_assign("value", o.value);
  }
  if (parsed.size() != 1) fail("one value is needed");
  toml::table* at = &table;
  std::string_view rest = o.key;
  for (std::size_t dot = rest.find('.'); dot != std::string_view::npos; dot = rest.find('.')) {
    const std::string_view part = rest.substr(0, dot);
    if (!at->contains(part)) at->insert(part, toml::table{});
    at = at->get(part)->as_table();
    if (!at) fail(fmt::format("{} is not a table", part));
    rest.remove_prefix(dot + 1);
  }
  if (rest.empty()) fail("a key is missing");
  at->insert_or_assign(rest, std::move(*parsed.get("value")));
  return *at;
}

// A law can be given in several ways, each of them a group of keys. One that the command line gives takes the place of
// the file's.
const std::vector<std::vector<std::string_view>> ways_to_give_a_law{
    {"theta"}, {"theta_file"}, {"data"}, {"logits", "means", "covariances"}};

void drop_other_ways(toml::table& table, const std::string& full_key,
                     const std::map<std::string, std::string>& from_command_line) {
  const std::size_t dot = full_key.rfind('.');
  if (dot == std::string::npos) return;
  const std::string prefix = full_key.substr(0, dot + 1), key = full_key.substr(dot + 1);
  const auto has_key = [&](const auto& way) { return std::find(way.begin(), way.end(), key) != way.end(); };
  if (std::none_of(ways_to_give_a_law.begin(), ways_to_give_a_law.end(), has_key)) return;
  for (const auto& way : ways_to_give_a_law)
    for (const std::string_view other : way)
      if (!has_key(way) && !from_command_line.contains(prefix + std::string(other))) table.erase(other);
}

PotentialSpec read_potential(Section& s) {
  PotentialSpec p;
  p.kind = s.word("kind", PotentialKind::wells, potentials);
  switch (p.kind) {
    case PotentialKind::quadratic:
      p.precision = s.matrix("precision");
      for (std::size_t i = 0; i < p.precision.size(); ++i)
        for (std::size_t j = 0; j < p.precision[i].size(); ++j)
          if (const double v = p.precision[i][j];
              std::abs(v) > Section::largest || (i == j && v > 0 && !Section::fits(v)))
            s.fail("precision", fmt::format("{} does not fit into single precision", v));
      break;
    case PotentialKind::logistic_wells:
      p.centres = s.matrix("centres");
      p.width = s.number("width", 1.0, Section::Sign::positive);
      p.floor = s.number("floor", p.floor, Section::Sign::positive);
      break;
    case PotentialKind::wells:
      p.centres = s.matrix("centres");
      p.width = s.number("width", p.width, Section::Sign::positive);
      break;
    case PotentialKind::mixture:
      p.components = static_cast<std::size_t>(s.integer("components", 2, 1, 10000));
      p.dimension = static_cast<std::size_t>(s.integer("dimension", 2, 1, 32));
      p.covariance = s.word("covariance", CovarianceForm::direct, covariances);
      p.kappa = s.number("kappa", 0.5, Section::Sign::positive);
      break;
  }
  return p;
}

// A point that particles are compared with: squares of distances must be single-precision numbers too.
constexpr double largest_coordinate = 1e18;
void check_coordinates(const Section& s, std::string_view key, std::span<const double> point) {
  for (const double v : point)
    if (std::abs(v) > largest_coordinate) s.fail(key, fmt::format("{} is too large for single precision", v));
}

RewardSpec read_reward(Section& s, RewardKind fallback, double denominator, double lambda, std::size_t dimension) {
  RewardSpec r;
  r.kind = s.word("kind", fallback, rewards);
  r.centre = s.numbers("centre", {});
  if (r.centre.size() != dimension)
    s.fail("centre", fmt::format("{} numbers, the potential has dimension {}", r.centre.size(), dimension));
  check_coordinates(s, "centre", r.centre);
  if (r.kind != RewardKind::quadratic) r.width = s.number("width", 20.0, Section::Sign::positive);
  if (r.kind == RewardKind::hard || r.kind == RewardKind::smooth)
    r.denominator = s.number("denominator", denominator, Section::Sign::positive);
  if (r.kind == RewardKind::smooth) r.softness = s.number("softness", 0.5, Section::Sign::positive);
  r.lambda = s.number("lambda", lambda, Section::Sign::any);
  return r;
}

// The last row of a theta.npy.
std::vector<double> read_theta(const std::filesystem::path& path) {
  const implicit_diffusion::io::Array a = implicit_diffusion::io::read_npy(path);
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorKind::data, implicit_diffusion::io::display(path), what);
  };
  if (a.shape.empty() || a.shape.size() > 2 || a.values.empty())
    fail("not an array of parameters, shape (rows, p) or (p,)");
  const std::size_t p = a.shape.back();
  std::vector<double> theta(a.values.end() - static_cast<std::ptrdiff_t>(p), a.values.end());
  for (std::size_t j = 0; j < p; ++j)
    if (!std::isfinite(theta[j])) fail(fmt::format("column {} of the last row is {}", j + 1, theta[j]));
  return theta;
}

// Where two entries of a matrix that ought to be equal are not, but for rounding.
std::optional<std::string> asymmetry(std::span<const double> m, std::size_t d) {
  for (std::size_t a = 0; a < d; ++a)
    for (std::size_t b = 0; b < a; ++b) {
      const double one = m[a * d + b], other = m[b * d + a], scale = std::sqrt(std::abs(m[a * d + a] * m[b * d + b]));
      if (std::abs(one - other) > 1e-6 * scale)
        return fmt::format("entries {} and {} at ({}, {})", one, other, a + 1, b + 1);
    }
  return std::nullopt;
}

// What is wrong with a law for single precision, and whether it is a mean or a covariance.
struct Misfit {
  enum class Of { mean, covariance } of;
  std::string what;
};
std::optional<Misfit> misfit(const GaussianMixture& law) {
  constexpr double smallest = 1e-37, largest = 1e37;  // the inverse is needed too
  for (const implicit_diffusion::Gaussian& g : law.components)
    for (std::size_t a = 0; a < g.mean.size(); ++a) {
      const double variance = g.covariance[a * g.mean.size() + a];
      if (!(variance >= smallest && variance <= largest))
        return Misfit{Misfit::Of::covariance,
                      fmt::format("a variance of {:.6g} does not fit into single precision", variance)};
      if (const auto what = too_far(g.mean[a], std::sqrt(variance))) return Misfit{Misfit::Of::mean, *what};
    }
  return std::nullopt;
}

// Refuses a theta at which the potential has no law, or none that can be sampled.
void check_parameters(const Section& s, std::string_view key, const PotentialSpec& spec,
                      std::span<const double> theta) {
  const implicit_diffusion::Potential<float> potential = make_potential(spec);
  if (const auto j = potential.find_inadmissible(theta))
    s.fail(key, fmt::format("number {} makes a covariance that is not positive definite", *j + 1));
  if (spec.kind == PotentialKind::mixture && spec.covariance == CovarianceForm::direct) {
    const implicit_diffusion::Mixture mixture(spec.components, spec.dimension, {spec.covariance, spec.kappa});
    for (std::size_t i = 0; i < spec.components; ++i)
      if (const auto what =
              asymmetry(theta.subspan(mixture.covariance_at(i), spec.dimension * spec.dimension), spec.dimension))
        s.fail(key, fmt::format("the covariance of component {} is not symmetric: {}", i + 1, *what));
  }
  if (const auto bad = misfit(*potential.law(theta))) s.fail(key, bad->what);
}

// The parameters of the potential, in whichever way they are given: theta itself, the file of another run, or what a
// mixture is made of. Empty where none is given.
std::vector<double> read_parameters(Section& s, const PotentialSpec& potential, const std::filesystem::path& folder) {
  std::vector<double> theta;
  std::string_view key = "theta";
  for (const char* way : {"theta_file", "data", "means"})
    if (s.has("theta") && s.contains(way)) s.fail(way, "theta is given too; one of them is meant");
  if (s.has("theta")) {
    theta = s.numbers("theta", {});
  } else if (s.has("theta_file")) {
    key = "theta_file";
    theta = read_theta(s.locate("theta_file", folder));
    s.note("theta", written_list(theta));  // the file may be gone or changed when this run is repeated
  } else if (potential.kind == PotentialKind::mixture && s.has("means")) {
    const implicit_diffusion::Mixture mixture(potential.components, potential.dimension,
                                              {potential.covariance, potential.kappa});
    const std::vector<double> logits = s.numbers("logits", std::vector<double>(potential.components));
    const auto means = s.matrix("means");
    const auto spreads = s.matrices("covariances");
    for (const auto& [given, count] : {std::pair{"logits", logits.size()}, std::pair{"means", means.size()},
                                       std::pair{"covariances", spreads.size()}})
      if (count != potential.components)
        s.fail(given, fmt::format("{} given, the mixture has {} components", count, potential.components));
    std::vector<implicit_diffusion::Gaussian> parts;
    const std::size_t d = potential.dimension;
    for (std::size_t i = 0; i < potential.components; ++i) {
      if (means[i].size() != d)
        s.fail("means", fmt::format("mean {} has {} coordinates, the dimension is {}", i + 1, means[i].size(), d));
      if (spreads[i].size() != d || std::any_of(spreads[i].begin(), spreads[i].end(),
                                                [d](const std::vector<double>& row) { return row.size() != d; }))
        s.fail("covariances", fmt::format("matrix {} is not {} x {}", i + 1, d, d));
      parts.push_back({means[i], {}});
      for (const std::vector<double>& row : spreads[i])
        parts[i].covariance.insert(parts[i].covariance.end(), row.begin(), row.end());
      if (const auto what = asymmetry(parts[i].covariance, d))
        s.fail("covariances", fmt::format("matrix {} is not symmetric: {}", i + 1, *what));
    }
    try {
      theta = mixture.parameters_of(logits, parts);
    } catch (const Error& e) {
      s.fail("covariances", e.what());
    }
    if (const auto bad = misfit(mixture.law(theta)))
      s.fail(bad->of == Misfit::Of::mean ? "means" : "covariances", bad->what);
    return theta;
  } else {
    return {};
  }
  const std::size_t p = make_potential(potential).parameters();
  if (theta.size() != p) {
    const std::string what = fmt::format("{} numbers, the potential has {} parameters", theta.size(), p);
    if (key == "theta") s.fail(key, what);
    throw Error(ErrorKind::data, implicit_diffusion::io::display(s.locate("theta_file", folder)), what);
  }
  check_parameters(s, key, potential, theta);
  return theta;
}

// The potential; what it complains about as "potential.KEY: ..." is told with the line of that key.
implicit_diffusion::Potential<float> checked_potential(const PotentialSpec& spec, const Section& s) {
  for (const std::vector<double>& c : spec.centres) {
    check_coordinates(s, "centres", c);
    for (const double x : c)
      if (const auto what = too_far(x, std::sqrt(spec.width / 2))) s.fail("centres", *what);
  }
  try {
    return make_potential(spec);
  } catch (const Error& e) {
    const std::string_view what = e.what(), prefix = "potential.";
    const std::size_t colon = what.find(": ");
    if (!what.starts_with(prefix) || colon == std::string_view::npos) throw;
    s.fail(what.substr(prefix.size(), colon - prefix.size()), std::string(what.substr(colon + 2)));
  }
}

}  // namespace

std::string_view to_string(Method method) {
  for (const auto& [name, m] : methods)
    if (m == method) return name;
  return "";
}

// Edit distance with neighbouring letters exchanged counted once.
std::optional<std::string> nearest(std::string_view typed, const std::vector<std::string>& words) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(2, typed.size() / 3) + 1;
  for (const std::string& word : words) {
    std::vector<std::size_t> before(word.size() + 1), row(word.size() + 1), next(word.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= typed.size(); ++i) {
      next[0] = i;
      for (std::size_t j = 1; j <= word.size(); ++j) {
        next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (typed[i - 1] != word[j - 1])});
        if (i > 1 && j > 1 && typed[i - 1] == word[j - 2] && typed[i - 2] == word[j - 1])
          next[j] = std::min(next[j], before[j - 2] + 1);
      }
      before = row;
      row = next;
    }
    if (row.back() < least) {
      least = row.back();
      best = word;
    }
  }
  return best;
}

Description read_description(std::string_view text, const std::string& name) {
  const toml::table table = parse(text, name);
  return {name, table["title"].value_or(""), table["duration"].value_or("")};
}

Configuration read_configuration(std::string_view text, const std::string& where, const std::string& name,
                                 const std::filesystem::path& folder, const Overrides& overrides) {
  toml::table table = parse(text, where);
  std::map<std::string, std::string> from_command_line;  // key, option
  if (overrides.quick)
    if (const toml::table* quick = table["quick"].as_table())
      for (const auto& [key, value] : *quick) table.insert_or_assign(key, value);
  for (const Override& o : overrides.set) from_command_line[o.key] = o.option;
  for (const Override& o : overrides.set) drop_other_ways(set_key(table, o), o.key, from_command_line);

  Configuration c;
  Section top(&table, "", where, from_command_line);
  using Sign = Section::Sign;
  c.experiment = top.text("experiment", name);
  c.title = top.text("title", c.experiment);
  const auto cannot_be_in_a_name = [](char letter) {
    return letter == '/' || static_cast<unsigned char>(letter) < 0x20;
  };
  if (c.experiment.empty() || c.experiment == "." || c.experiment == ".." || c.experiment.size() > 200 ||
      std::any_of(c.experiment.begin(), c.experiment.end(), cannot_be_in_a_name))
    top.fail("experiment", fmt::format("{} cannot name a folder", implicit_diffusion::io::excerpt(c.experiment)));
  top.check_text("duration");
  top.table("quick");
  c.method = top.word("method", Method::implicit, methods);
  c.particles = top.integer("particles", 1000, 1);
  c.steps = top.integer("steps", 5000, 0);
  c.step_size = top.number("step_size", 0.2, Sign::positive);
  c.learning_rate = top.number("learning_rate", 0.1, Sign::not_negative);
  c.schedule = top.word("schedule", ScheduleKind::constant, schedules);
  c.optimizer = top.word("optimizer", OptimizerKind::gradient_descent, optimizers);
  c.order = top.word("order", Order::paper, orders);
  constexpr std::int64_t steps_with_noise_of_their_own = std::int64_t{1} << 32;
  c.inner_steps = top.integer("inner_steps", c.method == Method::nested ? 10 : 1, 1, steps_with_noise_of_their_own);
  c.warm_start = top.flag("warm_start", true);
  c.normaliser = top.word("normaliser", Normaliser::n_minus_1, normalisers);
  const bool learns = c.method == Method::implicit || c.method == Method::nested;  // by a covariance
  if (learns && c.normaliser == Normaliser::n_minus_1 && c.particles < 2)
    top.fail("particles", "1 particle has no covariance with normaliser n-1");
  c.log_every = top.integer("log_every", 10, 1);
  c.checkpoint_every = top.integer("checkpoint_every", 0, 0);
  c.seed = static_cast<std::uint64_t>(top.integer("seed", 0, 0));

  Section potential = top.section("potential");
  c.potential = read_potential(potential);
  const implicit_diffusion::Potential<float> v = checked_potential(c.potential, potential);

  Section reward = top.section("reward");
  if (top.has("reward")) c.reward = read_reward(reward, RewardKind::hard, 2.5, 1.0, v.dimension());
  Section smooth = top.section("smooth_reward");
  if (top.has("smooth_reward"))
    c.smooth_reward =
        read_reward(smooth, RewardKind::smooth, c.method == Method::guided ? 0.7 : 2.5, 5.0, v.dimension());

  Section reference = top.section("reference");
  if (top.has("reference")) {
    ReferenceSpec r;
    r.theta = read_parameters(reference, c.potential, folder);
    if (r.theta.empty()) r.data = reference.file("data", folder);
    if (r.theta.empty() && r.data.empty())
      reference.fail("data", "missing: the reference is samples in a file (data) or a law of the potential (theta)");
    r.batch = static_cast<std::size_t>(reference.integer("batch", r.theta.empty() ? 0 : 1000, r.theta.empty() ? 0 : 1));
    r.beta = reference.number("beta", 1.0, Sign::not_negative);
    c.reference = r;
  }
  Section base = top.section("base");
  if (top.has("base")) {
    BaseSpec b;
    b.theta = read_parameters(base, c.potential, folder);
    if (b.theta.empty()) base.fail("theta", "missing: the law to stay close to");
    b.beta = base.number("beta", 1.0, Sign::not_negative);
    c.base = b;
  }

  Section start = top.section("start");
  c.start.theta = read_parameters(start, c.potential, folder);
  if (c.start.theta.empty()) start.fail("theta", "missing: where theta starts");
  c.start.samples = start.file("samples", folder);
  if (c.start.samples.empty()) {
    c.start.mean = start.numbers("mean", std::vector<double>(v.dimension()));
    if (c.start.mean.size() != v.dimension())
      start.fail("mean", fmt::format("{} numbers, the potential has dimension {}", c.start.mean.size(), v.dimension()));
    c.start.scale = start.number("scale", 1.0, Sign::not_negative);
    check_coordinates(start, "mean", c.start.mean);
  }

  c.theta_opt = top.numbers("theta_opt", c.reference ? c.reference->theta : std::vector<double>{});
  if (!c.theta_opt.empty() && c.theta_opt.size() != v.parameters())
    top.fail("theta_opt",
             fmt::format("{} numbers, the potential has {} parameters", c.theta_opt.size(), v.parameters()));
  if (!c.theta_opt.empty()) check_parameters(top, "theta_opt", c.potential, c.theta_opt);
  c.thresholds = top.numbers("thresholds", {});
  if (!c.thresholds.empty() && c.theta_opt.empty()) top.fail("thresholds", "a log-likelihood needs theta_opt");

  if (learns && !c.reward && !c.reference && !c.base)
    top.fail("method", fmt::format("{} needs an objective: a table reward, reference or base", to_string(c.method)));
  if ((c.method == Method::guided || c.method == Method::unrolled) && !c.smooth_reward)
    top.fail("method", fmt::format("{} needs a table smooth_reward", to_string(c.method)));
  if (c.method == Method::langevin_optimised && c.theta_opt.empty())
    top.fail("method", "langevin-optimised needs theta_opt");

  const std::vector<const Section*> sections{&top, &potential, &reward, &smooth, &reference, &base, &start};
  for (const Section* s : sections) {
    s->finish(sections);
    c.resolved += s->lines();
  }
  check_size(c, v.dimension(), v.parameters(), [&](std::string_view key, const std::string& reason) {
    if (key == "reference.batch") reference.fail("batch", reason);
    top.fail(key, reason);
  });
  try {
    (void)toml::parse(c.resolved);
  } catch (const toml::parse_error&) {
    throw Error(ErrorKind::usage, where, "the name of a file or folder in it, or its own, is not UTF-8");
  }
  return c;
}

Configuration with_seed(Configuration c, std::uint64_t seed) {
  const auto line = [](std::uint64_t s) { return fmt::format("\nseed = {}\n", s); };
  const std::string before = line(c.seed);
  c.resolved.replace(c.resolved.find(before), before.size(), line(seed));
  c.seed = seed;
  return c;
}

Configuration load_experiment(const std::string& name_or_file, const Overrides& overrides) {
  const auto& experiments = built_in_experiments();
  if (const auto found = experiments.find(name_or_file); found != experiments.end())
    return read_configuration(found->second, found->first + ".toml", found->first, ".", overrides);

  const std::filesystem::path path(name_or_file);
  const bool is_name = path.extension() != ".toml" && !path.has_parent_path() && !std::filesystem::exists(path);
  if (is_name) {
    std::vector<std::string> names;
    for (const auto& [name, text] : experiments) names.push_back(name);
    const auto near = nearest(name_or_file, names);
    throw Error(
        ErrorKind::usage, "run",
        fmt::format("no experiment is called {}{}", implicit_diffusion::io::excerpt(name_or_file),
                    near ? fmt::format("; did you mean {}?", *near) : "; `implicit-diffusion list` shows them"));
  }
  if (std::error_code none; std::filesystem::exists(path / "config.toml", none))
    throw Error(ErrorKind::missing, implicit_diffusion::io::display(path),
                fmt::format("is a directory, a file is meant; did you mean {}?",
                            implicit_diffusion::io::display(path / "config.toml")));
  constexpr std::size_t longest = 16 << 20;
  const std::string text = implicit_diffusion::io::read_file(path, longest);
  return read_configuration(text, implicit_diffusion::io::display(path), path.stem().string(),
                            path.has_parent_path() ? path.parent_path() : ".", overrides);
}

}  // namespace program
