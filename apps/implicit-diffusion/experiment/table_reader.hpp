// The text of an experiment: a TOML file with the changes that the command line makes to it, read key by key.
//
// A Section hands out the values of one table, checked, remembers which keys exist, and writes down what it handed out:
// the lines of the resolved configuration. Errors name the file and line, or the --set, the key, and the value; an
// unknown key the nearest known one.
#pragma once

#include "experiment/common.hpp"

// What a file may break is not to be asserted: where toml++ 3.3 does, on "[[[", it finds the error itself two lines on.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace program {

// A file, parsed and changed.
struct Document {
  toml::table table;
  std::string where;                                     // how messages call it
  std::string name;                                      // of the experiment, unless the file gives one
  std::filesystem::path folder;                          // what paths in it are relative to
  std::map<std::string, std::string> from_command_line;  // key, option
  std::map<std::string, std::uint32_t> lines;            // of the file, by key; copies of a table forget them
};
Document read_document(std::string_view text, const std::string& where, const std::string& name,
                       const std::filesystem::path& folder, const Overrides& overrides);
// Makes one more change.
void change(Document& d, const Override& o);

// Names for the values of an enumeration.
template <class E>
using Words = std::vector<std::pair<std::string_view, E>>;

using Matrix = std::vector<std::vector<double>>;  // row by row

class Section {
 public:
  // The document must live as long.
  explicit Section(const Document& d) : Section(&d.table, "", d) {}
  // The table of that name in this one; it may be absent.
  Section section(std::string_view key) { return {table(key), prefix_ + std::string(key) + ".", document_}; }

  bool has(std::string_view key) {
    know(key);
    return contains(key);
  }
  bool contains(std::string_view key) const { return table_ && table_->contains(key); }

  std::string text(std::string_view key, const std::string& fallback);
  // For a key that is there to be read by people.
  void check_text(std::string_view key);
  std::vector<std::string> texts(std::string_view key, std::vector<std::string> fallback);
  template <class E>
  E word(std::string_view key, E fallback, const Words<E>& words) {
    const auto found = find_word(key, names_of(words));
    const E value = found ? words[*found].second : fallback;
    for (const auto& [name, e] : words)
      if (e == value) note(key, toml_string(name));
    return value;
  }
  template <class E>
  std::vector<E> words(std::string_view key, const Words<E>& words) {
    std::vector<E> values;
    for (const std::string& given : texts(key, {}))
      values.push_back(words[match(*table_->get(key), key, given, names_of(words))].second);
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
  // The same, noted as an absolute path, so that the resolved configuration can be moved.
  std::filesystem::path file(std::string_view key, const std::filesystem::path& folder);

  // Null where the table is absent.
  const toml::table* table(std::string_view key);

  // A key that was never asked for is a mistake. `others` are the tables that it may have been meant for.
  void finish(const std::vector<const Section*>& others) const;

  [[noreturn]] void fail(const toml::node& node, std::string_view key, const std::string& what) const;
  [[noreturn]] void fail(std::string_view key, const std::string& what) const;

  // Writes a key down for the resolved configuration.
  void note(std::string_view key, std::string_view value);
  // Takes back what was noted of it.
  void forget(std::string_view key);
  // The lines written so far, under a heading unless this is the top of the file.
  std::string lines() const;

 private:
  Section(const toml::table* table, std::string prefix, const Document& d)
      : table_(table), prefix_(std::move(prefix)), document_(d) {}

  template <class E>
  static std::vector<std::string> names_of(const Words<E>& words) {
    std::vector<std::string> names;
    for (const auto& [name, e] : words) names.emplace_back(name);
    return names;
  }
  std::optional<std::size_t> find_word(std::string_view key, const std::vector<std::string>& names);
  std::size_t match(const toml::node& n, std::string_view key, const std::string& given,
                    const std::vector<std::string>& names) const;

  void know(std::string_view key) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  }
  const toml::node* find(std::string_view key) {
    know(key);
    return table_ ? table_->get(key) : nullptr;
  }
  const toml::node& need(std::string_view key, std::string_view what);
  [[noreturn]] void wrong_type(const toml::node& n, std::string_view key, std::string_view wanted) const;
  std::int64_t as_integer(const toml::node& n, std::string_view key, std::int64_t lowest, std::int64_t highest) const;
  double as_number(const toml::node& n, std::string_view key) const;
  std::vector<double> as_numbers(const toml::node& n, std::string_view key) const;
  Matrix as_matrix(const toml::node& n, std::string_view key) const;

  const toml::table* table_;
  std::string prefix_;
  const Document& document_;
  std::vector<std::string> known_;
  std::vector<std::pair<std::string, std::string>> noted_;  // key, value
};

// Reads experiment and title, and passes over what is there for people and for --quick.
void read_common(Section& top, const Document& d, Common& c);
// After the last section: no key may be left over, and the lines of all become the resolved text.
void finish(Common& c, const Document& d, const std::vector<const Section*>& sections);

}  // namespace program
