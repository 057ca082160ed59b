#include "numsim/io/shared/safetensors_writer.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/io/array.h"
#include "numsim/io/atomic_file.h"
#include "numsim/io/internal/file_headers.h"
#include "numsim/io/internal/packed_codes.h"

namespace numsim {
namespace {

using Json = nlohmann::ordered_json;
using NamedArray = std::pair<std::string, Array>;

constexpr std::string_view kMetadata = "__metadata__";
constexpr size_t kAlignment = 8;

// Returns `value` as JSON. Throws Error naming `file` and `text` if it is not UTF-8.
std::string Dump(const Json& value, const std::filesystem::path& file, std::string_view text) {
  try {
    return value.dump();
  } catch (const Json::exception&) {
    throw Error::Format("{}: '{}' is not UTF-8", file.string(), Printable(text));
  }
}

std::vector<const NamedArray*> InOrderOfAlignment(std::span<const NamedArray> tensors) {
  std::vector<const NamedArray*> ordered;
  for (const NamedArray& tensor : tensors) ordered.push_back(&tensor);
  std::stable_sort(ordered.begin(), ordered.end(), [](const NamedArray* a, const NamedArray* b) {
    return ElementBytes(a->second.type) > ElementBytes(b->second.type);
  });
  return ordered;
}

// Returns the number of bytes of a tensor in the file. Throws Error if its packed codes do not fill
// the last byte, which the format does not allow.
size_t FileBytes(const std::filesystem::path& path, const NamedArray& tensor) {
  const auto& [name, array] = tensor;
  const size_t bits = StoredBits(array.type);
  if (bits >= 8) return array.bytes.size();
  if (array.Elements() * bits % 8 == 0) return array.Elements() * bits / 8;
  throw Error::Format(
      "{}: tensor '{}' has {} codes of {} bits, and .safetensors takes whole bytes; "
      "write .npy instead",
      path.string(),
      Printable(name),
      array.Elements(),
      bits);
}

// Builds the header entry by entry instead of as one tree, because nlohmann-json searches all
// existing keys for each key that is added.
std::string MakeHeader(const std::filesystem::path& path,
                       const std::vector<const NamedArray*>& tensors,
                       std::span<const std::pair<std::string, std::string>> metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    Json entries = Json::object();
    for (const auto& [key, text] : metadata) {
      NUMSIM_CHECK(!entries.contains(key), "metadata '{}' twice", key);
      entries[key] = text;
      Dump(entries[key], path, key);
    }
    header += fmt::format("\"{}\":{}", kMetadata, Dump(entries, path, kMetadata));
  }
  uint64_t offset = 0;
  for (const NamedArray* const tensor : tensors) {
    const auto& [name, array] = *tensor;
    Json entry;
    entry["dtype"] = DtypeOf(array.type);
    entry["shape"] = array.shape;
    const size_t bytes = FileBytes(path, *tensor);
    entry["data_offsets"] = {offset, offset + bytes};
    offset += bytes;
    if (header.size() > 1) header += ',';
    header += Dump(Json(name), path, name) + ':' + entry.dump();
  }
  header += '}';
  return header.append((kAlignment - header.size() % kAlignment) % kAlignment, ' ');
}

void CheckTensors(const std::vector<const NamedArray*>& tensors) {
  std::vector<std::string_view> names;
  for (const NamedArray* const tensor : tensors) {
    const auto& [name, array] = *tensor;
    NUMSIM_CHECK(array.bytes.size() == array.Elements() * ElementBytes(array.type),
                 "tensor '{}' of {} elements has {} bytes",
                 name,
                 array.Elements(),
                 array.bytes.size());
    NUMSIM_CHECK(name != kMetadata, "a tensor of the name {}", name);
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  NUMSIM_CHECK(twice == names.end(), "tensor '{}' twice", *twice);
}

}  // namespace

void AppendSafetensors(const std::filesystem::path& path,
                       std::span<const NamedArray> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata,
                       AtomicFile& file) {
  const std::vector<const NamedArray*> ordered = InOrderOfAlignment(tensors);
  CheckTensors(ordered);
  const std::string header = MakeHeader(path, ordered, metadata);
  std::string length;
  for (int i = 0; i < 8; ++i) length += static_cast<char>(header.size() >> (8 * i) & 0xFF);
  file.Write(length);
  file.Write(header);
  for (const NamedArray* const tensor : ordered) {
    const Array& array = tensor->second;
    const size_t bits = StoredBits(array.type);
    if (bits < 8) {
      file.Write(std::span<const std::byte>(PackCodes(array.bytes, bits)));
    } else if constexpr (std::endian::native == std::endian::big) {
      std::vector<std::byte> little = array.bytes;
      ReverseBytesOfElements(little, ElementBytes(array.type));
      file.Write(std::span<const std::byte>(little));
    } else {
      file.Write(std::span<const std::byte>(array.bytes));
    }
  }
}

void WriteSafetensors(const std::filesystem::path& path,
                      std::span<const NamedArray> tensors,
                      std::span<const std::pair<std::string, std::string>> metadata) {
  AtomicFile file(path);
  AppendSafetensors(path, tensors, metadata, file);
  file.Commit();
}

}  // namespace numsim
