// Functions of the C interface on single codes against the C++ functions behind them.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>

#include "numsim/arith/arith.h"
#include "numsim/arith/elementary.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/encode.h"
#include "tests/capi/capi_fixture.h"

namespace numsim::capi_test {
namespace {

// float32 patterns: edges and random ones.
std::vector<uint32_t> F32Patterns() {
  std::vector<uint32_t> patterns;
  for (const uint32_t magnitude : {0u,
                                   1u,
                                   0x007FFFFFu,
                                   0x00800000u,
                                   0x3F47AE14u,
                                   0x3F480000u,
                                   0x43E80000u,
                                   0x43E88000u,
                                   0x7F7FFFFFu,
                                   0x7F800000u,
                                   0x7F800001u,
                                   0x7FC00000u}) {
    patterns.push_back(magnitude);
    patterns.push_back(magnitude | 0x80000000u);
  }
  std::mt19937 words(1);
  for (int i = 0; i < 200; ++i) patterns.push_back(static_cast<uint32_t>(words()));
  // Near the values of small formats.
  for (int i = 0; i < 200; ++i) {
    patterns.push_back((static_cast<uint32_t>(words()) & 0x87FFFFFFu) + 0x38000000u);
  }
  return patterns;
}

// The float64 of that float32, and a neighbour of it.
uint64_t F64Pattern(uint32_t bits, bool neighbour) {
  const auto wide = std::bit_cast<uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
  return neighbour ? wide + 1 : wide;
}

TEST(CEncode, F32EqualsTheScalarRule) {
  for (const NamedFormat& format : Formats()) {
    for (const BothRoundings& rounding : Roundings()) {
      const EncodePlan plan = rounding.Plan(format.spec);
      uint32_t random = 0x9E3779B9u;
      for (const uint32_t bits : F32Patterns()) {
        random = random * 1664525u + 1013904223u;
        uint32_t code = ~0u;
        uint8_t flags = 0xFF;
        ASSERT_EQ(numsim_encode_f32(bits, &format.c, &rounding.c, random, &code, &flags),
                  NUMSIM_OK);
        ASSERT_EQ(code, EncodeF32(plan, bits, random)) << format.name << " " << bits;
        const Rounded expected = Convert({kFp32, bits}, plan, random);
        ASSERT_EQ(flags, expected.flags) << format.name << " " << bits;
        // The two ways to a code agree.
        ASSERT_EQ(code, expected.code) << format.name << " " << bits;
      }
    }
  }
}

// Integers and text against float64 where it holds them, and around a tie that it does not hold.
TEST(CEncode, IntegersAndTextAreRoundedOnce) {
  std::mt19937_64 words(3);
  for (const NamedFormat& format : Formats()) {
    for (const BothRoundings& rounding : Roundings()) {
      for (int i = 0; i < 50; ++i) {
        const int64_t value = static_cast<int64_t>(words()) >> (11 + i);
        const auto bits = std::bit_cast<uint64_t>(static_cast<double>(value));
        const auto random = static_cast<uint32_t>(words());
        uint32_t expected = ~0u, code = ~1u, unsigned_code = ~2u, text_code = ~3u;
        uint8_t flags = 0xFF, code_flags = 0xFE, text_flags = 0xFD;
        numsim_encode_f64(bits, &format.c, &rounding.c, random, &expected, &flags);
        ASSERT_EQ(numsim_encode_i64(value, &format.c, &rounding.c, random, &code, &code_flags),
                  NUMSIM_OK);
        ASSERT_EQ(numsim_encode_text(std::to_string(value).c_str(),
                                     &format.c,
                                     &rounding.c,
                                     random,
                                     &text_code,
                                     &text_flags),
                  NUMSIM_OK);
        ASSERT_EQ(code, expected) << format.name << " " << value;
        ASSERT_EQ(code_flags, flags) << format.name << " " << value;
        ASSERT_EQ(text_code, expected) << format.name << " " << value;
        ASSERT_EQ(text_flags, flags) << format.name << " " << value;
        if (value < 0) continue;
        numsim_encode_u64(
            static_cast<uint64_t>(value), &format.c, &rounding.c, random, &unsigned_code, nullptr);
        ASSERT_EQ(unsigned_code, expected) << format.name << " " << value;
      }
    }
  }
  const numsim_format_t bf16 = CFormat("bf16");
  uint32_t code = 0;
  const int64_t above_tie = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  ASSERT_EQ(numsim_encode_i64(above_tie, &bf16, nullptr, 0, &code, nullptr), NUMSIM_OK);
  EXPECT_EQ(code, 0x5D81u);
  ASSERT_EQ(numsim_encode_u64(~uint64_t{0}, &bf16, nullptr, 0, &code, nullptr), NUMSIM_OK);
  EXPECT_EQ(code, 0x5F80u);
  ASSERT_EQ(numsim_encode_i64(INT64_MIN, &bf16, nullptr, 0, &code, nullptr), NUMSIM_OK);
  EXPECT_EQ(code, 0xDF00u);
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const char* const text = "0.78125000000000000000000000001";
  ASSERT_EQ(numsim_encode_text(text, &e4m3fn, nullptr, 0, &code, nullptr), NUMSIM_OK);
  EXPECT_EQ(code, 0x35u);
  for (const char* const bad : {"", "one", "1 2", "0x"}) {
    code = 0xC0DE;
    EXPECT_EQ(numsim_encode_text(bad, &e4m3fn, nullptr, 0, &code, nullptr),
              NUMSIM_ERROR_BAD_ARGUMENT);
    EXPECT_EQ(code, 0xC0DEu);
  }
  EXPECT_EQ(numsim_encode_text(nullptr, &e4m3fn, nullptr, 0, &code, nullptr),
            NUMSIM_ERROR_BAD_ARGUMENT);
}

// 1e39 as a float is infinite.
TEST(CMatrix, ScalesThatFloat32CannotHoldAreRefused) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  const numsim_scale_layout_t tensor = {NUMSIM_SCALE_TENSOR, 0, 0};
  const float in[2] = {1, 2}, infinite = std::bit_cast<float>(0x7F800000u);
  const float nan = std::bit_cast<float>(0x7FC00000u);
  uint8_t codes[2] = {};
  float out[2] = {};
  for (const float scale : {infinite, -infinite, nan}) {
    EXPECT_EQ(numsim_quantize(in, 1, 2, &tensor, &scale, &e4m3fn, nullptr, nullptr, 0, codes, 1),
              NUMSIM_ERROR_BAD_ARGUMENT);
  }
  EXPECT_EQ(numsim_dequantize(&e4m3fn, codes, 1, 1, 2, &tensor, &infinite, out),
            NUMSIM_ERROR_BAD_ARGUMENT);
  EXPECT_EQ(numsim_dequantize(&e4m3fn, codes, 1, 1, 2, &tensor, &nan, out), NUMSIM_OK);
}

TEST(CEncode, F64OfAFloat32HasItsCodeAndFlags) {
  for (const NamedFormat& format : Formats()) {
    for (const BothRoundings& rounding : Roundings()) {
      for (const uint32_t bits : F32Patterns()) {
        const bool signaling = (bits & 0x7FFFFFFFu) > 0x7F800000u && (bits & 0x00400000u) == 0;
        if (signaling) continue;  // the cast in F64Pattern makes it quiet
        uint32_t code32 = ~0u, code64 = ~1u;
        uint8_t flags32 = 0xFF, flags64 = 0xFE;
        ASSERT_EQ(numsim_encode_f32(bits, &format.c, &rounding.c, bits, &code32, &flags32),
                  NUMSIM_OK);
        ASSERT_EQ(numsim_encode_f64(
                      F64Pattern(bits, false), &format.c, &rounding.c, bits, &code64, &flags64),
                  NUMSIM_OK);
        ASSERT_EQ(code32, code64) << format.name << " " << bits;
        ASSERT_EQ(flags32, flags64) << format.name << " " << bits;
      }
    }
  }
}

TEST(CEncode, F64EqualsTheScalarRuleBetweenFloat32Values) {
  for (const NamedFormat& format : Formats()) {
    for (const BothRoundings& rounding : Roundings()) {
      const EncodePlan plan = rounding.Plan(format.spec);
      for (const uint32_t bits : F32Patterns()) {
        const uint64_t wide = F64Pattern(bits, true);
        const bool finite = (wide & ~(uint64_t{1} << 63)) < 0x7FF0000000000000u;
        uint32_t code = ~0u;
        uint8_t flags = 0xFF;
        ASSERT_EQ(numsim_encode_f64(wide, &format.c, &rounding.c, bits, &code, &flags), NUMSIM_OK);
        ASSERT_EQ(code, EncodeF64(plan, wide, bits)) << format.name << " " << bits;
        // Nothing but 2^-1074 and what else fits no small format lies there.
        if (finite) {
          ASSERT_TRUE(flags & (NUMSIM_INEXACT | NUMSIM_INVALID)) << format.name;
        }
      }
    }
  }
}

TEST(CEncode, SignallingNanOfFloat64RaisesInvalid) {
  const numsim_format_t e4m3fn = CFormat("e4m3fn");
  uint32_t code = 0;
  uint8_t flags = 0;
  EXPECT_EQ(numsim_encode_f64(0xFFF0000000000001u, &e4m3fn, nullptr, 0, &code, &flags), NUMSIM_OK);
  EXPECT_EQ(code, 0xFFu);
  EXPECT_EQ(flags, NUMSIM_INVALID);
  EXPECT_EQ(numsim_encode_f64(0xFFF8000000000001u, &e4m3fn, nullptr, 0, &code, &flags), NUMSIM_OK);
  EXPECT_EQ(flags, 0);
}

TEST(CDecode, GivesTheExactValueInBothWidths) {
  for (const NamedFormat& format : Formats()) {
    const uint32_t step = format.spec.Bits() <= 16 ? 1 : format.spec.CodeMask() / 40000;
    for (uint64_t code = 0; code <= format.spec.CodeMask(); code += step) {
      uint32_t f32 = 0;
      uint64_t f64 = 0;
      ASSERT_EQ(numsim_decode_f32(&format.c, static_cast<uint32_t>(code), &f32), NUMSIM_OK);
      ASSERT_EQ(numsim_decode_f64(&format.c, static_cast<uint32_t>(code), &f64), NUMSIM_OK);
      const float expected = Decode(format.spec, static_cast<uint32_t>(code));
      ASSERT_EQ(f32, std::bit_cast<uint32_t>(expected)) << format.name << " " << code;
      ASSERT_EQ(f64, std::bit_cast<uint64_t>(static_cast<double>(expected)))
          << format.name << " " << code;
    }
  }
}

// The result of a function of the C interface.
template <typename Call>
Rounded Delivered(const Call& call) {
  Rounded result = {~0u, 0xFF};
  EXPECT_EQ(call(&result.code, &result.flags), NUMSIM_OK);
  return result;
}

struct BinaryFunction {
  decltype(&numsim_add) c;
  Rounded (*cpp)(const Operand&, const Operand&, const EncodePlan&, uint32_t) noexcept;
};
constexpr BinaryFunction kBinaryFunctions[] = {{numsim_add, Add},
                                               {numsim_subtract, Subtract},
                                               {numsim_multiply, Multiply},
                                               {numsim_divide, Divide},
                                               {numsim_remainder, Remainder}};
struct UnaryFunction {
  decltype(&numsim_sqrt) c;
  Rounded (*cpp)(const Operand&, const EncodePlan&, uint32_t) noexcept;
};
constexpr UnaryFunction kUnaryFunctions[] = {{numsim_sqrt, SquareRoot}, {numsim_convert, Convert}};

class CArithmetic : public ::testing::Test {
 protected:
  // Calls test(a, b, c, target, rounding, random) with random formats and codes.
  template <typename Test>
  void ForRandomOperands(int cases, const Test& test) {
    const std::vector<NamedFormat> formats = Formats();
    const std::vector<BothRoundings> roundings = Roundings();
    std::mt19937 words(7);
    for (int i = 0; i < cases; ++i) {
      const auto format = [&]() -> const NamedFormat& { return formats[words() % formats.size()]; };
      const auto code = [&](const NamedFormat& f) {
        return static_cast<uint32_t>(words()) & f.spec.CodeMask();
      };
      const NamedFormat &a = format(), &b = format(), &c = format(), &to = format();
      SCOPED_TRACE(a.name + " " + b.name + " " + c.name + " -> " + to.name);
      test(Term{&a, code(a)},
           Term{&b, code(b)},
           Term{&c, code(c)},
           to,
           roundings[words() % roundings.size()],
           static_cast<uint32_t>(words()));
      if (HasFailure()) return;
    }
  }

  struct Term {
    const NamedFormat* format;
    uint32_t code;
    Operand Cpp() const { return {format->spec, code}; }
  };
};

TEST_F(CArithmetic, ElementaryFunctionsEqualTheLibrary) {
  ForRandomOperands(
      3000,
      [](const Term& a,
         const Term&,
         const Term&,
         const NamedFormat& to,
         const BothRoundings& rounding,
         uint32_t random) {
        for (int f = NUMSIM_EXP; f <= NUMSIM_ATANH; ++f) {
          EXPECT_EQ(
              Delivered([&](uint32_t* code, uint8_t* flags) {
                return numsim_elementary(
                    f, &a.format->c, a.code, &to.c, &rounding.c, random, code, flags);
              }),
              Elementary(
                  static_cast<ElementaryFunction>(f), a.Cpp(), rounding.Plan(to.spec), random));
        }
      });
}

TEST_F(CArithmetic, OfTwoOperandsEqualsTheLibrary) {
  ForRandomOperands(20000,
                    [](const Term& a,
                       const Term& b,
                       const Term&,
                       const NamedFormat& to,
                       const BothRoundings& rounding,
                       uint32_t random) {
                      for (const BinaryFunction& f : kBinaryFunctions) {
                        EXPECT_EQ(Delivered([&](uint32_t* code, uint8_t* flags) {
                                    return f.c(&a.format->c,
                                               a.code,
                                               &b.format->c,
                                               b.code,
                                               &to.c,
                                               &rounding.c,
                                               random,
                                               code,
                                               flags);
                                  }),
                                  f.cpp(a.Cpp(), b.Cpp(), rounding.Plan(to.spec), random));
                      }
                    });
}

TEST_F(CArithmetic, OfOneOperandEqualsTheLibrary) {
  ForRandomOperands(
      20000,
      [](const Term& a,
         const Term& b,
         const Term&,
         const NamedFormat& to,
         const BothRoundings& rounding,
         uint32_t random) {
        const EncodePlan plan = rounding.Plan(to.spec);
        for (const UnaryFunction& f : kUnaryFunctions) {
          EXPECT_EQ(Delivered([&](uint32_t* code, uint8_t* flags) {
                      return f.c(&a.format->c, a.code, &to.c, &rounding.c, random, code, flags);
                    }),
                    f.cpp(a.Cpp(), plan, random));
        }
        const int64_t n = static_cast<int32_t>(random) >> (b.code % 32);
        EXPECT_EQ(Delivered([&](uint32_t* code, uint8_t* flags) {
                    return numsim_scale(
                        &a.format->c, a.code, n, &to.c, &rounding.c, random, code, flags);
                  }),
                  ScaleByPowerOfTwo(a.Cpp(), n, plan, random));
      });
}

TEST_F(CArithmetic, FmaEqualsTheLibrary) {
  ForRandomOperands(
      20000,
      [](const Term& a,
         const Term& b,
         const Term& c,
         const NamedFormat& to,
         const BothRoundings& rounding,
         uint32_t random) {
        EXPECT_EQ(Delivered([&](uint32_t* code, uint8_t* flags) {
                    return numsim_fma(&a.format->c,
                                      a.code,
                                      &b.format->c,
                                      b.code,
                                      &c.format->c,
                                      c.code,
                                      &to.c,
                                      &rounding.c,
                                      random,
                                      code,
                                      flags);
                  }),
                  FusedMultiplyAdd(a.Cpp(), b.Cpp(), c.Cpp(), rounding.Plan(to.spec), random));
      });
}

TEST_F(CArithmetic, ExtremaAndRelationsEqualTheLibrary) {
  ForRandomOperands(
      20000,
      [](const Term& a,
         const Term& b,
         const Term& c,
         const NamedFormat& to,
         const BothRoundings& rounding,
         uint32_t random) {
        const int extremum = static_cast<int>(c.code % (NUMSIM_MAXIMUM_FINITE + 1));
        EXPECT_EQ(
            Delivered([&](uint32_t* code, uint8_t* flags) {
              return numsim_extremum(extremum,
                                     &a.format->c,
                                     a.code,
                                     &b.format->c,
                                     b.code,
                                     &to.c,
                                     &rounding.c,
                                     random,
                                     code,
                                     flags);
            }),
            Choose(
                static_cast<Extremum>(extremum), a.Cpp(), b.Cpp(), rounding.Plan(to.spec), random));
        int relation = -1;
        EXPECT_EQ(numsim_compare(&a.format->c, a.code, &b.format->c, b.code, &relation), NUMSIM_OK);
        EXPECT_EQ(relation, static_cast<int>(Compare(a.Cpp(), b.Cpp())));
      });
}

TEST(CRandomBits, AreThoseOfTheStream) {
  for (int bits = 1; bits <= 32; ++bits) {
    for (const uint64_t index : {uint64_t{0}, uint64_t{1000}, ~uint64_t{0}}) {
      uint32_t random = ~0u;
      ASSERT_EQ(numsim_random_bits(3, 4, index, bits, &random), NUMSIM_OK);
      EXPECT_EQ(random, RandomBits({3, 4}, index, bits));
    }
  }
}

TEST(CFormat, InfoStatesWidthsAndSpecialCodes) {
  for (const NamedFormat& format : Formats()) {
    numsim_format_info_t info;
    ASSERT_EQ(numsim_format_info(&format.c, &info), NUMSIM_OK);
    EXPECT_EQ(info.bits, format.spec.Bits());
    EXPECT_EQ(info.storage_bytes, format.spec.StorageBytes());
    EXPECT_EQ(info.is_signed, format.spec.IsSigned() ? 1 : 0);
    EXPECT_EQ(info.has_infinity, format.spec.HasInfinity() ? 1 : 0);
    EXPECT_EQ(info.has_nan, format.spec.HasNan() ? 1 : 0);
    EXPECT_EQ(std::bit_cast<float>(info.max_finite_bits),
              Decode(format.spec, info.max_finite_code));
    if (info.has_infinity) {
      EXPECT_EQ(Classify(format.spec, info.infinity_code), ValueClass::kInfinity);
    }
    if (info.has_nan) {
      EXPECT_EQ(Classify(format.spec, info.nan_code), ValueClass::kNan);
    }
    EXPECT_EQ(std::bit_cast<float>(info.min_positive_bits), MinPositive(format.spec));
    EXPECT_GE(std::bit_cast<float>(info.max_finite_bits),
              std::bit_cast<float>(info.min_normal_bits));
  }
}

TEST(CFormat, TextReadsBackToTheFormat) {
  for (const NamedFormat& format : Formats()) {
    char text[128];
    ASSERT_EQ(numsim_format_text(&format.c, text, sizeof text), NUMSIM_OK);
    EXPECT_EQ(text, ToString(format.spec));
    const numsim_format_t again = CFormat(text);
    EXPECT_EQ(std::memcmp(&again, &format.c, sizeof again), 0) << text;
  }
}

}  // namespace
}  // namespace numsim::capi_test
