#include "numsim/io/tensor_file.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/io/npy.h"
#include "numsim/io/shared/safetensors_writer.h"

namespace numsim {
namespace {

std::string LowerExtension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

// Returns the first few names, for a message.
std::string NamesText(const std::vector<TensorInfo>& tensors) {
  constexpr size_t kShown = 8;
  std::string text;
  for (size_t i = 0; i < std::min(tensors.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + Printable(tensors[i].name);
  }
  if (tensors.size() > kShown) text += fmt::format(", ... ({} in all)", tensors.size());
  return tensors.empty() ? "none" : text;
}

// Returns the values of the codes of a type that has a format of up to 16 bits.
const std::vector<float>& DecodeTableOf(ElementType type) {
  static const std::map<std::string_view, std::vector<float>> tables = [] {
    std::map<std::string_view, std::vector<float>> made;
    for (int t = 0; t <= static_cast<int>(ElementType::kRaw16); ++t) {
      const std::string_view name = FormatOf(static_cast<ElementType>(t));
      if (name.empty() || name == "fp32") continue;
      const FormatEntry* const entry = FindFormat(name);
      NUMSIM_CHECK(entry != nullptr, "no format {}", name);
      made.emplace(name, DecodeTable(entry->spec));
    }
    return made;
  }();
  return tables.at(FormatOf(type));
}

// Source is the type of the elements, or of the codes, in the array.
template <typename Source, typename Target, typename Map>
std::vector<Target> Mapped(const Array& array, Map map) {
  std::vector<Target> values(array.Elements());
  for (size_t i = 0; i < values.size(); ++i) {
    Source element;
    std::memcpy(&element, array.bytes.data() + i * sizeof(Source), sizeof(Source));
    values[i] = map(element);
  }
  return values;
}

template <typename Target>
std::vector<Target> Decoded(const Array& array) {
  const std::vector<float>& table = DecodeTableOf(array.type);
  const auto look_up = [&](auto code) { return Target{table[code & (table.size() - 1)]}; };
  if (ElementBytes(array.type) == 1) return Mapped<uint8_t, Target>(array, look_up);
  return Mapped<uint16_t, Target>(array, look_up);
}

template <typename Target>
std::vector<Target> Widened(const Array& array, std::string_view what) {
  NUMSIM_REQUIRE(array.bytes.size() == array.Elements() * ElementBytes(array.type),
                 "{}: {} bytes do not make an array of {} {}",
                 what,
                 array.bytes.size(),
                 ToString(array.type),
                 ShapeToString(array.shape));
  if (array.type == ElementType::kF32) {
    return Mapped<float, Target>(array, [](float value) { return Target{value}; });
  }
  const std::string_view reason = WhyNoNumbers(array.type);
  if (!reason.empty()) throw Error::Format("{}: {} {}", what, ToString(array.type), reason);
  return Decoded<Target>(array);
}

// Returns true if Target holds the number.
template <typename Target, typename Source>
bool Holds(Source x) {
  if constexpr (std::is_floating_point_v<Source>) {
    return std::isnan(x) || static_cast<Source>(static_cast<Target>(x)) == x;
  } else {
    const auto bits = static_cast<uint64_t>(x);
    const uint64_t magnitude = x < 0 ? 0 - bits : bits;
    return magnitude == 0 ||
           (magnitude >> std::countr_zero(magnitude)) >> std::numeric_limits<Target>::digits == 0;
  }
}

// Returns the elements as Target. Throws Error that names the first one that would change.
template <typename Target, typename Source>
std::vector<Target> Exact(const Array& array, std::string_view what) {
  size_t i = 0;
  return Mapped<Source, Target>(array, [&](Source x) {
    if (!Holds<Target>(x)) {
      throw Error::Format("{}: {} element {} is {}, which {} does not hold exactly",
                          what,
                          ToString(array.type),
                          i,
                          x,
                          sizeof(Target) == sizeof(float) ? "float32" : "float64");
    }
    ++i;
    return static_cast<Target>(x);
  });
}

// Returns the exact elements of any type that has values.
template <typename Target>
std::vector<Target> Values(const Array& array, std::string_view what) {
  switch (array.type) {
    case ElementType::kF64:
      return Exact<Target, double>(array, what);
    case ElementType::kI16:
      return Exact<Target, int16_t>(array, what);
    case ElementType::kI32:
      return Exact<Target, int32_t>(array, what);
    case ElementType::kI64:
      return Exact<Target, int64_t>(array, what);
    case ElementType::kU64:
      return Exact<Target, uint64_t>(array, what);
    default:
      return Widened<Target>(array, what);
  }
}

// Returns what to do with a file that holds tensors in another way, or "".
std::string_view AdviceOn(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  if (name.ends_with(".npz")) return "; .npz is an archive of .npy files: unpack it with unzip";
  if (name.ends_with(".safetensors.index.json")) {
    return "; this is an index of shards: give one of the .safetensors files that it lists";
  }
  return "";
}

}  // namespace

TensorFile::TensorFile(const std::filesystem::path& path) : path_(path) {
  const std::string extension = LowerExtension(path);
  if (extension == ".safetensors") {
    safetensors_.emplace(path);
  } else if (extension == ".npy") {
    NpyHeader header = ReadNpyHeader(path);
    npy_.push_back({path.stem().string(),
                    std::string(ToString(header.type)),
                    header.type,
                    std::move(header.shape)});
  } else {
    throw Error::Format("{}: extension '{}', expected .npy or .safetensors{}",
                        path.string(),
                        Printable(extension),
                        AdviceOn(path));
  }
}

const std::vector<TensorInfo>& TensorFile::Tensors() const {
  return safetensors_ ? safetensors_->Tensors() : npy_;
}

const TensorInfo& TensorFile::Find(std::string_view name) const {
  const std::vector<TensorInfo>& tensors = Tensors();
  if (name.empty() && tensors.size() == 1) return tensors[0];
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const TensorInfo& tensor) {
    return tensor.name == name;
  });
  if (found != tensors.end()) return *found;
  throw Error::Format("{}: {}, choose from: {}",
                      path_.string(),
                      name.empty() ? std::string("the tensor must be named")
                                   : fmt::format("no tensor '{}'", Printable(name)),
                      NamesText(tensors));
}

Array TensorFile::Read(std::string_view name) const {
  const TensorInfo& tensor = Find(name);
  return safetensors_ ? safetensors_->Read(tensor.name) : ReadNpy(path_);
}

const std::vector<std::pair<std::string, std::string>>& TensorFile::Metadata() const {
  static const std::vector<std::pair<std::string, std::string>> none;
  return safetensors_ ? safetensors_->Metadata() : none;
}

std::string TensorFile::Describe(const TensorInfo& tensor) const {
  return fmt::format("{}: tensor '{}'", path_.string(), Printable(tensor.name));
}

std::string_view WhyNoNumbers(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
      return "elements are codes, expected floating-point values";
    case ElementType::kRaw8:
    case ElementType::kRaw16:
      return "are codes of a format that the file does not name";
    case ElementType::kI16:
    case ElementType::kI32:
    case ElementType::kI64:
    case ElementType::kU64:
    case ElementType::kBool:
      return "elements are not numbers of a format";
    default:
      return "";
  }
}

bool IsTensorFileName(const std::filesystem::path& path) {
  const std::string extension = LowerExtension(path);
  return extension == ".npy" || extension == ".safetensors";
}

bool IsSafetensorsName(const std::filesystem::path& path) {
  return LowerExtension(path) == ".safetensors";
}

void AppendTensors(const std::filesystem::path& path,
                   std::span<const std::pair<std::string, Array>> tensors,
                   std::span<const std::pair<std::string, std::string>> metadata,
                   AtomicFile& file) {
  if (IsSafetensorsName(path)) return AppendSafetensors(path, tensors, metadata, file);
  NUMSIM_REQUIRE(
      tensors.size() == 1, "{}: {} tensors, .npy holds one", path.string(), tensors.size());
  AppendNpy(path, tensors[0].second, file);
}

bool IsInteger(ElementType type) {
  return type == ElementType::kI16 || type == ElementType::kI32 || type == ElementType::kI64 ||
         type == ElementType::kU64;
}

std::vector<float> ToFloat32(const Array& array, std::string_view what) {
  return Values<float>(array, what);
}

std::vector<double> ToFloat64(const Array& array, std::string_view what) {
  return Values<double>(array, what);
}

}  // namespace numsim
