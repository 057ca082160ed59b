// Shared by the tests of Diff.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cctype>
#include <ostream>
#include <string>
#include <string_view>

#include "numsim/profiles/diff.h"

namespace numsim {

struct Pair {
  const char* a;
  const char* b;
  const char* target;
  uint32_t word = 0;
};

inline void PrintTo(const Pair& pair, std::ostream* os) {
  *os << pair.a << " and " << pair.b << " to " << pair.target;
}

inline std::string ParamName(const testing::TestParamInfo<Pair>& info) {
  std::string name = fmt::format("{}_{}_{}", info.param.a, info.param.b, info.param.target);
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
}

inline constexpr uint64_t kNansOfOneSign = 0x7F'FFFF;  // of float32

inline ProfileConversion FromFloat32(std::string_view profile, std::string_view target) {
  return ProfileConversion(profile, SourceType::kFloat32, ParseFormat(target));
}

// Interval count, total and the first intervals that differ between two results.
inline std::string Describe(const Difference& difference) {
  std::string text =
      fmt::format("{} intervals, {} patterns", difference.intervals.size(), difference.differing);
  for (size_t i = 0; i < difference.intervals.size() && i < 4; ++i) {
    const DifferingInterval& x = difference.intervals[i];
    text += fmt::format(" [{:08X}, {:08X}] {:X} {:X}", x.first, x.last, x.code_a, x.code_b);
  }
  return text;
}

}  // namespace numsim
