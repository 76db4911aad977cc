// Specs: what a file says of a built-in part, such as a potential. A spec is a struct with
//
//     static constexpr const char* name    what the key `kind` calls it
//     void read(TableReader&, ...)         reads its keys
//     make()                               the part itself
//
// and the list of a family's specs is a std::variant.
#pragma once

#include "experiment/table_reader.hpp"

#include <variant>
#include <vector>

namespace program {

// The spec that the key `kind` names, or the one that is the fallback, with nothing read yet.
template <class... Specs>
void choose_spec(std::variant<Specs...>& chosen, TableReader& t) {
  const std::vector<std::variant<Specs...>> all{Specs()...};
  chosen = all[t.choice("kind", chosen.index(), {Specs::name...})];
}

}  // namespace program
