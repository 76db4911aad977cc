#include "fuzz/fuzz.hpp"
#include "implicit_diffusion/error.hpp"
#include "implicit_diffusion/io/npy.hpp"

#include <cstring>

namespace io = implicit_diffusion::io;

std::vector<std::string> fuzz::seeds() {
  const std::vector<float> floats{1, 2, 3, 4, 5, 6};
  const std::vector<double> doubles{1, 2};
  const std::vector<std::size_t> matrix{2, 3}, vector{2}, cube{1, 2, 1};
  std::vector<std::string> all{io::npy_bytes(floats, matrix), io::npy_bytes(doubles, vector),
                               io::npy_bytes(doubles, cube)};
  for (const char* descr : {"'<i4'", "'<i8'", "'|u1'", "'<f4'"}) {
    std::string other = all[0];
    all.push_back(other.replace(other.find("'<f4'"), 5, descr));
  }
  std::string fortran = all[0];
  all.push_back(fortran.replace(fortran.find("False, "), 7, "True,  "));
  return all;
}

// Accepted or refused, without a crash; and what was accepted, written again, reads back the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  io::Array a;
  try {
    a = io::parse_npy(fuzz::text(data, size), "input");
  } catch (const implicit_diffusion::Error& e) {
    fuzz::require(e.kind() == implicit_diffusion::ErrorKind::data, "a refusal is a data Error");
    return 0;
  }
  const io::Array b = io::parse_npy(io::npy_bytes(a.values, a.shape), "written");
  fuzz::require(a.shape == b.shape && a.values.size() == b.values.size(), "the shape reads back the same");
  fuzz::require(a.values.empty() || std::memcmp(a.values.data(), b.values.data(), 8 * a.values.size()) == 0,
                "the values read back the same");
  return 0;
}
