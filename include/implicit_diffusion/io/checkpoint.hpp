// Checkpoints: the state of a run as a file that is whole or refused.
//
// A checkpoint is a list of named sections of bytes. On disk, all numbers little-endian:
//
//     "IDCHKPT1"   u32 sections
//     each:        u32 bytes of the name, the name, u64 bytes of the content, the content, u32 CRC of these four
//     at the end:  u64 bytes of the whole file, u32 CRC of all before it
//
// CRC is the CRC-32 of zlib. Whatever byte is changed, wherever the file is cut, reading it is refused. Sections may
// come in any order; we write them sorted by name.
//
// States may be larger than half the memory, so they are never copied as a whole: a writer takes the bytes of each
// section from where they are, piece by piece, when the file is written; a reader checks the file in one pass, piece by
// piece, and then reads the sections that are asked for to where they belong.
//
//     CheckpointWriter writer;                               CheckpointReader reader(file);
//     save(writer, "theta", theta);                          restore(reader, "theta", theta);
//     save(writer, "samples", population);                   restore(reader, "samples", population);
//     writer.write(file);
//
// In a folder checkpoints are called step-N.checkpoint. Each is written beside, flushed, read back and compared, and
// only then given its name (io/file.hpp); older ones go when two newer are there. There is no pointer to the latest: it
// is the newest that proves whole.
#pragma once

#include "implicit_diffusion/io/pieces.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace implicit_diffusion::io {

template <Arithmetic T>
std::string_view bytes_of(std::span<const T> numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size_bytes()};
}
template <Arithmetic T>
std::span<char> writable_bytes_of(std::span<T> numbers) {
  return {reinterpret_cast<char*>(numbers.data()), numbers.size_bytes()};
}

class CheckpointWriter {
 public:
  // A section of `size` bytes. `produce` gives them to the sink, in pieces of any size, each time the checkpoint is
  // written: what it takes them from must still be there then. A section of that name is replaced. Throws a usage Error
  // for a name of more than 4096 bytes.
  void put(const std::string& name, std::uint64_t size, std::function<void(const PieceSink&)> produce);
  // A section whose bytes the writer keeps.
  void put(const std::string& name, std::string bytes);

  // Throws what FileWriter throws, and a usage Error where a section's pieces are not as many bytes as were said.
  void write(const std::filesystem::path& file) const;
  std::string to_bytes() const;
  // What the others do while the first of several processes writes: they give it their parts of what all share.
  void take_part() const;

 private:
  struct Section {
    std::uint64_t size;
    std::function<void(const PieceSink&)> produce;
  };
  // Gives the whole file to the sink; the CRC of all of it.
  std::uint32_t encode(const PieceSink& sink) const;

  std::map<std::string, Section> sections_;
};

class CheckpointReader {
 public:
  // Checks the file and keeps it open. Throws a data Error that begins with its name unless it is a whole checkpoint,
  // and what FileReader throws.
  explicit CheckpointReader(const std::filesystem::path& file);
  // The first of several processes reads the file for all, which do the same with it.
  CheckpointReader(const std::filesystem::path& file, Processes* processes);
  // The same for bytes; `where` stands for the name of the file.
  CheckpointReader(std::string bytes, const std::string& where);

  bool contains(const std::string& name) const { return sections_.contains(name); }
  std::vector<std::string> names() const;

  // All that follow throw a data Error that names section and file where there is no such section, where it has another
  // size, or where it is not any more what it was when the file was checked.
  std::uint64_t size(const std::string& name) const { return find(name).size; }  // in bytes
  // Calls `consume` with a source that fills piece after piece, `size` bytes in all: a usage Error where they are not
  // as many. After an Error the pieces hold anything.
  void read(const std::string& name, std::uint64_t size, const std::function<void(const PieceSource&)>& consume) const;
  std::string text(const std::string& name) const;
  template <Arithmetic T>
  std::vector<T> numbers(const std::string& name) const {
    if (size(name) % sizeof(T) != 0) refuse(name, "is not a whole count of numbers");
    std::vector<T> values(size(name) / sizeof(T));
    read_into(name, std::span(values));
    return values;
  }
  template <Arithmetic T>
  T number(const std::string& name) const {
    if (size(name) != sizeof(T)) refuse(name, "is not one number");
    T value;
    read_into(name, std::span(&value, 1));
    return value;
  }
  template <Arithmetic T>
  void read_into(const std::string& name, std::span<T> to) const {
    read(name, to.size_bytes(), [&](const PieceSource& fill) { fill(writable_bytes_of(to)); });
  }

  // Throws a data Error that names section and file.
  [[noreturn]] void refuse(const std::string& name, const std::string& why) const;

 private:
  struct Section {
    std::uint64_t offset, size;
    std::uint32_t crc;
  };
  struct Input {
    std::uint64_t size;
    std::function<void(std::uint64_t offset, std::span<char> to)> read;
  };
  class Scan;
  CheckpointReader(Input input, std::string where);
  const Section& find(const std::string& name) const;

  Input input_;
  std::string where_;
  std::map<std::string, Section> sections_;
};

// What a state is made of, to and from a checkpoint: numbers, and streamable values (io/pieces.hpp). These are written
// from where they are, so they must stay there until the checkpoint is written; a temporary vector is kept by the
// writer.
template <Arithmetic T>
void save(CheckpointWriter& writer, const std::string& name, T number) {
  writer.put(name, std::string(bytes_of(std::span<const T>(&number, 1))));
}
template <Streamable T>
void save(CheckpointWriter& writer, const std::string& name, const T& value) {
  writer.put(name, size_in_bytes(value), [&value](const PieceSink& sink) { give_pieces(value, sink); });
}
template <Arithmetic T>
void save(CheckpointWriter& writer, const std::string& name, std::vector<T>&& numbers) {
  const std::uint64_t size = size_in_bytes(numbers);
  writer.put(name, size, [kept = std::move(numbers)](const PieceSink& sink) { give_pieces(kept, sink); });
}
template <class Real>
void save(CheckpointWriter& writer, const std::string& name, Population<Real>&& x) = delete;  // it would be gone

template <Arithmetic T>
void restore(const CheckpointReader& reader, const std::string& name, T& number) {
  number = reader.number<T>(name);
}
// Into a value of the same shape.
template <Streamable T>
void restore(const CheckpointReader& reader, const std::string& name, T& value) {
  reader.read(name, size_in_bytes(value), [&value](const PieceSource& source) { take_pieces(value, source); });
}

// True if a file is called like one.
bool is_checkpoint(const std::filesystem::path& file);

// Writes step-N.checkpoint, then removes those that are older than the newest two. The folder is made where there is
// none; an output Error where the one it belongs in is not there either.
void save_checkpoint(const std::filesystem::path& folder, std::int64_t step, const CheckpointWriter& checkpoint);

// The newest checkpoint in a folder that is whole, or nothing where there is none at all (or no folder). Those that are
// not are passed over, newest first, each with a call of `refused`; where none is left a data Error says so. Throws an
// io Error if the folder cannot be read. The first of several processes looks for it and reads it for all.
std::optional<CheckpointReader> newest_checkpoint(const std::filesystem::path& folder,
                                                  const std::function<void(const std::string& why)>& refused,
                                                  Processes* processes = nullptr);

}  // namespace implicit_diffusion::io
