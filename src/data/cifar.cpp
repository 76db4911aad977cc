#include "implicit_diffusion/data/cifar.hpp"

#include "damage.hpp"

namespace implicit_diffusion::data {
namespace {

struct Layout {
  CifarVariant variant;
  const char* name;
  std::size_t label_bytes;
  std::size_t classes;
  std::size_t coarse;  // classes of the byte before, where there is one

  std::size_t record() const { return label_bytes + cifar_values; }
};
constexpr Layout layouts[] = {{CifarVariant::cifar10, "CIFAR-10", 1, 10, 0},
                              {CifarVariant::cifar100, "CIFAR-100", 2, 100, 20}};

struct BadLabel {
  std::size_t byte, largest;
};
// The first label that is too large.
std::optional<BadLabel> bad_label(std::string_view bytes, const Layout& layout) {
  for (std::size_t at = 0; at < bytes.size(); at += layout.record())
    for (std::size_t k = 0; k < layout.label_bytes; ++k) {
      const std::size_t classes = k + 1 == layout.label_bytes ? layout.classes : layout.coarse;
      if (static_cast<unsigned char>(bytes[at + k]) >= classes) return BadLabel{at + k, classes - 1};
    }
  return {};
}

const Layout& layout_of(std::string_view bytes, const std::string& where, std::optional<CifarVariant> variant) {
  if (bytes.empty()) damaged(where, 0, "the file is empty");
  const auto fits = [&](const Layout& l) { return bytes.size() % l.record() == 0; };
  const Layout* fitting = nullptr;
  for (const Layout& l : layouts) {
    if (!fits(l) || variant.value_or(l.variant) != l.variant) continue;
    if (!bad_label(bytes, l)) return l;
    if (fitting == nullptr) fitting = &l;
  }
  if (fitting != nullptr) return *fitting;
  const Layout &ten = layouts[0], &hundred = layouts[1], &wanted = variant == hundred.variant ? hundred : ten,
               &other = &wanted == &ten ? hundred : ten;
  if (variant && fits(other))
    damaged(where, wanted.record(),
            fmt::format("records are of {} bytes, as {} has them, not of {} as those of {}", other.record(), other.name,
                        wanted.record(), wanted.name));
  const std::string mistaken = io::mistaken_content(bytes.substr(0, 64));
  damaged(where, mistaken.empty() ? bytes.size() - bytes.size() % wanted.record() : 0,
          fmt::format("{}{} bytes are no multiple of {} or {}, the bytes of a record of CIFAR-10 or CIFAR-100",
                      mistaken.empty() ? "" : mistaken + "; ", bytes.size(), ten.record(), hundred.record()));
}

}  // namespace

CifarRecords parse_cifar(std::string_view bytes, const std::string& where, std::optional<CifarVariant> variant) {
  const Layout& layout = layout_of(bytes, where, variant);
  if (const auto bad = bad_label(bytes, layout))
    throw Error(ErrorKind::data, where,
                fmt::format("record {} (byte {}): label {} is above {}, the last of {}", bad->byte / layout.record(),
                            bad->byte, static_cast<unsigned char>(bytes[bad->byte]), bad->largest, layout.name));
  CifarRecords records{layout.variant, {}, {}};
  const std::size_t count = bytes.size() / layout.record();
  records.labels.reserve(count);
  records.values.reserve(count * cifar_values);
  for (; !bytes.empty(); bytes.remove_prefix(layout.record())) {
    records.labels.push_back(static_cast<std::uint8_t>(bytes[layout.label_bytes - 1]));
    const std::string_view values = bytes.substr(layout.label_bytes, cifar_values);
    records.values.insert(records.values.end(), values.begin(), values.end());
  }
  return records;
}

}  // namespace implicit_diffusion::data
