// Tables of values, integers and flushed subnormals in the C interface.
#include <cmath>
#include <vector>

#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

TEST(CTables, AreEncodedDecodedAndNamed) {
  const numsim_format_t nf4 = CFormat("nf4");
  const float in[] = {-1, 0.1f, 0.9f, 3};
  uint8_t codes[4] = {};
  float values[4] = {};
  ASSERT_EQ(numsim_encode_array_f32(in, 4, &nf4, nullptr, nullptr, codes, 1), NUMSIM_OK);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 4), (std::vector<uint8_t>{0, 8, 15, 15}));
  ASSERT_EQ(numsim_decode_array_f32(&nf4, codes, 1, 4, values), NUMSIM_OK);
  EXPECT_EQ(values[1], 0.07958029955625534f);
  char text[128];
  ASSERT_EQ(numsim_format_text(&nf4, text, sizeof text), NUMSIM_OK);
  EXPECT_STREQ(text, "nf4");
  numsim_format_info_t info = {};
  ASSERT_EQ(numsim_format_info(&nf4, &info), NUMSIM_OK);
  EXPECT_EQ(info.bits, 4);
  EXPECT_EQ(info.max_finite_code, 15u);
  EXPECT_EQ(info.min_normal_bits, 0u);
  uint32_t bits = 0;
  EXPECT_EQ(numsim_decode_f32(&nf4, 7, &bits), NUMSIM_OK);
  EXPECT_EQ(bits, 0u);
}

TEST(CTables, AreQuantisedInBlocks) {
  const numsim_format_t nf4 = CFormat("nf4");
  const numsim_scale_layout_t blocks = {NUMSIM_SCALE_BLOCK, 0, 2};
  const float in[] = {4, -1, 0.5f, 0.25f}, absmax[] = {4, 0.5f};
  float scales[2] = {}, inv_scales[2] = {}, out[4] = {};
  uint8_t codes[4] = {};
  ASSERT_EQ(numsim_make_scales(&nf4, absmax, 2, NUMSIM_SCALE_RULE_ABSMAX, scales, inv_scales),
            NUMSIM_OK);
  EXPECT_EQ(scales[0], 4);
  ASSERT_EQ(numsim_quantize(in, 1, 4, &blocks, inv_scales, &nf4, nullptr, nullptr, 0, codes, 1),
            NUMSIM_OK);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 4), (std::vector<uint8_t>{15, 4, 15, 12}));
  ASSERT_EQ(numsim_dequantize(&nf4, codes, 1, 1, 4, &blocks, scales, out), NUMSIM_OK);
  EXPECT_EQ(out[0], 4);
  EXPECT_EQ(out[3], 0.44070982933044434f * 0.5f);
}

TEST(CTables, AreBadFormatsElsewhere) {
  const numsim_format_t nf4 = CFormat("nf4"), fp32 = CFormat("fp32");
  uint32_t code = 0;
  EXPECT_EQ(numsim_add(&nf4, 1, &nf4, 2, &fp32, nullptr, 0, &code, nullptr),
            NUMSIM_ERROR_BAD_FORMAT);
  numsim_format_t other = nf4;
  other.table = 250;
  EXPECT_EQ(numsim_decode_f32(&other, 0, &code), NUMSIM_ERROR_BAD_FORMAT);
  other = nf4;
  other.mantissa_bits = 5;
  EXPECT_EQ(numsim_decode_f32(&other, 0, &code), NUMSIM_ERROR_BAD_FORMAT);
  char message[200];
  EXPECT_EQ(numsim_format_by_name("table:/none", &other, message, sizeof message),
            NUMSIM_ERROR_UNKNOWN_FORMAT);
  EXPECT_NE(std::string(message).find("/none"), std::string::npos);
}

TEST(CFixedPoint, HasAllCodesOfItsRange) {
  for (const char* const name :
       {"int4", "int4:range=symmetric", "fixed4.4", "uint8", "int12", "e4m3fn:subnormals=flush"}) {
    const numsim_format_t format = CFormat(name);
    numsim_format_info_t info = {};
    ASSERT_EQ(numsim_format_info(&format, &info), NUMSIM_OK) << name;
    char text[128];
    ASSERT_EQ(numsim_format_text(&format, text, sizeof text), NUMSIM_OK);
    EXPECT_TRUE(ParseFormat(text).spec == ParseFormat(name).spec) << text;
  }
  const numsim_format_t int4 = CFormat("int4");
  const float in[] = {-9, -7.5f, -0.4f, 7.6f, INFINITY, -INFINITY};
  uint8_t codes[6] = {};
  ASSERT_EQ(numsim_encode_array_f32(in, 6, &int4, nullptr, nullptr, codes, 1), NUMSIM_OK);
  EXPECT_EQ(std::vector<uint8_t>(codes, codes + 6), (std::vector<uint8_t>{8, 8, 0, 7, 7, 8}));
}

}  // namespace
}  // namespace numsim::capi_test
