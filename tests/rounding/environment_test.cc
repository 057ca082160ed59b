// Conversions are integer arithmetic: no setting of the floating-point unit changes a bit.
#include <gtest/gtest.h>

#include <bit>
#include <cfenv>
#include <iterator>
#include <vector>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/inputs.h"
#include "tests/reference/oracle.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

struct Inputs {
  std::vector<uint32_t> f32;
  std::vector<uint64_t> f64;
};

// Prepared under the default environment, since the oracle computes with floating point.
Inputs PrepareInputs() {
  Inputs inputs;
  for (uint32_t bits : oracle::SpecialF32()) {
    inputs.f32.push_back(bits);
    inputs.f32.push_back(bits | 0x80000000u);
  }
  for (uint64_t bits : oracle::SpecialF64()) {
    inputs.f64.push_back(bits);
    inputs.f64.push_back(bits | 0x8000000000000000u);
  }
  for (const char* name : {"e4m3fn", "bnb-e4m3", "e8m3:bias=146"}) {
    const oracle::Grid grid(oracle::FindFormat(name));
    for (double x : oracle::Landmarks(grid, 5)) {
      for (uint32_t bits : oracle::NearF32(x)) inputs.f32.push_back(bits);
      for (uint64_t bits : oracle::NearF64(x)) inputs.f64.push_back(bits);
    }
  }
  return inputs;
}

constexpr const char* kFormats[] = {"bf16",
                                    "fp16",
                                    "e4m3fn",
                                    "e5m2",
                                    "fp32",
                                    "bnb-e4m3",
                                    "binary8p1ue",
                                    "e8m0fnu",
                                    "int8",
                                    "e8m3:bias=146"};

// Everything that the library computes from the inputs: codes of many conversions and the bits of
// decoded values.
std::vector<uint32_t> ResultsIn(const char* format, const Inputs& inputs) {
  std::vector<uint32_t> results;
  const FormatSpec spec = ParseFormat(format).spec;
  for (const oracle::Setting& s : oracle::AllSettings()) {
    if (s.policy != oracle::Policy::kNonsaturate) continue;
    const EncodePlan plan = MakeEncodePlan(spec, RoundingOf(s), ToLibrary(s.policy));
    for (uint32_t bits : inputs.f32) results.push_back(EncodeF32(plan, bits, 0x9E3779B9u));
    for (uint64_t bits : inputs.f64) results.push_back(EncodeF64(plan, bits, 0x9E3779B9u));
  }
  if (spec.Bits() > 16) return results;
  for (float value : DecodeTable(spec)) results.push_back(std::bit_cast<uint32_t>(value));
  return results;
}

// One of the three modes per format, in turn.
TEST(Environment, RoundingModeOfTheProcessorChangesNothing) {
  constexpr int kModes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const Inputs inputs = PrepareInputs();
  size_t turn = 0;
  for (const char* format : kFormats) {
    const int mode = kModes[turn++ % std::size(kModes)];
    const std::vector<uint32_t> expected = ResultsIn(format, inputs);
    const int before = std::fegetround();
    ASSERT_EQ(std::fesetround(mode), 0);
    const std::vector<uint32_t> got = ResultsIn(format, inputs);
    std::fesetround(before);
    EXPECT_EQ(got, expected) << format << ", rounding mode " << mode;
  }
}

TEST(Environment, FlushToZeroChangesNothing) {
#if defined(__SSE2__)
  constexpr unsigned kFlushToZero = 0x8000;
  constexpr unsigned kDenormalsAreZero = 0x0040;
  const Inputs inputs = PrepareInputs();
  for (const char* format : kFormats) {
    const std::vector<uint32_t> expected = ResultsIn(format, inputs);
    const unsigned before = _mm_getcsr();
    _mm_setcsr(before | kFlushToZero | kDenormalsAreZero);
    const std::vector<uint32_t> got = ResultsIn(format, inputs);
    _mm_setcsr(before);
    EXPECT_EQ(got, expected) << format;
  }
#else
  GTEST_SKIP() << "flush-to-zero is set through MXCSR, which only x86 has";
#endif
}

TEST(Environment, ConversionsRaiseNoFloatingPointFlag) {
  const Inputs inputs = PrepareInputs();
  for (const char* format : kFormats) {
    std::feclearexcept(FE_ALL_EXCEPT);
    const std::vector<uint32_t> results = ResultsIn(format, inputs);
    EXPECT_EQ(std::fetestexcept(FE_OVERFLOW | FE_UNDERFLOW | FE_INVALID | FE_DIVBYZERO), 0)
        << format;
    EXPECT_FALSE(results.empty());
  }
}

}  // namespace
}  // namespace numsim
