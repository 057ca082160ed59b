#include "numsim/data/internal/caption_set.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/data/utf8_file.h"
#include "numsim/io/array.h"
#include "numsim/io/npy.h"

namespace numsim {
namespace {

// Returns the only file in the folder whose name ends with .npy.
std::filesystem::path FindNpy(const std::filesystem::path& folder) {
  std::error_code failed;
  std::vector<std::filesystem::path> found;
  const std::filesystem::directory_iterator entries(folder, failed);
  if (failed) {
    throw Error::Format(
        "{}: not a folder that can be read; expected one with "
        "images in a .npy file",
        folder.string());
  }
  for (const auto& entry : entries) {
    if (entry.path().extension() == ".npy") found.push_back(entry.path());
  }
  if (found.size() != 1) {
    throw Error::Format("{}: holds {} .npy files, expected one", folder.string(), found.size());
  }
  return found[0];
}

void ReadPixels(const std::filesystem::path& path, CaptionSet& set) {
  const Array array = ReadNpy(path);
  if (array.type != ElementType::kU8 || array.shape.size() != 4) {
    throw Error::Format("{}: {} of shape {}, expected uint8 of n x height x width x channels",
                        path.string(),
                        ToString(array.type),
                        ShapeToString(array.shape));
  }
  if (array.bytes.empty()) {
    throw Error::Format("{}: shape {}, expected at least one image of one pixel",
                        path.string(),
                        ShapeToString(array.shape));
  }
  set.count = array.shape[0];
  set.height = array.shape[1];
  set.width = array.shape[2];
  set.channels = array.shape[3];
  set.pixels.resize(array.bytes.size());
  std::memcpy(set.pixels.data(), array.bytes.data(), array.bytes.size());
}

void ReadCaptions(const std::filesystem::path& path,
                  const std::filesystem::path& npy,
                  CaptionSet& set) {
  const std::string text = ReadUtf8File(path);
  const std::vector<std::string_view> lines = Lines(text);
  if (lines.size() != set.count) {
    throw Error::Format("{}: {} lines, expected one for each of the {} images of {}",
                        path.string(),
                        lines.size(),
                        set.count,
                        npy.filename().string());
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) throw Error::Format("{}:{}: the caption is empty", path.string(), i + 1);
    set.captions.emplace_back(lines[i]);
  }
}

// Numbers the distinct names from 0 in the order of first occurrence; equal names get equal
// numbers.
std::vector<int32_t> Number(const std::vector<std::string>& names) {
  std::unordered_map<std::string_view, int32_t> numbers;
  std::vector<int32_t> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    result.push_back(numbers.emplace(name, static_cast<int32_t>(numbers.size())).first->second);
  }
  return result;
}

}  // namespace

CaptionFolder ReadCaptionFolder(const std::filesystem::path& folder) {
  const std::filesystem::path npy = FindNpy(folder);
  CaptionFolder result;
  ReadPixels(npy, result.set);
  ReadCaptions(folder / "captions.txt", npy, result.set);
  CaptionMeta meta;
  std::error_code ignored;
  if (std::filesystem::exists(folder / "meta.tsv", ignored)) {
    meta = ReadCaptionMeta(folder / "meta.tsv", result.set.count);
  }
  result.set.concepts = Number(meta.concepts.empty() ? result.set.captions : meta.concepts);
  result.valid = std::move(meta.valid);
  return result;
}

CaptionSet Subset(const CaptionSet& set, std::span<const size_t> images) {
  const size_t bytes = set.height * set.width * set.channels;
  CaptionSet subset{images.size(), set.height, set.width, set.channels, {}, {}, {}};
  subset.pixels.reserve(images.size() * bytes);
  for (const size_t image : images) {
    NUMSIM_CHECK(image < set.count, "image {} of {}", image, set.count);
    const auto first = set.pixels.begin() + static_cast<ptrdiff_t>(image * bytes);
    subset.pixels.insert(subset.pixels.end(), first, first + static_cast<ptrdiff_t>(bytes));
    subset.captions.push_back(set.captions[image]);
    subset.concepts.push_back(set.concepts[image]);
  }
  return subset;
}

}  // namespace numsim
