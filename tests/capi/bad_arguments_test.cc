// No argument makes the C interface throw, abort or write where it should not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

using ::testing::HasSubstr;

class CBadArguments : public ::testing::Test {
 protected:
  // The status of calls that must leave everything alone.
  numsim_status_t Encode(const numsim_format_t* format, const numsim_rounding_t* rounding) {
    uint32_t code = 0xC0DE;
    uint8_t flags = 0x77;
    const numsim_status_t status =
        numsim_encode_f32(0x3F800000u, format, rounding, 0, &code, &flags);
    if (status != NUMSIM_OK) {
      EXPECT_EQ(code, 0xC0DEu);
      EXPECT_EQ(flags, 0x77);
    }
    return status;
  }
  numsim_status_t EncodeArray(const float* in,
                              size_t n,
                              const numsim_rounding_t* rounding,
                              const numsim_random_t* random,
                              void* codes,
                              int bytes) {
    return numsim_encode_array_f32(in, n, &e4m3fn_, rounding, random, codes, bytes);
  }

  static constexpr numsim_status_t kBad = NUMSIM_ERROR_BAD_ARGUMENT;
  numsim_format_t e4m3fn_ = CFormat("e4m3fn");
  numsim_format_t bf16_ = CFormat("bf16");
  numsim_rounding_t rounding_ = numsim_rounding_default();
  float floats_[8] = {};
  uint8_t codes_[8] = {};
};

TEST_F(CBadArguments, EveryStatusHasItsOwnText) {
  std::vector<std::string> texts;
  for (int status = NUMSIM_OK; status <= NUMSIM_ERROR_ACCUMULATOR_OPERANDS; ++status) {
    const std::string text = numsim_status_text(status);
    EXPECT_NE(text, "unknown status") << status;
    EXPECT_EQ(std::count(texts.begin(), texts.end(), text), 0) << text;
    texts.push_back(text);
  }
  for (const int status : {-1, NUMSIM_ERROR_ACCUMULATOR_OPERANDS + 1, 1 << 30}) {
    EXPECT_STREQ(numsim_status_text(status), "unknown status");
  }
}

TEST_F(CBadArguments, UnknownFormatSaysWhy) {
  numsim_format_t format;
  std::memset(&format, 0x5A, sizeof format);
  const numsim_format_t before = format;
  char message[200];
  for (const char* name : {"",
                           ":",
                           "e",
                           "e4m3fn:",
                           "e9m1",
                           "e4m3:bias=1000000000000",
                           "e5m2 ",
                           "e4m3:inf=ieee,nan=none",
                           "\xFF\xFE",
                           "E4M3FM",
                           "e1m0:inf=none,nan=none,"}) {
    message[0] = '\0';
    EXPECT_EQ(numsim_format_by_name(name, &format, message, sizeof message),
              NUMSIM_ERROR_UNKNOWN_FORMAT)
        << name;
    EXPECT_NE(message[0], '\0') << name;
    EXPECT_EQ(std::memcmp(&format, &before, sizeof format), 0);
  }
  const std::string large(100000, 'x');
  EXPECT_EQ(numsim_format_by_name(large.c_str(), &format, message, sizeof message),
            NUMSIM_ERROR_UNKNOWN_FORMAT);
  EXPECT_EQ(std::strlen(message), sizeof message - 1);
}

TEST_F(CBadArguments, MessageStaysInItsBuffer) {
  numsim_format_t format;
  for (size_t size = 0; size < 40; ++size) {
    std::vector<char> message(60, '#');
    EXPECT_EQ(numsim_format_by_name("nothing", &format, message.data(), size),
              NUMSIM_ERROR_UNKNOWN_FORMAT);
    for (size_t i = size; i < message.size(); ++i) ASSERT_EQ(message[i], '#') << size;
    if (size > 0) {
      EXPECT_LT(std::strlen(message.data()), size);
    }
  }
  EXPECT_EQ(numsim_format_by_name("nothing", &format, nullptr, 100), NUMSIM_ERROR_UNKNOWN_FORMAT);
  char message[10] = "before";
  EXPECT_EQ(numsim_format_by_name("e5m2", &format, message, sizeof message), NUMSIM_OK);
  EXPECT_STREQ(message, "");
}

TEST_F(CBadArguments, FormatTextNeedsRoomForAllOfIt) {
  char text[16] = "before";
  EXPECT_EQ(numsim_format_text(&e4m3fn_, text, 6), kBad);
  EXPECT_STREQ(text, "before");
  EXPECT_EQ(numsim_format_text(&e4m3fn_, text, 7), NUMSIM_OK);
  EXPECT_STREQ(text, "e4m3fn");
  EXPECT_EQ(numsim_format_text(&e4m3fn_, text, 0), kBad);
}

TEST_F(CBadArguments, NullPointers) {
  uint32_t code = 0, bits = 0;
  uint64_t wide = 0;
  int relation = 0;
  size_t count = 0;
  const numsim_format_t* f = &e4m3fn_;
  const numsim_scale_layout_t row = {NUMSIM_SCALE_ROW, 0, 0};
  EXPECT_EQ(numsim_format_by_name(nullptr, &e4m3fn_, nullptr, 0), kBad);
  EXPECT_EQ(numsim_format_by_name("e5m2", nullptr, nullptr, 0), kBad);
  EXPECT_EQ(numsim_format_text(nullptr, nullptr, 9), kBad);
  EXPECT_EQ(numsim_format_info(nullptr, nullptr), kBad);
  EXPECT_EQ(numsim_format_info(f, nullptr), kBad);
  EXPECT_EQ(numsim_encode_f32(0, nullptr, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_encode_f32(0, f, nullptr, 0, nullptr, nullptr), kBad);
  EXPECT_EQ(numsim_encode_f64(0, nullptr, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_encode_f64(0, f, nullptr, 0, nullptr, nullptr), kBad);
  EXPECT_EQ(numsim_decode_f32(nullptr, 0, &bits), kBad);
  EXPECT_EQ(numsim_decode_f32(f, 0, nullptr), kBad);
  EXPECT_EQ(numsim_decode_f64(nullptr, 0, &wide), kBad);
  EXPECT_EQ(numsim_decode_f64(f, 0, nullptr), kBad);
  EXPECT_EQ(numsim_random_bits(0, 0, 0, 8, nullptr), kBad);
  for (const auto function :
       {numsim_add, numsim_subtract, numsim_multiply, numsim_divide, numsim_remainder}) {
    EXPECT_EQ(function(nullptr, 0, f, 0, f, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(function(f, 0, nullptr, 0, f, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(function(f, 0, f, 0, nullptr, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(function(f, 0, f, 0, f, nullptr, 0, nullptr, nullptr), kBad);
  }
  for (const auto function : {numsim_sqrt, numsim_convert}) {
    EXPECT_EQ(function(nullptr, 0, f, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(function(f, 0, nullptr, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(function(f, 0, f, nullptr, 0, nullptr, nullptr), kBad);
  }
  EXPECT_EQ(numsim_elementary(NUMSIM_EXP, nullptr, 0, f, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_elementary(NUMSIM_EXP, f, 0, nullptr, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_elementary(NUMSIM_EXP, f, 0, f, nullptr, 0, nullptr, nullptr), kBad);
  for (const int function : {-1, NUMSIM_ATANH + 1, INT32_MAX}) {
    EXPECT_EQ(numsim_elementary(function, f, 0, f, nullptr, 0, &code, nullptr), kBad);
    const numsim_codes_t a = {e4m3fn_, codes_, 1, 0};
    EXPECT_EQ(
        numsim_elementary_array(function, &a, 1, f, nullptr, nullptr, &code, 1, nullptr, nullptr),
        kBad);
  }
  EXPECT_EQ(numsim_elementary_array(
                NUMSIM_EXP, nullptr, 1, f, nullptr, nullptr, &code, 1, nullptr, nullptr),
            kBad);
  EXPECT_EQ(numsim_scale(nullptr, 0, 1, f, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_fma(f, 0, f, 0, nullptr, 0, f, nullptr, 0, &code, nullptr), kBad);
  EXPECT_EQ(numsim_extremum(0, f, 0, f, 0, f, nullptr, 0, nullptr, nullptr), kBad);
  EXPECT_EQ(numsim_compare(f, 0, f, 0, nullptr), kBad);
  EXPECT_EQ(numsim_compare(nullptr, 0, f, 0, &relation), kBad);
  EXPECT_EQ(numsim_scale_count(&row, 1, 1, nullptr), kBad);
  EXPECT_EQ(numsim_scale_count(nullptr, 1, 1, &count), kBad);
  EXPECT_EQ(numsim_absmax(nullptr, 1, 1, &row, floats_), kBad);
  EXPECT_EQ(numsim_absmax(floats_, 1, 1, &row, nullptr), kBad);
  EXPECT_EQ(numsim_absmax(floats_, 1, 1, nullptr, floats_ + 4), kBad);
}

TEST_F(CBadArguments, NullPointersInArrays) {
  const numsim_format_t* f = &e4m3fn_;
  const numsim_scale_layout_t row = {NUMSIM_SCALE_ROW, 0, 0};
  const numsim_codes_t a = {e4m3fn_, codes_, 1, 0}, none = {e4m3fn_, nullptr, 1, 0};
  uint8_t out[4];
  EXPECT_EQ(EncodeArray(nullptr, 4, nullptr, nullptr, codes_, 1), kBad);
  EXPECT_EQ(EncodeArray(floats_, 4, nullptr, nullptr, nullptr, 1), kBad);
  EXPECT_EQ(EncodeArray(nullptr, 0, nullptr, nullptr, nullptr, 1), NUMSIM_OK);
  EXPECT_EQ(numsim_encode_array_f64(nullptr, 4, f, nullptr, nullptr, codes_, 1), kBad);
  EXPECT_EQ(numsim_decode_array_f32(f, nullptr, 1, 4, floats_), kBad);
  EXPECT_EQ(numsim_decode_array_f32(f, codes_, 1, 4, nullptr), kBad);
  EXPECT_EQ(numsim_decode_array_f32(nullptr, codes_, 1, 4, floats_), kBad);
  EXPECT_EQ(numsim_decode_array_f32(f, nullptr, 1, 0, nullptr), NUMSIM_OK);
  const auto add = [&](const numsim_codes_t* x,
                       const numsim_codes_t* y,
                       const numsim_codes_t* z,
                       void* to,
                       size_t n) {
    return numsim_arithmetic_array(
        NUMSIM_OPERATION_ADD, x, y, z, n, f, nullptr, nullptr, to, 1, nullptr, nullptr);
  };
  EXPECT_EQ(add(nullptr, &a, nullptr, out, 4), kBad);
  EXPECT_EQ(add(&a, nullptr, nullptr, out, 4), kBad);
  EXPECT_EQ(add(&a, &a, &a, out, 4), kBad);  // an operand too many
  EXPECT_EQ(add(&a, &none, nullptr, out, 4), kBad);
  EXPECT_EQ(add(&a, &a, nullptr, nullptr, 4), kBad);
  EXPECT_EQ(add(&none, &none, nullptr, nullptr, 0), NUMSIM_OK);
  EXPECT_EQ(add(&a, &a, nullptr, out, 4), NUMSIM_OK);
  const auto quantize = [&](const float* in,
                            const float* inv_scales,
                            const numsim_scale_layout_t* layout,
                            void* codes) {
    return numsim_quantize(in, 2, 2, layout, inv_scales, f, nullptr, nullptr, 0, codes, 1);
  };
  EXPECT_EQ(quantize(nullptr, floats_ + 4, &row, codes_), kBad);
  EXPECT_EQ(quantize(floats_, nullptr, &row, codes_), kBad);
  EXPECT_EQ(quantize(floats_, floats_ + 4, nullptr, codes_), kBad);
  EXPECT_EQ(quantize(floats_, floats_ + 4, &row, nullptr), kBad);
  EXPECT_EQ(quantize(floats_, floats_ + 4, &row, codes_), NUMSIM_OK);
  EXPECT_EQ(numsim_dequantize(f, codes_, 1, 2, 2, &row, nullptr, floats_), kBad);
  EXPECT_EQ(numsim_dequantize(f, codes_, 1, 2, 2, &row, floats_ + 4, nullptr), kBad);
}

TEST_F(CBadArguments, RoundingOutOfRange) {
  const auto expect_bad = [this](int32_t numsim_rounding_t::*field, int32_t value) {
    numsim_rounding_t rounding = rounding_;
    rounding.mode = NUMSIM_ROUND_STOCHASTIC;
    rounding.*field = value;
    EXPECT_EQ(Encode(&e4m3fn_, &rounding), NUMSIM_ERROR_BAD_ROUNDING) << value;
  };
  int32_t beyond_modes = 0;
  while (IsRoundingMode(beyond_modes)) ++beyond_modes;
  for (const int32_t value : {beyond_modes, -1, 256, INT32_MIN, INT32_MAX}) {
    expect_bad(&numsim_rounding_t::mode, value);
  }
  for (const int32_t value : {-1, 7, 256, INT32_MIN, INT32_MAX}) {
    expect_bad(&numsim_rounding_t::variant, value);
    expect_bad(&numsim_rounding_t::overflow, value);
    expect_bad(&numsim_rounding_t::tininess, value);
  }
  for (const int32_t bits : {0, 33, -1, INT32_MIN, INT32_MAX}) {
    expect_bad(&numsim_rounding_t::random_bits, bits);
  }
  expect_bad(&numsim_rounding_t::overflow, 3);
  expect_bad(&numsim_rounding_t::tininess, 2);
  for (int32_t& reserved : rounding_.reserved) {
    reserved = 1;
    EXPECT_EQ(Encode(&e4m3fn_, &rounding_), NUMSIM_ERROR_BAD_ROUNDING);
    reserved = 0;
  }
  EXPECT_EQ(Encode(&e4m3fn_, &rounding_), NUMSIM_OK);
  // Not read in other modes.
  const numsim_rounding_t zero = {};
  EXPECT_EQ(Encode(&e4m3fn_, &zero), NUMSIM_OK);
}

TEST_F(CBadArguments, FormatsThatNoTextNames) {
  const auto expect_bad = [this](auto change) {
    numsim_format_t format = e4m3fn_;
    change(format);
    EXPECT_EQ(Encode(&format, nullptr), NUMSIM_ERROR_BAD_FORMAT);
    uint32_t code = 0;
    EXPECT_EQ(numsim_add(&format, 0, &e4m3fn_, 0, &e4m3fn_, nullptr, 0, &code, nullptr),
              NUMSIM_ERROR_BAD_FORMAT);
  };
  for (const int value : {-128, -1, 0, 9, 127}) {
    expect_bad([=](auto& f) { f.exponent_bits = static_cast<int8_t>(value); });
  }
  for (const int value : {-128, -1, 24, 127}) {
    expect_bad([=](auto& f) { f.mantissa_bits = static_cast<int8_t>(value); });
  }
  for (const int value : {-32768, -513, 513, 32767}) {
    expect_bad([=](auto& f) { f.bias = static_cast<int16_t>(value); });
  }
  for (const int value : {4, 99, 255}) {
    expect_bad([=](auto& f) { f.sign = static_cast<uint8_t>(value); });
    expect_bad([=](auto& f) { f.zero = static_cast<uint8_t>(value); });
    expect_bad([=](auto& f) { f.infinity = static_cast<uint8_t>(value); });
    expect_bad([=](auto& f) { f.nan = static_cast<uint8_t>(value); });
    expect_bad([=](auto& f) { f.overflow_to = static_cast<uint8_t>(value); });
  }
  for (const int value : {-128, -1, 1, 2, 127}) {
    expect_bad([=](auto& f) { f.subnormal_shift = static_cast<int8_t>(value); });
  }
  for (int i = 0; i < 3; ++i) expect_bad([=](auto& f) { f.reserved[i] = 1; });
  expect_bad([](auto& f) { f.full_range = 1; });
  expect_bad([](auto& f) { f.full_range = 2; });
  expect_bad([](auto& f) { f.flush_subnormals = 2; });
  expect_bad([](auto& f) { f.table = 255; });
  expect_bad([](auto& f) { f = {}; });
  expect_bad([](auto& f) { std::memset(&f, 0xFF, sizeof f); });
}

TEST_F(CBadArguments, CodesAboveTheWidth) {
  const numsim_format_t e2m1fn = CFormat("e2m1fn");
  uint32_t code = 0, bits = 0;
  uint64_t wide = 0;
  int relation = 0;
  EXPECT_EQ(numsim_decode_f32(&e2m1fn, 16, &bits), NUMSIM_ERROR_BAD_CODE);
  EXPECT_EQ(numsim_decode_f64(&e2m1fn, ~0u, &wide), NUMSIM_ERROR_BAD_CODE);
  EXPECT_EQ(numsim_add(&e2m1fn, 16, &e2m1fn, 0, &e2m1fn, nullptr, 0, &code, nullptr),
            NUMSIM_ERROR_BAD_CODE);
  EXPECT_EQ(numsim_add(&e2m1fn, 0, &e2m1fn, 16, &e2m1fn, nullptr, 0, &code, nullptr),
            NUMSIM_ERROR_BAD_CODE);
  EXPECT_EQ(numsim_fma(&e2m1fn, 0, &e2m1fn, 0, &e2m1fn, 16, &e2m1fn, nullptr, 0, &code, nullptr),
            NUMSIM_ERROR_BAD_CODE);
  EXPECT_EQ(numsim_compare(&e2m1fn, 16, &e2m1fn, 0, &relation), NUMSIM_ERROR_BAD_CODE);
}

TEST_F(CBadArguments, EnumeratorsAndCountsOutOfRange) {
  const numsim_format_t* f = &e4m3fn_;
  uint32_t code = 0;
  const numsim_codes_t a = {e4m3fn_, codes_, 1, 0};
  uint8_t out[8];
  for (const int value : {-1, 10, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(numsim_extremum(value, f, 0, f, 0, f, nullptr, 0, &code, nullptr), kBad);
    EXPECT_EQ(numsim_arithmetic_array(
                  value, &a, &a, nullptr, 8, f, nullptr, nullptr, out, 1, nullptr, nullptr),
              kBad);
    EXPECT_EQ(numsim_profile_encode("ml-dtypes", value, 0, f, 0, &code, nullptr, 0), kBad);
  }
  for (const int bits : {0, 33, -1, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(numsim_random_bits(0, 0, 0, bits, &code), kBad);
  }
  for (const int bytes : {0, -1, 3, 5, 8, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(EncodeArray(floats_, 8, nullptr, nullptr, out, bytes), kBad);
    EXPECT_EQ(numsim_decode_array_f32(f, codes_, bytes, 1, floats_), kBad);
    const numsim_codes_t wrong = {e4m3fn_, codes_, bytes, 0};
    EXPECT_EQ(numsim_arithmetic_array(NUMSIM_OPERATION_SQRT,
                                      &wrong,
                                      nullptr,
                                      nullptr,
                                      1,
                                      f,
                                      nullptr,
                                      nullptr,
                                      out,
                                      1,
                                      nullptr,
                                      nullptr),
              kBad);
  }
  // Too narrow for the format.
  EXPECT_EQ(numsim_encode_array_f32(floats_, 8, &bf16_, nullptr, nullptr, out, 1), kBad);
  EXPECT_EQ(numsim_decode_array_f32(&bf16_, codes_, 1, 8, floats_), kBad);
}

TEST_F(CBadArguments, LayoutsAndShapes) {
  size_t count = 0;
  const auto status = [&](int granularity, uint64_t block, size_t rows, size_t cols) {
    const numsim_scale_layout_t layout = {granularity, 0, block};
    return numsim_scale_count(&layout, rows, cols, &count);
  };
  for (const int granularity : {-1, 4, INT32_MIN, INT32_MAX}) {
    EXPECT_EQ(status(granularity, 1, 1, 1), kBad);
  }
  EXPECT_EQ(status(NUMSIM_SCALE_BLOCK, 0, 1, 1), kBad);
  EXPECT_EQ(status(NUMSIM_SCALE_ROW, 0, SIZE_MAX, 2), kBad);
  EXPECT_EQ(status(NUMSIM_SCALE_ROW, 0, size_t{1} << 33, size_t{1} << 33), kBad);
  const numsim_scale_layout_t reserved = {NUMSIM_SCALE_ROW, 1, 0}, row = {NUMSIM_SCALE_ROW, 0, 0};
  EXPECT_EQ(numsim_scale_count(&reserved, 1, 1, &count), kBad);
  // More bytes than memory has.
  EXPECT_EQ(EncodeArray(floats_, SIZE_MAX, nullptr, nullptr, codes_, 1), kBad);
  EXPECT_EQ(EncodeArray(floats_, SIZE_MAX / 4, nullptr, nullptr, codes_, 1), kBad);
  EXPECT_EQ(numsim_absmax(floats_, size_t{1} << 62, 1, &row, floats_), kBad);
  EXPECT_EQ(numsim_absmax(nullptr, SIZE_MAX, 0, &row, floats_), kBad);
}

TEST_F(CBadArguments, MisalignedArrays) {
  alignas(8) uint8_t bytes[64] = {};
  EXPECT_EQ(EncodeArray(reinterpret_cast<const float*>(bytes + 2), 1, nullptr, nullptr, codes_, 1),
            kBad);
  EXPECT_EQ(EncodeArray(floats_, 1, nullptr, nullptr, bytes + 1, 2), kBad);
  EXPECT_EQ(EncodeArray(floats_, 1, nullptr, nullptr, bytes + 2, 4), kBad);
  EXPECT_EQ(numsim_decode_array_f32(&bf16_, bytes + 1, 2, 1, floats_), kBad);
}

TEST_F(CBadArguments, StochasticArraysNeedRandomBits) {
  uint8_t out[8];
  rounding_.mode = NUMSIM_ROUND_STOCHASTIC;
  EXPECT_EQ(EncodeArray(floats_, 8, &rounding_, nullptr, out, 1), kBad);
  numsim_random_t random = {nullptr, 0, 0, UINT64_MAX - 8};
  EXPECT_EQ(EncodeArray(floats_, 8, &rounding_, &random, out, 1), NUMSIM_OK);
  random.first_index = UINT64_MAX - 7;
  EXPECT_EQ(EncodeArray(floats_, 8, &rounding_, &random, out, 1), kBad);
  alignas(4) uint8_t words[64] = {};
  random = {reinterpret_cast<const uint32_t*>(words + 1), 0, 0, 0};
  EXPECT_EQ(EncodeArray(floats_, 8, &rounding_, &random, out, 1), kBad);
}

TEST_F(CBadArguments, OverlappingArrays) {
  alignas(8) uint8_t memory[64] = {};
  const auto* in = reinterpret_cast<const float*>(memory + 16);
  const auto overlap = NUMSIM_ERROR_OVERLAP;
  for (const int at : {13, 16, 31}) {
    EXPECT_EQ(EncodeArray(in, 4, nullptr, nullptr, memory + at, 1), overlap) << at;
  }
  EXPECT_EQ(EncodeArray(in, 4, nullptr, nullptr, memory + 12, 1), NUMSIM_OK);
  EXPECT_EQ(EncodeArray(in, 4, nullptr, nullptr, memory + 32, 1), NUMSIM_OK);
  auto* out = reinterpret_cast<float*>(memory + 16);
  EXPECT_EQ(numsim_decode_array_f32(&e4m3fn_, memory + 31, 1, 4, out), overlap);
  rounding_.mode = NUMSIM_ROUND_STOCHASTIC;
  const numsim_random_t random = {reinterpret_cast<const uint32_t*>(memory), 0, 0, 0};
  EXPECT_EQ(EncodeArray(floats_, 4, &rounding_, &random, memory + 15, 1), overlap);

  const numsim_codes_t a = {e4m3fn_, memory, 1, 0}, b = {e4m3fn_, memory + 4, 1, 0};
  const auto add = [&](void* to, int to_bytes, uint8_t* flags) {
    return numsim_arithmetic_array(NUMSIM_OPERATION_ADD,
                                   &a,
                                   &b,
                                   nullptr,
                                   4,
                                   &e4m3fn_,
                                   nullptr,
                                   nullptr,
                                   to,
                                   to_bytes,
                                   flags,
                                   nullptr);
  };
  EXPECT_EQ(add(memory, 1, nullptr), NUMSIM_OK);  // in place
  EXPECT_EQ(add(memory + 4, 1, nullptr), NUMSIM_OK);
  EXPECT_EQ(add(memory + 1, 1, nullptr), overlap);
  EXPECT_EQ(add(memory, 2, nullptr), overlap);
  // The same place in another width is no replacement.
  EXPECT_EQ(numsim_arithmetic_array(NUMSIM_OPERATION_SQRT,
                                    &a,
                                    nullptr,
                                    nullptr,
                                    4,
                                    &e4m3fn_,
                                    nullptr,
                                    nullptr,
                                    memory,
                                    2,
                                    nullptr,
                                    nullptr),
            overlap);
  EXPECT_EQ(add(memory + 16, 1, memory + 3), overlap);
  EXPECT_EQ(add(memory + 16, 1, memory + 19), overlap);
  EXPECT_EQ(add(memory + 16, 1, memory + 20), NUMSIM_OK);

  const numsim_scale_layout_t row = {NUMSIM_SCALE_ROW, 0, 0};
  EXPECT_EQ(numsim_absmax(out, 2, 2, &row, out + 3), overlap);
  EXPECT_EQ(
      numsim_quantize(floats_, 2, 2, &row, out, &e4m3fn_, nullptr, nullptr, 0, memory + 20, 1),
      overlap);
  EXPECT_EQ(numsim_dequantize(&e4m3fn_, codes_, 1, 2, 2, &row, out + 3, out), overlap);
}

TEST_F(CBadArguments, ProfilesNameWhatIsWrong) {
  char message[300];
  uint32_t code = 0xC0DE;
  const char* known = numsim_profile_name(0);
  const auto encode = [&](const char* profile, uint64_t bits, const numsim_format_t* to) {
    return numsim_profile_encode(
        profile, NUMSIM_FLOAT32, bits, to, 0, &code, message, sizeof message);
  };
  EXPECT_EQ(encode("no-such-profile", 0, &e4m3fn_), NUMSIM_ERROR_UNKNOWN_PROFILE);
  EXPECT_THAT(std::string(message), HasSubstr("no-such-profile"));
  EXPECT_EQ(encode("", 0, &e4m3fn_), NUMSIM_ERROR_UNKNOWN_PROFILE);
  const numsim_format_t custom = CFormat("e3m7:bias=5");
  EXPECT_EQ(encode(known, 0, &custom), NUMSIM_ERROR_UNSUPPORTED);
  EXPECT_THAT(std::string(message), HasSubstr(known));
  EXPECT_EQ(encode(nullptr, 0, &e4m3fn_), kBad);
  EXPECT_STREQ(message, numsim_status_text(kBad));
  EXPECT_EQ(encode(known, 0, nullptr), kBad);
  EXPECT_EQ(encode("cuda-13", uint64_t{1} << 32, &e4m3fn_), kBad);
  EXPECT_EQ(code, 0xC0DEu);
  EXPECT_EQ(numsim_profile_encode("cuda-13", 0, 0, &e4m3fn_, 0, nullptr, nullptr, 0), kBad);
  EXPECT_EQ(numsim_profile_random_bits("cuda-13", 0, &e4m3fn_, nullptr, nullptr, 0), kBad);
  const auto array = [&](const void* in, size_t n, void* codes, int bytes) {
    return numsim_profile_encode_array(
        "cuda-13", NUMSIM_FLOAT32, in, n, &e4m3fn_, nullptr, codes, bytes, message, sizeof message);
  };
  EXPECT_EQ(array(nullptr, 8, codes_, 1), kBad);
  EXPECT_EQ(array(floats_, 8, nullptr, 1), kBad);
  EXPECT_EQ(array(floats_, 8, codes_, 3), kBad);
  EXPECT_EQ(array(floats_, SIZE_MAX / 2, codes_, 1), kBad);
  EXPECT_EQ(array(floats_, 8, floats_, 1), NUMSIM_ERROR_OVERLAP);
  EXPECT_EQ(array(nullptr, 0, nullptr, 1), NUMSIM_OK);
  EXPECT_STREQ(message, "");
}

// Structs of random bytes. What matters is that every call returns, and that a call with what
// another one refused is refused too.
TEST_F(CBadArguments, RandomStructsNeverAbort) {
  std::mt19937 words(3);
  const auto scramble = [&words](auto& object, unsigned bytes) {
    uint8_t raw[sizeof object];
    std::memcpy(raw, &object, sizeof object);
    for (unsigned i = 0; i < bytes; ++i)
      raw[words() % sizeof object] = static_cast<uint8_t>(words());
    std::memcpy(&object, raw, sizeof object);
  };
  const std::vector<NamedFormat> formats = Formats();
  int accepted = 0, refused = 0;
  for (int i = 0; i < 200000; ++i) {
    numsim_format_t a = formats[words() % formats.size()].c,
                    to = formats[words() % formats.size()].c;
    numsim_rounding_t rounding = numsim_rounding_default();
    rounding.mode = static_cast<int32_t>(kRoundingModes[words() % std::size(kRoundingModes)].mode);
    scramble(a, words() % 2);
    scramble(to, words() % 2);
    scramble(rounding, words() % 2);
    const auto code = static_cast<uint32_t>(words()) >> (8 + words() % 24);
    uint32_t result = 0;
    uint8_t flags = 0;
    const int status = numsim_add(&a, code, &a, code / 2, &to, &rounding, code, &result, &flags);
    (status == NUMSIM_OK ? accepted : refused)++;
    EXPECT_EQ(numsim_convert(&a, code, &to, &rounding, code, &result, &flags) == NUMSIM_OK,
              status == NUMSIM_OK);
    EXPECT_EQ(numsim_fma(&a, code, &a, code, &a, code, &to, &rounding, code, &result, nullptr) ==
                  NUMSIM_OK,
              status == NUMSIM_OK);
    uint32_t bits = 0;
    if (status == NUMSIM_OK) {
      char text[128];
      EXPECT_EQ(numsim_decode_f32(&to, result, &bits), NUMSIM_OK);
      EXPECT_EQ(numsim_encode_f64(code, &to, &rounding, code, &result, &flags), NUMSIM_OK);
      ASSERT_EQ(numsim_format_text(&to, text, sizeof text), NUMSIM_OK);
      // An accepted value has a name that leads back to it.
      const numsim_format_t again = CFormat(text);
      EXPECT_EQ(std::memcmp(&again, &to, sizeof to), 0) << text;
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(accepted, 10000);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace numsim::capi_test
