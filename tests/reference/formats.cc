#include "tests/reference/formats.h"

#include <cstdio>
#include <cstdlib>

namespace oracle {
namespace {

constexpr auto kBit = Signs::kSignBit;
constexpr auto kNone = Signs::kNone;
constexpr auto kTwos = Signs::kTwosComplement;
constexpr auto kToInf = Spill::kToInfinity;
constexpr auto kToNan = Spill::kToNan;
constexpr auto kToMax = Spill::kToMax;

// clang-format off
const std::vector<Format> kLiterature = {
    // [IEEE754] binary32 and binary16; bfloat16 and TF32 are binary32 with 7 and 10 mantissa bits.
    // name, bits, mantissa, bias, signs, max, infinity, NaNs, NaN plus, NaN minus, -0, overflow
    {"fp32", 32, 23, 127, kBit, 0x7F7FFFFF, 0x7F800000,
     {{0x7F800001, 0x7FFFFFFF}, {0xFF800001, 0xFFFFFFFF}}, 0x7FC00000, 0xFFC00000, true, kToInf},
    {"tf32", 19, 10, 127, kBit, 0x3FBFF, 0x3FC00,
     {{0x3FC01, 0x3FFFF}, {0x7FC01, 0x7FFFF}}, 0x3FE00, 0x7FE00, true, kToInf},
    {"bf16", 16, 7, 127, kBit, 0x7F7F, 0x7F80,
     {{0x7F81, 0x7FFF}, {0xFF81, 0xFFFF}}, 0x7FC0, 0xFFC0, true, kToInf},
    {"fp16", 16, 10, 15, kBit, 0x7BFF, 0x7C00,
     {{0x7C01, 0x7FFF}, {0xFC01, 0xFFFF}}, 0x7E00, 0xFE00, true, kToInf},

    // [OCP-OFP8] table 1: E5M2 keeps infinities and three NaNs a sign, E4M3 has S.1111.111 alone.
    {"e5m2", 8, 2, 15, kBit, 0x7B, 0x7C, {{0x7D, 0x7F}, {0xFD, 0xFF}}, 0x7E, 0xFE, true, kToInf},
    {"e4m3fn", 8, 3, 7, kBit, 0x7E, kNoCode, {{0x7F, 0x7F}, {0xFF, 0xFF}}, 0x7F, 0xFF, true,
     kToNan},

    // IEEE 754's pattern in eight bits [APFloat].
    {"e4m3", 8, 3, 7, kBit, 0x77, 0x78, {{0x79, 0x7F}, {0xF9, 0xFF}}, 0x7C, 0xFC, true, kToInf},
    {"e3m4", 8, 4, 3, kBit, 0x6F, 0x70, {{0x71, 0x7F}, {0xF1, 0xFF}}, 0x78, 0xF8, true, kToInf},

    // One NaN in the place of -0, no infinity [APFloat].
    {"e4m3fnuz", 8, 3, 8, kBit, 0x7F, kNoCode, {{0x80, 0x80}}, 0x80, 0x80, false, kToNan},
    {"e5m2fnuz", 8, 2, 16, kBit, 0x7F, kNoCode, {{0x80, 0x80}}, 0x80, 0x80, false, kToNan},
    {"e4m3b11fnuz", 8, 3, 11, kBit, 0x7F, kNoCode, {{0x80, 0x80}}, 0x80, 0x80, false, kToNan},

    // [PTX] ue4m3: the numbers of E4M3 from 0 on, with its NaN.
    {"ue4m3fn", 7, 3, 7, kNone, 0x7E, kNoCode, {{0x7F, 0x7F}}, 0x7F, 0x7F, false, kToNan},

    // [OCP-MX] 5.4.1: a bare exponent, 0xFF is NaN, no zero. Element types below have only numbers.
    {"e8m0fnu", 8, 0, 127, kNone, 0xFE, kNoCode, {{0xFF, 0xFF}}, 0xFF, 0xFF, false, kToNan, false},
    {"e3m2fn", 6, 2, 3, kBit, 0x1F, kNoCode, {}, kNoCode, kNoCode, true, kToMax},
    {"e2m3fn", 6, 3, 1, kBit, 0x1F, kNoCode, {}, kNoCode, kNoCode, true, kToMax},
    {"e2m1fn", 4, 1, 1, kBit, 0x7, kNoCode, {}, kNoCode, kNoCode, true, kToMax},

    // bitsandbytes' create_fp8_map(True, 4, 3) and (True, 5, 2): all codes are numbers; the
    // subnormals are k 2^-11 and k 2^-18, the smallest normals 2^-6 and 2^-14 [bnb].
    {"bnb-e4m3", 8, 3, 7, kBit, 0x7F, kNoCode, {}, kNoCode, kNoCode, true, kToMax, true, 2},
    {"bnb-e5m2", 8, 2, 15, kBit, 0x7F, kNoCode, {}, kNoCode, kNoCode, true, kToMax, true, 2},
    // QPyTorch's float_quantize(exp, man): the top exponent holds numbers too [QPyTorch].
    {"qpytorch-e4m3", 8, 3, 7, kBit, 0x7F, kNoCode, {}, kNoCode, kNoCode, true, kToMax},
    {"qpytorch-e5m2", 8, 2, 15, kBit, 0x7F, kNoCode, {}, kNoCode, kNoCode, true, kToMax},

    // -127 .. 127 in steps of 1: the first 64 are "subnormal" multiples of 2^(1 - bias - 6) = 1.
    {"int8", 8, 6, -5, kTwos, 0x7F, kNoCode, {}, kNoCode, kNoCode, false, kToMax},

    // [UFP4]: eight magnitudes in steps of 1/2.
    {"e1m2fn", 4, 2, 0, kBit, 0x7, kNoCode, {}, kNoCode, kNoCode, true, kToMax},
    // Integers of [ml_dtypes] and ONNX: multiples of 2^(1 - bias - mantissa) = 1, one more below 0.
    // With two mantissa bits more than needed, all of them and those beside them are "subnormal".
    {"int4", 4, 4, -3, kTwos, 0x7, kNoCode, {}, kNoCode, kNoCode, false, kToMax, true, 0, true},
    {"int2", 2, 2, -1, kTwos, 0x1, kNoCode, {}, kNoCode, kNoCode, false, kToMax, true, 0, true},
    {"uint8", 8, 8, -7, kNone, 0xFF, kNoCode, {}, kNoCode, kNoCode, false, kToMax},
    {"uint4", 4, 4, -3, kNone, 0xF, kNoCode, {}, kNoCode, kNoCode, false, kToMax},
    {"uint2", 2, 2, -1, kNone, 0x3, kNoCode, {}, kNoCode, kNoCode, false, kToMax},
};

const std::vector<Format> kCustom = {
    // All finite values are subnormals, the largest of them 0x1.F8p127, beyond every float32 normal
    // binade of the format.
    {"e1m6:bias=-127", 8, 6, -127, kBit, 0x3F, 0x40,
     {{0x41, 0x7F}, {0xC1, 0xFF}}, 0x60, 0xE0, true, kToInf},
    // IEEE's pattern with biases for which float32's subnormals become normals or the reverse.
    {"e5m10:bias=17", 16, 10, 17, kBit, 0x7BFF, 0x7C00,
     {{0x7C01, 0x7FFF}, {0xFC01, 0xFFFF}}, 0x7E00, 0xFE00, true, kToInf},
    {"e5m10:bias=-90", 16, 10, -90, kBit, 0x7BFF, 0x7C00,
     {{0x7C01, 0x7FFF}, {0xFC01, 0xFFFF}}, 0x7E00, 0xFE00, true, kToInf},
    // Smallest normal 2^-145 and smallest value 2^-148, both subnormal in float32.
    {"e8m3:bias=146", 12, 3, 146, kBit, 0x7F7, 0x7F8,
     {{0x7F9, 0x7FF}, {0xFF9, 0xFFF}}, 0x7FC, 0xFFC, true, kToInf},
    // The subnormals reach 2^-149, float32's last bit.
    {"e4m3:bias=147", 8, 3, 147, kBit, 0x77, 0x78,
     {{0x79, 0x7F}, {0xF9, 0xFF}}, 0x7C, 0xFC, true, kToInf},
    // The smallest values are 2^35, 2^32 and 2^6 times float32's smallest normal number: on both
    // sides of where its subnormals can be moved by 32 random bits.
    {"e7m2:bias=90", 10, 2, 90, kBit, 0x1FB, 0x1FC,
     {{0x1FD, 0x1FF}, {0x3FD, 0x3FF}}, 0x1FE, 0x3FE, true, kToInf},
    {"e7m2:bias=93", 10, 2, 93, kBit, 0x1FB, 0x1FC,
     {{0x1FD, 0x1FF}, {0x3FD, 0x3FF}}, 0x1FE, 0x3FE, true, kToInf},
    {"e7m3:bias=118", 11, 3, 118, kBit, 0x3F7, 0x3F8,
     {{0x3F9, 0x3FF}, {0x7F9, 0x7FF}}, 0x3FC, 0x7FC, true, kToInf},
    // All finite values are subnormals: k / 32, k < 64.
    {"e1m6", 8, 6, 0, kBit, 0x3F, 0x40, {{0x41, 0x7F}, {0xC1, 0xFF}}, 0x60, 0xE0, true, kToInf},
    // 0, 1, 2, 4: no mantissa, no subnormal.
    {"e2m0:inf=none,nan=none", 3, 0, 1, kBit, 0x3, kNoCode, {}, kNoCode, kNoCode, true, kToMax},
    {"e2m0:nan=negative-zero,inf=top,zero=unsigned", 3, 0, 1, kBit, 0x2, 0x3, {{0x4, 0x4}}, 0x4,
     0x4, false, kToInf},
    // Unsigned, IEEE's pattern, as used for block scales.
    {"ue5m3:zero=unsigned", 8, 3, 15, kNone, 0xF7, 0xF8, {{0xF9, 0xFF}}, 0xFC, 0xFC, false, kToInf},
    {"ue3m2:inf=none,nan=none,zero=unsigned", 5, 2, 3, kNone, 0x1F, kNoCode, {}, kNoCode, kNoCode,
     false, kToMax},
    {"ue4m3:bias=9,inf=none,nan=all-ones,zero=unsigned", 7, 3, 9, kNone, 0x7E, kNoCode, {{0x7F, 0x7F}},
     0x7F, 0x7F, false, kToNan},
    {"e4m3:nan=negative-zero,inf=top,zero=unsigned", 8, 3, 7, kBit, 0x7E, 0x7F, {{0x80, 0x80}},
     0x80, 0x80, false, kToInf},
    // Infinity below an all-ones NaN, -0 kept.
    {"e4m3:nan=all-ones,inf=top", 8, 3, 7, kBit, 0x7D, 0x7E, {{0x7F, 0x7F}, {0xFF, 0xFF}}, 0x7F,
     0xFF, true, kToInf},
    // Infinity exists, but finite numbers do not become it.
    {"e5m2:overflow=nan", 8, 2, 15, kBit, 0x7B, 0x7C, {{0x7D, 0x7F}, {0xFD, 0xFF}}, 0x7E, 0xFE,
     true, kToNan},
    {"e5m2:overflow=max", 8, 2, 15, kBit, 0x7B, 0x7C, {{0x7D, 0x7F}, {0xFD, 0xFF}}, 0x7E, 0xFE,
     true, kToMax},
    {"e4m3fn:overflow=max", 8, 3, 7, kBit, 0x7E, kNoCode, {{0x7F, 0x7F}, {0xFF, 0xFF}}, 0x7F, 0xFF,
     true, kToMax},
    // Fixed point: -8 .. 8 - 2^-4, 0 .. 1 - 2^-8, -2^24 .. 2^24 - 1, and without the last number below.
    {"fixed4.4", 8, 8, -3, kTwos, 0x7F, kNoCode, {}, kNoCode, kNoCode, false, kToMax, true, 0, true},
    {"ufixed0.8", 8, 8, 1, kNone, 0xFF, kNoCode, {}, kNoCode, kNoCode, false, kToMax},
    {"int12", 12, 12, -11, kTwos, 0x7FF, kNoCode, {}, kNoCode, kNoCode, false, kToMax, true, 0, true},
    {"fixed2.6:range=symmetric", 8, 8, -1, kTwos, 0x7F, kNoCode, {}, kNoCode, kNoCode, false, kToMax},
    // Without subnormals.
    {"e4m3fn:subnormals=flush", 8, 3, 7, kBit, 0x7E, kNoCode, {{0x7F, 0x7F}, {0xFF, 0xFF}}, 0x7F, 0xFF,
     true, kToNan, true, 0, false, true},
    {"e5m2:subnormals=flush", 8, 2, 15, kBit, 0x7B, 0x7C, {{0x7D, 0x7F}, {0xFD, 0xFF}}, 0x7E, 0xFE, true,
     kToInf, true, 0, false, true},
    {"e8m7:subnormals=flush", 16, 7, 127, kBit, 0x7F7F, 0x7F80, {{0x7F81, 0x7FFF}, {0xFF81, 0xFFFF}},
     0x7FC0, 0xFFC0, true, kToInf, true, 0, false, true},
    {"ue3m2:inf=none,nan=none,subnormals=flush", 5, 2, 3, kNone, 0x1F, kNoCode, {}, kNoCode, kNoCode,
     false, kToMax, true, 0, false, true},
    // More mantissa bits than fp16 in a format that can still be listed.
    {"e3m14:bias=40", 18, 14, 40, kBit, 0x1BFFF, 0x1C000,
     {{0x1C001, 0x1FFFF}, {0x3C001, 0x3FFFF}}, 0x1E000, 0x3E000, true, kToInf},
};
// clang-format on

// [P3109] 4.2 Binary8pP: precision P, bias 2^(8-P-1) signed and 2^(8-P) unsigned, the one NaN at
// 0x80 or 0xFF, an extended format's infinity as the last number before it.
Format P3109(int precision, bool is_signed, bool is_extended) {
  Format f;
  f.name =
      "binary8p" + std::to_string(precision) + (is_signed ? 's' : 'u') + (is_extended ? 'e' : 'f');
  f.bits = 8;
  f.mantissa_bits = precision - 1;
  f.bias = is_signed ? 1 << (7 - precision) : 1 << (8 - precision);
  f.signs = is_signed ? Signs::kSignBit : Signs::kNone;
  const uint32_t last_number = is_signed ? 0x7F : 0xFE;
  f.max_code = is_extended ? last_number - 1 : last_number;
  f.infinity = is_extended ? last_number : kNoCode;
  const uint32_t nan = is_signed ? 0x80 : 0xFF;
  f.nans = {{nan, nan}};
  f.nan_plus = f.nan_minus = nan;
  f.spill = is_extended ? Spill::kToInfinity : Spill::kToMax;
  return f;
}

std::vector<Format> MakeNamed() {
  std::vector<Format> formats = kLiterature;
  for (bool extended : {true, false}) {
    for (int p = 1; p <= 7; ++p) formats.push_back(P3109(p, true, extended));
    for (int p = 1; p <= 8; ++p) formats.push_back(P3109(p, false, extended));
  }
  // Binary4p2sf: 0, 0.25, 0.5, 0.75, 1, 1.5, 2, 3 and their negatives, NaN 0x8.
  Format small;
  small.name = "binary4p2sf";
  small.bits = 4;
  small.mantissa_bits = 1;
  small.bias = 2;
  small.signs = Signs::kSignBit;
  small.max_code = 7;
  small.infinity = kNoCode;
  small.nans = {{8, 8}};
  small.nan_plus = small.nan_minus = 8;
  small.spill = Spill::kToMax;
  formats.push_back(small);
  return formats;
}

struct Lists {
  std::vector<Format> all;
  size_t named;
};

const Lists& AllLists() {
  static const Lists lists = [] {
    Lists made{MakeNamed(), 0};
    made.named = made.all.size();
    made.all.insert(made.all.end(), kCustom.begin(), kCustom.end());
    return made;
  }();
  return lists;
}

}  // namespace

bool IsFixedPoint(const Format& f) {
  const bool equal = f.signs == Signs::kNone && f.max_code < uint32_t{1} << f.mantissa_bits;
  return f.signs == Signs::kTwosComplement || (equal && f.nans.empty() && f.infinity == kNoCode);
}

std::span<const Format> AllFormats() { return AllLists().all; }
std::span<const Format> NamedFormats() { return AllFormats().first(AllLists().named); }
std::span<const Format> CustomFormats() { return AllFormats().subspan(AllLists().named); }

const Format& FindFormat(std::string_view name) {
  for (const Format& format : AllFormats()) {
    if (format.name == name) return format;
  }
  std::fprintf(stderr, "oracle: no format %.*s\n", static_cast<int>(name.size()), name.data());
  std::abort();
}

}  // namespace oracle
