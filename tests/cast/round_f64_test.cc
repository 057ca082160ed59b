// Rounding of float64 arrays in blocks: every element of every block, and none beyond the array.
#include "numsim/cast/shared/round_f64.h"

#include <bit>
#include <cmath>

#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/random/distributions.h"
#include "numsim/rounding/encode.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

constexpr float kUntouched = 12345;

const std::vector<size_t>& Lengths() {
  static const std::vector<size_t> lengths = {0,
                                              1,
                                              kArithmeticBlock - 1,
                                              kArithmeticBlock,
                                              kArithmeticBlock + 1,
                                              2 * kArithmeticBlock + 77};
  return lengths;
}

std::vector<double> Numbers(size_t n, uint64_t stream) {
  std::vector<float> normal(n);
  FillNormal({7, stream}, 0, normal);
  std::vector<double> numbers(n);
  for (size_t i = 0; i < n; ++i) {
    const auto element = static_cast<double>(i);
    numbers[i] = normal[i] * std::exp2(static_cast<double>(i % 40) - 20) * (1 + element * 0x1p-40);
  }
  return numbers;
}

// Calls check(plan, n) for each backend, some formats and all lengths.
template <typename Check>
void ForEachCase(const Check& check) {
  for (const char* const format : {"e4m3fn", "bf16", "fp16", "bnb-e4m3"}) {
    const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec, {});
    for (const size_t n : Lengths()) {
      WithEachBackend([&] { check(plan, n); });
    }
  }
}

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }  // NaN equals itself

uint32_t CodeOf(const EncodePlan& plan, double x) {
  return EncodeF64(plan, std::bit_cast<uint64_t>(x), 0);
}

TEST(RoundF64Serial, RoundsEachElementAndNoMore) {
  ForEachCase([](const EncodePlan& plan, size_t n) {
    const std::vector<double> x = Numbers(n, 0);
    std::vector<float> out(n + kArithmeticBlock, kUntouched);
    RoundF64Serial(plan, x.data(), n, out.data());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(Bits(out[i]), Bits(Decode(plan.format, CodeOf(plan, x[i])))) << i << " of " << n;
    }
    for (size_t i = n; i < out.size(); ++i) ASSERT_EQ(out[i], kUntouched) << i << " of " << n;
  });
}

TEST(RoundF64Serial, StochasticRoundingUsesTheRandomBitsOfEachElement) {
  const EncodePlan plan = MakeEncodePlan(ParseFormat("e4m3fn").spec,
                                         {RoundingMode::kStochastic, StochasticVariant::kA, 16});
  const ArrayRandom random = {{3, 4}, 77};
  for (const size_t n : Lengths()) {
    const std::vector<double> x = Numbers(n, 0);
    WithEachBackend([&] {
      std::vector<float> out(n);
      RoundF64Serial(plan, x.data(), n, out.data(), random);
      for (size_t i = 0; i < n; ++i) {
        const uint32_t code = EncodeF64(plan, std::bit_cast<uint64_t>(x[i]), Draw(plan, random, i));
        ASSERT_EQ(Bits(out[i]), Bits(Decode(plan.format, code))) << i << " of " << n;
      }
    });
  }
}

TEST(RoundSumSerial, RoundsEachSumAndNoMore) {
  ForEachCase([](const EncodePlan& plan, size_t n) {
    const std::vector<double> a = Numbers(n, 0), b = Numbers(n, 1);
    std::vector<float> out(n + kArithmeticBlock, kUntouched);
    RoundSumSerial(plan, a.data(), b.data(), n, out.data());
    for (size_t i = 0; i < n; ++i) {
      ASSERT_EQ(Bits(out[i]), Bits(Decode(plan.format, CodeOf(plan, OddSum(a[i], b[i])))))
          << i << " of " << n;
    }
    for (size_t i = n; i < out.size(); ++i) ASSERT_EQ(out[i], kUntouched) << i << " of " << n;
  });
}

TEST(EncodeF64Serial, EncodesEachElementAndNoMore) {
  ForEachCase([](const EncodePlan& plan, size_t n) {
    const std::vector<double> x = Numbers(n, 0);
    std::vector<uint16_t> codes(n + kArithmeticBlock, 0xABCD);
    EncodeF64Serial(plan, x.data(), n, codes.data());
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(codes[i], CodeOf(plan, x[i])) << i << " of " << n;
    for (size_t i = n; i < codes.size(); ++i) ASSERT_EQ(codes[i], 0xABCD) << i << " of " << n;
  });
}

}  // namespace
}  // namespace numsim
