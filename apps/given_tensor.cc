#include "apps/given_tensor.h"

#include <cmath>

#include "apps/code_array.h"
#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/cast/cast.h"
#include "numsim/io/table_file.h"

namespace numsim::apps {
namespace {

constexpr std::string_view kPackedSuffixes[] = {"_packed", "_blocks"};
constexpr std::string_view kScaleSuffixes[] = {"_scale", "_scale_inv", "_scales"};

bool HasSuffix(std::string_view text, std::string_view suffix) {
  return text.size() > suffix.size() && text.ends_with(suffix);
}

std::string BaseOf(const std::string& name) {
  for (const std::string_view suffix : kPackedSuffixes) {
    if (HasSuffix(name, suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

std::optional<std::string> MetadataOf(const TensorFile& file, const std::string& key) {
  for (const auto& [name, value] : file.Metadata()) {
    if (name == key) return value;
  }
  return std::nullopt;
}

// Returns whether a tensor can hold codes that have scales.
bool CanHaveScales(const TensorFile& file, const TensorInfo& tensor) {
  if (!tensor.type) return false;
  if (MetadataOf(file, FormatKey(tensor.name))) return true;
  if (MetadataOf(file, GranularityKey(tensor.name))) return true;
  const ElementType type = *tensor.type;
  return ElementBytes(type) == 1 && type != ElementType::kBool;
}

bool IsScaleOfE8m0(ElementType type) {
  return type == ElementType::kF8E8M0 || type == ElementType::kU8 || type == ElementType::kRaw8;
}

bool HasGroupsOf(size_t group,
                 const std::vector<size_t>& bytes,
                 const std::vector<size_t>& scales) {
  if (bytes.empty() || scales.size() != bytes.size()) return false;
  const size_t columns = 2 * bytes.back();
  return scales.back() == columns / group + (columns % group != 0 ? 1 : 0);
}

// Returns FP4 if codes of the type U8 have scales of NVFP4 or MXFP4.
std::optional<Format> FormatByScales(const Array& codes, const Array& scales) {
  if (codes.type != ElementType::kU8) return std::nullopt;
  const bool nvfp4 =
      scales.type == ElementType::kF8E4M3 && HasGroupsOf(16, codes.shape, scales.shape);
  const bool mxfp4 = IsScaleOfE8m0(scales.type) &&
                     (HasGroupsOf(32, codes.shape, scales.shape) ||
                      (codes.shape.size() == scales.shape.size() + 1 && codes.shape.back() == 16));
  if (!nvfp4 && !mxfp4) return std::nullopt;
  return ParseFormat("e2m1fn");
}

Format FormatOfCodes(const Array& codes,
                     const Array& scales,
                     const std::optional<std::string>& stated,
                     const GivenOptions& options,
                     const std::string& what) {
  const std::string_view own = FormatOf(codes.type);
  if (!own.empty()) {  // a type that names its format
    Format format = ParseFormat(own);
    if (options.format.empty() || ParseFormat(options.format).spec == format.spec) return format;
    throw Error::Format("{}: --format is {}, but the elements are {}", what, options.format, own);
  }
  if (!options.format.empty()) return ParseCastFormat(options.format);
  if (stated) return ParseCastFormat(*stated);
  if (const auto format = FormatByScales(codes, scales)) return *format;
  throw Error::Format(
      "{}: {} elements are codes of a format that the file does not name; name it "
      "with --format",
      what,
      ToString(codes.type));
}

// Takes codes of 4 bits apart, two per byte, the lower half first.
void UnpackHalves(Array& codes) {
  std::vector<std::byte> unpacked(2 * codes.bytes.size());
  for (size_t i = 0; i < codes.bytes.size(); ++i) {
    unpacked[2 * i] = codes.bytes[i] & std::byte{0xF};
    unpacked[2 * i + 1] = codes.bytes[i] >> 4;
  }
  codes.bytes = std::move(unpacked);
  codes.shape.back() *= 2;
}

// Makes one dimension of the last two: groups, and the elements of a group.
void JoinLastDimensions(std::vector<size_t>& shape) {
  const size_t last = shape.back();
  shape.pop_back();
  shape.back() *= last;
}

// Returns the layout of a grid of scales whose blocks nobody has named.
std::optional<ScaleLayout> UsualLayout(const std::string& scales_name, const Array& scales) {
  if (HasSuffix(scales_name, "_scale_inv")) return ScaleLayout{Granularity::kTile, 128, 128};
  if (IsScaleOfE8m0(scales.type)) return ScaleLayout{Granularity::kBlock, 32};
  if (scales.type == ElementType::kF8E4M3) return ScaleLayout{Granularity::kBlock, 16};
  return std::nullopt;
}

// Returns where the scales lie. A scalar is one scale for all, whatever the options say.
ScalePlacement PlacementOf(const std::vector<size_t>& codes,
                           const std::vector<size_t>& scales,
                           const std::string& granularity,
                           const std::optional<ScaleLayout>& usual,
                           const std::string& what) {
  const bool scalar = scales.empty() || scales == std::vector<size_t>{1};
  std::optional<ScaleLayout> named;
  if (!granularity.empty() && !scalar) named = ParseScaleLayout(granularity);
  try {
    return PlaceScales(codes, scales, named, usual);
  } catch (const Error& error) {
    throw Error::Format("{}: {} (--granularity)", what, error.what());
  }
}

// Applies the second level of scales: one number, or one per matrix of the stack.
void ApplySecondLevel(std::vector<float>& scales,
                      const std::vector<float>& factors,
                      bool divide,
                      const std::string& what) {
  if (factors.empty() || scales.size() % factors.size() != 0) {
    throw Error::Format("{}: {} numbers for {} scales", what, factors.size(), scales.size());
  }
  const size_t run = scales.size() / factors.size();
  for (size_t i = 0; i < scales.size(); ++i) {
    const float factor = factors[i / run];
    scales[i] = divide ? scales[i] / factor : scales[i] * factor;
  }
}

// Codes and scales as files have them, and what the files state about them.
struct Found {
  std::string name, scales_name;
  Array codes, scales;
  bool packed = false;   // codes of 4 bits in bytes are two per byte
  bool grouped = false;  // the last two dimensions are groups and the bytes of a group
  std::optional<std::string> format, granularity;
  std::string what, scales_what;  // for messages
};

GivenTensor Joined(Found found, const GivenOptions& options) {
  const std::optional<ScaleLayout> usual = UsualLayout(found.scales_name, found.scales);
  if (IsScaleOfE8m0(found.scales.type)) {
    found.scales.type = ElementType::kF8E8M0;
    found.scales_name += " (e8m0fnu)";
  }
  GivenTensor tensor{found.name, found.scales_name, {}, std::move(found.codes), {}, {}};
  Array& codes = tensor.codes;
  tensor.format = FormatOfCodes(codes, found.scales, found.format, options, found.what);
  const bool halves = found.packed && codes.type == ElementType::kU8 && !codes.shape.empty();
  if (halves && tensor.format.spec.Bits() == 4) UnpackHalves(codes);
  if (found.grouped && codes.shape.size() == found.scales.shape.size() + 1) {
    JoinLastDimensions(codes.shape);
  }
  TakeAsCodes(codes, tensor.format, found.what);
  CheckCodes(codes, tensor.format, found.what);
  tensor.placement = PlacementOf(
      codes.shape,
      found.scales.shape,
      options.granularity.empty() ? found.granularity.value_or("") : options.granularity,
      usual,
      found.scales_what);
  tensor.scales = ScalesOf(found.scales, found.scales_what);
  return tensor;
}

}  // namespace

QuantizedMatrix GivenTensor::Matrix(size_t i) const {
  const MatrixShape shape = placement.stack.shape;
  const size_t bytes = shape.Elements() * ElementBytes(codes.type);
  const size_t count = placement.layout.Count(shape.rows, shape.cols);
  const auto* const all = reinterpret_cast<const uint8_t*>(codes.bytes.data());
  return FromCodes(format.spec,
                   shape,
                   placement.layout,
                   std::span(all, codes.bytes.size()).subspan(i * bytes, bytes),
                   std::span(scales).subspan(i * count, count));
}

std::vector<float> GivenTensor::Values() const {
  std::vector<float> values(codes.Elements());
  const size_t each = placement.stack.shape.Elements();
  for (size_t i = 0; i < placement.stack.matrices; ++i) {
    Dequantize(Matrix(i), std::span(values).subspan(i * each, each));
  }
  return values;
}

std::vector<GivenNames> FindGivenTensors(const TensorFile& file) {
  std::set<std::string_view> all;
  for (const TensorInfo& tensor : file.Tensors()) all.insert(tensor.name);
  const auto if_there = [&](const std::string& name) { return all.contains(name) ? name : ""; };
  std::vector<GivenNames> found;
  for (const TensorInfo& tensor : file.Tensors()) {
    if (!CanHaveScales(file, tensor)) continue;
    const std::string base = BaseOf(tensor.name);
    for (const std::string_view suffix : kScaleSuffixes) {
      const std::string scales = base + std::string(suffix);
      if (!all.contains(scales)) continue;
      found.push_back({base,
                       tensor.name,
                       scales,
                       if_there(base + "_scale_2"),
                       if_there(base + "_global_scale")});
      break;
    }
  }
  return found;
}

std::set<std::string> PartsOf(const std::vector<GivenNames>& given) {
  std::set<std::string> parts;
  for (const GivenNames& names : given) {
    parts.insert({names.codes, names.scales, names.factor, names.divisor});
  }
  return parts;
}

std::vector<float> ScalesOf(const Array& array, const std::string& what) {
  std::vector<float> scales = ToFloat32(array, what);
  for (size_t i = 0; i < scales.size(); ++i) {
    if (std::isinf(scales[i])) throw Error::Format("{}: scale {} is infinite", what, i);
  }
  return scales;
}

GivenTensor ReadGivenTensor(const TensorFile& file,
                            const GivenNames& names,
                            const GivenOptions& options) {
  GivenTensor tensor = Joined({names.name,
                               names.scales,
                               file.Read(names.codes),
                               file.Read(names.scales),
                               true,
                               HasSuffix(names.codes, "_blocks"),
                               MetadataOf(file, FormatKey(names.codes)),
                               MetadataOf(file, GranularityKey(names.codes)),
                               file.Describe(file.Find(names.codes)),
                               file.Describe(file.Find(names.scales))},
                              options);
  for (const bool divide : {false, true}) {
    const std::string& name = divide ? names.divisor : names.factor;
    if (name.empty()) continue;
    const std::string second = file.Describe(file.Find(name));
    ApplySecondLevel(tensor.scales, ScalesOf(file.Read(name), second), divide, second);
  }
  return tensor;
}

GivenTensor JoinGivenTensor(const std::string& codes,
                            const std::string& scales,
                            const GivenOptions& options) {
  const bool packed = IsSafetensorsName(ParseTensorArgument(codes).file);
  NamedArray code_array = ReadTensor(codes), scale_array = ReadTensor(scales);
  return Joined({code_array.first,
                 scale_array.first,
                 std::move(code_array.second),
                 std::move(scale_array.second),
                 packed,
                 false,
                 std::nullopt,
                 std::nullopt,
                 codes,
                 scales},
                options);
}

}  // namespace numsim::apps
