// JSON files of other programs: read strictly, key by key, and written as Hugging Face's libraries write theirs.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace implicit_diffusion::io {

using Json = nlohmann::json;  // its objects are sorted by key

inline constexpr std::size_t longest_json = std::size_t{16} << 20;  // bytes of a file that is read as a whole

// Throws a data Error, which names the line, unless the text is UTF-8 and one JSON value without a key given twice, at
// most 64 levels deep. `where` stands for the name of the file.
Json parse_json(std::string_view text, const std::string& where);

// Indented by two blanks, keys sorted, a line break at the end.
std::string json_bytes(const Json& value);

// The members of an object, taken one by one. A missing key is its default; a value of another type or out of range is
// a data Error that names the key. Where null has no meaning it is refused.
class JsonObject {
 public:
  using Words = std::span<const std::string_view>;

  JsonObject(std::string_view text, const std::string& where) : JsonObject(Value{parse_json(text, where)}, where) {}
  static JsonObject of(Json object, const std::string& where) { return {Value{std::move(object)}, where}; }

  const std::string& where() const { return where_; }
  bool contains(const char* key) const { return members_.contains(key); }

  bool boolean(const char* key, bool missing);
  double number(const char* key, double missing);  // finite
  std::string text(const char* key, const std::string& missing);
  std::int64_t integer(const char* key, std::int64_t missing, std::int64_t least, std::int64_t most);
  // Nothing for null.
  std::optional<std::int64_t> optional_integer(const char* key, std::int64_t least, std::int64_t most);
  std::optional<std::string> optional_text(const char* key);
  std::vector<std::int64_t> integers(const char* key, std::vector<std::int64_t> missing, std::int64_t least,
                                     std::int64_t most);
  std::vector<double> numbers(const char* key);  // empty for null
  // The place of a word among those that are known.
  std::size_t word(const char* key, std::size_t missing, Words known);
  std::vector<std::size_t> words(const char* key, std::vector<std::size_t> missing, Words known);

  // The value as it is, or null.
  const Json& raw(const char* key);
  // The members that nobody asked for, each as JSON text.
  std::map<std::string, std::string> others() const;

  // Throws a data Error.
  [[noreturn]] void refuse(const char* key, const std::string& what) const;

 private:
  struct Value {  // not a text: those become JSON by themselves
    Json json;
  };
  JsonObject(Value object, std::string where);
  const Json* take(const char* key);  // null where it is missing
  [[noreturn]] void mistyped(const char* key, const Json& value, const char* meant) const;
  std::int64_t whole(const char* key, const Json& value, std::int64_t least, std::int64_t most) const;
  std::size_t place(const char* key, const Json& value, Words known) const;

  Json members_;
  std::string where_;
  std::set<std::string> taken_;
};

// Adds members that were kept as text by others().
void add_others(Json& object, const std::map<std::string, std::string>& others);

}  // namespace implicit_diffusion::io
