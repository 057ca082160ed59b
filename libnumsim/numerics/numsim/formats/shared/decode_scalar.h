// Decodes one code on host or device: Decode of formats/decode.h as inline functions without
// checks.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_spec.h"

namespace numsim::scalar {

inline constexpr uint32_t kF32SignBit = 0x80000000u;
inline constexpr uint32_t kF32Infinity = 0x7F800000u;
inline constexpr uint32_t kF32QuietNan = 0x7FC00000u;

// Returns the float32 bits of significand * 2^exponent. Uses only integers, so that flushing of
// subnormals by the processor cannot change the result. Requires a value that is exact in float32.
NUMSIM_HOST_DEVICE inline uint32_t ExactF32Bits(uint32_t significand, int exponent) {
  if (significand == 0) return 0;
  const int top = std::bit_width(significand) - 1;  // value in [2^top, 2^(top+1)) * 2^exponent
  const int biased = top + exponent + 127;
  const int shift = biased > 0 ? 23 - top : exponent + 149;  // subnormals: multiples of 2^-149
  const uint32_t fraction = shift >= 0 ? significand << shift : significand >> -shift;
  return biased > 0 ? (static_cast<uint32_t>(biased - 1) << 23) + fraction : fraction;
}

NUMSIM_HOST_DEVICE inline uint32_t MagnitudeOf(const FormatSpec& format, uint32_t code) {
  if (format.sign == Sign::kTwosComplement && (code & format.SignBit())) {
    return (0u - code) & format.CodeMask();
  }
  return code & ~format.SignBit();
}

NUMSIM_HOST_DEVICE inline Dyadic MagnitudeValue(const FormatSpec& format, uint32_t magnitude_code) {
  const uint32_t hidden = uint32_t{1} << format.mantissa_bits;
  const uint32_t mantissa = magnitude_code & (hidden - 1);
  const int field = static_cast<int>(magnitude_code >> format.mantissa_bits);
  if (field == 0 && format.zero != Zero::kNone) {
    return {format.flush_subnormals ? 0 : mantissa, format.SubnormalExponent()};
  }
  return {hidden + mantissa, field - format.bias - format.mantissa_bits};
}

// Returns the float32 bits of Decode(format, code).
NUMSIM_HOST_DEVICE inline uint32_t DecodeBits(const FormatSpec& format, uint32_t code) {
  const uint32_t sign = (code & format.SignBit()) != 0 ? kF32SignBit : 0;
  switch (Classify(format, code)) {
    case ValueClass::kNan:
      return kF32QuietNan | (format.NanHasSign() ? sign : 0);
    case ValueClass::kInfinity:
      return kF32Infinity | sign;
    case ValueClass::kUnused:  // two's complement: the largest magnitude plus one
      return sign | ExactF32Bits(code, format.SubnormalExponent());
    default:
      break;
  }
  const Dyadic value = scalar::MagnitudeValue(format, MagnitudeOf(format, code));
  return sign | ExactF32Bits(value.significand, value.exponent);
}

}  // namespace numsim::scalar
