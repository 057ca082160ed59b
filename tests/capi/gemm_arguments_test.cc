// Bad arguments of products, and the list of accumulators.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "numsim/arith/accumulation_mode.h"
#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class CGemmArguments : public ::testing::Test {
 protected:
  // The status of 2 x 3 with inner 4, which leaves everything alone unless it is NUMSIM_OK.
  numsim_status_t Multiply(const numsim_factor_t* a,
                           const numsim_factor_t* b,
                           const char* accumulator = "exact") {
    float out[6] = {7, 7, 7, 7, 7, 7};
    const numsim_status_t status =
        numsim_gemm(a, b, 2, 3, 4, accumulator, out, message_, sizeof message_);
    if (status == NUMSIM_OK) {
      EXPECT_STREQ(message_, "");
    } else {
      for (const float x : out) EXPECT_EQ(x, 7);
      EXPECT_NE(message_[0], '\0');
    }
    return status;
  }

  static constexpr numsim_status_t kBad = NUMSIM_ERROR_BAD_ARGUMENT;
  uint8_t codes_[12] = {};
  float scales_[12] = {};
  numsim_factor_t a_ = {CFormat("e4m3fn"), codes_, 1, 0, nullptr, {}};
  numsim_factor_t b_ = a_;
  char message_[1200] = "";
};

TEST_F(CGemmArguments, NullPointers) {
  EXPECT_EQ(Multiply(&a_, &b_), NUMSIM_OK);
  EXPECT_EQ(Multiply(nullptr, &b_), kBad);
  EXPECT_STREQ(message_, numsim_status_text(kBad));
  EXPECT_EQ(Multiply(&a_, nullptr), kBad);
  EXPECT_EQ(Multiply(&a_, &b_, nullptr), kBad);
  EXPECT_EQ(numsim_gemm(&a_, &b_, 2, 3, 4, "exact", nullptr, nullptr, 0), kBad);
  a_.codes = nullptr;
  EXPECT_EQ(Multiply(&a_, &b_), kBad);
  EXPECT_EQ(Multiply(&b_, &a_), kBad);
}

TEST_F(CGemmArguments, FormatsAndElements) {
  for (const int bytes : {-1, 0, 3, 8, INT32_MIN, INT32_MAX}) {
    a_.code_bytes = bytes;
    EXPECT_EQ(Multiply(&a_, &b_), kBad) << bytes;
  }
  a_.code_bytes = 1;
  b_.format = CFormat("bf16");
  EXPECT_EQ(Multiply(&a_, &b_), kBad);  // too narrow
  b_.format.reserved[2] = 1;
  EXPECT_EQ(Multiply(&a_, &b_), NUMSIM_ERROR_BAD_FORMAT);
  EXPECT_EQ(Multiply(&b_, &a_), NUMSIM_ERROR_BAD_FORMAT);
  a_.code_bytes = 2;
  alignas(4) uint8_t memory[40] = {};
  a_.codes = memory + 1;
  EXPECT_EQ(Multiply(&a_, &a_), kBad);  // misaligned
}

TEST_F(CGemmArguments, Sizes) {
  float out[1];
  const auto status = [&](size_t rows, size_t cols, size_t inner) {
    return numsim_gemm(&a_, &b_, rows, cols, inner, "exact", out, nullptr, 0);
  };
  EXPECT_EQ(status(1, 1, 4), NUMSIM_OK);
  EXPECT_EQ(status(SIZE_MAX, 1, 2), kBad);
  EXPECT_EQ(status(1, SIZE_MAX, 2), kBad);
  EXPECT_EQ(status(1, 1, SIZE_MAX), kBad);
  EXPECT_EQ(status(size_t{1} << 33, size_t{1} << 33, 0), kBad);
  EXPECT_EQ(status(SIZE_MAX, SIZE_MAX, 0), kBad);
  EXPECT_EQ(status(size_t{1} << 62, 1, 0), kBad);  // bytes of the result
  EXPECT_EQ(status(SIZE_MAX, 0, 0), NUMSIM_OK);
  a_.scales = scales_;
  a_.layout = {NUMSIM_SCALE_ROW, 0, 0};
  EXPECT_EQ(status(SIZE_MAX, 0, 0), kBad);  // bytes of the scales
}

TEST_F(CGemmArguments, Layouts) {
  const auto layouts = [this](const numsim_scale_layout_t& a, const numsim_scale_layout_t& b) {
    a_.layout = a;
    b_.layout = b;
    return Multiply(&a_, &b_);
  };
  // Not read without scales.
  EXPECT_EQ(layouts({-1, -1, 0}, {99, 0, 0}), NUMSIM_OK);
  a_.scales = b_.scales = scales_;
  const numsim_scale_layout_t row = {NUMSIM_SCALE_ROW, 0, 0}, column = {NUMSIM_SCALE_COLUMN, 0, 0};
  const auto block = [](uint64_t n) { return numsim_scale_layout_t{NUMSIM_SCALE_BLOCK, 0, n}; };
  for (const numsim_scale_layout_t& bad :
       {numsim_scale_layout_t{-1, 0, 0}, {4, 0, 0}, {NUMSIM_SCALE_ROW, 1, 0}, block(0)}) {
    EXPECT_EQ(layouts(bad, row), kBad);
    EXPECT_EQ(layouts(row, bad), kBad);
  }
  EXPECT_EQ(layouts(block(2), block(3)), kBad);
  EXPECT_EQ(layouts(block(2), column), kBad);
  EXPECT_EQ(layouts(block(2), block(2)), NUMSIM_OK);
  EXPECT_EQ(layouts(block(1), column), NUMSIM_OK);
  EXPECT_EQ(layouts(block(3), block(4)), NUMSIM_OK);  // inner is 4
  EXPECT_EQ(layouts(block(5), block(9)), NUMSIM_OK);
  a_.scales = reinterpret_cast<const float*>(reinterpret_cast<const char*>(scales_) + 2);
  EXPECT_EQ(layouts(row, row), kBad);
}

TEST_F(CGemmArguments, ResultMayNotOverlap) {
  alignas(4) uint8_t memory[96] = {};
  auto* out = reinterpret_cast<float*>(memory + 32);  // 24 bytes
  const auto status = [&] { return numsim_gemm(&a_, &b_, 2, 3, 4, "exact", out, nullptr, 0); };
  for (numsim_factor_t* factor : {&a_, &b_}) {
    const numsim_factor_t before = *factor;
    const ptrdiff_t bytes = factor == &a_ ? 8 : 12;
    for (const ptrdiff_t at : {33 - bytes, ptrdiff_t{32}, ptrdiff_t{55}}) {
      factor->codes = memory + at;
      EXPECT_EQ(status(), NUMSIM_ERROR_OVERLAP) << at;
    }
    for (const ptrdiff_t at : {32 - bytes, ptrdiff_t{56}}) {
      factor->codes = memory + at;
      EXPECT_EQ(status(), NUMSIM_OK) << at;
    }
    *factor = before;
    factor->scales = out + 5;
    EXPECT_EQ(status(), NUMSIM_ERROR_OVERLAP);
    factor->scales = out + 6;
    EXPECT_EQ(status(), NUMSIM_OK);
    *factor = before;
  }
  b_.codes = a_.codes;
  EXPECT_EQ(status(), NUMSIM_OK);
}

TEST_F(CGemmArguments, UnknownAccumulatorSaysWhy) {
  for (const char* text : {"",
                           "hopper",
                           "trunc:",
                           "trunc:13",
                           "trunc:41,8",
                           "trunc:13,32,40",
                           "fp32-chunked:0",
                           "e9m9",
                           "fp32:fused",
                           "library"}) {
    EXPECT_EQ(Multiply(&a_, &b_, text), NUMSIM_ERROR_UNKNOWN_ACCUMULATOR) << text;
    EXPECT_THAT(std::string(message_), HasSubstr("accumulator '" + std::string(text) + "'"));
  }
  char small[8];
  EXPECT_EQ(numsim_gemm(&a_, &b_, 2, 3, 4, "no", scales_, small, sizeof small),
            NUMSIM_ERROR_UNKNOWN_ACCUMULATOR);
  EXPECT_STREQ(small, "accumul");
}

TEST_F(CGemmArguments, TheMessageDoesNotOfferTheModeLibrary) {
  EXPECT_EQ(Multiply(&a_, &b_, "nope"), NUMSIM_ERROR_UNKNOWN_ACCUMULATOR);
  EXPECT_THAT(std::string(message_), HasSubstr("cdna3-fp8"));  // the whole list
  EXPECT_THAT(std::string(message_), Not(HasSubstr("library")));
}

// Cut at a comma, so that no name is half a name.
TEST_F(CGemmArguments, ALongListEndsWithTheFunctionThatHasTheNames) {
  Multiply(&a_, &b_, "nope");
  const std::string whole = message_;
  const std::string end = ", ... see numsim_accumulator_info";
  for (size_t size = 130; size < whole.size(); ++size) {
    std::vector<char> small(size + 1, '#');
    numsim_gemm(&a_, &b_, 2, 3, 4, "nope", scales_, small.data(), size);
    EXPECT_EQ(small[size], '#');
    const std::string text = small.data();
    ASSERT_THAT(text, EndsWith(end)) << size;
    const std::string kept = text.substr(0, text.size() - end.size());
    EXPECT_EQ(whole.substr(0, kept.size() + 2), kept + ", ") << size;
  }
  std::vector<char> large(whole.size() + 1);
  numsim_gemm(&a_, &b_, 2, 3, 4, "nope", scales_, large.data(), large.size());
  EXPECT_EQ(large.data(), whole);
}

// The device of hopper-bf16 takes bf16 alone; the numbers of its rule are for everybody.
TEST_F(CGemmArguments, AModeOfADeviceRefusesOtherOperands) {
  EXPECT_EQ(Multiply(&a_, &b_, "hopper-bf16"), NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
  for (const char* text : {"hopper-bf16",
                           "for bf16",
                           "not for e4m3fn",
                           "numsim_gemm_any_operands",
                           "hopper-fp8-fast"}) {
    EXPECT_THAT(std::string(message_), HasSubstr(text));
  }
  for (const char* mode : {"hopper-fp8", "hopper-mma-fp8", "trunc:25,16", "fp16", "exact"}) {
    EXPECT_EQ(Multiply(&a_, &b_, mode), NUMSIM_OK) << mode;
  }
  b_.format = CFormat("e5m2");
  EXPECT_EQ(Multiply(&a_, &b_, "hopper-fp8"), NUMSIM_OK);
  EXPECT_EQ(Multiply(&a_, &b_, "hopper-mma-fp8"), NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
  EXPECT_EQ(Multiply(&b_, &a_, "hopper-mma-fp8"), NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
}

// Beside 1, 2^-14 is below the 13 fraction bits of hopper-fp8-fast and within the 25 of hopper-bf16.
TEST_F(CGemmArguments, AnyOperandsUsesTheModeAsItIs) {
  const uint16_t codes[2] = {0x3F80, 0x3880}, ones[2] = {0x3F80, 0x3F80};  // 1, 2^-14; 1, 1
  numsim_factor_t a = {CFormat("bf16"), codes, 2, 0, nullptr, {}}, b = a;
  b.codes = ones;
  float out = 0;
  EXPECT_EQ(numsim_gemm(&a, &b, 1, 1, 2, "hopper-fp8-fast", &out, message_, sizeof message_),
            NUMSIM_ERROR_ACCUMULATOR_OPERANDS);
  EXPECT_EQ(out, 0);
  EXPECT_EQ(
      numsim_gemm_any_operands(&a, &b, 1, 1, 2, "hopper-fp8-fast", &out, message_, sizeof message_),
      NUMSIM_OK);
  EXPECT_STREQ(message_, "");
  EXPECT_EQ(out, 1);
  EXPECT_EQ(numsim_gemm(&a, &b, 1, 1, 2, "hopper-bf16", &out, nullptr, 0), NUMSIM_OK);
  EXPECT_EQ(out, 1 + 0x1p-14f);
  EXPECT_EQ(numsim_gemm_any_operands(&a, &b, 1, 1, 2, "nope", &out, nullptr, 0),
            NUMSIM_ERROR_UNKNOWN_ACCUMULATOR);
  EXPECT_EQ(numsim_gemm_any_operands(nullptr, &b, 1, 1, 2, "exact", &out, nullptr, 0), kBad);
}

TEST(CAccumulators, AreThoseOfTheTable) {
  ASSERT_EQ(numsim_accumulator_count(), AccumulationModeTable().size());
  for (size_t i = 0; i < numsim_accumulator_count(); ++i) {
    const AccumulationModeRow& row = AccumulationModeTable()[i];
    numsim_accumulator_info_t info, again;
    ASSERT_EQ(numsim_accumulator_info(i, &info), NUMSIM_OK);
    EXPECT_EQ(info.name, row.name);
    EXPECT_EQ(info.rule, DefinitionText(row.mode));
    EXPECT_EQ(info.operands, row.operands);
    EXPECT_EQ(info.source, row.source);
    EXPECT_EQ(info.note, row.note);
    EXPECT_EQ(info.measured, row.measured ? 1 : 0);
    EXPECT_EQ(info.reserved, 0);
    ASSERT_EQ(numsim_accumulator_info(i, &again), NUMSIM_OK);
    EXPECT_EQ(info.rule, again.rule);  // the same memory
  }
}

TEST(CAccumulators, BadArguments) {
  numsim_accumulator_info_t info = {};
  info.measured = 77;
  EXPECT_EQ(numsim_accumulator_info(numsim_accumulator_count(), &info), NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(numsim_accumulator_info(SIZE_MAX, &info), NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(info.measured, 77);
  EXPECT_EQ(numsim_accumulator_info(0, nullptr), NUMSIM_ERROR_BAD_ARGUMENT);
}

}  // namespace
}  // namespace numsim::capi_test
