// The text of an experiment: a TOML file, with the changes that the command line or a comparison makes to it.
#pragma once

#include "experiment/common.hpp"

// What a file may break is not to be asserted: where toml++ 3.3 does, on "[[[", it finds the error itself two lines on.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace program {

// A file, parsed and changed.
struct Document {
  toml::table table;
  std::string where;                                     // how messages call it
  std::string name;                                      // of the experiment, unless the file gives one
  std::filesystem::path folder;                          // what paths in it are relative to
  bool shortened = false;                                // by its table `quick`
  std::map<std::string, std::string> from_command_line;  // key, option
  std::map<std::string, std::uint32_t> lines;            // of the file, by key; copies of a table forget them
  // The keys that TableReaders have asked for, in this or a copy of it.
  std::shared_ptr<std::set<std::string>> asked = std::make_shared<std::set<std::string>>();
};
Document read_document(std::string_view text, const std::string& where, const std::string& name,
                       const std::filesystem::path& folder, const Overrides& overrides);
// Makes one more change.
void change(Document& d, const Override& o);
// The changes "KEY=VALUE KEY=VALUE ...", to be made by change(). `refuse` is called with one that is not of that form,
// and throws.
std::vector<Override> read_changes(const std::string& text,
                                   const std::function<void(const std::string& change)>& refuse);

}  // namespace program
