// The one file that holds the parser's code: it is slow to compile.
#define TOML_IMPLEMENTATION
#include "experiment/document.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace program {
namespace {

using namespace implicit_diffusion;

toml::table parse(std::string_view text, const std::string& where) {
  try {
    return toml::parse(text, where);
  } catch (const toml::parse_error& e) {
    throw Error(ErrorKind::usage, fmt::format("{}:{}", where, e.source().begin.line),
                io::printable(e.description(), 200));
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
      fail(fmt::format("{} is too large", io::printable(o.value, 40)));
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
void find_lines(const toml::table& table, const std::string& prefix, std::map<std::string, std::uint32_t>& lines) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix + std::string(key.str());
    lines[name] = value.source().begin.line;
    if (const toml::table* inner = value.as_table()) find_lines(*inner, name + ".", lines);
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

Document read_document(std::string_view text, const std::string& where, const std::string& name,
                       const std::filesystem::path& folder, const Overrides& overrides) {
  Document d{parse(text, where), where, name, folder, {}, {}};
  find_lines(d.table, "", d.lines);
  if (const toml::table* quick = d.table["quick"].as_table(); quick && overrides.quick)
    overlay(d.table, toml::table(*quick));
  for (const Override& o : overrides.set) d.from_command_line[o.key] = o.option;
  for (const Override& o : overrides.set) change(d, o);
  return d;
}

void change(Document& d, const Override& o) {
  d.from_command_line[o.key] = o.option;
  drop_other_ways(set_key(d.table, o), o.key, d.from_command_line);
}

std::vector<Override> read_changes(const std::string& text,
                                   const std::function<void(const std::string& change)>& refuse) {
  std::vector<Override> changes;
  for (const std::string& word : split(text, ' ')) {
    if (word.empty()) continue;
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) refuse(word);
    changes.push_back({word.substr(0, equals), word.substr(equals + 1), {}});
  }
  return changes;
}

}  // namespace program
