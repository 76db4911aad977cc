#include "experiment/common.hpp"

#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace program {

void ResolvedConfiguration::erase(std::string_view key) {
  std::erase_if(entries, [&](const Entry& e) { return e.key == key; });
}

std::string ResolvedConfiguration::text() const {
  std::string text, table;
  for (const Entry& e : entries) {
    if (e.table != table) text += fmt::format("\n[{}]\n", e.table);
    table = e.table;
    text += fmt::format("{} = {}\n", e.key, e.value);
  }
  return text;
}

ResolvedConfiguration ResolvedConfiguration::from_text(const std::string& text) {
  ResolvedConfiguration resolved;
  std::string table;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[') && line.ends_with(']'))
      table = line.substr(1, line.size() - 2);
    else
      resolved.entries.push_back(
          {table, line.substr(0, equals), equals == std::string::npos ? std::string() : line.substr(equals + 3)});
  }
  return resolved;
}

std::string Common::without_steps() const {
  ResolvedConfiguration rest = resolved;
  rest.erase("steps");
  return rest.text();
}

void Common::set_seed(std::uint64_t another) {
  seed = another;
  for (auto& e : resolved.entries)
    if (e.table.empty() && e.key == "seed") e.value = fmt::format("{}", another);
}

std::string toml_number(double v) {
  const std::string s = fmt::format("{}", v);
  return s.find_first_of(".en") == std::string::npos ? s + ".0" : s;
}

std::string toml_string(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + '"';
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> pieces;
  std::istringstream stream(text);
  for (std::string piece; std::getline(stream, piece, at);) pieces.push_back(piece);
  return pieces;
}

// Edit distance with neighbouring letters exchanged counted once.
std::pair<std::string, std::string> first_difference(const std::string& one, const std::string& other) {
  const std::vector<std::string> a = split(one, '\n'), b = split(other, '\n');
  const auto [in_one, in_other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  constexpr std::size_t longest = 60;
  const auto line = [](auto at, auto end) {
    return at != end ? implicit_diffusion::io::excerpt(*at, longest) : std::string("nothing more");
  };
  return {line(in_one, a.end()), line(in_other, b.end())};
}

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

}  // namespace program
