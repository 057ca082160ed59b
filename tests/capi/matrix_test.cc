// Scales, matrices and profiles of the C interface against their definitions on single numbers.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "numsim/profiles/profile.h"
#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

constexpr size_t kRows = 37, kCols = 70, kElements = kRows * kCols;

const numsim_scale_layout_t kLayouts[] = {{NUMSIM_SCALE_TENSOR, 0, 0},
                                          {NUMSIM_SCALE_ROW, 0, 0},
                                          {NUMSIM_SCALE_COLUMN, 0, 0},
                                          {NUMSIM_SCALE_BLOCK, 0, 1},
                                          {NUMSIM_SCALE_BLOCK, 0, 32},
                                          {NUMSIM_SCALE_BLOCK, 0, ~uint64_t{0}}};

// Index of the scale of (row, col), by the header's words alone.
size_t ScaleOf(const numsim_scale_layout_t& layout, size_t row, size_t col) {
  switch (layout.granularity) {
    case NUMSIM_SCALE_ROW:
      return row;
    case NUMSIM_SCALE_COLUMN:
      return col;
    case NUMSIM_SCALE_BLOCK: {
      size_t blocks = 0;  // of a row
      for (uint64_t at = 0; at < kCols; at += std::min<uint64_t>(layout.block, kCols)) ++blocks;
      return row * blocks + static_cast<size_t>(col / layout.block);
    }
    default:
      return 0;
  }
}

std::vector<float> Matrix() {
  std::vector<float> in(kElements);
  for (size_t i = 0; i < kElements; ++i) {
    in[i] = static_cast<float>(static_cast<int>(i * 2654435761u >> 8 & 0xFFFF) - 0x8000) * 0.01f;
  }
  in[5] = std::nanf("");
  in[80] = -std::numeric_limits<float>::infinity();
  return in;
}

size_t Count(const numsim_scale_layout_t& layout) {
  size_t count = 0;
  EXPECT_EQ(numsim_scale_count(&layout, kRows, kCols, &count), NUMSIM_OK);
  return count;
}

TEST(CMatrix, AbsmaxIsTheLargestFiniteMagnitudeOfEachScale) {
  const std::vector<float> in = Matrix();
  for (const numsim_scale_layout_t& layout : kLayouts) {
    std::vector<float> absmax(Count(layout), -1.0f), expected(absmax.size(), 0.0f);
    ASSERT_EQ(numsim_absmax(in.data(), kRows, kCols, &layout, absmax.data()), NUMSIM_OK);
    for (size_t i = 0; i < kElements; ++i) {
      float& max = expected.at(ScaleOf(layout, i / kCols, i % kCols));
      if (std::isfinite(in[i])) max = std::max(max, std::fabs(in[i]));
    }
    EXPECT_EQ(absmax, expected) << layout.granularity << " " << layout.block;
  }
}

template <typename Code>
void ExpectQuantized(const numsim_scale_layout_t& layout,
                     const char* format_name,
                     const BothRoundings& rounding,
                     const uint32_t* words,
                     bool transpose) {
  const numsim_format_t format = CFormat(format_name);
  const std::vector<float> in = Matrix();
  std::vector<float> inv_scales(Count(layout));
  for (size_t s = 0; s < inv_scales.size(); ++s) {
    inv_scales[s] = 0.3f + 0.1f * static_cast<float>(s % 11);
  }
  const numsim_random_t random = {words, 21, 22, 23};
  std::vector<Code> codes(kElements);
  ASSERT_EQ(numsim_quantize(in.data(),
                            kRows,
                            kCols,
                            &layout,
                            inv_scales.data(),
                            &format,
                            &rounding.c,
                            &random,
                            transpose,
                            codes.data(),
                            sizeof(Code)),
            NUMSIM_OK);
  std::vector<float> values(kElements);
  ASSERT_EQ(numsim_dequantize(&format,
                              codes.data(),
                              sizeof(Code),
                              kRows,
                              kCols,
                              &layout,
                              inv_scales.data(),
                              values.data()),
            NUMSIM_OK);
  for (size_t i = 0; i < kElements; ++i) {
    const size_t row = i / kCols, col = i % kCols;
    const float scale = inv_scales[ScaleOf(layout, row, col)];
    const float product = in[i] * scale;
    uint32_t r = 0, code = 0, bits = 0;
    if (words != nullptr) {
      r = words[i];
    } else {
      numsim_random_bits(21, 22, 23 + i, rounding.rounding.random_bits, &r);
    }
    numsim_encode_f32(std::bit_cast<uint32_t>(product), &format, &rounding.c, r, &code, nullptr);
    ASSERT_EQ(codes[transpose ? col * kRows + row : i], code) << i;
    numsim_decode_f32(&format, codes[i], &bits);
    const float value = std::bit_cast<float>(bits) * scale;
    ASSERT_EQ(std::isnan(values[i]), std::isnan(value));
    if (!std::isnan(value)) {
      ASSERT_EQ(values[i], value) << i;
    }
  }
}

TEST(CMatrix, QuantizeIsTheCodeOfEachProduct) {
  std::vector<uint32_t> words(kElements);
  for (size_t i = 0; i < kElements; ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
  for (const numsim_scale_layout_t& layout : kLayouts) {
    for (const BothRoundings& rounding : Roundings()) {
      SCOPED_TRACE(::testing::Message() << layout.granularity << " mode " << rounding.c.mode);
      const bool stochastic = rounding.rounding.mode == RoundingMode::kStochastic;
      for (const bool transpose : {false, true}) {
        ExpectQuantized<uint8_t>(layout, "e4m3fn", rounding, nullptr, transpose);
        ExpectQuantized<uint16_t>(layout, "int8", rounding, nullptr, transpose);
        ExpectQuantized<uint16_t>(layout, "bf16", rounding, nullptr, transpose);
        ExpectQuantized<uint32_t>(layout, "tf32", rounding, nullptr, transpose);
        if (stochastic) {
          ExpectQuantized<uint8_t>(layout, "e4m3fn", rounding, words.data(), transpose);
          ExpectQuantized<uint32_t>(layout, "e2m1fn", rounding, words.data(), transpose);
        }
      }
      if (HasFailure()) return;
    }
  }
}

TEST(CMatrix, EmptyMatricesAreFine) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  for (const numsim_scale_layout_t& layout : kLayouts) {
    for (const size_t rows : {size_t{0}, size_t{3}}) {
      const size_t cols = rows == 0 ? 3 : 0;
      float scales[3] = {7.0f, 7.0f, 7.0f};
      EXPECT_EQ(numsim_quantize(
                    nullptr, rows, cols, &layout, scales, &e4m3fn, nullptr, nullptr, 0, nullptr, 1),
                NUMSIM_OK);
      EXPECT_EQ(numsim_dequantize(&e4m3fn, nullptr, 1, rows, cols, &layout, scales, nullptr),
                NUMSIM_OK);
      EXPECT_EQ(numsim_absmax(nullptr, rows, cols, &layout, scales), NUMSIM_OK);
    }
  }
}

// Calls test(profile name, source type, target) for every conversion that a profile defines.
template <typename Test>
void ForEachConversion(const Test& test) {
  for (size_t i = 0; i < numsim_profile_count(); ++i) {
    const char* profile = numsim_profile_name(i);
    for (const SourceType source : {SourceType::kFloat32, SourceType::kFloat64}) {
      for (const std::string& target : ProfileTargets(profile, source)) {
        SCOPED_TRACE(::testing::Message()
                     << profile << " " << static_cast<int>(source) << " " << target);
        test(profile, source, target);
      }
    }
  }
}

TEST(CProfile, NamesAreThoseOfTheTable) {
  ASSERT_EQ(numsim_profile_count(), ProfileTable().size());
  ASSERT_GT(numsim_profile_count(), 0u);
  for (size_t i = 0; i < numsim_profile_count(); ++i) {
    EXPECT_EQ(numsim_profile_name(i), ProfileTable()[i].name);
  }
  EXPECT_EQ(numsim_profile_name(numsim_profile_count()), nullptr);
}

TEST(CProfile, EncodesAsTheLibrary) {
  ForEachConversion([](const char* profile, SourceType source, const std::string& target) {
    const numsim_format_t to = CFormat(target);
    const ProfileConversion conversion(profile, source, ParseFormat(target));
    const bool is_double = source == SourceType::kFloat64;
    int bits = -1;
    ASSERT_EQ(numsim_profile_random_bits(profile, static_cast<int>(source), &to, &bits, nullptr, 0),
              NUMSIM_OK);
    ASSERT_EQ(bits, conversion.random_bits());
    const std::vector<float> in = Matrix();
    const std::vector<double> wide(in.begin(), in.end());
    numsim_format_info_t info;
    ASSERT_EQ(numsim_format_info(&to, &info), NUMSIM_OK);
    std::vector<uint32_t> codes(kElements, ~0u);
    const numsim_random_t random = {nullptr, 1, 2, 3};
    const void* source_data = is_double ? static_cast<const void*>(wide.data()) : in.data();
    ASSERT_EQ(numsim_profile_encode_array(profile,
                                          static_cast<int>(source),
                                          source_data,
                                          kElements,
                                          &to,
                                          &random,
                                          codes.data(),
                                          4,
                                          nullptr,
                                          0),
              NUMSIM_OK);
    for (size_t i = 0; i < kElements; i += 5) {  // 5 and 80, what is not finite, are among them
      const uint64_t value =
          is_double ? std::bit_cast<uint64_t>(wide[i]) : std::bit_cast<uint32_t>(in[i]);
      uint32_t r = 0, code = ~0u;
      if (bits != 0) numsim_random_bits(1, 2, 3 + i, bits, &r);
      ASSERT_EQ(numsim_profile_encode(
                    profile, static_cast<int>(source), value, &to, r, &code, nullptr, 0),
                NUMSIM_OK);
      ASSERT_EQ(code, conversion.Encode(value, r)) << i;
      ASSERT_EQ(codes[i], code) << i;
    }
  });
}

TEST(CProfile, TakesWordsOfTheCaller) {
  ForEachConversion([](const char* profile, SourceType source, const std::string& target) {
    if (source != SourceType::kFloat32) return;
    const numsim_format_t to = CFormat(target);
    const ProfileConversion conversion(profile, source, ParseFormat(target));
    const std::vector<float> in(64, 0.78f);
    std::vector<uint32_t> words(in.size()), codes(in.size());
    for (size_t i = 0; i < words.size(); ++i) words[i] = static_cast<uint32_t>(i * 2654435761u);
    const numsim_random_t random = {words.data(), 0, 0, 0};
    ASSERT_EQ(numsim_profile_encode_array(profile,
                                          NUMSIM_FLOAT32,
                                          in.data(),
                                          in.size(),
                                          &to,
                                          &random,
                                          codes.data(),
                                          4,
                                          nullptr,
                                          0),
              NUMSIM_OK);
    for (size_t i = 0; i < in.size(); ++i) {
      const uint32_t r = conversion.random_bits() == 0 ? 0 : words[i];
      ASSERT_EQ(codes[i], conversion.Encode(std::bit_cast<uint32_t>(in[i]), r));
    }
  });
}

}  // namespace
}  // namespace numsim::capi_test
