#include "apps/code_array.h"

#include "numsim/kernels/cast.h"

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
      throw Error::Format("{}: element {} is {:#x}, beyond the {} bits of {}",
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

}  // namespace numsim::apps
