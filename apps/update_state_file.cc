#include "apps/update_state_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <span>

#include "numsim/base/error.h"
#include "numsim/formats/format_names.h"
#include "numsim/io/array.h"
#include "numsim/io/manifest.h"
#include "numsim/io/safetensors.h"

namespace numsim::apps {
namespace {

using Json = nlohmann::ordered_json;
using Shape = std::vector<size_t>;

// Converts to the byte order of .safetensors, so that the file is the same on any machine.
void MakeLittleEndian(std::span<std::byte> bytes, size_t element_bytes) {
  if constexpr (std::endian::native == std::endian::big) {
    ReverseBytesOfElements(bytes, element_bytes);
  }
}

template <typename T>
bool IsEmpty(const Buffer<T>& buffer) {
  return buffer.View().Elements() == 0;
}

// Header and data of a file to which tensors are added.
struct Contents {
  Json header;
  std::string data;

  template <typename T>
  void Add(const char* name, const char* dtype, const Shape& shape, std::span<const T> x) {
    if (x.empty()) return;
    const size_t begin = data.size(), bytes = x.size() * sizeof(T);
    data.resize(begin + bytes);
    std::memcpy(data.data() + begin, x.data(), bytes);
    MakeLittleEndian(std::as_writable_bytes(std::span(data).subspan(begin)), sizeof(T));
    header[name] = {{"dtype", dtype}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  }
};

void CheckOwner(const SafetensorsFile& file,
                const std::string& path,
                const std::string& key,
                const std::string& expected) {
  for (const auto& [name, value] : file.Metadata()) {
    if (name != key) continue;
    // Files have numsim's own names, which do not change here unless an older numsim wrote them.
    const std::string found = FromFormerNames(value);
    if (found == expected) return;
    throw Error::Format("{}: the state has {} {}, expected {}", path, key, found, expected);
  }
  throw Error::Format("{}: not the state of an update rule: no '{}' in its metadata", path, key);
}

void CheckWeights(const SafetensorsFile& file, const std::string& path, const std::string& digest) {
  bool known = false;
  for (const auto& [name, value] : file.Metadata()) {
    if (name != "weights") continue;
    if (value == digest) return;
    known = true;
  }
  if (!known) {
    throw Error::Format("{}: has no digest of its weights, as states of older versions", path);
  }
  throw Error::Format(
      "{}: belongs to other weights: those that the step wrote together with this state", path);
}

void CheckNames(const SafetensorsFile& file,
                const std::string& path,
                const std::vector<std::string>& expected) {
  const std::vector<TensorInfo>& tensors = file.Tensors();
  for (const std::string& name : expected) {
    if (std::none_of(
            tensors.begin(), tensors.end(), [&](const auto& t) { return t.name == name; })) {
      throw Error::Format("{}: tensor '{}' is missing", path, name);
    }
  }
  for (const TensorInfo& tensor : tensors) {
    if (std::find(expected.begin(), expected.end(), tensor.name) == expected.end()) {
      throw Error::Format("{}: the state of the rule has no tensor '{}'", path, tensor.name);
    }
  }
}

// Reads a tensor into a buffer of the shape of `like`, unless that is empty.
template <typename T>
void ReadTensor(const SafetensorsFile& file,
                const std::string& path,
                const std::string& name,
                ElementType type,
                const Shape& shape,
                const Buffer<T>& like,
                Buffer<T>& buffer) {
  if (IsEmpty(like)) return;
  const Array array = file.Read(name);
  if (array.type != type) {
    throw Error::Format(
        "{}: tensor '{}' is {}, expected {}", path, name, ToString(array.type), ToString(type));
  }
  if (array.shape != shape) {
    throw Error::Format("{}: tensor '{}' has shape {}, expected {}",
                        path,
                        name,
                        ShapeToString(array.shape),
                        ShapeToString(shape));
  }
  std::copy_n(array.Data<T>(),
              array.Elements(),
              buffer.Resize(like.View().rows, like.View().cols).Span().begin());
}

}  // namespace

std::string DigestOf(std::span<const float> values) {
  std::string bytes;
  bytes.reserve(values.size() * sizeof(float));
  for (const float value : values) {
    const uint32_t bits = std::isnan(value) ? 0x7FC00000 : std::bit_cast<uint32_t>(value);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(bits >> (8 * i) & 0xFF);
  }
  return Sha256OfText(bytes);
}

bool IsEmpty(const UpdateState& state) {
  return IsEmpty(state.values) && IsEmpty(state.words) && IsEmpty(state.scales);
}

std::string UpdateStateFile(const UpdateState& state, const UpdateStateOwner& owner) {
  Contents contents;
  contents.header["__metadata__"] = {
      {"rule", owner.rule}, {"format", owner.format}, {"weights", owner.weights}};
  const std::span<const float> scales = state.scales.Span();
  contents.Add("values", "F32", owner.shape, state.values.Span());
  contents.Add("scales", "F32", {scales.size()}, scales);
  contents.Add("words", "U16", owner.shape, state.words.Span());
  std::string json = contents.header.dump();
  json.resize((json.size() + 7) / 8 * 8, ' ');  // data aligned to 8 bytes
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(json.size() >> (8 * i) & 0xFF);
  return file + json + contents.data;
}

UpdateState ReadUpdateState(const std::string& path,
                            const UpdateStateOwner& owner,
                            const UpdateState& start) {
  const SafetensorsFile file(path);
  CheckOwner(file, path, "rule", owner.rule);
  CheckOwner(file, path, "format", owner.format);
  std::vector<std::string> names;
  if (!IsEmpty(start.values)) names.emplace_back("values");
  if (!IsEmpty(start.words)) names.emplace_back("words");
  if (!IsEmpty(start.scales)) names.emplace_back("scales");
  CheckNames(file, path, names);
  UpdateState state;
  const auto read = [&](const char* name, ElementType type, const Shape& shape, auto field) {
    ReadTensor(file, path, name, type, shape, start.*field, state.*field);
  };
  read("values", ElementType::kF32, owner.shape, &UpdateState::values);
  read("words", ElementType::kU16, owner.shape, &UpdateState::words);
  read("scales", ElementType::kF32, {start.scales.View().Elements()}, &UpdateState::scales);
  CheckWeights(file, path, owner.weights);
  return state;
}

}  // namespace numsim::apps
