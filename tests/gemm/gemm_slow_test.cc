// Long and large products of matrices.
#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "tests/support/gemm_problem.h"

namespace numsim {
namespace {

// Some elements are those of the definition; all are the same with 1 thread and 5 and on every
// backend.
void ExpectSampleAndSameBits(const Factor& a, const Factor& b, const AccumulationMode& mode) {
  SCOPED_TRACE(ToString(mode));
  std::vector<float> first;
  WithEachBackend([&] {
    if (UsesScalarReference()) return;  // slow, and the definition below is the same
    for (const int threads : {1, 5}) {
      SetThreadCount(threads);
      const std::vector<float> out = GemmResult(a, b, mode);
      if (first.empty()) first = out;
      ASSERT_TRUE(SameMatrix(out, first, b.rows())) << threads << " threads";
    }
  });
  if (first.empty()) first = GemmResult(a, b, mode);
  oracle::TestRandom random(1);
  for (int sample = 0; sample < 40; ++sample) {
    const size_t i = random.Below(a.rows()), j = random.Below(b.rows());
    ASSERT_EQ(std::bit_cast<uint32_t>(first[i * b.rows() + j]),
              std::bit_cast<uint32_t>(DefinedElement(a, b, mode, i, j)))
        << i << ", " << j;
  }
}

TEST(GemmSlow, LargeProductsEqualTheirDefinitionOnEveryBackend) {
  oracle::TestRandom random(2);
  // Each mode at least once, each format three times; smaller products have all pairs.
  const std::pair<const char*, FormatSpec> cases[] = {{"exact", kInt8},
                                                      {"exact", kFp32},
                                                      {"fp64", kE4M3fn},
                                                      {"fp32", kBf16},
                                                      {"fp32", kFp32},
                                                      {"fp16", kInt8},
                                                      {"bf16:unfused", kBf16},
                                                      {"fp32-chunked:128", kE4M3fn},
                                                      {"trunc:13,32,128", kInt8},
                                                      {"trunc:13,32,128", kFp32},
                                                      {"hopper-mma-fp8", kE4M3fn},
                                                      {"cdna3-fp8", kBf16}};
  for (const auto& [text, format] : cases) {
    Factor a = Factor::Random(format, 61, 521, Spread::kNormal, Side::kLeft, random);
    Factor b = Factor::Random(format, 70, 521, Spread::kExponents, Side::kRight, random);
    const bool codes = format.Bits() <= 16;
    a.Store(codes ? Storage::kCodes : Storage::kValues, false);
    b.Store(codes ? Storage::kCodes : Storage::kValues, true);
    ASSERT_NO_FATAL_FAILURE(ExpectSampleAndSameBits(a, b, ParseAccumulationMode(text)));
  }
}

TEST(GemmSlow, AQuarterMillionProductsEqualTheirDefinitionOnEveryBackend) {
  oracle::TestRandom random(3);
  constexpr size_t kInner = (size_t{1} << 18) + 3;
  for (const char* text : {"exact", "fp32", "fp32-chunked:128", "trunc:13,32", "cdna1-fp16"}) {
    for (const FormatSpec& format : {kE5M2, kInt8, kBf16}) {
      Factor a = Factor::Random(format, 1, kInner, Spread::kCancelling, Side::kLeft, random);
      Factor b = Factor::Random(format, 2, kInner, Spread::kCancelling, Side::kRight, random);
      a.Store(Storage::kCodes, false);
      b.Store(Storage::kCodes, false);
      ASSERT_NO_FATAL_FAILURE(ExpectDefinedProduct(a, b, ParseAccumulationMode(text), {2}));
    }
  }
}

TEST(GemmSlow, AMillionLargestInt8ProductsOverflowInt32AndAreReported) {
  constexpr size_t kInner = size_t{1} << 20;
  const std::vector<uint8_t> lowest(kInner, 0x80), highest(kInner, 0x7F);
  GemmOperand a, b;
  a.format = b.format = kInt8;
  a.rows = b.rows = 1;
  a.inner = b.inner = kInner;
  a.codes8 = lowest;
  for (const bool negative : {false, true}) {
    b.codes8 = negative ? highest : lowest;
    WithEachBackend([&, &minus = negative] {
      int32_t sum = 0;
      EXPECT_FALSE(GemmInt32(a, b, {&sum, 1}));
      EXPECT_EQ(sum, minus ? INT32_MIN : INT32_MAX);
      float out = 0;
      Gemm(a, b, {}, {&out, 1});
      EXPECT_EQ(out, minus ? -0x1p20f * 128 * 127 : 0x1p34f);
    });
  }
}

}  // namespace
}  // namespace numsim
