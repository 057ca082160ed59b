// Every float32 input: 2^32 of them, for the four formats that carry the library, under
// round-to-nearest-even and two stochastic words.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/intervals.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

struct Conversion {
  std::string format;
  oracle::Setting setting;
  uint32_t random;
};

std::ostream& operator<<(std::ostream& os, const Conversion& c) {
  return os << c.format << " " << oracle::Describe(c.setting) << " word " << c.random;
}

std::vector<Conversion> Conversions() {
  const oracle::Setting stochastic = {
      oracle::Mode::kStochastic, oracle::Policy::kNonsaturate, oracle::Variant::kA, 32};
  std::vector<Conversion> all;
  for (const char* name : {"e4m3fn", "e5m2", "bf16", "fp16"}) {
    all.push_back({name, {}, 0});
    all.push_back({name, stochastic, 0x9E3779B9});
    all.push_back({name, stochastic, 0x12345678});
  }
  return all;
}

// Converts the bits of `inputs` and writes as many codes. A scalar loop and an array kernel both
// fit behind it.
using EncodeBlock =
    std::function<void(std::span<const uint32_t> inputs, std::span<uint32_t> codes)>;

constexpr uint32_t kBlock = 4096;

// The number of patterns of the run that `encode` gets wrong; `example` becomes one of them.
uint64_t WrongIn(const oracle::Interval& run,
                 const EncodeBlock& encode,
                 std::atomic<uint32_t>& example) {
  uint32_t inputs[kBlock];
  uint32_t codes[kBlock];
  uint64_t wrong = 0;
  for (uint64_t begin = run.first; begin <= run.last; begin += kBlock) {
    const auto count = static_cast<uint32_t>(std::min<uint64_t>(kBlock, run.last - begin + 1));
    for (uint32_t i = 0; i < count; ++i) inputs[i] = static_cast<uint32_t>(begin) + i;
    encode(std::span(inputs, count), std::span(codes, count));
    for (uint32_t i = 0; i < count; ++i) {
      if (codes[i] == run.code) continue;
      ++wrong;
      example = inputs[i];
    }
  }
  return wrong;
}

void ExpectEveryInputRight(const Conversion& conversion, const EncodeBlock& encode) {
  const oracle::Grid grid(oracle::FindFormat(conversion.format));
  std::atomic<uint64_t> wrong = 0;
  std::atomic<uint64_t> visited = 0;
  std::atomic<uint32_t> example = 0;
  for (bool negative : {false, true}) {
    const std::vector<oracle::Interval> runs = oracle::Pieces(
        oracle::Float32Intervals(grid, conversion.setting, conversion.random, negative), 1 << 22);
    ParallelTasks(runs.size(), [&](size_t i) {
      wrong += WrongIn(runs[i], encode, example);
      visited += uint64_t{runs[i].last} - runs[i].first + 1;
    });
  }
  EXPECT_EQ(visited, uint64_t{1} << 32);
  EXPECT_EQ(wrong, 0u) << "one of them: 0x" << std::hex << example;
}

class EncodeEveryFloat32 : public testing::TestWithParam<Conversion> {};

std::string NameOf(const testing::TestParamInfo<Conversion>& info) {
  const bool nearest = info.param.setting.mode == oracle::Mode::kNearestEven;
  return info.param.format + (nearest ? "_rne" : "_sr_" + std::to_string(info.param.random));
}

INSTANTIATE_TEST_SUITE_P(, EncodeEveryFloat32, testing::ValuesIn(Conversions()), NameOf);

TEST_P(EncodeEveryFloat32, ScalarRuleIsRight) {
  const Conversion& c = GetParam();
  const EncodePlan plan = MakeEncodePlan(
      FindFormat(c.format)->spec, RoundingOf(c.setting), ToLibrary(c.setting.policy));
  ExpectEveryInputRight(c, [&](std::span<const uint32_t> inputs, std::span<uint32_t> codes) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      codes[i] = EncodeF32(plan, inputs[i], c.random);
    }
  });
}

// The kernels on arrays, whose cheaper cases of the rule and 16-bit path the scalar code does not
// take. Their random words are not ours to choose, so nearest-even alone.
TEST_P(EncodeEveryFloat32, ArrayKernelIsRight) {
  const Conversion& c = GetParam();
  if (c.setting.mode != oracle::Mode::kNearestEven) {
    GTEST_SKIP() << "the array kernels draw their own random words";
  }
  const EncodePlan plan = MakeEncodePlan(
      FindFormat(c.format)->spec, RoundingOf(c.setting), ToLibrary(c.setting.policy));
  const auto encode = [&plan](
                          std::span<const uint32_t> inputs, std::span<uint32_t> codes, auto code) {
    std::vector<float> values(inputs.size());
    std::memcpy(values.data(), inputs.data(), inputs.size_bytes());
    std::vector<decltype(code)> narrow(inputs.size());
    Encode(plan, std::span<const float>(values), std::span(narrow));
    std::copy(narrow.begin(), narrow.end(), codes.begin());
  };
  ExpectEveryInputRight(c, [&](std::span<const uint32_t> inputs, std::span<uint32_t> codes) {
    if (plan.format.StorageBytes() == 1) return encode(inputs, codes, uint8_t{});
    encode(inputs, codes, uint16_t{});
  });
}

}  // namespace
}  // namespace numsim
