#include "numsim/data/image_set.h"

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/data/internal/idx.h"
#include "numsim/io/array.h"

namespace numsim {
namespace {

// Returns the path of `name` in the folder if it exists, otherwise that of `name` with .gz.
std::filesystem::path FindIdxFile(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;  // a file that cannot be examined counts as missing
  for (const char* const ending : {"", ".gz"}) {
    std::filesystem::path path = folder / (name + ending);
    if (std::filesystem::exists(path, ignored)) return path;
  }
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw Error::Format("{}: not a folder; expected one that holds {}[.gz]", folder.string(), name);
  }
  throw Error::Format("{}: holds neither {} nor {}.gz", folder.string(), name, name);
}

}  // namespace

ImageSet ReadIdxImages(const std::filesystem::path& folder, bool train) {
  const std::string prefix = train ? "train" : "t10k";
  const std::filesystem::path image_path = FindIdxFile(folder, prefix + "-images-idx3-ubyte");
  const std::filesystem::path label_path = FindIdxFile(folder, prefix + "-labels-idx1-ubyte");
  IdxArray labels = ReadIdx(label_path, 1);
  IdxArray images = ReadIdx(image_path, 3);
  if (images.bytes.empty()) {
    throw Error::Format("{}: idx dimensions {}, expected at least one image of one pixel",
                        image_path.string(),
                        ShapeToString(images.shape));
  }
  if (labels.shape[0] != images.shape[0]) {
    throw Error::Format("{}: {} labels, expected one for each of the {} images of {}",
                        label_path.string(),
                        labels.shape[0],
                        images.shape[0],
                        image_path.filename().string());
  }
  ImageSet set;
  set.count = images.shape[0];
  set.rows = images.shape[1];
  set.cols = images.shape[2];
  set.classes = size_t{1} + *std::max_element(labels.bytes.begin(), labels.bytes.end());
  set.pixels = std::move(images.bytes);
  set.labels = std::move(labels.bytes);
  return set;
}

}  // namespace numsim
