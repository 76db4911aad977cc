// The one file that holds the parser's code: it is slow to compile.
#define TOML_IMPLEMENTATION
#include "experiment/document.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace program {
namespace {

using namespace implicit_diffusion;

// Tables inside tables, of one key: far more than any experiment has.
constexpr std::ptrdiff_t deepest_key = 32;

struct Misfit {
  std::size_t line;
  std::string what;
};

// What must not reach the parser, which ends the program on it: a key of so many parts that its calls of itself use up
// the stack, and letters beyond ASCII outside of strings, which TOML does not have.
std::optional<Misfit> find_misfit(std::string_view text) {
  std::size_t line = 1;
  std::ptrdiff_t dots = 0;  // since the last sign that a key cannot have
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto skip = [&](std::size_t count) {
    line += static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(count), '\n'));
    text.remove_prefix(count);
  };
  // Up to the closing quotes, or to the end of the line or text where there are none.
  const auto skip_string = [&](char quote) {
    const std::string three(3, quote);
    const bool several_lines = text.starts_with(three);
    const std::string_view end = several_lines ? std::string_view(three) : std::string_view(three).substr(0, 1);
    skip(end.size());
    while (!text.empty() && !text.starts_with(end) && (several_lines || text.front() != '\n'))
      skip(quote == '"' && text.starts_with('\\') ? std::min<std::size_t>(2, text.size()) : 1);
    skip(std::min(end.size(), text.size()));
    for (int i = 0; several_lines && i < 2 && text.starts_with(quote); ++i) skip(1);  // quotes before the closing ones
  };
  while (!text.empty()) {
    const char c = text.front();
    if (c == '"' || c == '\'') {
      skip_string(c);
      continue;
    }
    if (c == '#') {
      skip(std::min(text.find('\n'), text.size()));
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80)
      return Misfit{line, fmt::format("{}: only in quotes can a key or a value have other letters than a to z",
                                      io::excerpt(text.substr(0, text.find_first_of(" \t\r\n="))))};
    if (c == '.' && ++dots >= deepest_key) return Misfit{line, fmt::format("a key of more than {} parts", deepest_key)};
    if (std::string_view("=,{}[]\n").find(c) != std::string_view::npos) dots = 0;
    skip(1);
  }
  return std::nullopt;
}

toml::table parse(std::string_view text, const std::string& where) {
  if (const std::optional<Misfit> misfit = find_misfit(text))
    throw Error(ErrorKind::usage, fmt::format("{}:{}", where, misfit->line), misfit->what);
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
  if (std::count(o.key.begin(), o.key.end(), '.') >= deepest_key)
    fail(fmt::format("a key of more than {} parts", deepest_key));
  toml::table parsed;
  try {
    parsed = parse("value = " + o.value, "");
  } catch (const Error&) {
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
  at->insert_or_assign(rest, *parsed.get("value"));  // a copy: it forgets its line, which is not one of the file
  return *at;
}

// A law can be given in several ways, each of them a group of keys. One that the command line gives takes the place of
// the file's.
using Ways = std::vector<std::vector<std::string_view>>;
const std::vector<Ways> alternatives{{{"theta"}, {"theta_file"}, {"data"}, {"logits", "means", "covariances"}},
                                     {{"deviations"}, {"covariances"}},
                                     {{"law", "deviation"}, {"data"}}};

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

// The line of every key of a table, or of one a few tables further in.
void find_lines(const toml::table& table, const std::string& prefix, std::map<std::string, std::uint32_t>& lines) {
  for (const auto& [key, value] : table) {
    const std::string name = prefix + std::string(key.str());
    lines[name] = value.source().begin.line;
    constexpr std::ptrdiff_t deepest = 4;
    if (const toml::table* inner = value.as_table(); inner && std::count(name.begin(), name.end(), '.') < deepest)
      find_lines(*inner, name + ".", lines);
  }
}

// The keys of one table take the place of another's, those of tables in it one by one, and so do their lines. What the
// tables are called in the file: `prefix` and `from`, with a dot.
void overlay(toml::table& table, const toml::table& changes, const std::string& prefix, const std::string& from,
             std::map<std::string, std::uint32_t>& lines) {
  for (const auto& [key, value] : changes) {
    const std::string name = prefix + std::string(key.str()), there = from + std::string(key.str());
    toml::node* replaced = table.get(key);
    if (value.is_table() && replaced && replaced->is_table()) {
      overlay(*replaced->as_table(), *value.as_table(), name + ".", there + ".", lines);
      continue;
    }
    table.insert_or_assign(key, value);
    if (const auto line = lines.find(there); line != lines.end()) lines[name] = line->second;
  }
}

}  // namespace

Document read_document(std::string_view text, const std::string& where, const std::string& name,
                       const std::filesystem::path& folder, const Overrides& overrides) {
  Document d{parse(text, where), where, name, folder, false, {}, {}};
  find_lines(d.table, "", d.lines);
  // The key `size` names a table whose keys take the place of the others, as those of `quick` do.
  std::string size = d.table["size"].value_or(std::string());
  for (const Override& o : overrides.set)
    if (toml::table given; o.key == "size") {
      set_key(given, o);
      size = given["size"].value_or(std::string());
    }
  if (const toml::table* small = d.table["small"].as_table(); small && size == "small")
    overlay(d.table, toml::table(*small), "", "small.", d.lines);
  if (const toml::table* quick = d.table["quick"].as_table(); quick && overrides.quick) {
    overlay(d.table, toml::table(*quick), "", "quick.", d.lines);
    d.shortened = true;
  }
  for (const Override& o : overrides.set)
    for (const std::string table : {"quick", "small"})
      if (o.key == table || o.key.starts_with(table + "."))
        throw Error(ErrorKind::usage, o.option, fmt::format("has no effect; set the keys that {} changes", table));
  for (const Override& o : overrides.set)
    if (const std::string& first = d.from_command_line.emplace(o.key, o.option).first->second; first != o.option)
      throw Error(ErrorKind::usage, o.option, fmt::format("{} is given too; one of them is meant", first));
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
