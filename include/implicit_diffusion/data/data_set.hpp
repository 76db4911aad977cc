// Sets of images, read from the files in which they are usually given.
//
// | what the path is                                                | kind           | labels                       |
// |-----------------------------------------------------------------|----------------|------------------------------|
// | a folder with train-images-idx3-ubyte (t10k-... for the test    | `idx`          | of the file ...-labels-idx1- |
// |   split), .gz or not; or such a file                            |                |   ubyte beside it, if any    |
// | a folder with data_batch_1.bin to _5.bin, test_batch.bin; or    | `cifar10`      | of the records               |
// |   such a file                                                   |                |                              |
// | a folder with train.bin, test.bin; or such a file               | `cifar100`     | of the records (fine labels) |
// | a folder with data.mdb, as LSUN has one for each category       | `lmdb`         | none                         |
// | any other folder: PNG, JPEG and WebP images in it, or in one    | `image_folder` | by subfolder, in the order   |
// |   subfolder a class                                             |                |   of their names             |
//
// A folder whose subfolders are `train` and `test` is the one of the wanted split. Names that begin with a dot do not
// count.
//
// IDX and CIFAR are held in memory as bytes; images of folders and of LMDB are decoded when they are asked for. All
// functions are const and may be called by several threads at once.
//
// Errors: missing, where a file that must be there is not; data, naming file, record and byte, for damage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "implicit_diffusion/data/image.hpp"

namespace implicit_diffusion::data {

enum class Kind : std::uint8_t { idx, cifar10, cifar100, lmdb, image_folder };
// "IDX", "CIFAR-10 (binary)", ...
const char* to_string(Kind kind);

enum class Split : std::uint8_t { train, test };

struct DataSetOptions {
  Split split = Split::train;              // of what has both
  std::filesystem::path lmdb_helper = {};  // the program that reads LMDB; empty: default_lmdb_helper()
};

class DataSet {
 public:
  DataSet() = default;
  DataSet(const DataSet&) = delete;
  DataSet& operator=(const DataSet&) = delete;
  virtual ~DataSet() = default;

  virtual Kind kind() const = 0;
  virtual std::size_t size() const = 0;  // at least 1

  // The shape of all images, where it is known without reading them.
  virtual std::optional<ImageShape> shape() const { return {}; }

  // Empty where images have no labels. Otherwise each label is an index into these.
  const std::vector<std::string>& class_names() const { return class_names_; }
  // Nothing where images have no labels. i < size().
  virtual std::optional<std::size_t> label(std::size_t i) const = 0;

  // i < size(). Throws a data Error for a damaged image.
  virtual Image image(std::size_t i) const = 0;

 protected:
  std::vector<std::string> class_names_;
};

std::unique_ptr<DataSet> open_data_set(const std::filesystem::path& path, const DataSetOptions& options = {});

}  // namespace implicit_diffusion::data
