#include "experiment/table_reader.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace program {
namespace {

using implicit_diffusion::Error;
using implicit_diffusion::ErrorKind;
using implicit_diffusion::io::excerpt;

// A value that is of the wrong type, in words.
std::string what_is(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "the string " + excerpt(*node.value<std::string>());
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

std::string toml_matrix(const Matrix& m) {
  std::string s = "[";
  for (std::size_t i = 0; i < m.size(); ++i) s += (i ? ", " : "") + toml_number(m[i]);
  return s + "]";
}

}  // namespace

std::string TableReader::text(std::string_view key, const std::string& fallback) {
  const toml::node* n = find(key);
  std::string value = fallback;
  if (n) {
    if (!n->is_string()) wrong_type(*n, key, "a string");
    value = *n->value<std::string>();
  }
  record(key, toml_string(value));
  return value;
}

void TableReader::check_text(std::string_view key) {
  if (const toml::node* n = find(key); n && !n->is_string()) wrong_type(*n, key, "a string");
}

std::vector<std::string> TableReader::texts(std::string_view key, std::vector<std::string> fallback) {
  std::vector<std::string> values = std::move(fallback);
  if (const toml::node* n = find(key)) {
    if (!n->is_array()) wrong_type(*n, key, "an array of strings");
    values.clear();
    for (const toml::node& v : *n->as_array()) {
      if (!v.is_string()) wrong_type(v, key, "a string");
      values.push_back(*v.value<std::string>());
    }
  }
  std::string text = "[";
  for (const std::string& v : values) text += (text.size() > 1 ? ", " : "") + toml_string(v);
  record(key, text + "]");
  return values;
}

std::size_t TableReader::choice(std::string_view key, std::size_t fallback, const std::vector<std::string>& names) {
  std::size_t chosen = fallback;
  if (const toml::node* n = find(key)) {
    if (!n->is_string()) wrong_type(*n, key, fmt::format("one of {}", fmt::join(names, ", ")));
    chosen = match(*n, key, *n->value<std::string>(), names);
  }
  record(key, toml_string(names[chosen]));
  return chosen;
}

std::size_t TableReader::match(const toml::node& n, std::string_view key, const std::string& given,
                               const std::vector<std::string>& names) const {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto near = nearest(given, names);
  fail(n, key,
       fmt::format("{} is not one of {}{}", excerpt(given), fmt::join(names, ", "),
                   near ? fmt::format("; did you mean {}?", *near) : ""));
}

bool TableReader::flag(std::string_view key, bool fallback) {
  const toml::node* n = find(key);
  if (n && !n->is_boolean()) wrong_type(*n, key, "true or false");
  const bool value = n ? *n->value<bool>() : fallback;
  record(key, value ? "true" : "false");
  return value;
}

std::int64_t TableReader::as_integer(const toml::node& n, std::string_view key, std::int64_t lowest,
                                     std::int64_t highest) const {
  std::int64_t value = 0;
  // 1e12 is a whole number too.
  if (const auto d = n.value<double>(); n.is_floating_point() && d && *d == std::floor(*d) && std::abs(*d) < 9e18)
    value = static_cast<std::int64_t>(*d);
  else if (n.is_integer())
    value = *n.value<std::int64_t>();
  else
    wrong_type(n, key, "an integer");
  if (value < lowest || value > highest)
    fail(n, key,
         highest == std::numeric_limits<std::int64_t>::max()
             ? fmt::format("{} must be at least {}", value, lowest)
             : fmt::format("{} must be between {} and {}", value, lowest, highest));
  return value;
}

std::int64_t TableReader::integer(std::string_view key, std::int64_t fallback, std::int64_t lowest,
                                  std::int64_t highest) {
  const toml::node* n = find(key);
  const std::int64_t value = n ? as_integer(*n, key, lowest, highest) : fallback;
  record(key, fmt::format("{}", value));
  return value;
}

std::vector<std::int64_t> TableReader::integers(std::string_view key, std::vector<std::int64_t> fallback,
                                                std::int64_t lowest, std::int64_t highest) {
  std::vector<std::int64_t> values = std::move(fallback);
  if (const toml::node* n = find(key)) {
    if (!n->is_array()) wrong_type(*n, key, "an array of integers");
    values.clear();
    for (const toml::node& v : *n->as_array()) values.push_back(as_integer(v, key, lowest, highest));
  }
  record(key, fmt::format("[{}]", fmt::join(values, ", ")));
  return values;
}

double TableReader::number(std::string_view key, double fallback, Sign sign) {
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
  record(key, toml_number(value));
  return value;
}

std::vector<double> TableReader::numbers(std::string_view key, std::vector<double> fallback) {
  const toml::node* n = find(key);
  std::vector<double> value = n ? as_numbers(*n, key) : std::move(fallback);
  record(key, toml_number(value));
  return value;
}

Matrix TableReader::matrix(std::string_view key) {
  const toml::node& n = need(key, "an array of arrays of numbers");
  Matrix value = as_matrix(n, key);
  record(key, toml_matrix(value));
  return value;
}

std::vector<Matrix> TableReader::matrices(std::string_view key) {
  const toml::node& n = need(key, "an array of matrices");
  if (!n.is_array()) wrong_type(n, key, "an array of matrices");
  std::vector<Matrix> value;
  std::string text = "[";
  for (const toml::node& m : *n.as_array()) {
    text += value.empty() ? "" : ", ";
    value.push_back(as_matrix(m, key));
    text += toml_matrix(value.back());
  }
  record(key, text + "]");
  return value;
}

std::filesystem::path TableReader::locate(std::string_view key, const std::filesystem::path& folder) {
  const toml::node* n = find(key);
  if (!n) return {};
  if (!n->is_string()) wrong_type(*n, key, "the name of a file");
  return std::filesystem::absolute(folder / *n->value<std::string>()).lexically_normal();
}

std::filesystem::path TableReader::file(std::string_view key, const std::filesystem::path& folder) {
  const std::filesystem::path path = locate(key, folder);
  if (!path.empty()) record(key, toml_string(path.string()));
  return path;
}

const toml::table* TableReader::find_table(std::string_view key) {
  const toml::node* n = find(key);
  if (!n) return nullptr;
  if (!n->is_table()) wrong_type(*n, key, "a table");
  return n->as_table();
}

void TableReader::finish(const std::vector<const TableReader*>& others) const {
  if (!table_) return;
  for (const auto& [key, node] : *table_) {
    if (std::find(known_.begin(), known_.end(), key.str()) != known_.end()) continue;
    for (const TableReader* other : others)
      if (std::find(other->known_.begin(), other->known_.end(), key.str()) != other->known_.end())
        fail(node, key.str(), fmt::format("unknown key; did you mean {}{}?", other->prefix_, key.str()));
    const auto near = nearest(key.str(), known_);
    fail(node, key.str(),
         near ? fmt::format("unknown key; did you mean {}{}?", prefix_, *near)
              : fmt::format("unknown key; known here are {}", fmt::join(known_, ", ")));
  }
}

void TableReader::fail(const toml::node& node, std::string_view key, const std::string& what) const {
  const std::string name = prefix_ + std::string(key);
  const auto& from_command_line = document_.from_command_line;
  if (const auto option = from_command_line.find(name); option != from_command_line.end())
    throw Error(ErrorKind::usage, option->second, what);
  // A table may be there only because the command line gave a key of it.
  const auto inside = from_command_line.lower_bound(name + ".");
  if (node.source().begin.line == 0 && inside != from_command_line.end() && inside->first.starts_with(name + "."))
    throw Error(ErrorKind::usage, inside->second, fmt::format("{}: {}", name, what));
  const auto known = document_.lines.find(name);
  const std::uint32_t line = node.source().begin.line != 0    ? node.source().begin.line
                             : known != document_.lines.end() ? known->second
                                                              : 0;
  throw Error(ErrorKind::usage, line != 0 ? fmt::format("{}:{}", document_.where, line) : document_.where,
              fmt::format("{}: {}", name, what));
}

void TableReader::fail(std::string_view key, const std::string& what) const {
  if (const toml::node* n = table_ ? table_->get(key) : nullptr) fail(*n, key, what);
  throw Error(ErrorKind::usage, document_.where, fmt::format("{}{}: {}", prefix_, key, what));
}

void TableReader::record(std::string_view key, std::string_view value) {
  const auto known = std::find_if(recorded_.begin(), recorded_.end(), [&](const auto& r) { return r.first == key; });
  if (known != recorded_.end())
    known->second = value;
  else
    recorded_.emplace_back(key, value);
}

void TableReader::drop(std::string_view key) {
  std::erase_if(recorded_, [&](const auto& entry) { return entry.first == key; });
}

void TableReader::append_to(ResolvedConfiguration& resolved) const {
  if (!table_) return;
  const std::string name = prefix_.substr(0, prefix_.empty() ? 0 : prefix_.size() - 1);
  for (const auto& [key, value] : recorded_) resolved.entries.push_back({name, key, value});
}

const toml::node& TableReader::need(std::string_view key, std::string_view what) {
  const toml::node* n = find(key);
  if (!n)
    throw Error(ErrorKind::usage, document_.where, fmt::format("{}{}: missing, {} is needed", prefix_, key, what));
  return *n;
}

void TableReader::wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const {
  fail(n, key, fmt::format("{} is given, {} is needed", what_is(n), wanted));
}

double TableReader::as_number(const toml::node& n, std::string_view key) const {
  if (!n.is_number()) wrong_type(n, key, "a number");
  const double value = *n.value<double>();
  if (!std::isfinite(value)) fail(n, key, fmt::format("{} is not finite", value));
  return value;
}

std::vector<double> TableReader::as_numbers(const toml::node& n, std::string_view key) const {
  if (!n.is_array()) wrong_type(n, key, "an array of numbers");
  std::vector<double> value;
  for (const toml::node& v : *n.as_array()) value.push_back(as_number(v, key));
  return value;
}

Matrix TableReader::as_matrix(const toml::node& n, std::string_view key) const {
  if (!n.is_array()) wrong_type(n, key, "an array of arrays of numbers");
  Matrix value;
  for (const toml::node& row : *n.as_array()) value.push_back(as_numbers(row, key));
  return value;
}

void read_common(TableReader& top, const Document& d, Common& c) {
  c.experiment = top.text("experiment", d.name);
  c.title = top.text("title", c.experiment);
  const auto cannot_be_in_a_name = [](char letter) {
    return letter == '/' || static_cast<unsigned char>(letter) < 0x20;
  };
  if (c.experiment.empty() || c.experiment == "." || c.experiment == ".." || c.experiment.size() > 200 ||
      std::any_of(c.experiment.begin(), c.experiment.end(), cannot_be_in_a_name))
    top.fail("experiment", fmt::format("{} cannot name a folder", excerpt(c.experiment)));
  top.check_text("duration");
  top.check_table("quick");
}

void finish(Common& c, const Document& d, const std::vector<const TableReader*>& tables) {
  for (const TableReader* t : tables) {
    t->finish(tables);
    t->append_to(c.resolved);
  }
  try {
    (void)toml::parse(c.resolved.text());
  } catch (const toml::parse_error&) {
    throw Error(ErrorKind::usage, d.where, "the name of a file or folder in it, or its own, is not UTF-8");
  }
}

}  // namespace program
