// Published edge cases of each profile, typed as numbers: what the sources state, and nothing that
// was computed here.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/profiles/profile.h"

namespace numsim {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr uint32_t kNan = 0x7FC0'0000;
constexpr uint32_t kMinusNan = 0xFFC0'0000;

float Above(float x) { return std::nextafter(x, kInf); }
float Below(float x) { return std::nextafter(x, 0.0f); }

struct Case {
  uint32_t bits;
  uint32_t code;
  Case(float x, uint32_t c) : bits(std::bit_cast<uint32_t>(x)), code(c) {}
  Case(uint32_t x, uint32_t c) : bits(x), code(c) {}
};

void Expect(const char* profile, const char* target, const std::vector<Case>& cases) {
  const ProfileConversion conversion(profile, SourceType::kFloat32, ParseFormat(target));
  for (const Case& c : cases) {
    EXPECT_EQ(conversion.Encode(c.bits), c.code) << fmt::format(
        "{} to {}: {} (0x{:08X})", profile, target, std::bit_cast<float>(c.bits), c.bits);
  }
}

// Every profile that rounds before it tests for overflow, to E4M3FN: what they share.
const std::vector<Case> kE4m3Common = {{0.0f, 0x00},
                                       {-0.0f, 0x80},
                                       {448.0f, 0x7E},
                                       {-448.0f, 0xFE},
                                       {464.0f, 0x7E},
                                       {-464.0f, 0xFE},
                                       {1.0f, 0x38},
                                       {1.0625f, 0x38},
                                       {1.1875f, 0x3A},
                                       {0x1p-9f, 0x01},
                                       {0x1p-10f, 0x00},
                                       {Above(0x1p-10f), 0x01},
                                       {0x1.8p-9f, 0x02},
                                       {Below(0x1.8p-9f), 0x01},
                                       {0x1p-149f, 0x00}};

TEST(EdgeCases, RoundingToE4m3IsCommonToMost) {
  for (const char* const profile : {"ocp-saturate",
                                    "ocp-nonsaturate",
                                    "cuda-13",
                                    "cuda-13-satfinite",
                                    "ml-dtypes",
                                    "torch-2.11",
                                    "torch-2.12",
                                    "torch-2.15",
                                    "onnx-cast-23",
                                    "onnx-cast-24",
                                    "onnx-cast-nosat"}) {
    Expect(profile, "e4m3fn", kE4m3Common);
  }
}

TEST(EdgeCases, OverflowOfE4m3) {
  for (const char* const profile :
       {"ocp-saturate", "cuda-13-satfinite", "torch-2.15", "onnx-cast-23", "onnx-cast-24"}) {
    Expect(profile,
           "e4m3fn",
           {{Above(464.0f), 0x7E},
            {465.0f, 0x7E},
            {480.0f, 0x7E},
            {1e30f, 0x7E},
            {kInf, 0x7E},
            {-465.0f, 0xFE},
            {-kInf, 0xFE}});
  }
  for (const char* const profile :
       {"ocp-nonsaturate", "cuda-13", "ml-dtypes", "torch-2.11", "onnx-cast-nosat"}) {
    Expect(profile,
           "e4m3fn",
           {{Above(464.0f), 0x7F},
            {465.0f, 0x7F},
            {480.0f, 0x7F},
            {1e30f, 0x7F},
            {kInf, 0x7F},
            {-465.0f, 0xFF},
            {-kInf, 0xFF}});
  }
  Expect("torch-2.12", "e4m3fn", {{465.0f, 0x7E}, {-1e30f, 0xFE}});
  // HIP compares with the largest value before it rounds.
  Expect("hip-host",
         "e4m3fn",
         {{448.0f, 0x7E}, {Above(448.0f), 0x7F}, {464.0f, 0x7F}, {-449.0f, 0xFF}, {kInf, 0x7F}});
  Expect("hip-host-satfinite",
         "e4m3fn",
         {{Above(448.0f), 0x7E}, {-1e30f, 0xFE}, {kInf, 0x7F}, {-kInf, 0xFF}});
  // No code of E4M3 is reserved: 480 has the code of NaN.
  Expect("qpytorch",
         "e4m3fn",
         {{464.0f, 0x7F},
          {463.0f, 0x7E},
          {480.0f, 0x7F},
          {1e30f, 0x7F},
          {kInf, 0x7F},
          {-kInf, 0xFF},
          {kNan, 0x7F}});
  Expect("cpfloat", "e4m3fn", {{464.0f, 0x7E}, {Above(464.0f), 0x7F}, {480.0f, 0x7F}});
  Expect("gaudi",
         "e4m3",
         {{240.0f, 0x77}, {Below(248.0f), 0x77}, {248.0f, 0x78}, {-1e9f, 0xF8}, {kInf, 0x78}});
}

TEST(EdgeCases, OverflowOfE5m2) {
  const float tie = 61440;
  for (const char* const profile : {"ocp-nonsaturate",
                                    "cuda-13",
                                    "ml-dtypes",
                                    "torch-2.11",
                                    "torch-2.12",
                                    "torch-2.15",
                                    "onnx-cast-nosat",
                                    "cpfloat"}) {
    Expect(profile,
           "e5m2",
           {{57344.0f, 0x7B},
            {Below(tie), 0x7B},
            {tie, 0x7C},
            {-tie, 0xFC},
            {kInf, 0x7C},
            {-kInf, 0xFC},
            {0x1p-16f, 0x01},
            {0x1p-17f, 0x00},
            {Above(0x1p-17f), 0x01},
            {-0.0f, 0x80}});
  }
  for (const char* const profile :
       {"ocp-saturate", "cuda-13-satfinite", "onnx-cast-23", "onnx-cast-24"}) {
    Expect(profile,
           "e5m2",
           {{Below(tie), 0x7B}, {tie, 0x7B}, {1e30f, 0x7B}, {kInf, 0x7B}, {-kInf, 0xFB}});
  }
  Expect("hip-host",
         "e5m2",
         {{57344.0f, 0x7B}, {57345.0f, 0x7C}, {Below(tie), 0x7C}, {kInf, 0x7C}, {-kInf, 0xFC}});
  Expect("hip-host-satfinite", "e5m2", {{57345.0f, 0x7B}, {1e30f, 0x7B}, {kInf, 0x7C}});
  Expect("qpytorch",
         "e5m2",
         {{61440.0f, 0x7C}, {65536.0f, 0x7C}, {114688.0f, 0x7F}, {1e30f, 0x7F}, {kInf, 0x7F}});
}

TEST(EdgeCases, OverflowOfFnuz) {
  for (const char* const profile : {"ml-dtypes", "torch-2.11", "onnx-cast-nosat"}) {
    Expect(profile,
           "e4m3fnuz",
           {{240.0f, 0x7F},
            {Below(248.0f), 0x7F},
            {248.0f, 0x80},
            {-248.0f, 0x80},
            {kInf, 0x80},
            {-kInf, 0x80},
            {kNan, 0x80},
            {kMinusNan, 0x80},
            {-0.0f, 0x00},
            {-0x1p-30f, 0x00}});
    Expect(profile, "e5m2fnuz", {{57344.0f, 0x7F}, {Below(61440.0f), 0x7F}, {61440.0f, 0x80}});
  }
  Expect("onnx-cast-23",
         "e4m3fnuz",
         {{248.0f, 0x7F}, {-1e9f, 0xFF}, {kInf, 0x80}, {-kInf, 0x80}, {kNan, 0x80}});
  Expect("onnx-cast-24",
         "e4m3fnuz",
         {{248.0f, 0x7F}, {-1e9f, 0xFF}, {kInf, 0x7F}, {-kInf, 0xFF}, {kNan, 0x80}});
  Expect("onnx-cast-23", "e5m2fnuz", {{1e9f, 0x7F}, {kInf, 0x80}, {-kInf, 0x80}});
  Expect("onnx-cast-24", "e5m2fnuz", {{1e9f, 0x7F}, {kInf, 0x7F}, {-kInf, 0xFF}});
  Expect("hip-host",
         "e4m3fnuz",
         {{240.0f, 0x7F}, {241.0f, 0x80}, {Below(248.0f), 0x80}, {kInf, 0x80}, {-0.0f, 0x00}});
  Expect("hip-host-satfinite", "e4m3fnuz", {{241.0f, 0x7F}, {-1e9f, 0xFF}, {kInf, 0x80}});
  Expect("ml-dtypes", "e4m3b11fnuz", {{30.0f, 0x7F}, {Below(31.0f), 0x7F}, {31.0f, 0x80}});
}

TEST(EdgeCases, NanKeepsOrLosesItsSign) {
  Expect("cuda-13", "e4m3fn", {{kNan, 0x7F}, {kMinusNan, 0x7F}});
  Expect("cuda-13", "e5m2", {{kNan, 0x7F}, {kMinusNan, 0x7F}});
  Expect("ml-dtypes", "e4m3fn", {{kNan, 0x7F}, {kMinusNan, 0xFF}});
  Expect("ml-dtypes", "e5m2", {{kNan, 0x7E}, {kMinusNan, 0xFE}});
  Expect("torch-2.11", "e4m3fn", {{kNan, 0x7F}, {kMinusNan, 0xFF}});
  Expect("torch-2.11", "e5m2", {{kNan, 0x7F}, {kMinusNan, 0xFF}});
  Expect("hip-host", "e4m3fn", {{kNan, 0x7F}, {kMinusNan, 0xFF}});
  Expect("hip-host", "e5m2", {{kNan, 0x7F}, {kMinusNan, 0xFF}});
  const ProfileConversion e4m3("cuda-13", SourceType::kFloat64, ParseFormat("e4m3fn"));
  const ProfileConversion e5m2("cuda-13", SourceType::kFloat64, ParseFormat("e5m2"));
  EXPECT_EQ(e4m3.Encode(0x7FF8'0000'0000'0000), 0x7Fu);
  EXPECT_EQ(e4m3.Encode(0xFFF8'0000'0000'0000), 0xFFu);
  EXPECT_EQ(e5m2.Encode(0x7FF8'0000'0000'0000), 0x7Eu);
  EXPECT_EQ(e5m2.Encode(0xFFF8'0000'0000'0000), 0xFEu);
}

// Neither infinity nor NaN: all saturate, and what a NaN becomes is each one's own.
TEST(EdgeCases, SubByteFormats) {
  for (const char* const profile : {"ocp-saturate", "cuda-13", "ml-dtypes"}) {
    Expect(profile,
           "e2m1fn",
           {{5.0f, 0x6},
            {Above(5.0f), 0x7},
            {6.0f, 0x7},
            {7.0f, 0x7},
            {1e30f, 0x7},
            {kInf, 0x7},
            {-kInf, 0xF},
            {0.25f, 0x0},
            {Above(0.25f), 0x1},
            {-0.25f, 0x8},
            {0.75f, 0x2}});
    Expect(profile,
           "e2m3fn",
           {{7.5f, 0x1F},
            {8.0f, 0x1F},
            {kInf, 0x1F},
            {-kInf, 0x3F},
            {0.0625f, 0x00},
            {Above(0.0625f), 0x01},
            {-0.0f, 0x20}});
    Expect(profile,
           "e3m2fn",
           {{28.0f, 0x1F},
            {32.0f, 0x1F},
            {kInf, 0x1F},
            {-kInf, 0x3F},
            {0.03125f, 0x00},
            {Above(0.03125f), 0x01}});
  }
  for (const char* const profile : {"cuda-13", "cuda-13-satfinite", "cuda-13-rz"}) {
    Expect(profile, "e2m1fn", {{kNan, 0x7}, {kMinusNan, 0x7}});
    Expect(profile, "e2m3fn", {{kNan, 0x1F}, {kMinusNan, 0x1F}});
    Expect(profile, "e3m2fn", {{kNan, 0x1F}, {kMinusNan, 0x1F}});
  }
  Expect("cuda-13-rz", "e2m1fn", {{Below(6.0f), 0x6}, {0.49f, 0x0}, {-0.49f, 0x8}});
  Expect("ml-dtypes", "e2m1fn", {{kNan, 0x8}});
  Expect("ml-dtypes", "e2m3fn", {{kNan, 0x20}});
  Expect("ml-dtypes", "e3m2fn", {{kNan, 0x20}});
}

TEST(EdgeCases, E8m0) {
  const float smallest = 0x1p-127f;
  // cvt.rp: zero and signs are ignored, every other number goes up.
  for (const char* const profile : {"cuda-13", "cuda-13-satfinite"}) {
    Expect(profile,
           "e8m0fnu",
           {{0.0f, 0x00},
            {-0.0f, 0x00},
            {1.0f, 0x7F},
            {-1.0f, 0x7F},
            {1.25f, 0x80},
            {1.5f, 0x80},
            {smallest, 0x00},
            {1.25f * smallest, 0x01},
            {0x1p-149f, 0x00},
            {0x1p127f, 0xFE},
            {kNan, 0xFF},
            {kMinusNan, 0xFF}});
  }
  Expect("cuda-13", "e8m0fnu", {{0x1.8p127f, 0xFF}, {kInf, 0xFF}});
  Expect("cuda-13-satfinite", "e8m0fnu", {{0x1.8p127f, 0xFE}, {kInf, 0xFE}, {-kInf, 0xFE}});
  for (const char* const profile : {"cuda-13-rz", "cuda-13-rz-satfinite"}) {
    Expect(profile,
           "e8m0fnu",
           {{0.0f, 0x00},
            {-1.0f, 0x7F},
            {1.25f, 0x7F},
            {1.5f, 0x7F},
            {Below(2.0f), 0x7F},
            {1.25f * smallest, 0x00},
            {0x1.8p127f, 0xFE},
            {kNan, 0xFF}});
  }
  Expect("cuda-13-rz", "e8m0fnu", {{kInf, 0xFF}});
  Expect("cuda-13-rz-satfinite", "e8m0fnu", {{kInf, 0xFE}});
  // PyTorch: nearest with ties up, wrong right above the smallest value.
  for (const char* const profile : {"torch-2.11", "torch-2.12", "torch-2.15"}) {
    Expect(profile,
           "e8m0fnu",
           {{0.0f, 0x00},
            {-1.0f, 0x7F},
            {1.25f, 0x7F},
            {1.5f, 0x80},
            {Below(1.5f), 0x7F},
            {smallest, 0x00},
            {Above(smallest), 0x01},
            {1.25f * smallest, 0x01},
            {0x1.8p127f, 0xFF},
            {Below(0x1.8p127f), 0xFE},
            {kInf, 0xFF},
            {kNan, 0xFF}});
  }
  Expect("ml-dtypes",
         "e8m0fnu",
         {{0.0f, 0xFF},
          {-0.0f, 0xFF},
          {-1.0f, 0xFF},
          {-0x1p-140f, 0xFF},
          {1.25f, 0x7F},
          {1.5f, 0x80},
          {0x1.8p127f, 0xFF},
          {kInf, 0xFF},
          {-kInf, 0xFF},
          {kNan, 0xFF}});
}

// Shifts by 64 and more: numbers 64 binades below the smallest normal come back as normals, and
// those below them as subnormals.
TEST(EdgeCases, HipHostShiftsModulo64) {
  Expect("hip-host",
         "e4m3fn",
         {{0x1p-70f, 0x08},
          {0x1.8p-70f, 0x0C},
          {0x1p-71f, 0x04},
          {0x1p-73f, 0x01},
          {0x1p-74f, 0x00},
          {Above(0x1p-74f), 0x01},
          {Below(0x1p-74f), 0x00},
          {0x1p-69f, 0x00},
          {0x1.ep-70f, 0x0F},
          {Below(0x1p-69f), 0x10},
          {-0x1p-70f, 0x88},
          {0x1p-100f, 0x00}});
  Expect("hip-host",
         "e5m2",
         {{0x1p-78f, 0x04},
          {0x1p-80f, 0x01},
          {0x1p-81f, 0x00},
          {0x1p-77f, 0x00},
          {Below(0x1p-77f), 0x08},
          {6.6e-24f, 0x08},
          {4.2e-25f, 0x01},
          {4.1e-25f, 0x00}});
  Expect("hip-host", "e4m3fnuz", {{0x1p-71f, 0x08}, {-0x1p-76f, 0x00}, {-0x1p-74f, 0x81}});
  Expect("hip-host", "e5m2fnuz", {{0x1p-79f, 0x04}, {0x1p-82f, 0x00}});
}

// Ties away from zero; below the normals the sum with the smallest normal rounds first.
TEST(EdgeCases, QPyTorchRoundsTiesAway) {
  Expect("qpytorch",
         "e4m3fn",
         {{1.0625f, 0x39},
          {Below(1.0625f), 0x38},
          {-1.0625f, 0xB9},
          {0x1p-10f, 0x01},
          {0x1p-10f - 0x1p-34f, 0x01},  // becomes the tie in the sum
          {0x1p-10f - 0x1p-29f, 0x00},
          {-0x1p-11f, 0x00},
          {-0.0f, 0x00},
          {0x7FFF'FFFFu, 0x80},
          {0xFFFF'FFFFu, 0x00}});  // NaNs whose bits carry away
}

TEST(EdgeCases, P3109SaturationModes) {
  Expect("p3109-v4-satfinite",
         "binary8p4se",
         {{232.0f, 0x7E}, {233.0f, 0x7E}, {kInf, 0x7E}, {-kInf, 0xFE}, {kNan, 0x80}});
  Expect("p3109-v4-satpropagate", "binary8p4se", {{233.0f, 0x7E}, {kInf, 0x7F}, {-kInf, 0xFF}});
  Expect("p3109-v4-satnone",
         "binary8p4se",
         {{232.0f, 0x7E}, {Above(232.0f), 0x7F}, {-233.0f, 0xFF}, {kInf, 0x7F}, {-0.0f, 0x00}});
  Expect("p3109-v4-satnone", "binary8p3se", {{53248.0f, 0x7E}, {Above(53248.0f), 0x7F}});
  for (const char* const profile : {"p3109-v4-satfinite", "p3109-v4-satnone"}) {
    Expect(profile, "binary8p4sf", {{248.0f, 0x7F}, {1e9f, 0x7F}, {-1e9f, 0xFF}, {kNan, 0x80}});
  }
}

TEST(EdgeCases, BitsAndBytesReachesTheTopCodes) {
  Expect("bitsandbytes",
         "bnb-e4m3",
         {{480.0f, 0x7F},
          {1e9f, 0x7F},
          {kInf, 0x7F},
          {-kInf, 0xFF},
          {kNan, 0xFF},
          {kMinusNan, 0xFF},
          {1.0f, 0x38},
          {0x1p-11f, 0x01}});
}

}  // namespace
}  // namespace numsim
