// Names of formats through the C interface.
#include <bit>
#include <cmath>

#include "tests/capi/capi_fixture.h"
#include "tests/support/format_names.h"

namespace numsim::capi_test {
namespace {

float ValueOfCode(const numsim_format_t& format, uint32_t code) {
  uint32_t bits = 0;
  EXPECT_EQ(numsim_decode_f32(&format, code, &bits), NUMSIM_OK);
  return std::bit_cast<float>(bits);
}

TEST(CFormatNames, MeanWhatTheirSourcesMean) {
  for (const NameRow& row : ReadNameRows()) {
    SCOPED_TRACE(row.source + " " + row.name);
    numsim_format_t format = {};
    char message[256] = "";
    ASSERT_EQ(numsim_format_by_name(row.name.c_str(), &format, message, sizeof message), NUMSIM_OK)
        << message;
    EXPECT_EQ(*message != '\0', row.has_note) << message;
    char note[256] = "";
    ASSERT_EQ(numsim_format_note(row.name.c_str(), note, sizeof note), NUMSIM_OK);
    EXPECT_STREQ(note, message);
    numsim_format_info_t info = {};
    ASSERT_EQ(numsim_format_info(&format, &info), NUMSIM_OK);
    EXPECT_EQ(info.bits, row.bits);
    EXPECT_EQ(std::bit_cast<float>(info.max_finite_bits), row.largest);
    EXPECT_EQ(std::bit_cast<float>(info.min_positive_bits), row.smallest);
    EXPECT_EQ(info.has_nan != 0, row.nan.has_value());
    if (row.nan) {
      EXPECT_TRUE(std::isnan(ValueOfCode(format, *row.nan)));
    }
    if (info.bits > 16) continue;
    uint64_t finite = 0;
    for (uint32_t code = 0; code < 1u << info.bits; ++code) {
      finite += std::isfinite(ValueOfCode(format, code)) && !(row.format == "int8" && code == 0x80);
    }
    EXPECT_EQ(finite, row.finite);
  }
}

TEST(CFormatNote, RefusesWhatIsNoName) {
  char text[8] = "";
  EXPECT_EQ(numsim_format_note("mxfp4", text, sizeof text), NUMSIM_ERROR_UNKNOWN_FORMAT);
  EXPECT_EQ(numsim_format_note("e4m3", text, sizeof text), NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(numsim_format_note(nullptr, text, sizeof text), NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(numsim_format_note("e4m3", nullptr, 8), NUMSIM_ERROR_BAD_ARGUMENT);
}

}  // namespace
}  // namespace numsim::capi_test
