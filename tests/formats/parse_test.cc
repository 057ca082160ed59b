// Names and custom descriptions of formats: what is accepted, what comes out, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "tests/reference/formats.h"
#include "tests/support/error_of.h"

namespace numsim {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseFormat, FindsEveryTableEntryByName) {
  for (const FormatEntry& entry : FormatTable()) {
    const Format format = ParseFormat(entry.name);
    EXPECT_EQ(format.name, entry.name);
    EXPECT_TRUE(format.spec == entry.spec) << entry.name;
  }
}

TEST(ParseFormat, CustomNameBeginsAsIeeeFormat) {
  const FormatSpec spec = ParseFormat("e5m9").spec;
  EXPECT_EQ(spec.Bits(), 15);
  EXPECT_EQ(spec.exponent_bits, 5);
  EXPECT_EQ(spec.mantissa_bits, 9);
  EXPECT_EQ(spec.bias, 15);
  EXPECT_EQ(spec.sign, Sign::kSignMagnitude);
  EXPECT_EQ(spec.zero, Zero::kSigned);
  EXPECT_EQ(spec.infinity, Infinity::kIeee);
  EXPECT_EQ(spec.nan, Nan::kIeee);
  EXPECT_EQ(spec.overflow_to, OverflowTo::kInfinity);
  EXPECT_TRUE(ParseFormat("e5m10").spec == FindFormat("fp16")->spec);
  EXPECT_TRUE(ParseFormat("e8m23").spec == FindFormat("fp32")->spec);
}

TEST(ParseFormat, UnsignedCustomNameHasNoSignBit) {
  const FormatSpec spec = ParseFormat("ue5m3").spec;
  EXPECT_EQ(spec.Bits(), 8);
  EXPECT_EQ(spec.bias, 15);
  EXPECT_EQ(spec.sign, Sign::kUnsigned);
}

TEST(ParseFormat, KeysChangeOneFieldEach) {
  EXPECT_EQ(ParseFormat("e4m3:bias=9").spec.bias, 9);
  EXPECT_EQ(ParseFormat("e4m3:bias=-3").spec.bias, -3);
  EXPECT_EQ(ParseFormat("e4m3:inf=none,nan=none").spec.infinity, Infinity::kNone);
  EXPECT_EQ(ParseFormat("e4m3:inf=top,nan=all-ones").spec.infinity, Infinity::kTopCode);
  EXPECT_EQ(ParseFormat("e4m3:inf=none,nan=none").spec.nan, Nan::kNone);
  EXPECT_EQ(ParseFormat("e4m3:inf=none,nan=all-ones").spec.nan, Nan::kAllOnes);
  const FormatSpec fnuz = ParseFormat("e4m3:inf=none,nan=negative-zero,zero=unsigned,bias=8").spec;
  EXPECT_EQ(fnuz.nan, Nan::kNegativeZero);
  EXPECT_EQ(fnuz.zero, Zero::kUnsigned);
  EXPECT_TRUE(fnuz == FindFormat("e4m3fnuz")->spec);
}

TEST(ParseFormat, OverflowFollowsTheSpecialCodesUnlessGiven) {
  EXPECT_EQ(ParseFormat("e4m3").spec.overflow_to, OverflowTo::kInfinity);
  EXPECT_EQ(ParseFormat("e4m3:inf=none,nan=all-ones").spec.overflow_to, OverflowTo::kNan);
  EXPECT_EQ(ParseFormat("e4m3:inf=none,nan=none").spec.overflow_to, OverflowTo::kMax);
  EXPECT_EQ(ParseFormat("e4m3:overflow=nan").spec.overflow_to, OverflowTo::kNan);
  EXPECT_EQ(ParseFormat("e4m3:overflow=max").spec.overflow_to, OverflowTo::kMax);
  EXPECT_EQ(ParseFormat("e4m3fn:overflow=max").spec.overflow_to, OverflowTo::kMax);
}

TEST(ParseFormat, OrderOfKeysDoesNotMatter) {
  EXPECT_TRUE(ParseFormat("e4m3:bias=8,inf=none,nan=all-ones").spec ==
              ParseFormat("e4m3:nan=all-ones,inf=none,bias=8").spec);
}

TEST(ParseFormat, TableNamesTakeKeys) {
  const FormatSpec spec = ParseFormat("e4m3fn:bias=11").spec;
  EXPECT_EQ(spec.bias, 11);
  EXPECT_EQ(spec.nan, Nan::kAllOnes);
  EXPECT_EQ(MaxFinite(spec), 28.0f);
}

struct Refused {
  const char* text;
  const char* named;  // what the message must mention
};

void ExpectRefused(const Refused& refused) {
  SCOPED_TRACE(refused.text);
  EXPECT_THAT(ErrorOf([&] { ParseFormat(refused.text); }),
              AllOf(HasSubstr(refused.named), Not(HasSubstr("\n"))));
}

TEST(ParseFormat, RefusesUnknownNames) {
  for (const char* text : {"e4m3xx",
                           "float8",
                           "E4M3XX",
                           "m3e4",
                           "em",
                           "e4",
                           "e4m",
                           "em3",
                           "ue",
                           "ie4m3",
                           "e4m3 ",
                           " e4m3",
                           "e-4m3",
                           "e4m-3",
                           "e+4m3",
                           "e4.0m3"}) {
    ExpectRefused({text, text});
  }
}

TEST(ParseFormat, RefusesEmptyText) {
  EXPECT_THROW(ParseFormat(""), Error);
  EXPECT_THROW(ParseFormat(":"), Error);
  EXPECT_THROW(ParseFormat(":bias=3"), Error);
}

TEST(ParseFormat, RefusesSizesOutOfRangeAndNamesThem) {
  ExpectRefused({"e9m3", "exponent"});
  ExpectRefused({"e0m3", "exponent"});
  ExpectRefused({"ue0m8", "exponent"});
  ExpectRefused({"e4m30", "mantissa"});
  ExpectRefused({"e4m24", "mantissa"});
  ExpectRefused({"e99999999999999999999m3", "e99999999999999999999m3"});
  ExpectRefused({"e4m256", "e4m256"});  // not 0 after a narrowing conversion
  ExpectRefused({"e260m3", "e260m3"});  // not 4
}

TEST(ParseFormat, RefusesBadKeysAndValuesAndNamesThem) {
  ExpectRefused({"e4m3:bias=abc", "bias"});
  ExpectRefused({"e4m3:bias=", "bias"});
  ExpectRefused({"e4m3:bias", "bias"});
  ExpectRefused({"e4m3:bias=7x", "bias"});
  ExpectRefused({"e4m3:bias=7.5", "bias"});
  ExpectRefused({"e4m3:bias= 7", "bias"});
  ExpectRefused({"e4m3:bias=99999999999999999999", "bias"});
  ExpectRefused({"e4m3:bias=65543", "bias"});  // 7 in 16 bits
  ExpectRefused({"e4m3:inf=maybe", "inf"});
  ExpectRefused({"e4m3:inf=NONE", "inf"});
  ExpectRefused({"e4m3:nan=quiet", "nan"});
  ExpectRefused({"e4m3:zero=none", "zero"});
  ExpectRefused({"e4m3:overflow=wrap", "overflow"});
  ExpectRefused({"e4m3:colour=red", "colour"});
  ExpectRefused({"e4m3:BIAS=7", "BIAS"});
  ExpectRefused({"e4m3:", "e4m3:"});
  ExpectRefused({"e4m3:bias=7,", "e4m3:bias=7,"});
  ExpectRefused({"e4m3:,bias=7", "e4m3:,bias=7"});
  ExpectRefused({"e4m3:=7", "e4m3:=7"});
  ExpectRefused({"e4m3:bias=7:inf=none", "bias"});
}

TEST(ParseFormat, RefusesTheSameKeyTwice) {
  ExpectRefused({"e4m3:bias=7,bias=8", "bias"});
  ExpectRefused({"e4m3:bias=7,bias=7", "bias"});
  ExpectRefused({"e4m3:nan=none,inf=none,nan=ieee", "nan"});
}

TEST(ParseFormat, RefusesFormatsBeyondFloat32) {
  ExpectRefused({"e8m3:bias=126", "bias"});   // largest value 1.875 2^128
  ExpectRefused({"e8m3:bias=148", "bias"});   // smallest value 2^-150
  ExpectRefused({"e8m23:bias=128", "bias"});  // smallest value 2^-150
  ExpectRefused({"e4m3:bias=1000", "bias"});
  ExpectRefused({"e4m3:bias=-1000", "bias"});
}

TEST(ParseFormat, AcceptsFormatsAtTheEndOfFloat32) {
  EXPECT_EQ(MinPositive(ParseFormat("e8m3:bias=147").spec), 0x1p-149f);
  EXPECT_EQ(MinPositive(ParseFormat("e4m3:bias=147").spec), 0x1p-149f);
  EXPECT_EQ(MaxFinite(ParseFormat("e8m3:bias=127").spec), 0x1.Ep127f);
  EXPECT_EQ(MaxFinite(ParseFormat("e4m3:bias=-113").spec), 0x1.Ep127f);
  EXPECT_EQ(MaxFinite(ParseFormat("e1m6").spec), 63.0f / 32);
  // Its numbers are all subnormal and below 2^128; only the unused normals would not fit.
  EXPECT_EQ(MaxFinite(ParseFormat("e1m6:bias=-127").spec), 0x1.F8p127f);
}

TEST(ParseFormat, RefusesSpecialCodesThatCollideOrDoNotExist) {
  ExpectRefused({"e4m0", "nan"});                     // IEEE's NaN needs a mantissa bit
  ExpectRefused({"ue4m3:nan=negative-zero", "nan"});  // no sign bit
  ExpectRefused({"int8:nan=negative-zero", "nan"});   // 0x80 is two's complement
  // Without infinity the code "top exponent, mantissa zero" would mean nothing, and without NaN
  // the codes above infinity.
  ExpectRefused({"e4m3:inf=none", "inf"});
  ExpectRefused({"e4m3:nan=none", "nan"});
  ExpectRefused({"e4m3:nan=negative-zero", "nan"});
  ExpectRefused({"e4m3:inf=none,nan=none,overflow=inf", "overflow"});
  ExpectRefused({"e4m3:inf=none,nan=none,overflow=nan", "overflow"});
  ExpectRefused({"e4m0:inf=ieee,nan=all-ones", "e4m0:inf=ieee,nan=all-ones"});  // one code for both
}

TEST(ParseFormat, RefusesFormatsWithoutANumberBesidesZero) {
  EXPECT_THROW(ParseFormat("e1m0:nan=none,inf=ieee"), Error);
  EXPECT_THROW(ParseFormat("e1m0:nan=all-ones,inf=none"), Error);
}

// Names and the spacing, lowest and highest number that they promise.
TEST(ParseFormat, FixedPointHasTheRangeOfItsName) {
  struct Promise {
    const char* text;
    int bits;
    double spacing, lowest, highest;
  };
  const Promise promises[] = {{"fixed4.4", 8, 0x1p-4, -8, 8 - 0x1p-4},
                              {"fixed1.7", 8, 0x1p-7, -1, 1 - 0x1p-7},
                              {"fixed8.0", 8, 1, -128, 127},
                              {"fixed2.6:range=symmetric", 8, 0x1p-6, -(2 - 0x1p-6), 2 - 0x1p-6},
                              {"int4", 4, 1, -8, 7},
                              {"int4:range=symmetric", 4, 1, -7, 7},
                              {"int2:range=symmetric", 2, 1, -1, 1},
                              {"int25", 25, 1, -0x1p24, 0x1p24 - 1},
                              {"int8", 8, 1, -127, 127},
                              {"ufixed0.8", 8, 0x1p-8, 0, 1 - 0x1p-8},
                              {"uint8", 8, 1, 0, 255},
                              {"uint24", 24, 1, 0, 0x1p24 - 1}};
  for (const Promise& promise : promises) {
    SCOPED_TRACE(promise.text);
    const FormatSpec spec = ParseFormat(promise.text).spec;
    EXPECT_EQ(spec.Bits(), promise.bits);
    EXPECT_EQ(double{Decode(spec, 1)}, promise.spacing);
    EXPECT_EQ(double{MaxFinite(spec)}, promise.highest);
    const uint32_t lowest = (0u - spec.LastFiniteCode(true)) & spec.CodeMask();
    EXPECT_EQ(spec.IsSigned() ? double{Decode(spec, lowest)} : 0.0, promise.lowest);
    // Every code is its integer times the spacing.
    for (uint32_t code = 0; spec.Bits() <= 16 && code <= spec.CodeMask(); ++code) {
      const bool negative = spec.IsSigned() && (code & spec.SignBit()) != 0;
      const double integer =
          static_cast<double>(code) - (negative ? std::ldexp(1, spec.Bits()) : 0);
      ASSERT_EQ(double{Decode(spec, code)}, integer * promise.spacing) << code;
    }
  }
  EXPECT_EQ(ParseFormat("ue1m7:bias=-6,inf=none,nan=none").name, "uint8");
  EXPECT_EQ(ParseFormat("fixed8.0:range=symmetric").name, "int8");
  EXPECT_EQ(ParseFormat("int8:range=full").name, "fixed8.0");
  EXPECT_EQ(ParseFormat("e1m2:inf=none,nan=none").name, "e1m2fn");
}

TEST(ParseFormat, RefusesFixedPointOutOfRangeAndOtherKeys) {
  ExpectRefused({"fixed0.4", "0 integer and 4 fraction bits"});
  ExpectRefused({"fixed1.0", "2 to 25 in all"});
  ExpectRefused({"fixed20.6", "2 to 25 in all"});
  ExpectRefused({"ufixed20.6", "2 to 24 in all"});
  ExpectRefused({"int26", "26 integer"});
  ExpectRefused({"uint99", "99 integer"});
  ExpectRefused({"fixed4", "fixed4"});
  ExpectRefused({"fixed4.4:bias=3", "unknown key 'bias'"});
  ExpectRefused({"int4:range=half", "range"});
  ExpectRefused({"e4m3fn:range=full", "range is for integers"});
  ExpectRefused({"e4m3fn:subnormals=none", "subnormals"});
  ExpectRefused({"e4m3fnuz:subnormals=flush", "zero=signed"});
  ExpectRefused({"e1m6:subnormals=flush", "no finite value besides zero"});
}

TEST(ToString, NamesEveryTableEntry) {
  for (const FormatEntry& entry : FormatTable()) EXPECT_EQ(ToString(entry.spec), entry.name);
}

TEST(ToString, IsReadBackToTheSameFormat) {
  std::vector<std::string> texts = {"e5m9",
                                    "e3m3:bias=-4",
                                    "ue5m3",
                                    "ue1m6",
                                    "e8m22",
                                    "e4m3fnuz:overflow=max",
                                    "e8m0fnu:bias=120",
                                    "int8:range=full",
                                    "int4:range=symmetric",
                                    "int16",
                                    "uint12",
                                    "fixed1.7",
                                    "ufixed4.4",
                                    "fixed8.17:range=symmetric",
                                    "ue1m7:bias=-9,inf=none,nan=none",
                                    "bnb-e4m3:bias=9",
                                    "binary8p3se:overflow=max",
                                    "e5m2:zero=unsigned",
                                    "e4m3:inf=none",
                                    "e4m3:inf=ieee,nan=negative-zero"};
  for (const oracle::Format& format : oracle::CustomFormats()) texts.push_back(format.name);
  for (const std::string& text : texts) {
    SCOPED_TRACE(text);
    // Which combinations are valid is tested above; here only that valid ones survive.
    Format format;
    if (ErrorOf([&] { format = ParseFormat(text); }) != kNoError) continue;
    const std::string written = ToString(format.spec);
    EXPECT_TRUE(ParseFormat(written).spec == format.spec) << "written as " << written;
    EXPECT_EQ(ToString(ParseFormat(written).spec), written);
  }
}

// Every combination of special codes over a few sizes: refused, or written and read back the same.
TEST(ToString, IsReadBackForEveryCombinationOfKeys) {
  int accepted = 0;
  for (const char* base : {"e1m0", "e1m2", "e2m0", "e4m3", "ue4m3", "ue2m0", "e8m2", "int8"}) {
    for (const char* inf : {"none", "ieee", "top"}) {
      for (const char* nan : {"none", "ieee", "all-ones", "negative-zero"}) {
        for (const char* zero : {"signed", "unsigned"}) {
          for (const char* overflow : {"", ",overflow=inf", ",overflow=nan", ",overflow=max"}) {
            const std::string text =
                std::string(base) + ":inf=" + inf + ",nan=" + nan + ",zero=" + zero + overflow;
            SCOPED_TRACE(text);
            FormatSpec spec;
            if (ErrorOf([&] { spec = ParseFormat(text).spec; }) != kNoError) continue;
            ++accepted;
            const std::string written = ToString(spec);
            EXPECT_LE(written.size(), text.size());
            EXPECT_TRUE(ParseFormat(written).spec == spec) << "written as " << written;
          }
        }
      }
    }
  }
  EXPECT_GT(accepted, 100);
}

// A valid format never has a code that means two things or that nothing means.
TEST(ValidateFormat, LeavesEveryCodeOneMeaning) {
  for (const char* base : {"e1m1", "e2m0", "e3m2", "ue3m2", "ue2m0"}) {
    for (const char* inf : {"none", "ieee", "top"}) {
      for (const char* nan : {"none", "ieee", "all-ones", "negative-zero"}) {
        const std::string text = std::string(base) + ":inf=" + inf + ",nan=" + nan;
        SCOPED_TRACE(text);
        FormatSpec spec;
        if (ErrorOf([&] { spec = ParseFormat(text).spec; }) != kNoError) continue;
        int nans = 0;
        int infinities = 0;
        for (uint32_t code = 0; code <= spec.CodeMask(); ++code) {
          nans += Classify(spec, code) == ValueClass::kNan;
          infinities += Classify(spec, code) == ValueClass::kInfinity;
        }
        EXPECT_EQ(nans > 0, spec.HasNan());
        EXPECT_EQ(infinities, spec.HasInfinity() ? (spec.IsSigned() ? 2 : 1) : 0);
        if (spec.HasNan()) {
          EXPECT_EQ(Classify(spec, spec.NanCode()), ValueClass::kNan);
        }
        EXPECT_GT(MaxFinite(spec), 0);
      }
    }
  }
}

TEST(ValidateFormat, NamesTheFieldAtFault) {
  const auto message = [](FormatSpec spec) {
    return ErrorOf([&] { ValidateFormat(spec, "made-up"); });
  };
  FormatSpec spec = FindFormat("e4m3fn")->spec;
  spec.exponent_bits = 0;
  EXPECT_THAT(message(spec), AllOf(HasSubstr("made-up"), HasSubstr("exponent")));
  spec = FindFormat("e4m3fn")->spec;
  spec.mantissa_bits = 24;
  EXPECT_THAT(message(spec), HasSubstr("mantissa"));
  spec.mantissa_bits = -1;
  EXPECT_THAT(message(spec), HasSubstr("mantissa"));
}

TEST(ParseFormatList, SplitsAtCommasBetweenFormats) {
  const std::vector<Format> formats = ParseFormatList("e4m3fn,e5m2,bf16");
  ASSERT_EQ(formats.size(), 3u);
  EXPECT_EQ(formats[0].name, "e4m3fn");
  EXPECT_EQ(formats[2].name, "bf16");
}

TEST(ParseFormatList, CustomFormatsKeepTheirCommas) {
  const std::vector<Format> formats =
      ParseFormatList("e4m3:bias=8,inf=none,nan=all-ones,e5m2,ue5m3:bias=3");
  ASSERT_EQ(formats.size(), 3u);
  EXPECT_TRUE(formats[0].spec == ParseFormat("e4m3:bias=8,inf=none,nan=all-ones").spec);
  EXPECT_EQ(formats[1].name, "e5m2");
  EXPECT_EQ(formats[2].spec.bias, 3);
}

TEST(ParseFormatList, RefusesEmptyPiecesAndStrayKeys) {
  for (const char* text :
       {"", ",", "e4m3fn,", ",e4m3fn", "e4m3fn,,e5m2", "bias=3", "bias=3,e4m3"}) {
    EXPECT_THROW(ParseFormatList(text), Error) << text;
  }
}

}  // namespace
}  // namespace numsim
