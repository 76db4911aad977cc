#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/data/cifar.hpp"
#include "implicit_diffusion/error.hpp"

namespace data = implicit_diffusion::data;

std::vector<std::string> fuzz::seeds() {
  const std::string pixels(data::cifar_values, 'x');
  return {"\x03" + pixels, "\x03" + pixels + "\x09" + pixels, "\x03\x63" + pixels};
}

// Accepted or refused, without a crash; what was accepted has as many images as labels, all in range.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const data::CifarRecords records = data::parse_cifar(fuzz::text(bytes, size), "input");
    const std::size_t classes = records.variant == data::CifarVariant::cifar10 ? 10 : 100;
    fuzz::require(!records.labels.empty() && records.values.size() == records.labels.size() * data::cifar_values,
                  "there are as many images as labels");
    for (const std::uint8_t label : records.labels) fuzz::require(label < classes, "labels are in range");
  } catch (const implicit_diffusion::Error& e) {
    fuzz::require(e.kind() == implicit_diffusion::ErrorKind::data, "a refusal is a data Error");
  }
  return 0;
}
