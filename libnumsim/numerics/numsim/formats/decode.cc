#include "numsim/formats/decode.h"

#include <bit>
#include <cmath>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/formats/shared/decode_scalar.h"
#include "numsim/formats/value_table.h"

namespace numsim {
Dyadic MagnitudeValue(const FormatSpec& format, uint32_t magnitude_code) noexcept {
  return scalar::MagnitudeValue(format, magnitude_code);
}

float Decode(const FormatSpec& format, uint32_t code) noexcept {
  NUMSIM_CHECK(code <= format.CodeMask(), "code {:#x} of a {}-bit format", code, format.Bits());
  if (format.IsTable()) return TableOf(format).by_code[code];
  return std::bit_cast<float>(scalar::DecodeBits(format, code));
}

std::vector<float> DecodeTable(const FormatSpec& format) {
  NUMSIM_REQUIRE(
      format.Bits() <= 16, "DecodeTable: a format of {} bits, expected at most 16", format.Bits());
  std::vector<float> values(size_t{1} << format.Bits());
  for (uint32_t code = 0; code < values.size(); ++code) values[code] = Decode(format, code);
  return values;
}

float MaxFinite(const FormatSpec& format) noexcept {
  if (format.IsTable()) return TableOf(format).largest;
  return Decode(format, format.MaxFiniteCode());
}

int LargestExponent(const FormatSpec& format) noexcept {
  return format.IsTable() ? std::ilogb(TableOf(format).largest) : format.MaxExponent();
}

float MinNormal(const FormatSpec& format) noexcept {
  if (format.IsTable()) return MinPositive(format);
  const uint32_t code = format.zero == Zero::kNone ? 0 : uint32_t{1} << format.mantissa_bits;
  return Decode(format, code);
}

float MinPositive(const FormatSpec& format) noexcept {
  if (format.IsTable()) return TableOf(format).smallest_positive;
  if (format.flush_subnormals) return MinNormal(format);
  return Decode(format, format.zero == Zero::kNone ? 0 : 1);
}

}  // namespace numsim
