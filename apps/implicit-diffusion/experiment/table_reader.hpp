// Reading an experiment key by key. A TableReader hands out the values of one table, checked, remembers which keys
// exist, and records what it handed out: that becomes the resolved configuration. Errors name the file and line, or the
// --set, the key, and the value; an unknown key the nearest known one.
#pragma once

#include "experiment/document.hpp"
#include "implicit_diffusion/error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace program {

// Names for the values of an enumeration.
template <class E>
using EnumNames = std::vector<std::pair<std::string_view, E>>;
template <class E>
std::string_view name_of(E value, const EnumNames<E>& names) {
  for (const auto& [name, e] : names)
    if (e == value) return name;
  return "";
}

using Matrix = std::vector<std::vector<double>>;  // row by row

// What finish() throws.
class UnknownKey : public implicit_diffusion::Error {
 public:
  explicit UnknownKey(const Error& e) : Error(e) {}
};

class TableReader {
 public:
  // The document must live as long.
  explicit TableReader(const Document& d) : TableReader(&d.table, "", d) {}
  // The table of that name in this one; it may be absent.
  TableReader table(std::string_view key);

  bool has(std::string_view key) { return find(key) != nullptr; }
  bool contains(std::string_view key) const { return table_ && table_->contains(key); }

  std::string text(std::string_view key, const std::string& fallback);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  // One of the names, by its place among them.
  std::size_t choice(std::string_view key, std::size_t fallback, const std::vector<std::string>& names);
  template <class E>
  E choice(std::string_view key, E fallback, const EnumNames<E>& names) {
    const auto at = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.second == fallback; });
    return names[choice(key, static_cast<std::size_t>(at - names.begin()), only_names(names))].second;
  }
  template <class E>
  std::vector<E> choices(std::string_view key, const EnumNames<E>& names) {
    std::vector<E> values;
    for (const std::string& given : texts(key, {}))
      values.push_back(names[match(*table_->get(key), key, given, only_names(names))].second);
    return values;
  }
  bool flag(std::string_view key, bool fallback);
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t lowest,
                       std::int64_t highest = std::numeric_limits<std::int64_t>::max());
  std::vector<std::int64_t> integers(std::string_view key, std::vector<std::int64_t> fallback, std::int64_t lowest,
                                     std::int64_t highest = std::numeric_limits<std::int64_t>::max());

  // The particles and what moves them are single precision: a number must be one there, and its inverse too, with room
  // for a few factors.
  static constexpr double smallest = 1e-30, largest = 1e30;
  static bool fits(double v) { return std::abs(v) >= smallest && std::abs(v) <= largest; }

  enum class Sign { any, positive, not_negative };
  double number(std::string_view key, double fallback, Sign sign);
  std::vector<double> numbers(std::string_view key, std::vector<double> fallback);
  Matrix matrix(std::string_view key);
  std::vector<Matrix> matrices(std::string_view key);

  // A file named relative to `folder`.
  std::filesystem::path locate(std::string_view key, const std::filesystem::path& folder);
  // The same, recorded as an absolute path, so that the resolved configuration can be moved.
  std::filesystem::path file(std::string_view key, const std::filesystem::path& folder);

  // All that file() returned.
  const std::vector<std::filesystem::path>& files() const { return files_; }

  // A key that was never asked for is a mistake: throws an UnknownKey. `others` are the tables that it may have been
  // meant for.
  void finish(const std::vector<const TableReader*>& others) const;

  [[noreturn]] void refuse_unknown(const toml::node& node, std::string_view key, const std::string& hint) const;
  [[noreturn]] void fail(const toml::node& node, std::string_view key, const std::string& what) const;
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;

  // Records a key for the resolved configuration, or drops what was recorded of it.
  void record(std::string_view key, std::string_view value);
  void drop(std::string_view key);
  // Appends what was recorded, unless the table is absent.
  void append_to(ResolvedConfiguration& resolved) const;

 private:
  TableReader(const toml::table* table, std::string prefix, const Document& d)
      : table_(table), prefix_(std::move(prefix)), document_(d) {}

  template <class E>
  static std::vector<std::string> only_names(const EnumNames<E>& names) {
    std::vector<std::string> all;
    for (const auto& [name, e] : names) all.emplace_back(name);
    return all;
  }
  std::size_t match(const toml::node& n, std::string_view key, const std::string& given,
                    const std::vector<std::string>& names) const;

  bool knows(std::string_view key) const { return std::find(known_.begin(), known_.end(), key) != known_.end(); }
  const toml::node* find(std::string_view key) {
    if (!knows(key)) known_.emplace_back(key);
    document_.asked->insert(prefix_ + std::string(key));
    return table_ ? table_->get(key) : nullptr;
  }
  // What `read` makes of a key's value or, where there is none, the fallback; recorded.
  template <class T, class Read>
  T get(std::string_view key, T fallback, Read&& read) {
    if (const toml::node* n = find(key)) fallback = read(*n);
    record(key, to_toml(fallback));
    return fallback;
  }
  // Throws where the command line gave the key, or a table that it is in.
  void blame_command_line(const std::string& name, const std::string& what) const;
  void need(std::string_view key, std::string_view what);
  [[noreturn]] void wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const;
  std::string as_text(const toml::node& n, std::string_view key, std::string_view wanted = "a string") const;
  std::int64_t as_integer(const toml::node& n, std::string_view key, std::int64_t lowest, std::int64_t highest) const;
  double as_number(const toml::node& n, std::string_view key) const;
  std::vector<double> as_numbers(const toml::node& n, std::string_view key) const;
  Matrix as_matrix(const toml::node& n, std::string_view key) const;
  template <class Read>
  auto as_list(const toml::node& n, std::string_view key, std::string_view wanted, Read&& read) const {
    if (!n.is_array()) wrong_type(n, key, wanted);
    std::vector<decltype(read(n))> values;
    for (const toml::node& v : *n.as_array()) values.push_back(read(v));
    return values;
  }

  const toml::table* table_;
  std::string prefix_;
  const Document& document_;
  std::vector<std::string> known_;
  std::vector<std::pair<std::string, std::string>> recorded_;  // key, value
  std::vector<std::filesystem::path> files_;
};

// Specs: what a file says of a built-in part, such as a potential. A spec is a struct with
//
//     static constexpr const char* name    what the key `kind` calls it
//     void read(TableReader&, ...)         reads its keys
//     make()                               the part itself
//
// and the list of a family's specs is a std::variant. Chosen is the spec that the key `kind` names, or the one that is
// the fallback, with nothing read yet.
template <class... Specs>
void choose_spec(std::variant<Specs...>& chosen, TableReader& t) {
  const std::vector<std::variant<Specs...>> all{Specs()...};
  chosen = all[t.choice("kind", chosen.index(), {Specs::name...})];
}

// Reads experiment and title, and passes over what is there for people and for --quick.
void read_common(TableReader& top, const Document& d, Common& c);
// After the last table: no key may be left over, and what all have recorded becomes the resolved configuration.
void finish(Common& c, const Document& d, const std::vector<const TableReader*>& tables);

}  // namespace program
