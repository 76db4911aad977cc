#include "json.hpp"

#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace implicit_diffusion::io {
namespace {

constexpr int deepest = 64;

[[noreturn]] void refuse_json(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::data, where, what);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  if (const std::string found = mistaken_content(text); !found.empty())
    refuse_json(where, fmt::format("{}; a JSON file is meant", found));
  // The parser would take it for the end.
  if (text.find('\0') != std::string_view::npos) refuse_json(where, "a zero byte in a JSON file");
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto see = [&](int depth, Json::parse_event_t event, const Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > deepest) refuse_json(where, fmt::format("nested more than {} levels deep", deepest));
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second)
      refuse_json(where, fmt::format("key {} is there twice", excerpt(parsed.get<std::string>())));
    return true;
  };
  try {
    return Json::parse(text, see);
  } catch (const Json::parse_error& e) {
    const std::string_view before = text.substr(0, e.byte > 0 ? e.byte - 1 : 0);
    refuse_json(where, fmt::format("line {}: not valid JSON", 1 + std::ranges::count(before, '\n')));
  } catch (const Json::out_of_range&) {
    refuse_json(where, "a number is too large");
  }
}

std::string json_bytes(const Json& value) { return value.dump(2) + "\n"; }

JsonObject::JsonObject(Value object, std::string where) : members_(std::move(object.json)), where_(std::move(where)) {
  if (!members_.is_object())
    refuse_json(where_, fmt::format("is {} {}, an object is meant", members_.is_array() ? "an" : "a",
                                    std::string_view(members_.type_name())));
}

void JsonObject::refuse(const char* key, const std::string& what) const {
  throw Error(ErrorKind::data, where_, fmt::format("{}: {}", key, what));
}

void JsonObject::mistyped(const char* key, const Json& value, const char* meant) const {
  refuse(key, fmt::format("{} is not {}", printable(value.dump(), 40), meant));
}

const Json* JsonObject::take(const char* key) {
  taken_.insert(key);
  const auto found = members_.find(key);
  return found == members_.end() ? nullptr : &*found;
}

const Json& JsonObject::raw(const char* key) {
  static const Json null;
  const Json* value = take(key);
  return value ? *value : null;
}

std::int64_t JsonObject::whole(const char* key, const Json& value, std::int64_t least, std::int64_t most) const {
  if (!value.is_number_integer()) mistyped(key, value, "a whole number");
  const bool huge = value.is_number_unsigned() &&
                    value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (huge || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    refuse(key, fmt::format("{} is not between {} and {}", value.dump(), least, most));
  return value.get<std::int64_t>();
}

std::size_t JsonObject::place(const char* key, const Json& value, Words known) const {
  if (!value.is_string()) mistyped(key, value, "a text");
  const auto found = std::ranges::find(known, value.get_ref<const std::string&>());
  if (found == known.end())
    refuse(key, fmt::format("{} is not supported; known: {}", excerpt(value.get_ref<const std::string&>()),
                            fmt::join(known, ", ")));
  return static_cast<std::size_t>(found - known.begin());
}

bool JsonObject::boolean(const char* key, bool missing) {
  const Json* value = take(key);
  if (!value) return missing;
  if (!value->is_boolean()) mistyped(key, *value, "true or false");
  return value->get<bool>();
}

double JsonObject::number(const char* key, double missing) {
  const Json* value = take(key);
  if (!value) return missing;
  if (!value->is_number()) mistyped(key, *value, "a number");
  return value->get<double>();
}

std::string JsonObject::text(const char* key, const std::string& missing) {
  const Json* value = take(key);
  if (!value) return missing;
  if (!value->is_string()) mistyped(key, *value, "a text");
  return value->get<std::string>();
}

std::int64_t JsonObject::integer(const char* key, std::int64_t missing, std::int64_t least, std::int64_t most) {
  const Json* value = take(key);
  return value ? whole(key, *value, least, most) : missing;
}

std::optional<std::int64_t> JsonObject::optional_integer(const char* key, std::int64_t least, std::int64_t most) {
  const Json& value = raw(key);
  return value.is_null() ? std::nullopt : std::optional(whole(key, value, least, most));
}

std::optional<std::string> JsonObject::optional_text(const char* key) {
  return raw(key).is_null() ? std::nullopt : std::optional(text(key, ""));
}

std::vector<std::int64_t> JsonObject::integers(const char* key, std::vector<std::int64_t> missing, std::int64_t least,
                                               std::int64_t most) {
  const Json* value = take(key);
  if (!value) return missing;
  if (!value->is_array()) mistyped(key, *value, "a list of whole numbers");
  std::vector<std::int64_t> all;
  for (const Json& entry : *value) all.push_back(whole(key, entry, least, most));
  return all;
}

std::vector<double> JsonObject::numbers(const char* key) {
  const Json& value = raw(key);
  std::vector<double> all;
  if (value.is_null()) return all;
  if (!value.is_array()) mistyped(key, value, "a list of numbers");
  for (const Json& entry : value) {
    if (!entry.is_number()) mistyped(key, entry, "a number");
    all.push_back(entry.get<double>());
  }
  return all;
}

std::size_t JsonObject::word(const char* key, std::size_t missing, Words known) {
  const Json* value = take(key);
  return value ? place(key, *value, known) : missing;
}

std::vector<std::size_t> JsonObject::words(const char* key, std::vector<std::size_t> missing, Words known) {
  const Json* value = take(key);
  if (!value) return missing;
  if (!value->is_array()) mistyped(key, *value, "a list of texts");
  std::vector<std::size_t> all;
  for (const Json& entry : *value) all.push_back(place(key, entry, known));
  return all;
}

std::map<std::string, std::string> JsonObject::others() const {
  std::map<std::string, std::string> others;
  for (const auto& [key, value] : members_.items())
    if (!taken_.contains(key)) others.emplace(key, value.dump());
  return others;
}

void add_others(Json& object, const std::map<std::string, std::string>& others) {
  for (const auto& [key, text] : others)
    if (!object.contains(key)) object[key] = Json::parse(text);
}

}  // namespace implicit_diffusion::io
