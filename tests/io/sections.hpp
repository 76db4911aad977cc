// The sections of a checkpoint as text, to be changed and written again.
#pragma once

#include "implicit_diffusion/io/checkpoint.hpp"

#include <map>
#include <string>

namespace implicit_diffusion::io {

inline std::map<std::string, std::string> sections_of(const CheckpointReader& reader) {
  std::map<std::string, std::string> sections;
  for (const std::string& name : reader.names()) sections[name] = reader.text(name);
  return sections;
}

inline CheckpointWriter writer_of(const std::map<std::string, std::string>& sections) {
  CheckpointWriter writer;
  for (const auto& [name, bytes] : sections) writer.put(name, bytes);
  return writer;
}

}  // namespace implicit_diffusion::io
