// Arithmetic and conversions against the processor's own, results and exception flags, wherever the
// processor follows IEEE 754: fp32, fp16 and bf16 on x86.
#include <gtest/gtest.h>

#include "tests/support/codes.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>

namespace numsim {
namespace {

// The result of one instruction, and the flags that it raised by the processor's own rules.
// Tininess is detected after rounding.
struct FromHardware {
  uint32_t code = 0;
  Flags flags = 0;
};

constexpr uint32_t kAllMasked = 0x1F80;  // MXCSR: no traps, no flags, nothing flushed to zero

Flags FlagsOfMxcsr(uint32_t state) {
  Flags flags = 0;
  if (state & 0x01) flags |= kInvalid;  // 0x02 tells of subnormal operands
  if (state & 0x04) flags |= kDivideByZero;
  if (state & 0x08) flags |= kOverflow;
  if (state & 0x10) flags |= kUnderflow;
  if (state & 0x20) flags |= kInexact;
  return flags;
}

// A function that runs one instruction on the low elements x and y of vectors (and on r, which it
// overwrites) under the control word `control`, and leaves MXCSR as it was. Assembly keeps
// compilers from moving the arithmetic past the control word, and needs no support of theirs for
// fp16.
#define NUMSIM_INSTRUCTION(name, text)                                                     \
  FromHardware name(uint32_t a, uint32_t b, uint32_t c, uint32_t control) {                \
    const uint32_t before = _mm_getcsr();                                                  \
    const __m128i x = _mm_cvtsi32_si128(static_cast<int>(a));                              \
    const __m128i y = _mm_cvtsi32_si128(static_cast<int>(b));                              \
    __m128i r = _mm_cvtsi32_si128(static_cast<int>(c));                                    \
    uint32_t state = 0;                                                                    \
    asm volatile("ldmxcsr %[control]\n\t" text "\n\tstmxcsr %[state]\n\tldmxcsr %[before]" \
                 : [r] "+x"(r), [state] "=m"(state)                                        \
                 : [x] "x"(x), [y] "x"(y), [control] "m"(control), [before] "m"(before));  \
    return {static_cast<uint32_t>(_mm_cvtsi128_si32(r)), FlagsOfMxcsr(state)};             \
  }

NUMSIM_INSTRUCTION(AddF32, "vaddss %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(SubtractF32, "vsubss %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(MultiplyF32, "vmulss %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(DivideF32, "vdivss %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(SquareRootF32, "vsqrtss %[x], %[x], %[r]")
NUMSIM_INSTRUCTION(FmaF32, "vfmadd231ss %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(AddF16, "vaddsh %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(SubtractF16, "vsubsh %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(MultiplyF16, "vmulsh %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(DivideF16, "vdivsh %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(SquareRootF16, "vsqrtsh %[x], %[x], %[r]")
NUMSIM_INSTRUCTION(FmaF16, "vfmadd231sh %[y], %[x], %[r]")
NUMSIM_INSTRUCTION(NearestF16OfF32, "vcvtps2ph $0, %[x], %[r]")
NUMSIM_INSTRUCTION(DownF16OfF32, "vcvtps2ph $1, %[x], %[r]")
NUMSIM_INSTRUCTION(UpF16OfF32, "vcvtps2ph $2, %[x], %[r]")
NUMSIM_INSTRUCTION(TruncatedF16OfF32, "vcvtps2ph $3, %[x], %[r]")
NUMSIM_INSTRUCTION(F32OfF16, "vcvtph2ps %[x], %[r]")
NUMSIM_INSTRUCTION(Bf16OfF32, "vcvtneps2bf16 %[x], %[r]")
#undef NUMSIM_INSTRUCTION

using Instruction = FromHardware (*)(uint32_t, uint32_t, uint32_t, uint32_t);

// Bits of the processor's leaf 7; the operating system must have AVX-512 on.
bool HasAvx512Extension(uint32_t sub_leaf, uint32_t edx, uint32_t eax) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  if (!__builtin_cpu_supports("avx512vl")) return false;
  if (__get_cpuid_count(7, sub_leaf, &a, &b, &c, &d) == 0) return false;
  return (d & edx) == edx && (a & eax) == eax;
}
bool HasFma() { return __builtin_cpu_supports("avx") && __builtin_cpu_supports("fma"); }
bool HasAvx512Fp16() { return HasAvx512Extension(0, 1u << 23, 0); }
bool HasAvx512Bf16() { return HasAvx512Extension(1, 0, 1u << 5); }
bool HasF16c() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_supports("avx") && __get_cpuid(1, &a, &b, &c, &d) != 0 &&
         (c & (1u << 29)) != 0;
}

struct HardwareMode {
  RoundingMode mode;
  uint32_t control;  // the field of MXCSR
};
constexpr HardwareMode kModes[] = {{RoundingMode::kNearestEven, 0x0000},
                                   {RoundingMode::kDown, 0x2000},
                                   {RoundingMode::kUp, 0x4000},
                                   {RoundingMode::kTowardZero, 0x6000}};

struct Triple {
  uint32_t a, b, c;
};

// Codes at which something changes, of both signs.
std::vector<uint32_t> EdgeCodes(const FormatSpec& format) {
  const uint32_t one = CodeOf(format, 1.0), normal = uint32_t{1} << format.mantissa_bits;
  const uint32_t infinity = format.InfinityCode(), quiet = normal / 2;
  std::vector<uint32_t> codes = {0, infinity + 1, infinity + quiet - 1, infinity + quiet};
  for (uint32_t near : {2u,
                        normal / 2,
                        normal,
                        2 * normal,
                        one - normal,
                        one,
                        one + normal,
                        infinity - normal,
                        infinity - 2}) {
    for (uint32_t step : {0u, 1u, 2u, 3u, 4u}) codes.push_back(near + step - 2);
  }
  const size_t positive = codes.size();
  for (size_t i = 0; i < positive; ++i) codes.push_back(codes[i] | format.SignBit());
  return codes;
}

// Every pair of edge codes with a third, then random triples: any codes, or exponents such that
// sums cancel, products are subnormal or overflow, and addends reach the rounded bits of a product.
std::vector<Triple> Triples(const FormatSpec& format, size_t n) {
  oracle::TestRandom random(31);
  const std::vector<uint32_t> edges = EdgeCodes(format);
  const std::vector<Operand> any = RandomCodes(format, 4096, 32);
  std::vector<Triple> triples;
  for (uint32_t a : edges) {
    for (uint32_t b : edges) triples.push_back({a, b, edges[random.Below(edges.size())]});
  }
  while (triples.size() < n) {
    Triple t = {any[random.Below(4096)].code, any[random.Below(4096)].code, 0};
    t.c = any[random.Below(4096)].code;
    const uint64_t kind = random.Below(4);
    const auto near = static_cast<uint32_t>(random.Below(uint64_t{8} << format.mantissa_bits));
    if (kind == 0) t.b = (t.a ^ format.SignBit()) + near / 8;
    if (kind == 1) t.b = CodeOf(format, 1.0) - (t.a & format.MagnitudeMask()) + near;
    if (kind == 2) t.c = edges[random.Below(edges.size())];
    triples.push_back({t.a & format.CodeMask(), t.b & format.CodeMask(), t.c});
  }
  return triples;
}

bool IsNan(const FormatSpec& format, uint32_t code) {
  return Classify(format, code) == ValueClass::kNan;
}

testing::AssertionResult Same(const FormatSpec& format, const Rounded& got, FromHardware hardware) {
  hardware.code &= format.CodeMask();
  const bool nan = IsNan(format, hardware.code);  // payloads differ by rule
  const bool same = nan ? IsNan(format, got.code) : got.code == hardware.code;
  if (same && got.flags == hardware.flags) return testing::AssertionSuccess();
  return testing::AssertionFailure() << fmt::format("{}, by hardware {}",
                                                    Text(format, got),
                                                    Text(format, {hardware.code, hardware.flags}));
}

// One operation of the library and the instruction that does the same.
using Operation = Rounded (*)(const Operand&, const Operand&, const Operand&, const EncodePlan&);
struct Pairing {
  const char* name;
  Operation library;
  Instruction hardware;
};

Rounded SumOf(const Operand& a, const Operand& b, const Operand&, const EncodePlan& to) {
  return Add(a, b, to);
}
Rounded DifferenceOf(const Operand& a, const Operand& b, const Operand&, const EncodePlan& to) {
  return Subtract(a, b, to);
}
Rounded ProductOf(const Operand& a, const Operand& b, const Operand&, const EncodePlan& to) {
  return Multiply(a, b, to);
}
Rounded QuotientOf(const Operand& a, const Operand& b, const Operand&, const EncodePlan& to) {
  return Divide(a, b, to);
}
Rounded RootOf(const Operand& a, const Operand&, const Operand&, const EncodePlan& to) {
  return SquareRoot(a, to);
}
Rounded FmaOf(const Operand& a, const Operand& b, const Operand& c, const EncodePlan& to) {
  return FusedMultiplyAdd(a, b, c, to);
}

constexpr size_t kCases = 150000;  // an operation and mode

void ExpectAsHardware(const FormatSpec& format, const std::vector<Pairing>& pairings) {
  const std::vector<Triple> triples = Triples(format, kCases);
  Flags seen = 0;
  for (const HardwareMode& mode : kModes) {
    const EncodePlan to = MakeEncodePlan(format, {.mode = mode.mode});
    for (const Pairing& pairing : pairings) {
      for (const Triple& t : triples) {
        const Operand a = {format, t.a}, b = {format, t.b}, c = {format, t.c};
        const Rounded got = pairing.library(a, b, c, to);
        const FromHardware hardware = pairing.hardware(t.a, t.b, t.c, kAllMasked | mode.control);
        ASSERT_TRUE(Same(format, got, hardware)) << pairing.name << " of " << Text(a) << ", "
                                                 << Text(b) << ", " << Text(c) << " " << Text(to);
        seen |= hardware.flags;
      }
    }
  }
  EXPECT_EQ(seen, kInexact | kUnderflow | kOverflow | kDivideByZero | kInvalid);
}

TEST(Hardware, Fp32ArithmeticAndFlagsEqualSseAndFma) {
  if (!HasFma()) GTEST_SKIP() << "this processor has no FMA";
  ExpectAsHardware(Spec("fp32"),
                   {{"add", SumOf, AddF32},
                    {"subtract", DifferenceOf, SubtractF32},
                    {"multiply", ProductOf, MultiplyF32},
                    {"divide", QuotientOf, DivideF32},
                    {"square root", RootOf, SquareRootF32},
                    {"fma", FmaOf, FmaF32}});
}

TEST(Hardware, Fp16ArithmeticAndFlagsEqualAvx512Fp16) {
  if (!HasAvx512Fp16()) GTEST_SKIP() << "this processor has no AVX512-FP16";
  ExpectAsHardware(Spec("fp16"),
                   {{"add", SumOf, AddF16},
                    {"subtract", DifferenceOf, SubtractF16},
                    {"multiply", ProductOf, MultiplyF16},
                    {"divide", QuotientOf, DivideF16},
                    {"square root", RootOf, SquareRootF16},
                    {"fma", FmaOf, FmaF16}});
}

TEST(Hardware, AllSquareRootsOfFp16EqualAvx512Fp16) {
  if (!HasAvx512Fp16()) GTEST_SKIP() << "this processor has no AVX512-FP16";
  const FormatSpec format = Spec("fp16");
  for (const HardwareMode& mode : kModes) {
    const EncodePlan to = MakeEncodePlan(format, {.mode = mode.mode});
    for (const Operand& a : AllCodes(format)) {
      const FromHardware hardware = SquareRootF16(a.code, 0, 0, kAllMasked | mode.control);
      ASSERT_TRUE(Same(format, SquareRoot(a, to), hardware)) << Text(a) << " to " << Text(to);
    }
  }
}

// (1 + 2^-10) 2^-14 * (1 - 2^-10): below the smallest normal number by 2^-20 of it, so tiny;
// rounded to 11 bits with any exponent it is that number, so not tiny.
TEST(Hardware, TininessIsDetectedAfterRounding) {
  if (!HasAvx512Fp16()) GTEST_SKIP() << "this processor has no AVX512-FP16";
  const FormatSpec format = Spec("fp16");
  EncodePlan to = MakeEncodePlan(format);
  const Operand a = {format, 0x0401}, b = {format, 0x3BFE};
  EXPECT_EQ(MultiplyF16(a.code, b.code, 0, kAllMasked).flags, kInexact);
  EXPECT_EQ(Multiply(a, b, to), (Rounded{0x0400, kInexact}));
  to.tininess = Tininess::kBeforeRounding;
  EXPECT_EQ(Multiply(a, b, to), (Rounded{0x0400, kInexact | kUnderflow}));
}

// float32 numbers: special and random ones, and all values and midpoints of a 16-bit format with
// their neighbours.
std::vector<uint32_t> Fp32Inputs(const FormatSpec& format) {
  std::vector<uint32_t> magnitudes = oracle::SpecialF32();
  for (uint32_t code = 0; code < format.MaxFiniteCode(); ++code) {
    const double low = Value(format, code), high = Value(format, code + 1);
    for (double x : {low, low + (high - low) / 2}) {
      const uint32_t bits = CodeOf(Spec("fp32"), x);
      for (uint32_t step : {0u, 1u, 2u}) magnitudes.push_back(bits + step - (bits > 0 ? 1 : 0));
    }
  }
  const uint32_t max = CodeOf(Spec("fp32"), Value(format, format.MaxFiniteCode()));
  const uint32_t half_gap = uint32_t{1} << (22 - format.mantissa_bits);
  for (uint32_t step = 0; step < 5; ++step) {  // the largest value, and where overflow begins
    magnitudes.push_back(max + step - 2);
    magnitudes.push_back(max + half_gap + step - 2);
    magnitudes.push_back(max + 2 * half_gap + step - 2);
  }
  oracle::TestRandom random(33);
  for (int i = 0; i < 300000; ++i) magnitudes.push_back(random.Next32() >> 1);
  std::vector<uint32_t> inputs;
  for (uint32_t bits : magnitudes) {
    inputs.push_back(bits);
    inputs.push_back(bits | 0x80000000u);
  }
  return inputs;
}

TEST(Hardware, ConversionOfFp32ToFp16EqualsF16cInFourModes) {
  if (!HasF16c()) GTEST_SKIP() << "this processor has no F16C";
  const FormatSpec fp16 = Spec("fp16"), fp32 = Spec("fp32");
  const std::pair<RoundingMode, Instruction> modes[] = {
      {RoundingMode::kNearestEven, NearestF16OfF32},
      {RoundingMode::kDown, DownF16OfF32},
      {RoundingMode::kUp, UpF16OfF32},
      {RoundingMode::kTowardZero, TruncatedF16OfF32}};
  const std::vector<uint32_t> inputs = Fp32Inputs(fp16);
  for (const auto& [mode, instruction] : modes) {
    const EncodePlan to = MakeEncodePlan(fp16, {.mode = mode});
    for (uint32_t bits : inputs) {
      const FromHardware hardware = instruction(bits, 0, 0, kAllMasked);
      const Rounded got = Convert({fp32, bits}, to);
      ASSERT_TRUE(Same(fp16, got, hardware)) << Text(Operand{fp32, bits}) << " to " << Text(to);
      ASSERT_EQ(EncodeF32(to, bits, 0), got.code) << Text(Operand{fp32, bits});
    }
  }
}

TEST(Hardware, ConversionOfAllFp16CodesToFp32EqualsF16c) {
  if (!HasF16c()) GTEST_SKIP() << "this processor has no F16C";
  const FormatSpec fp32 = Spec("fp32");
  const EncodePlan to = MakeEncodePlan(fp32);
  for (const Operand& a : AllCodes(Spec("fp16"))) {
    const FromHardware hardware = F32OfF16(a.code, 0, 0, kAllMasked);
    ASSERT_TRUE(Same(fp32, Convert(a, to), hardware)) << Text(a);
  }
}

TEST(Hardware, ConversionOfFp32ToBf16EqualsAvx512Bf16ExceptThatItFlushesSubnormals) {
  if (!HasAvx512Bf16()) GTEST_SKIP() << "this processor has no AVX512-BF16";
  const FormatSpec bf16 = Spec("bf16"), fp32 = Spec("fp32");
  const EncodePlan to = MakeEncodePlan(bf16);
  int flushed = 0;
  for (uint32_t bits : Fp32Inputs(bf16)) {
    const Operand a = {fp32, bits};
    const uint32_t hardware = Bf16OfF32(bits, 0, 0, kAllMasked).code & 0xFFFF;
    const uint32_t got = Convert(a, to).code;
    if (Classify(fp32, bits) == ValueClass::kSubnormal) {
      ASSERT_EQ(hardware, bits >> 31 << 15) << Text(a);  // zero of that sign
      if (got != hardware) ++flushed;
    } else if (IsNan(fp32, bits)) {
      ASSERT_TRUE(IsNan(bf16, hardware) && IsNan(bf16, got)) << Text(a);
    } else {
      ASSERT_EQ(got, hardware) << Text(a);
    }
  }
  EXPECT_GT(flushed, 100);
}

}  // namespace
}  // namespace numsim

#else

TEST(Hardware, EqualsTheProcessorsArithmetic) { GTEST_SKIP() << "the processor is not an x86-64"; }

#endif
