#include "apps/code_array.h"

#include <algorithm>
#include <cmath>

#include "numsim/cast/cast.h"
#include "numsim/io/tensor_file.h"

namespace numsim::apps {

ElementType CodeType(const FormatSpec& format) {
  switch (format.StorageBytes()) {
    case 1:
      return ElementType::kU8;
    case 2:
      return ElementType::kU16;
    default:
      return ElementType::kU32;
  }
}

std::optional<ElementType> TypeOfFormat(const FormatSpec& format) {
  for (const ElementType type : {ElementType::kF32,
                                 ElementType::kF16,
                                 ElementType::kBf16,
                                 ElementType::kF8E4M3,
                                 ElementType::kF8E5M2,
                                 ElementType::kF8E4M3Fnuz,
                                 ElementType::kF8E5M2Fnuz,
                                 ElementType::kF8E8M0,
                                 ElementType::kF6E2M3,
                                 ElementType::kF6E3M2,
                                 ElementType::kF4E2M1,
                                 ElementType::kI8}) {
    const FormatEntry* const entry = FindFormat(FormatOf(type));
    if (entry != nullptr && entry->spec == format) return type;
  }
  return std::nullopt;
}

bool CanHoldCodes(ElementType type) {
  switch (type) {
    case ElementType::kU8:
    case ElementType::kU16:
    case ElementType::kU32:
    case ElementType::kRaw8:
    case ElementType::kRaw16:
      return true;
    default:
      return false;
  }
}

bool CanBeCodes(ElementType type, const FormatSpec& format) {
  const ElementType codes = CodeType(format);
  return type == codes || type == TypeOfFormat(format) ||
         (type == ElementType::kRaw8 && codes == ElementType::kU8) ||
         (type == ElementType::kRaw16 && codes == ElementType::kU16);
}

void TakeAsCodes(Array& array, const Format& format, const std::string& file) {
  if (!CanBeCodes(array.type, format.spec)) {
    throw Error::Format("{}: element type is {}, but codes of {} are {}",
                        file,
                        ToString(array.type),
                        format.name,
                        ToString(CodeType(format.spec)));
  }
  array.type = CodeType(format.spec);
}

Array ArrayLike(const Array& other, ElementType type) {
  Array array;
  array.type = type;
  array.shape = other.shape;
  array.bytes.resize(other.Elements() * ElementBytes(type));
  return array;
}

void CheckCodes(Array& codes, const Format& format, const std::string& file) {
  WithCodes(codes, [&](auto elements) {
    for (size_t i = 0; i < elements.size(); ++i) {
      if (elements[i] <= format.spec.CodeMask()) continue;
      throw Error::Format("{}: element {} is {:#x}, which exceeds the {} bits of {}",
                          file,
                          i,
                          elements[i],
                          format.spec.Bits(),
                          format.name);
    }
  });
}

Array DecodedArray(Array& codes, const Format& format, const std::string& file) {
  CheckCodes(codes, format, file);
  Array values = ArrayLike(codes, ElementType::kF32);
  WithCodes(codes, [&](auto elements) {
    using Code = typename decltype(elements)::element_type;
    Decode(format.spec,
           std::span<const Code>(elements),
           std::span(values.Data<float>(), values.Elements()));
  });
  return values;
}

bool HoldsValues(Array& array, const Format& format, const std::string& file) {
  if (array.type == ElementType::kF64 || IsInteger(array.type)) {
    const std::vector<float> values = ToFloat32(array, file);
    array = ArrayLike(array, ElementType::kF32);
    std::copy(values.begin(), values.end(), array.Data<float>());
  }
  if (array.type == ElementType::kF32) return true;
  if (!CanBeCodes(array.type, format.spec)) {
    throw Error::Format("{}: element type is {}, but codes of {} are {} and its values float32",
                        file,
                        ToString(array.type),
                        format.name,
                        ToString(CodeType(format.spec)));
  }
  TakeAsCodes(array, format, file);
  return false;
}

void CheckValues(std::span<const float> values,
                 const Format& format,
                 const std::string& file,
                 const std::string& hint) {
  const EncodePlan plan =
      MakeEncodePlan(format.spec, {RoundingMode::kNearestEven}, Overflow::kNonsaturate);
  std::vector<float> rounded(values.size());
  FakeQuantize(plan, values, rounded);
  for (size_t i = 0; i < values.size(); ++i) {
    const bool same = rounded[i] == values[i] || (std::isnan(rounded[i]) && std::isnan(values[i]));
    if (same) continue;
    throw Error::Format("{}: element {} is {}, which is not a value of {}{}",
                        file,
                        i,
                        values[i],
                        format.name,
                        hint);
  }
}

}  // namespace numsim::apps
