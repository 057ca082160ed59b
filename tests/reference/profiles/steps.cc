// Implementations that round with float32 arithmetic or on float32 bits, and bitsandbytes' search.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/reference/profiles/conversions.h"

namespace reference {
namespace {

constexpr uint32_t kSign = 0x8000'0000;
constexpr uint32_t kMagnitude = 0x7FFF'FFFF;
constexpr uint32_t kInfinity = 0x7F80'0000;

int ExponentField(uint32_t bits) { return static_cast<int>((bits & kMagnitude) >> 23); }

// Adds half a unit of the last kept bit and drops the rest. A carry goes on into exponent and sign.
uint32_t HalfUp(uint32_t bits, int mantissa_bits) {
  const uint32_t unit = uint32_t{1} << (23 - mantissa_bits);
  return (bits + unit / 2) / unit * unit;
}

// Code of a float32 number of the grid of that many mantissa bits whose smallest normal is
// 2^min_exponent.
uint32_t CodeOnGrid(uint32_t bits, int mantissa_bits, int min_exponent) {
  const double magnitude = static_cast<double>(std::bit_cast<float>(bits & kMagnitude));
  const uint32_t sign = (bits & kSign) != 0 ? 0x80 : 0;
  const double smallest = std::ldexp(1.0, min_exponent - mantissa_bits);
  const int exponent = ExponentField(bits) - 127;
  if (exponent <= min_exponent) return sign | static_cast<uint32_t>(magnitude / smallest);
  const int binade = exponent - min_exponent;
  return sign | static_cast<uint32_t>((binade << mantissa_bits) +
                                      static_cast<int>(std::ldexp(magnitude / smallest, -binade)));
}

}  // namespace

uint32_t QPyTorch(int exponent_bits, int mantissa_bits, uint32_t bits) {
  const int min_exponent = 2 - (1 << (exponent_bits - 1));
  const uint32_t sign = bits & kSign;
  uint32_t rounded;
  if (ExponentField(bits) - 127 < min_exponent) {
    // Moved into the smallest normal binade by a float32 sum, which rounds, and back.
    const float move = std::bit_cast<float>(sign | static_cast<uint32_t>(127 + min_exponent) << 23);
    const float moved = std::bit_cast<float>(bits) + move;
    const uint32_t cut = HalfUp(std::bit_cast<uint32_t>(moved), mantissa_bits);
    rounded = std::bit_cast<uint32_t>(std::bit_cast<float>(cut) - move);
  } else {
    rounded = HalfUp(bits, mantissa_bits);
    const int max_field = 127 + (1 << (exponent_bits - 1));
    if (ExponentField(rounded) > max_field) return (sign != 0 ? 0x80u : 0u) | 0x7F;
  }
  return CodeOnGrid(rounded, mantissa_bits, min_exponent);
}

uint32_t CpFloatBits(int p, int min_exponent, int max_exponent, uint32_t bits) {
  const uint32_t sign = bits & kSign;
  const uint32_t magnitude_bits = bits & kMagnitude;
  if (magnitude_bits <= kInfinity) {
    const double x = static_cast<double>(std::bit_cast<float>(magnitude_bits));
    const double bound = std::ldexp(2 - std::ldexp(1.0, -p), max_exponent);
    if (x >= bound) return sign | kInfinity;
    int exponent = min_exponent;
    if (x > 0) exponent = std::max(exponent, std::ilogb(x));
    const double unit = std::ldexp(1.0, exponent - p + 1);
    const double units = x / unit;  // exact: a power of two
    double whole = std::floor(units);
    const double rest = units - whole;
    if (rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) != 0)) whole += 1;
    return sign | std::bit_cast<uint32_t>(static_cast<float>(whole * unit));
  }
  // A NaN is no number below any bound: its bits are rounded to even like those of a normal number.
  // A carry goes on into the sign, and out of it.
  const uint32_t cut = uint32_t{1} << (24 - p);
  const uint32_t odd = (bits / cut) & 1;
  return (bits + cut / 2 - 1 + odd) / cut * cut;
}

uint32_t TorchaoBits(uint32_t bits, uint32_t random) {
  const uint32_t kept = bits / 0x10000 * 0x10000;
  return random % 0x10000 < bits % 0x10000 ? kept + 0x10000 : kept;
}

int BitsAndBytesIndex(const std::vector<double>& map, float x) {
  const double value = static_cast<double>(x);
  int low = 0, high = 255, pivot = 127;
  for (int step = 64; step > 0; step /= 2) {
    if (value > map[pivot]) {
      low = pivot;
      pivot += step;
    } else {
      high = pivot;
      pivot -= step;
    }
  }
  if (value > map[pivot]) return value > (map[high] + map[pivot]) / 2 ? high : pivot;
  return value < (map[low] + map[pivot]) / 2 ? low : pivot;
}

uint32_t TorchE8m0(uint32_t bits) {
  const int field = ExponentField(bits);
  if (field == 255) return 0xFF;
  const uint32_t fraction = bits & 0x7F'FFFF;
  const bool tie_goes_up = field > 0;
  const bool up = fraction > 0x40'0000 || (fraction == 0x40'0000 && tie_goes_up);
  return static_cast<uint32_t>(field + (up ? 1 : 0));
}

uint32_t CudaE8m0(uint32_t bits, bool up, bool saturate) {
  return CudaE8m0FromDouble(
      std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(bits))), up, saturate);
}

uint32_t CudaE8m0FromDouble(uint64_t bits, bool up, bool saturate) {
  const double x = std::abs(std::bit_cast<double>(bits));
  if (std::isnan(x)) return 0xFF;
  if (x == 0) return 0;
  const uint32_t beyond = saturate ? 0xFE : 0xFF;
  if (std::isinf(x)) return beyond;
  int exponent = std::ilogb(x);
  if (up && x > std::ldexp(1.0, exponent)) ++exponent;
  if (exponent < -127) return 0;
  if (exponent > 127) return up ? beyond : 0xFE;
  return static_cast<uint32_t>(exponent + 127);
}

}  // namespace reference
