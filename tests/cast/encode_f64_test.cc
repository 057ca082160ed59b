// The vector conversions of float64 arrays against the scalar rule, on every backend: about every
// place where a code changes, in every mode, and where the random bits turn the result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/cast/cast.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

constexpr ArrayRandom kRandom = {{.seed = 5, .stream = 8}, 1000003};
constexpr Overflow kPolicies[] = {
    Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate};

struct NamedSpec {
  std::string name;
  FormatSpec spec;
};

// The formats of the table, formats of unusual shape, and formats with other subnormal gaps.
std::vector<NamedSpec> Formats() {
  std::vector<NamedSpec> formats;
  for (const FormatEntry& entry : FormatTable()) {
    formats.push_back({std::string(entry.name), entry.spec});
  }
  for (const Format& custom : ParseFormatList(
           "e5m10:bias=20,e8m3:bias=130,ue5m3,e1m6,e5m6,e8m12,e8m18,e8m19,e8m22,e4m23:bias=100,"
           "e4m3:bias=-113,e4m3:bias=-112,inf=none,nan=none,e2m5:bias=-124,inf=none,nan=none")) {
    formats.push_back({custom.name, custom.spec});
  }
  FormatSpec gap = FindFormat("bnb-e4m3")->spec;
  struct Gap {
    int exponent_bits, mantissa_bits, shift;
  };
  for (const auto& [exponent_bits, mantissa_bits, shift] :
       {Gap{4, 1, 5}, {2, 5, 1}, {2, 5, 2}, {4, 8, 5}}) {
    gap.exponent_bits = static_cast<int8_t>(exponent_bits);
    gap.mantissa_bits = static_cast<int8_t>(mantissa_bits);
    gap.subnormal_shift = static_cast<int8_t>(shift);
    formats.push_back({fmt::format("gap_m{}_{}", mantissa_bits, shift), gap});
  }
  return formats;
}

struct EncodeF64EveryFormat : testing::TestWithParam<NamedSpec> {
  const FormatSpec format = GetParam().spec;

  // The value of a code; beyond the largest the spacing goes on.
  double Value(uint32_t code) const {
    const uint32_t last = format.MaxFiniteCode();
    const double value = static_cast<double>(Decode(format, std::min(code, last)));
    if (code <= last) return value;
    return value + (value - static_cast<double>(Decode(format, last - 1)));
  }

  // Codes near the ends, about the smallest normal, and in between.
  std::vector<uint32_t> Codes() const {
    const uint32_t last = format.MaxFiniteCode();
    const uint32_t stride = 1 + last / 128;
    std::vector<uint32_t> codes;
    for (uint32_t code = 0; code <= last; code += std::clamp(last - code, 1u, stride)) {
      codes.push_back(code);
    }
    for (int i = -2; i <= 2; ++i) {
      const int64_t code = (int64_t{1} << format.mantissa_bits) + i;
      if (code >= 0 && code <= last) codes.push_back(static_cast<uint32_t>(code));
    }
    return codes;
  }
};

INSTANTIATE_TEST_SUITE_P(,
                         EncodeF64EveryFormat,
                         testing::ValuesIn(SampledCases(Formats())),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

// Appends x and numbers beside it, of both signs: its neighbours, the neighbours of its upper 32
// bits, and the ends of the lower 32 bits.
void AppendNear(double x, std::vector<double>& out) {
  std::vector<uint64_t> near;
  for (uint64_t bits : oracle::NearF64(x)) near.push_back(bits);
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  for (const uint64_t upper : {(bits >> 32) - (x > 0 ? 1 : 0), bits >> 32, (bits >> 32) + 1}) {
    for (const uint64_t lower : {0u, 1u, 0x80000000u, 0xFFFFFFFFu}) {
      near.push_back(upper << 32 | lower);
    }
  }
  for (uint64_t magnitude : near) {
    out.push_back(std::bit_cast<double>(magnitude));
    out.push_back(-out.back());
  }
}

void AppendSpecial(std::vector<double>& out) {
  for (uint64_t magnitude : oracle::SpecialF64()) {
    out.push_back(std::bit_cast<double>(magnitude));
    out.push_back(std::bit_cast<double>(magnitude | uint64_t{1} << 63));
  }
  // NaN that only the lower half tells from infinity.
  out.push_back(std::bit_cast<double>(uint64_t{0x7FF0000000000001}));
  out.push_back(std::bit_cast<double>(uint64_t{0xFFF0000080000000}));
}

template <typename Code>
void ExpectCodes(const EncodePlan& plan,
                 const std::vector<double>& in,
                 const std::vector<uint32_t>& want) {
  std::vector<Code> got(in.size());
  Encode(plan, std::span(in), std::span(got), kRandom);
  const auto differs = std::mismatch(got.begin(), got.end(), want.begin()).first;
  if (differs == got.end()) return;
  const size_t i = static_cast<size_t>(differs - got.begin());
  ADD_FAILURE() << fmt::format(
      "element {}, {:#018x}: {:#x}, not {:#x}", i, std::bit_cast<uint64_t>(in[i]), got[i], want[i]);
}

// Compares with the scalar rule, in every type that holds the codes.
void ExpectTheRule(const EncodePlan& plan, const std::vector<double>& in) {
  const Rounding& r = plan.rounding;
  SCOPED_TRACE(fmt::format("{} {} {} bits {}",
                           ToString(r.mode),
                           ToString(r.variant),
                           r.random_bits,
                           ToString(plan.overflow)));
  std::vector<uint32_t> want;
  for (size_t i = 0; i < in.size(); ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(in[i]);
    want.push_back(EncodeF64(plan, bits, Draw(plan, kRandom, i)));
  }
  WithEachBackend([&] {
    ExpectCodes<uint32_t>(plan, in, want);
    if (plan.format.StorageBytes() <= 2) ExpectCodes<uint16_t>(plan, in, want);
    if (plan.format.StorageBytes() == 1) ExpectCodes<uint8_t>(plan, in, want);
  });
}

TEST_P(EncodeF64EveryFormat, EveryDeterministicModeIsTheRuleAboutValuesAndMidpoints) {
  std::vector<double> in;
  AppendSpecial(in);
  for (uint32_t code : Codes()) {
    const double low = Value(code), high = Value(code + 1);
    AppendNear(low, in);
    AppendNear(low + (high - low) / 2, in);
  }
  for (RoundingMode mode : kDeterministicModes) {
    for (Overflow policy : kPolicies) ExpectTheRule(MakeEncodePlan(format, {mode}, policy), in);
  }
}

// Each input is the number at which its own random bits begin to round it away, or near it.
TEST_P(EncodeF64EveryFormat, StochasticRoundingTurnsWhereTheRandomBitsSay) {
  const std::vector<uint32_t> codes = Codes();
  const uint32_t low_code = (uint32_t{1} << format.mantissa_bits) - 1;
  for (int v = 0; v < 3; ++v) {
    for (int bits : {1, 8, 11, 12, 13, 14, 15, 16, 17, 18, 24, 32}) {
      const EncodePlan plan =
          MakeEncodePlan(format,
                         {RoundingMode::kStochastic, static_cast<StochasticVariant>(v), bits},
                         kPolicies[(v + bits) % 3]);
      std::vector<double> in;
      if (bits == 8 || bits == 32) AppendSpecial(in);
      oracle::TestRandom choose(static_cast<uint64_t>(bits));
      for (int i = 0; i < 2500; ++i) {
        // Every fourth lies below the smallest normal, where some formats have a gap.
        const uint32_t code = choose.Below(4) == 0 && low_code < format.MaxFiniteCode()
                                  ? low_code
                                  : codes[choose.Below(codes.size())];
        const double low = Value(code), high = Value(code + 1);
        const double half = v == 0 ? 0 : 0.5;
        const double away = std::ldexp(Draw(plan, kRandom, in.size()) + half, -bits);
        const double turn = low + (high - low) * (1 - away);
        // -1, 0 and 1 in the last place of the number or of its upper half.
        const uint64_t near = (choose.Below(3) - 1) << (choose.Below(2) * 32);
        const double x = turn > 0 ? std::bit_cast<double>(std::bit_cast<uint64_t>(turn) + near) : 0;
        in.push_back(choose.Below(2) == 0 ? -x : x);
      }
      ExpectTheRule(plan, in);
    }
  }
}

// Lengths about the multiples of a vector and the length of a block.
TEST(EncodeF64, EveryLengthIsConvertedToItsLastElementAndNoFurther) {
  for (const char* const name : {"e4m3fn", "bnb-e4m3", "bf16", "fp32"}) {
    for (const Rounding& rounding :
         {Rounding{},
          Rounding{RoundingMode::kDown},
          Rounding{RoundingMode::kStochastic, StochasticVariant::kA, 8},
          Rounding{RoundingMode::kStochastic, StochasticVariant::kA, 32}}) {
      const EncodePlan plan = MakeEncodePlan(ParseFormat(name).spec, rounding);
      std::vector<double> in;
      for (size_t i = 0; i < 2100; ++i) {
        in.push_back(std::ldexp(1 + static_cast<double>(i * 7919 % 4096) / 4096,
                                static_cast<int>(i % 23) - 14));
      }
      std::vector<uint32_t> want;
      for (size_t i = 0; i < in.size(); ++i) {
        const uint64_t bits = std::bit_cast<uint64_t>(in[i]);
        want.push_back(EncodeF64(plan, bits, Draw(plan, kRandom, i)));
      }
      WithEachBackend([&] {
        for (size_t n = 0; n <= in.size(); ++n) {
          if (n > 70 && (n < 1023 || n > 1040) && n != 2048 && n != 2077) continue;
          std::vector<uint32_t> got(in.size(), 0xABCDEF);
          Encode(plan, std::span(in).first(n), std::span(got).first(n), kRandom);
          ASSERT_TRUE(std::equal(got.begin(), got.begin() + static_cast<int>(n), want.begin()))
              << name << " " << n;
          ASSERT_EQ(std::count(got.begin() + static_cast<int>(n), got.end(), 0xABCDEFu),
                    static_cast<int>(in.size() - n))
              << name << " " << n;
        }
      });
    }
  }
}

}  // namespace
}  // namespace numsim
