// The one file that holds the parser's code: it is slow to compile.
#define TOML_IMPLEMENTATION
#include "experiment/table_reader.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

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

std::string written_matrix(const Matrix& m) {
  std::string s = "[";
  for (std::size_t i = 0; i < m.size(); ++i) s += (i ? ", " : "") + written(m[i]);
  return s + "]";
}

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
using Ways = std::vector<std::vector<std::string_view>>;
const std::vector<Ways> alternatives{{{"theta"}, {"theta_file"}, {"data"}, {"logits", "means", "covariances"}},
                                     {{"deviations"}, {"covariances"}}};

void drop_other_ways(toml::table& table, const std::string& full_key,
                     const std::map<std::string, std::string>& from_command_line) {
  const std::size_t dot = full_key.rfind('.');
  if (dot == std::string::npos) return;
  const std::string prefix = full_key.substr(0, dot + 1), key = full_key.substr(dot + 1);
  const auto has_key = [&](const auto& way) { return std::find(way.begin(), way.end(), key) != way.end(); };
  for (const Ways& ways : alternatives) {
    if (std::none_of(ways.begin(), ways.end(), has_key)) continue;
    for (const auto& way : ways)
      for (const std::string_view other : way)
        if (!has_key(way) && !from_command_line.contains(prefix + std::string(other))) table.erase(other);
  }
}

// The line of every key.
void note_lines(const toml::table& table, const std::string& prefix, std::map<std::string, std::uint32_t>& lines) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix + std::string(key.str());
    lines[name] = value.source().begin.line;
    if (const toml::table* inner = value.as_table()) note_lines(*inner, name + ".", lines);
  }
}

// The keys of one table take the place of another's, those of tables in it one by one.
void overlay(toml::table& table, const toml::table& changes) {
  for (const auto& [key, value] : changes) {
    toml::node* there = table.get(key);
    if (value.is_table() && there && there->is_table())
      overlay(*there->as_table(), *value.as_table());
    else
      table.insert_or_assign(key, value);
  }
}

}  // namespace

std::string written(double v) {
  const std::string s = fmt::format("{}", v);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

std::string written(const std::vector<double>& v) {
  std::string s = "[";
  for (std::size_t i = 0; i < v.size(); ++i) s += (i ? ", " : "") + written(v[i]);
  return s + "]";
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

Document read_document(std::string_view text, const std::string& where, const std::string& name,
                       const std::filesystem::path& folder, const Overrides& overrides) {
  Document d{parse(text, where), where, name, folder, {}, {}};
  note_lines(d.table, "", d.lines);
  if (overrides.quick)
    if (const toml::table* quick = d.table["quick"].as_table()) {
      const toml::table changes = *quick;
      overlay(d.table, changes);
    }
  for (const Override& o : overrides.set) d.from_command_line[o.key] = o.option;
  for (const Override& o : overrides.set) change(d, o);
  return d;
}

void change(Document& d, const Override& o) {
  d.from_command_line[o.key] = o.option;
  drop_other_ways(set_key(d.table, o), o.key, d.from_command_line);
}

std::string Section::text(std::string_view key, const std::string& fallback) {
  const toml::node* n = find(key);
  std::string value = fallback;
  if (n) {
    if (!n->is_string()) wrong_type(*n, key, "a string");
    value = *n->value<std::string>();
  }
  note(key, toml_string(value));
  return value;
}

void Section::check_text(std::string_view key) {
  if (const toml::node* n = find(key); n && !n->is_string()) wrong_type(*n, key, "a string");
}

std::vector<std::string> Section::texts(std::string_view key, std::vector<std::string> fallback) {
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
  note(key, text + "]");
  return values;
}

std::optional<std::size_t> Section::find_word(std::string_view key, const std::vector<std::string>& names) {
  const toml::node* n = find(key);
  if (!n) return std::nullopt;
  if (!n->is_string()) wrong_type(*n, key, fmt::format("one of {}", fmt::join(names, ", ")));
  return match(*n, key, *n->value<std::string>(), names);
}

std::size_t Section::match(const toml::node& n, std::string_view key, const std::string& given,
                           const std::vector<std::string>& names) const {
  const auto found = std::find(names.begin(), names.end(), given);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const auto near = nearest(given, names);
  fail(n, key,
       fmt::format("{} is not one of {}{}", excerpt(given), fmt::join(names, ", "),
                   near ? fmt::format("; did you mean {}?", *near) : ""));
}

bool Section::flag(std::string_view key, bool fallback) {
  const toml::node* n = find(key);
  if (n && !n->is_boolean()) wrong_type(*n, key, "true or false");
  const bool value = n ? *n->value<bool>() : fallback;
  note(key, value ? "true" : "false");
  return value;
}

std::int64_t Section::as_integer(const toml::node& n, std::string_view key, std::int64_t lowest,
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

std::int64_t Section::integer(std::string_view key, std::int64_t fallback, std::int64_t lowest, std::int64_t highest) {
  const toml::node* n = find(key);
  const std::int64_t value = n ? as_integer(*n, key, lowest, highest) : fallback;
  note(key, fmt::format("{}", value));
  return value;
}

std::vector<std::int64_t> Section::integers(std::string_view key, std::vector<std::int64_t> fallback,
                                            std::int64_t lowest, std::int64_t highest) {
  std::vector<std::int64_t> values = std::move(fallback);
  if (const toml::node* n = find(key)) {
    if (!n->is_array()) wrong_type(*n, key, "an array of integers");
    values.clear();
    for (const toml::node& v : *n->as_array()) values.push_back(as_integer(v, key, lowest, highest));
  }
  note(key, fmt::format("[{}]", fmt::join(values, ", ")));
  return values;
}

double Section::number(std::string_view key, double fallback, Sign sign) {
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

std::vector<double> Section::numbers(std::string_view key, std::vector<double> fallback) {
  const toml::node* n = find(key);
  std::vector<double> value = n ? as_numbers(*n, key) : std::move(fallback);
  note(key, written(value));
  return value;
}

Matrix Section::matrix(std::string_view key) {
  const toml::node& n = need(key, "an array of arrays of numbers");
  Matrix value = as_matrix(n, key);
  note(key, written_matrix(value));
  return value;
}

std::vector<Matrix> Section::matrices(std::string_view key) {
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

std::filesystem::path Section::locate(std::string_view key, const std::filesystem::path& folder) {
  const toml::node* n = find(key);
  if (!n) return {};
  if (!n->is_string()) wrong_type(*n, key, "the name of a file");
  return std::filesystem::absolute(folder / *n->value<std::string>()).lexically_normal();
}

std::filesystem::path Section::file(std::string_view key, const std::filesystem::path& folder) {
  const std::filesystem::path path = locate(key, folder);
  if (!path.empty()) note(key, toml_string(path.string()));
  return path;
}

const toml::table* Section::table(std::string_view key) {
  const toml::node* n = find(key);
  if (!n) return nullptr;
  if (!n->is_table()) wrong_type(*n, key, "a table");
  return n->as_table();
}

void Section::finish(const std::vector<const Section*>& others) const {
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

void Section::fail(const toml::node& node, std::string_view key, const std::string& what) const {
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

void Section::fail(std::string_view key, const std::string& what) const {
  if (const toml::node* n = table_ ? table_->get(key) : nullptr) fail(*n, key, what);
  throw Error(ErrorKind::usage, document_.where, fmt::format("{}{}: {}", prefix_, key, what));
}

void Section::note(std::string_view key, std::string_view value) { noted_.emplace_back(key, value); }

void Section::forget(std::string_view key) {
  std::erase_if(noted_, [&](const auto& line) { return line.first == key; });
}

std::string Section::lines() const {
  if (!table_ || noted_.empty()) return {};
  std::string text = prefix_.empty() ? "" : fmt::format("\n[{}]\n", prefix_.substr(0, prefix_.size() - 1));
  for (const auto& [key, value] : noted_) text += fmt::format("{} = {}\n", key, value);
  return text;
}

const toml::node& Section::need(std::string_view key, std::string_view what) {
  const toml::node* n = find(key);
  if (!n)
    throw Error(ErrorKind::usage, document_.where, fmt::format("{}{}: missing, {} is needed", prefix_, key, what));
  return *n;
}

void Section::wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const {
  fail(n, key, fmt::format("{} is given, {} is needed", what_is(n), wanted));
}

double Section::as_number(const toml::node& n, std::string_view key) const {
  if (!n.is_number()) wrong_type(n, key, "a number");
  const double value = *n.value<double>();
  if (!std::isfinite(value)) fail(n, key, fmt::format("{} is not finite", value));
  return value;
}

std::vector<double> Section::as_numbers(const toml::node& n, std::string_view key) const {
  if (!n.is_array()) wrong_type(n, key, "an array of numbers");
  std::vector<double> value;
  for (const toml::node& v : *n.as_array()) value.push_back(as_number(v, key));
  return value;
}

Matrix Section::as_matrix(const toml::node& n, std::string_view key) const {
  if (!n.is_array()) wrong_type(n, key, "an array of arrays of numbers");
  Matrix value;
  for (const toml::node& row : *n.as_array()) value.push_back(as_numbers(row, key));
  return value;
}

void read_common(Section& top, const Document& d, Common& c) {
  c.experiment = top.text("experiment", d.name);
  c.title = top.text("title", c.experiment);
  const auto cannot_be_in_a_name = [](char letter) {
    return letter == '/' || static_cast<unsigned char>(letter) < 0x20;
  };
  if (c.experiment.empty() || c.experiment == "." || c.experiment == ".." || c.experiment.size() > 200 ||
      std::any_of(c.experiment.begin(), c.experiment.end(), cannot_be_in_a_name))
    top.fail("experiment", fmt::format("{} cannot name a folder", excerpt(c.experiment)));
  top.check_text("duration");
  top.table("quick");
}

void finish(Common& c, const Document& d, const std::vector<const Section*>& sections) {
  for (const Section* s : sections) {
    s->finish(sections);
    c.resolved += s->lines();
  }
  try {
    (void)toml::parse(c.resolved);
  } catch (const toml::parse_error&) {
    throw Error(ErrorKind::usage, d.where, "the name of a file or folder in it, or its own, is not UTF-8");
  }
}

}  // namespace program
