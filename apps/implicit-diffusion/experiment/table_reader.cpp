#include "experiment/table_reader.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace program {
namespace {

using namespace implicit_diffusion;

// A value that is of the wrong type, in words.
std::string what_is(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  if (const auto* text = node.as_string()) return "the string " + io::excerpt(text->get());
  if (const auto* integer = node.as_integer()) return fmt::format("the integer {}", integer->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("the number {}", number->get());
  if (const auto* flag = node.as_boolean()) return to_toml(flag->get());
  return "a date";
}

}  // namespace

std::string TableReader::text(std::string_view key, const std::string& fallback) {
  return get(key, fallback, [&](const toml::node& n) { return as_text(n, key); });
}

std::vector<std::string> TableReader::texts(std::string_view key, std::vector<std::string> fallback) {
  return get(key, std::move(fallback), [&](const toml::node& n) {
    return as_list(n, key, "an array of strings", [&](const toml::node& v) { return as_text(v, key); });
  });
}

std::size_t TableReader::choice(std::string_view key, std::size_t fallback, const std::vector<std::string>& names) {
  std::size_t chosen = fallback;
  if (const toml::node* n = find(key))
    chosen = match(*n, key, as_text(*n, key, fmt::format("one of {}", fmt::join(names, ", "))), names);
  record(key, toml_string(names[chosen]));
  return chosen;
}

std::size_t TableReader::match(const toml::node& n, std::string_view key, const std::string& given,
                               const std::vector<std::string>& names) const {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto near = nearest(given, names);
  fail(n, key,
       fmt::format("{} is not one of {}{}", io::excerpt(given), fmt::join(names, ", "),
                   near ? fmt::format("; did you mean {}?", *near) : ""));
}

bool TableReader::flag(std::string_view key, bool fallback) {
  return get(key, fallback, [&](const toml::node& n) {
    if (!n.is_boolean()) wrong_type(n, key, "true or false");
    return *n.value<bool>();
  });
}

std::int64_t TableReader::integer(std::string_view key, std::int64_t fallback, std::int64_t lowest,
                                  std::int64_t highest) {
  return get(key, fallback, [&](const toml::node& n) { return as_integer(n, key, lowest, highest); });
}

std::vector<std::int64_t> TableReader::integers(std::string_view key, std::vector<std::int64_t> fallback,
                                                std::int64_t lowest, std::int64_t highest) {
  return get(key, std::move(fallback), [&](const toml::node& n) {
    return as_list(n, key, "an array of integers",
                   [&](const toml::node& v) { return as_integer(v, key, lowest, highest); });
  });
}

double TableReader::number(std::string_view key, double fallback, Sign sign) {
  return get(key, fallback, [&](const toml::node& n) {
    const double value = as_number(n, key);
    if (sign == Sign::positive && !(value > 0)) fail(n, key, fmt::format("{} must be positive", value));
    if (sign == Sign::not_negative && !(value >= 0)) fail(n, key, fmt::format("{} must not be negative", value));
    if (value != 0 && !fits(value))
      fail(n, key,
           fmt::format("{} is too {} for single precision: its size must be between {} and {}", value,
                       std::abs(value) < smallest ? "small" : "large", smallest, largest));
    return value;
  });
}

std::vector<double> TableReader::numbers(std::string_view key, std::vector<double> fallback) {
  return get(key, std::move(fallback), [&](const toml::node& n) { return as_numbers(n, key); });
}

Matrix TableReader::matrix(std::string_view key) {
  need(key, "an array of arrays of numbers");
  return get(key, Matrix(), [&](const toml::node& n) { return as_matrix(n, key); });
}

std::vector<Matrix> TableReader::matrices(std::string_view key) {
  need(key, "an array of matrices");
  return get(key, std::vector<Matrix>(), [&](const toml::node& n) {
    return as_list(n, key, "an array of matrices", [&](const toml::node& m) { return as_matrix(m, key); });
  });
}

std::filesystem::path TableReader::locate(std::string_view key, const std::filesystem::path& folder) {
  const toml::node* n = find(key);
  if (!n) return {};
  const std::filesystem::path named = folder / as_text(*n, key, "the name of a file");
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(named, error);
  if (error) throw Error(ErrorKind::missing, io::display(named), "the working folder is gone: " + error.message());
  // Without "." in it. What ".." leads to is for the system to say: behind a link it is not the folder before it.
  std::filesystem::path path;
  for (const std::filesystem::path& part : absolute)
    if (part != ".") path /= part;
  return path;
}

std::filesystem::path TableReader::file(std::string_view key, const std::filesystem::path& folder) {
  const std::filesystem::path path = locate(key, folder);
  if (path.empty()) return path;
  record(key, toml_string(path.string()));
  files_.push_back(path);
  return path;
}

TableReader TableReader::table(std::string_view key) {
  const toml::node* n = find(key);
  if (n && !n->is_table()) wrong_type(*n, key, "a table");
  return {n ? n->as_table() : nullptr, prefix_ + std::string(key) + ".", document_};
}

void TableReader::finish(const std::vector<const TableReader*>& others) const {
  if (!table_) return;
  for (const auto& [key, node] : *table_) {
    if (knows(key.str())) continue;
    const auto known_there =
        std::ranges::find_if(others, [&key = key](const TableReader* other) { return other->knows(key.str()); });
    const auto near = known_there == others.end() ? nearest(key.str(), known_) : std::string(key.str());
    const std::string& prefix = known_there == others.end() ? prefix_ : (*known_there)->prefix_;
    refuse_unknown(node, key.str(),
                   near ? fmt::format("did you mean {}{}?", prefix, *near)
                        : fmt::format("known here are {}", fmt::join(known_, ", ")));
  }
}

void TableReader::refuse_unknown(const toml::node& node, std::string_view key, const std::string& hint) const {
  try {
    fail(node, key, "unknown key; " + hint);
  } catch (const Error& e) {
    throw UnknownKey(e);
  }
}

void TableReader::blame_command_line(const std::string& name, const std::string& what) const {
  const auto& from_command_line = document_.from_command_line;
  for (std::size_t end = name.size(); end != std::string::npos && end > 0; end = name.rfind('.', end - 1))
    if (const auto option = from_command_line.find(name.substr(0, end)); option != from_command_line.end())
      throw Error(ErrorKind::usage, option->second, end == name.size() ? what : fmt::format("{}: {}", name, what));
}

void TableReader::fail(const toml::node& node, std::string_view key, const std::string& what) const {
  const std::string name = prefix_ + std::string(key);
  blame_command_line(name, what);
  const auto& from_command_line = document_.from_command_line;
  // A table may be there only because the command line gave a key of it.
  const auto inside = from_command_line.lower_bound(name + ".");
  if (node.source().begin.line == 0 && inside != from_command_line.end() && inside->first.starts_with(name + "."))
    throw Error(ErrorKind::usage, inside->second, fmt::format("{}: {}", name, what));
  std::uint32_t line = node.source().begin.line;
  if (const auto known = document_.lines.find(name); line == 0 && known != document_.lines.end()) line = known->second;
  throw Error(ErrorKind::usage, line != 0 ? fmt::format("{}:{}", document_.where, line) : document_.where,
              fmt::format("{}: {}", name, what));
}

void TableReader::fail(std::string_view key, const std::string& what) const {
  if (const toml::node* n = table_ ? table_->get(key) : nullptr) fail(*n, key, what);
  blame_command_line(prefix_ + std::string(key), what);
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

void TableReader::need(std::string_view key, std::string_view what) {
  if (!find(key)) fail(key, fmt::format("missing, {} is needed", what));
}

void TableReader::wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const {
  fail(n, key, fmt::format("{} is given, {} is needed", what_is(n), wanted));
}

std::string TableReader::as_text(const toml::node& n, std::string_view key, std::string_view wanted) const {
  if (!n.is_string()) wrong_type(n, key, wanted);
  return *n.value<std::string>();
}

std::int64_t TableReader::as_integer(const toml::node& n, std::string_view key, std::int64_t lowest,
                                     std::int64_t highest) const {
  const auto number = n.value<double>();
  // 1e12 is a whole number too.
  const bool is_whole = n.is_floating_point() && *number == std::floor(*number) && std::abs(*number) < 9e18;
  if (!is_whole && !n.is_integer()) wrong_type(n, key, "an integer");
  const std::int64_t value = is_whole ? static_cast<std::int64_t>(*number) : *n.value<std::int64_t>();
  if (value < lowest || value > highest)
    fail(n, key,
         highest == std::numeric_limits<std::int64_t>::max()
             ? fmt::format("{} must be at least {}", value, lowest)
             : fmt::format("{} must be between {} and {}", value, lowest, highest));
  return value;
}

double TableReader::as_number(const toml::node& n, std::string_view key) const {
  if (!n.is_number()) wrong_type(n, key, "a number");
  const double value = *n.value<double>();
  if (!std::isfinite(value)) fail(n, key, fmt::format("{} is not finite", value));
  return value;
}

std::vector<double> TableReader::as_numbers(const toml::node& n, std::string_view key) const {
  return as_list(n, key, "an array of numbers", [&](const toml::node& v) { return as_number(v, key); });
}

Matrix TableReader::as_matrix(const toml::node& n, std::string_view key) const {
  return as_list(n, key, "an array of arrays of numbers", [&](const toml::node& row) { return as_numbers(row, key); });
}

void read_common(TableReader& top, const Document& d, Common& c) {
  c.experiment = top.text("experiment", d.name);
  c.title = top.text("title", c.experiment);
  c.shortened = d.shortened;
  // It names a folder, and stands in lines on the terminal.
  const bool has_control_letters = io::printable(c.experiment) != c.experiment;
  if (c.experiment.empty() || c.experiment == "." || c.experiment == ".." || c.experiment.size() > 200 ||
      c.experiment.find('/') != std::string::npos || has_control_letters)
    top.fail("experiment",
             fmt::format("{} cannot name a folder: at most 200 bytes of UTF-8 without / and control characters can",
                         io::excerpt(c.experiment)));
  (void)top.text("duration", "");
  top.drop("duration");
  (void)top.table("quick");
  (void)top.table("small");
}

void finish(Common& c, const Document& d, const std::vector<const TableReader*>& tables) {
  for (const TableReader* t : tables) {
    t->finish(tables);
    t->append_to(c.resolved);
    c.inputs.insert(c.inputs.end(), t->files().begin(), t->files().end());
  }
  const std::string text = c.resolved.text();
  if (text.size() > longest_configuration)
    throw Error(ErrorKind::usage, d.where,
                fmt::format("config.toml, with every value written out, would have {} bytes, more than the {} that can "
                            "be read again: theta or another list is too long",
                            text.size(), longest_configuration));
  try {
    (void)toml::parse(text);
  } catch (const toml::parse_error&) {
    throw Error(ErrorKind::usage, d.where, "the name of a file or folder in it, or its own, is not UTF-8");
  }
}

}  // namespace program
