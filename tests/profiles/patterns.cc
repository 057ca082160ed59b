#include "tests/profiles/patterns.h"

#include <bit>
#include <cmath>

#include "tests/reference/inputs.h"

namespace reference {
namespace {

constexpr uint32_t kSign32 = 0x8000'0000;
constexpr uint64_t kSign64 = uint64_t{1} << 63;

// Exact: every fp16 number is a float32.
uint32_t WidenFp16(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16;
  const uint32_t field = half >> 10 & 0x1F;
  const uint32_t fraction = half & 0x3FF;
  if (field == 0x1F) return sign | 0x7F80'0000 | fraction << 13;
  if (field > 0) return sign | (field + 112) << 23 | fraction << 13;
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign | std::bit_cast<uint32_t>(magnitude);
}

// Magnitudes at which some implementation changes its rule.
std::vector<double> Breakpoints() {
  std::vector<double> breakpoints = {6,     7,     7.5,   28,    30,    31,     240,
                                     248,   448,   464,   465,   480,   496,    49152,
                                     53248, 57344, 61440, 65504, 65520, 114688, 122880};
  for (int exponent = -149; exponent < 128; ++exponent) {
    for (const double factor : {1.0, 1.25, 1.5, 1.75}) {
      breakpoints.push_back(std::ldexp(factor, exponent));
    }
  }
  return breakpoints;
}

}  // namespace

std::vector<uint32_t> Float32Patterns(const std::string& format, int random) {
  std::vector<uint32_t> patterns;
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    patterns.push_back(upper << 16);
    patterns.push_back(WidenFp16(upper));
  }
  const oracle::Grid grid(oracle::FindFormat(format));
  const auto both = [&](uint32_t magnitude) {
    patterns.push_back(magnitude);
    patterns.push_back(magnitude | kSign32);
  };
  const int64_t stride = grid.end() > 1024 ? 97 : 1;
  std::vector<double> points = oracle::Landmarks(grid, stride);
  for (const double breakpoint : Breakpoints()) points.push_back(breakpoint);
  for (const double point : points) {
    for (const uint32_t near : oracle::NearF32(point)) both(near);
  }
  for (const uint32_t special : oracle::SpecialF32()) both(special);
  for (uint32_t payload = 1; payload < 0x80'0000; payload = payload * 3 / 2 + 1) {
    both(0x7F80'0000 | payload);
    both(0x7FFF'FFFF - payload / 2);
  }
  oracle::TestRandom words(20);
  for (int i = 0; i < random; ++i) patterns.push_back(words.Next32());
  return patterns;
}

std::vector<uint64_t> Float64Patterns(const std::string& format, int random) {
  std::vector<uint64_t> patterns;
  const auto both = [&](uint64_t magnitude) {
    patterns.push_back(magnitude);
    patterns.push_back(magnitude | kSign64);
  };
  const oracle::Grid grid(oracle::FindFormat(format));
  std::vector<double> points = oracle::Landmarks(grid, 1);
  for (const double breakpoint : Breakpoints()) points.push_back(breakpoint);
  for (const double point : points) {
    for (const uint64_t near : oracle::NearF64(point)) both(near);
  }
  for (uint64_t upper = 0; upper < 0x8000; upper += 3) both(upper << 48);
  for (const uint64_t special : oracle::SpecialF64()) both(special);
  oracle::TestRandom words(21);
  for (int i = 0; i < random; ++i) {
    patterns.push_back(words.Next());
    // Near the range of the format, where most of the rest is not.
    const uint64_t field = 1023 - 24 + words.Below(48);
    both(field << 52 | words.Next() >> 12);
  }
  return patterns;
}

}  // namespace reference
