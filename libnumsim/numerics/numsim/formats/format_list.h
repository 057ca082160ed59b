// The list of formats itself, visible at compile time. Other code reads it through format_table.h
// (at run time) or named_formats.h (as constants).
#pragma once

#include <array>
#include <string_view>

#include "numsim/formats/format_spec.h"
#include "numsim/formats/format_table.h"

namespace numsim::format_list {

// The families of formats in the table. Each function returns the spec of one format.

// As IEEE 754: exponents of all ones are infinity and NaN.
constexpr FormatSpec Ieee(int exponent_bits, int mantissa_bits) {
  return {.exponent_bits = static_cast<int8_t>(exponent_bits),
          .mantissa_bits = static_cast<int8_t>(mantissa_bits),
          .bias = static_cast<int16_t>((1 << (exponent_bits - 1)) - 1),
          .infinity = Infinity::kIeee,
          .nan = Nan::kIeee,
          .overflow_to = OverflowTo::kInfinity};
}

// No infinity, no NaN: every code is a finite number.
constexpr FormatSpec FiniteOnly(int exponent_bits, int mantissa_bits) {
  return {.exponent_bits = static_cast<int8_t>(exponent_bits),
          .mantissa_bits = static_cast<int8_t>(mantissa_bits),
          .bias = static_cast<int16_t>((1 << (exponent_bits - 1)) - 1)};
}

// No infinity. NaN is all ones, and an overflow becomes NaN.
constexpr FormatSpec AllOnesNan(int exponent_bits, int mantissa_bits) {
  FormatSpec spec = FiniteOnly(exponent_bits, mantissa_bits);
  spec.nan = Nan::kAllOnes;
  spec.overflow_to = OverflowTo::kNan;
  return spec;
}

// No infinity, NaN in place of negative zero.
constexpr FormatSpec Fnuz(int exponent_bits, int mantissa_bits, int bias) {
  return {.exponent_bits = static_cast<int8_t>(exponent_bits),
          .mantissa_bits = static_cast<int8_t>(mantissa_bits),
          .bias = static_cast<int16_t>(bias),
          .zero = Zero::kUnsigned,
          .nan = Nan::kNegativeZero,
          .overflow_to = OverflowTo::kNan};
}

// Whether a format of [P3109] has infinities: kExtended has.
enum class Domain { kFinite, kExtended };

// A [P3109] format of k bits. The precision p includes the hidden bit.
constexpr FormatSpec Binary(int k, int p, Sign sign, Domain domain) {
  const bool is_signed = sign != Sign::kUnsigned;
  const bool extended = domain == Domain::kExtended;
  const int exponent_bits = is_signed ? k - p : k - p + 1;
  return {.exponent_bits = static_cast<int8_t>(exponent_bits),
          .mantissa_bits = static_cast<int8_t>(p - 1),
          .bias = static_cast<int16_t>(1 << (exponent_bits - 1)),
          .sign = sign,
          .zero = Zero::kUnsigned,
          .infinity = extended ? Infinity::kTopCode : Infinity::kNone,
          .nan = is_signed ? Nan::kNegativeZero : Nan::kAllOnes,
          .overflow_to = extended ? OverflowTo::kInfinity : OverflowTo::kMax};
}

// The formats of bitsandbytes' create_fp8_map: the spacing of the subnormals is a quarter of IEEE
// 754's.
constexpr FormatSpec BitsAndBytes(int exponent_bits, int mantissa_bits) {
  FormatSpec spec = FiniteOnly(exponent_bits, mantissa_bits);
  spec.subnormal_shift = 2;
  return spec;
}

// Powers of two, without zero or sign: the scales of MX blocks.
inline constexpr FormatSpec kPowersOfTwo = {.exponent_bits = 8,
                                            .mantissa_bits = 0,
                                            .bias = 127,
                                            .sign = Sign::kUnsigned,
                                            .zero = Zero::kNone,
                                            .nan = Nan::kAllOnes,
                                            .overflow_to = OverflowTo::kNan};

// The numbers of OCP's E4M3 from 0 on: the scales of NVFP4 blocks.
inline constexpr FormatSpec kUnsignedE4M3 = [] {
  FormatSpec spec = AllOnesNan(4, 3);
  spec.sign = Sign::kUnsigned;
  spec.zero = Zero::kUnsigned;
  return spec;
}();

// Fixed point: multiples of 2^-fraction_bits in two's complement, the sign bit counted among the
// integer bits, or without a sign. The subnormals and one normal binade have the same spacing.
constexpr FormatSpec FixedPoint(int integer_bits, int fraction_bits, Sign sign) {
  const bool is_signed = sign != Sign::kUnsigned;
  const int mantissa_bits = integer_bits + fraction_bits - (is_signed ? 2 : 1);
  return {.exponent_bits = 1,
          .mantissa_bits = static_cast<int8_t>(mantissa_bits),
          .bias = static_cast<int16_t>(1 - mantissa_bits + fraction_bits),
          .sign = sign,
          .zero = Zero::kUnsigned,
          .full_range = is_signed};
}

// The integers from -127 to 127 in two's complement; the code 0x80 is unused.
inline constexpr FormatSpec kIntegersTo127 = [] {
  FormatSpec spec = FixedPoint(8, 0, Sign::kTwosComplement);
  spec.full_range = false;
  return spec;
}();

// Short names for the rows of the table.
inline constexpr auto kS = Sign::kSignMagnitude;
inline constexpr auto kU = Sign::kUnsigned;
inline constexpr auto kT = Sign::kTwosComplement;
inline constexpr auto kF = Domain::kFinite;
inline constexpr auto kE = Domain::kExtended;

// One row per format: name, spec, source, note.
// clang-format off
inline constexpr std::array kTable = {
    FormatEntry{"fp32",          Ieee(8, 23),          "IEEE754",        "binary32"},
    FormatEntry{"tf32",          Ieee(8, 10),          "TF32",           "19 bits: range of fp32, precision of fp16"},
    FormatEntry{"bf16",          Ieee(8, 7),           "BF16",           "bfloat16: upper half of fp32, subnormals kept"},
    FormatEntry{"fp16",          Ieee(5, 10),          "IEEE754",        "binary16"},
    FormatEntry{"e5m2",          Ieee(5, 2),           "OCP-OFP8",       "OCP FP8 E5M2"},
    FormatEntry{"e4m3fn",        AllOnesNan(4, 3),     "OCP-OFP8",       "OCP FP8 E4M3: no infinity, NaN is all ones"},
    FormatEntry{"e4m3",          Ieee(4, 3),           "APFloat, Gaudi", "IEEE-like E4M3 with infinities"},
    FormatEntry{"e3m4",          Ieee(3, 4),           "APFloat",        "IEEE-like E3M4 with infinities"},
    FormatEntry{"e4m3fnuz",      Fnuz(4, 3, 8),        "FNUZ",           "no infinity, no negative zero (its code is NaN)"},
    FormatEntry{"e5m2fnuz",      Fnuz(5, 2, 16),       "FNUZ",           "no infinity, no negative zero (its code is NaN)"},
    FormatEntry{"e4m3b11fnuz",   Fnuz(4, 3, 11),       "HFP8, APFloat",  "E4M3 with bias 11"},
    FormatEntry{"e8m0fnu",       kPowersOfTwo,         "OCP-MX",         "scale of MX blocks: powers of two, no zero, no sign"},
    FormatEntry{"ue4m3fn",       kUnsignedE4M3,        "PTX",            "scale of NVFP4 blocks: e4m3fn without a sign"},
    FormatEntry{"e3m2fn",        FiniteOnly(3, 2),     "OCP-MX",         "OCP FP6 E3M2: neither infinity nor NaN"},
    FormatEntry{"e2m3fn",        FiniteOnly(2, 3),     "OCP-MX",         "OCP FP6 E2M3: neither infinity nor NaN"},
    FormatEntry{"e2m1fn",        FiniteOnly(2, 1),     "OCP-MX",         "OCP FP4 E2M1: neither infinity nor NaN"},
    FormatEntry{"binary8p1se",   Binary(8, 1, kS, kE), "P3109",          "precision 1, signed, extended"},
    FormatEntry{"binary8p2se",   Binary(8, 2, kS, kE), "P3109",          "precision 2, signed, extended"},
    FormatEntry{"binary8p3se",   Binary(8, 3, kS, kE), "P3109",          "precision 3, signed, extended"},
    FormatEntry{"binary8p4se",   Binary(8, 4, kS, kE), "P3109",          "precision 4, signed, extended"},
    FormatEntry{"binary8p5se",   Binary(8, 5, kS, kE), "P3109",          "precision 5, signed, extended"},
    FormatEntry{"binary8p6se",   Binary(8, 6, kS, kE), "P3109",          "precision 6, signed, extended"},
    FormatEntry{"binary8p7se",   Binary(8, 7, kS, kE), "P3109",          "precision 7, signed, extended"},
    FormatEntry{"binary8p1sf",   Binary(8, 1, kS, kF), "P3109",          "precision 1, signed, finite"},
    FormatEntry{"binary8p2sf",   Binary(8, 2, kS, kF), "P3109",          "precision 2, signed, finite"},
    FormatEntry{"binary8p3sf",   Binary(8, 3, kS, kF), "P3109",          "precision 3, signed, finite"},
    FormatEntry{"binary8p4sf",   Binary(8, 4, kS, kF), "P3109",          "precision 4, signed, finite: values of e4m3fnuz, but saturates"},
    FormatEntry{"binary8p5sf",   Binary(8, 5, kS, kF), "P3109",          "precision 5, signed, finite"},
    FormatEntry{"binary8p6sf",   Binary(8, 6, kS, kF), "P3109",          "precision 6, signed, finite"},
    FormatEntry{"binary8p7sf",   Binary(8, 7, kS, kF), "P3109",          "precision 7, signed, finite"},
    FormatEntry{"binary8p1ue",   Binary(8, 1, kU, kE), "P3109",          "precision 1, unsigned, extended"},
    FormatEntry{"binary8p2ue",   Binary(8, 2, kU, kE), "P3109",          "precision 2, unsigned, extended"},
    FormatEntry{"binary8p3ue",   Binary(8, 3, kU, kE), "P3109",          "precision 3, unsigned, extended"},
    FormatEntry{"binary8p4ue",   Binary(8, 4, kU, kE), "P3109",          "precision 4, unsigned, extended"},
    FormatEntry{"binary8p5ue",   Binary(8, 5, kU, kE), "P3109",          "precision 5, unsigned, extended"},
    FormatEntry{"binary8p6ue",   Binary(8, 6, kU, kE), "P3109",          "precision 6, unsigned, extended"},
    FormatEntry{"binary8p7ue",   Binary(8, 7, kU, kE), "P3109",          "precision 7, unsigned, extended"},
    FormatEntry{"binary8p8ue",   Binary(8, 8, kU, kE), "P3109",          "precision 8, unsigned, extended"},
    FormatEntry{"binary8p1uf",   Binary(8, 1, kU, kF), "P3109",          "precision 1, unsigned, finite: a scale format, unlike e8m0fnu it has zero"},
    FormatEntry{"binary8p2uf",   Binary(8, 2, kU, kF), "P3109",          "precision 2, unsigned, finite"},
    FormatEntry{"binary8p3uf",   Binary(8, 3, kU, kF), "P3109",          "precision 3, unsigned, finite"},
    FormatEntry{"binary8p4uf",   Binary(8, 4, kU, kF), "P3109",          "precision 4, unsigned, finite"},
    FormatEntry{"binary8p5uf",   Binary(8, 5, kU, kF), "P3109",          "precision 5, unsigned, finite"},
    FormatEntry{"binary8p6uf",   Binary(8, 6, kU, kF), "P3109",          "precision 6, unsigned, finite"},
    FormatEntry{"binary8p7uf",   Binary(8, 7, kU, kF), "P3109",          "precision 7, unsigned, finite"},
    FormatEntry{"binary8p8uf",   Binary(8, 8, kU, kF), "P3109",          "precision 8, unsigned, finite"},
    FormatEntry{"binary4p2sf",   Binary(4, 2, kS, kF), "P3109",          "4 bits, precision 2, signed, finite: max 3"},
    FormatEntry{"bnb-e4m3",      BitsAndBytes(4, 3),   "bnb",            "bitsandbytes' fp8 map, forward: max 480, a subnormal gap"},
    FormatEntry{"bnb-e5m2",      BitsAndBytes(5, 2),   "bnb",            "bitsandbytes' fp8 map, backward: max 114688, a subnormal gap"},
    FormatEntry{"qpytorch-e4m3", FiniteOnly(4, 3),     "QPyTorch",       "float_quantize(exp=4, man=3): max 480"},
    FormatEntry{"qpytorch-e5m2", FiniteOnly(5, 2),     "QPyTorch",       "float_quantize(exp=5, man=2): max 114688"},
    FormatEntry{"e1m2fn",        FiniteOnly(1, 2),     "UFP4",           "uniform FP4: 0, 0.5 .. 3.5, with signs"},
    FormatEntry{"int8",          kIntegersTo127,       "SwitchBack",     "symmetric integers -127..127; code 0x80 is unused"},
    FormatEntry{"int4",          FixedPoint(4, 0, kT), "ONNX-Cast",      "integers -8..7; symmetric: int4:range=symmetric"},
    FormatEntry{"int2",          FixedPoint(2, 0, kT), "ONNX-Cast",      "integers -2..1; ternary: int2:range=symmetric"},
    FormatEntry{"uint8",         FixedPoint(8, 0, kU), "ONNX-Cast",      "integers 0..255"},
    FormatEntry{"uint4",         FixedPoint(4, 0, kU), "ONNX-Cast",      "integers 0..15"},
    FormatEntry{"uint2",         FixedPoint(2, 0, kU), "ONNX-Cast",      "integers 0..3"},
};
// clang-format on

}  // namespace numsim::format_list
