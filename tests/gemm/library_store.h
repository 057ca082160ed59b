// The operations that cuBLASLt may apply to a finished sum: candidates, for studies of a device and
// for recorded products.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/formats/named_formats.h"

namespace numsim {

// t of a sum S and its scales. Every operation is a float32 one but those of kOnce.
enum class LibraryScaling {
  kOnce,         // fl32(fl64(S * (sa * sb))), the store of gemm/gemm.h
  kScalesFirst,  // S * (sa * sb) + 0, so that zeros are +0
  kLeftFirst,    // (S * sa) * sb
  kRightFirst,   // (S * sb) * sa
};
inline constexpr LibraryScaling kLibraryScalings[] = {LibraryScaling::kOnce,
                                                      LibraryScaling::kScalesFirst,
                                                      LibraryScaling::kLeftFirst,
                                                      LibraryScaling::kRightFirst};
inline constexpr std::string_view kLibraryScalingNames[] = {
    "once", "scales-first", "left-first", "right-first"};

inline float ScaledSum(LibraryScaling scaling, float s, float sa, float sb) {
  switch (scaling) {
    case LibraryScaling::kScalesFirst:
      return s * (sa * sb) + 0.0f;
    case LibraryScaling::kLeftFirst:
      return (s * sa) * sb;
    case LibraryScaling::kRightFirst:
      return (s * sb) * sa;
    case LibraryScaling::kOnce:
      break;
  }
  return static_cast<float>(static_cast<double>(s) *
                            (static_cast<double>(sa) * static_cast<double>(sb)));
}

// The behaviour of an H200 with one scale for each operand, and with one for each row. cuBLASLt
// is column-major, so that its first operand is the right one.
inline constexpr LibraryScaling kHopperTensorScaling = LibraryScaling::kScalesFirst;
inline constexpr LibraryScaling kHopperRowScaling = LibraryScaling::kRightFirst;

// Codes of float32 results in a format of 16 bits; every NaN the format's own.
inline std::vector<uint32_t> ResultCodes(const FormatSpec& format,
                                         std::span<const float> values,
                                         RoundingMode mode = RoundingMode::kNearestEven) {
  std::vector<uint16_t> codes(values.size());
  Encode(MakeEncodePlan(format, Rounding{.mode = mode}, Overflow::kNonsaturate),
         values,
         std::span(codes));
  std::vector<uint32_t> bits(codes.begin(), codes.end());
  for (size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(values[i])) bits[i] = format.NanCode();
  }
  return bits;
}

// Bits of float32 results; every NaN 0x7FFFFFFF.
inline std::vector<uint32_t> ResultBits(std::span<const float> values) {
  std::vector<uint32_t> bits(values.size());
  for (size_t i = 0; i < bits.size(); ++i) {
    bits[i] = std::isnan(values[i]) ? 0x7FFFFFFFu : std::bit_cast<uint32_t>(values[i]);
  }
  return bits;
}

// The bits that a device gave, with its NaN as above.
inline uint32_t WithOneNan(const FormatSpec& format, uint32_t bits) {
  if (Classify(format, bits) != ValueClass::kNan) return bits;
  return format == kFp32 ? 0x7FFFFFFFu : format.NanCode();
}

}  // namespace numsim
