// The array conversions against the scalar rule, bit for bit, on every backend.
#include "numsim/cast/cast.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "tests/reference/inputs.h"
#include "tests/support/every_backend.h"
#include "tests/support/sampling.h"

namespace numsim {
namespace {

constexpr RandomStream kStream = {.seed = 0x1234567890ABCDEF, .stream = 0x0F0E0D0C0B0A0908};
constexpr size_t kLarge = 40009;  // several threads' worth, and no multiple of anything

// An array of any alignment between two strips that nobody may write to.
template <typename T>
class Framed {
 public:
  Framed(size_t n, size_t offset)
      : begin_(kStrip + offset), n_(n), all_(begin_ + n + kStrip, kCanary) {}
  std::span<T> Get() { return {all_.data() + begin_, n_}; }
  // The elements as words. Fails the test when a strip was written to.
  std::vector<uint32_t> Words() const {
    const auto begin = all_.begin() + begin_, end = begin + n_;
    const auto untouched =
        std::count(all_.begin(), begin, kCanary) + std::count(end, all_.end(), kCanary);
    EXPECT_EQ(static_cast<size_t>(untouched), begin_ + kStrip) << "of " << n_ << " elements";
    std::vector<uint32_t> words(n_);
    for (size_t i = 0; i < n_; ++i) std::memcpy(&words[i], &begin[i], sizeof(T));
    return words;
  }

 private:
  static constexpr size_t kStrip = 32;
  static constexpr T kCanary = 165;
  size_t begin_, n_;
  std::vector<T> all_;
};

uint32_t Draw(const EncodePlan& plan, const ArrayRandom& random, size_t i) {
  if (plan.rounding.mode != RoundingMode::kStochastic) return 0;
  return RandomBits(random.stream, random.first_index + i, plan.rounding.random_bits);
}

std::vector<uint32_t> ScalarCodes(const EncodePlan& plan,
                                  std::span<const float> in,
                                  const ArrayRandom& random) {
  std::vector<uint32_t> codes;
  for (size_t i = 0; i < in.size(); ++i) {
    codes.push_back(EncodeF32(plan, std::bit_cast<uint32_t>(in[i]), Draw(plan, random, i)));
  }
  return codes;
}

std::vector<uint32_t> ScalarValues(const FormatSpec& format, std::vector<uint32_t> codes) {
  for (uint32_t& code : codes) code = std::bit_cast<uint32_t>(Decode(format, code));
  return codes;
}

// Calls act with a code of the format's storage type.
template <typename Act>
std::vector<uint32_t> WithCodeType(const FormatSpec& format, const Act& act) {
  if (format.StorageBytes() == 1) return act(uint8_t{});
  if (format.StorageBytes() == 2) return act(uint16_t{});
  return act(uint32_t{});
}

std::vector<uint32_t> ArrayCodes(const EncodePlan& plan,
                                 std::span<const float> in,
                                 const ArrayRandom& random,
                                 size_t offset = 0) {
  return WithCodeType(plan.format, [&](auto code) {
    Framed<decltype(code)> codes(in.size(), offset);
    Encode(plan, in, codes.Get(), random);
    return codes.Words();
  });
}

enum class Place { kApart, kInPlace };

std::vector<uint32_t> ArrayRounded(const EncodePlan& plan,
                                   std::span<const float> in,
                                   const ArrayRandom& random,
                                   Place place,
                                   size_t offset = 0) {
  Framed<float> out(in.size(), offset);
  if (place == Place::kInPlace) std::copy(in.begin(), in.end(), out.Get().begin());
  FakeQuantize(plan, place == Place::kInPlace ? out.Get() : in, out.Get(), random);
  return out.Words();
}

std::vector<uint32_t> ArrayValues(const FormatSpec& format,
                                  std::span<const uint32_t> words,
                                  size_t offset = 0) {
  return WithCodeType(format, [&](auto code) {
    using Code = decltype(code);
    Framed<Code> codes(words.size(), offset);
    std::transform(words.begin(), words.end(), codes.Get().begin(), [](uint32_t word) {
      return static_cast<Code>(word);
    });
    Framed<float> out(words.size(), offset);
    Decode(format, std::span<const Code>(codes.Get()), out.Get());
    return out.Words();
  });
}

testing::AssertionResult Same(const std::vector<uint32_t>& got, std::span<const uint32_t> want) {
  const auto [a, b] = std::mismatch(got.begin(), got.end(), want.begin(), want.end());
  if (a == got.end() && b == want.end()) return testing::AssertionSuccess();
  if (a == got.end() || b == want.end()) return testing::AssertionFailure() << "lengths differ";
  return testing::AssertionFailure()
         << fmt::format("element {}: {:#x}, not {:#x}", a - got.begin(), *a, *b);
}

// Values and midpoints of the format with their neighbours, special numbers, random patterns.
std::vector<float> AwkwardInputs(const FormatSpec& format) {
  std::vector<uint32_t> magnitudes = oracle::SpecialF32();
  const uint32_t last = format.MaxFiniteCode();
  const uint32_t stride = 1 + last / 128;
  for (uint32_t code = 0; code <= last; code += std::clamp(last - code, 1u, stride)) {
    const double low = static_cast<double>(Decode(format, code));
    const double high = code < last ? static_cast<double>(Decode(format, code + 1)) : 1.125 * low;
    for (const double x : {low, low + (high - low) / 2}) {
      const uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(x));
      for (uint32_t near : {bits - (bits > 0 ? 1 : 0), bits, bits + 1}) magnitudes.push_back(near);
    }
  }
  oracle::TestRandom random(7);
  for (int i = 0; i < 100; ++i) magnitudes.push_back(random.Next32());
  std::vector<float> inputs;
  for (uint32_t bits : magnitudes) {
    for (uint32_t sign : {0u, 0x80000000u}) inputs.push_back(std::bit_cast<float>(bits ^ sign));
  }
  return inputs;
}

// `n` inputs with every kind of them near either end.
std::vector<float> MixedInputs(const FormatSpec& format, size_t n) {
  const std::vector<float> awkward = AwkwardInputs(format);
  oracle::TestRandom random(8);
  std::vector<float> inputs;
  while (inputs.size() < n) inputs.push_back(awkward[random.Below(awkward.size())]);
  return inputs;
}

// Every deterministic mode under every policy; every variant and width of stochastic rounding under
// one policy each, such that every variant and every width meet all three.
std::vector<EncodePlan> PlansOfEverySetting(const FormatSpec& format) {
  constexpr Overflow kPolicies[] = {
      Overflow::kNonsaturate, Overflow::kSaturate, Overflow::kPropagate};
  std::vector<EncodePlan> plans;
  for (RoundingMode mode : kDeterministicModes) {
    for (Overflow policy : kPolicies) {
      plans.push_back(MakeEncodePlan(format, {.mode = mode}, policy));
    }
  }
  for (int bits : {1, 7, 8, 9, 13, 16, 17, 31, 32}) {
    for (int v = 0; v < 3; ++v) {
      const auto variant = static_cast<StochasticVariant>(v);
      plans.push_back(MakeEncodePlan(
          format, {RoundingMode::kStochastic, variant, bits}, kPolicies[(bits + v) % 3]));
    }
  }
  return plans;
}

EncodePlan Stochastic(std::string_view format, int bits) {
  const Rounding rounding = {RoundingMode::kStochastic, StochasticVariant::kA, bits};
  return MakeEncodePlan(ParseFormat(format).spec, rounding);
}

// A conversion for each path through the vector code.
std::vector<EncodePlan> PlansOfEveryPath() {
  std::vector<EncodePlan> plans = {Stochastic("e4m3fn", 8),
                                   Stochastic("e5m2", 13),
                                   Stochastic("bf16", 16),
                                   Stochastic("fp16", 32),
                                   Stochastic("tf32", 7)};
  for (const Format& format :
       ParseFormatList("e4m3fn,bf16,fp16,tf32,fp32,int8,bnb-e4m3,e8m0fnu,binary8p3se")) {
    plans.push_back(MakeEncodePlan(format.spec));
  }
  plans.push_back(MakeEncodePlan(ParseFormat("e4m3fn").spec, {.mode = RoundingMode::kUp}));
  plans.push_back(MakeEncodePlan(ParseFormat("bf16").spec, {.mode = RoundingMode::kToOdd}));
  return plans;
}

std::string Describe(const EncodePlan& plan) {
  const auto& [mode, variant, bits] = plan.rounding;
  const std::string format = ToString(plan.format);
  return fmt::format(
      "{} {} {} {} {}", format, ToString(mode), ToString(variant), bits, ToString(plan.overflow));
}

std::vector<std::string> FormatNames() {
  std::vector<std::string> names;
  for (const FormatEntry& entry : FormatTable()) names.emplace_back(entry.name);
  for (const Format& custom :
       ParseFormatList("e5m10:bias=20,e8m3:bias=130,inf=none,nan=none,ue5m3,e1m6,"
                       "e2m0:inf=none,nan=none,e4m3:nan=negative-zero,inf=top,e5m6,e8m12,e8m22,"
                       "e4m23:bias=100,e8m6:bias=140")) {
    names.push_back(custom.name);
  }
  return names;
}

struct CastEveryFormat : testing::TestWithParam<std::string> {
  const FormatSpec format = ParseFormat(GetParam()).spec;
};

INSTANTIATE_TEST_SUITE_P(,
                         CastEveryFormat,
                         testing::ValuesIn(SampledCases(FormatNames())),
                         [](const auto& test) {
                           std::string name = test.param;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

TEST_P(CastEveryFormat, EncodeAndFakeQuantizeEqualTheScalarRuleUnderEverySetting) {
  const std::vector<float> in = AwkwardInputs(format);
  const ArrayRandom random = {kStream, 1000003};
  for (const EncodePlan& plan : PlansOfEverySetting(format)) {
    SCOPED_TRACE(Describe(plan));
    const std::vector<uint32_t> codes = ScalarCodes(plan, in, random);
    const std::vector<uint32_t> values = ScalarValues(format, codes);
    WithEachBackend([&] {
      EXPECT_TRUE(Same(ArrayCodes(plan, in, random), codes));
      EXPECT_TRUE(Same(ArrayRounded(plan, in, random, Place::kApart), values));
    });
  }
}

TEST_P(CastEveryFormat, DecodeEqualsTheScalarRuleForEveryCodeAndIgnoresBitsAboveTheCode) {
  std::vector<uint32_t> words;
  oracle::TestRandom random(9);
  const bool wide = format.StorageBytes() == 4;
  for (uint32_t i = 0; i < 0x10000; ++i) words.push_back(wide ? random.Next32() : i);
  std::vector<uint32_t> values = words;
  for (uint32_t& word : values)
    word = std::bit_cast<uint32_t>(Decode(format, word & format.CodeMask()));
  WithEachBackend([&] { EXPECT_TRUE(Same(ArrayValues(format, words), values)); });
}

TEST(Cast, StreamedDecodingEqualsTheScalarRuleForEveryLengthAndAlignment) {
  for (const Format& format : ParseFormatList("e4m3fn,int8,bf16,fp16,bnb-e4m3,e5m2fnuz")) {
    SCOPED_TRACE(format.name);
    ASSERT_TRUE(DecodesInVectors(format.spec));
    std::vector<uint32_t> words(1100);
    for (uint32_t i = 0; i < words.size(); ++i) words[i] = i * 7919 & format.spec.CodeMask();
    const std::vector<uint32_t> values = ScalarValues(format.spec, words);
    WithEachBackend([&] {
      for (size_t n = 0; n <= words.size(); ++n) {
        if (n > 70 && n < 1060) continue;
        const size_t offset = n % 19;  // of the output
        Framed<float> out(n, offset);
        WithCodeType(format.spec, [&](auto code) {
          using Code = decltype(code);
          const std::vector<Code> codes(words.begin(), words.begin() + static_cast<int>(n));
          if constexpr (sizeof(Code) <= 2) {
            DecodeSimd(format.spec, codes.data(), n, out.Get().data(), Stores::kStreaming);
          }
          return words;
        });
        EXPECT_TRUE(Same(out.Words(), std::span(values).first(n))) << n;
      }
    });
  }
}

TEST(Cast, ALargeArrayIsDecodedToItsLastElement) {
  const FormatSpec format = ParseFormat("e4m3fn").spec;
  std::vector<uint8_t> codes((size_t{1} << 24) + 5);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i * 37 % 251);
  std::vector<float> out(codes.size());
  Decode(format, std::span<const uint8_t>(codes), std::span(out));
  std::vector<uint32_t> values(256);
  for (uint32_t code = 0; code < 256; ++code) values[code] = code;
  values = ScalarValues(format, values);
  size_t wrong = 0;
  for (size_t i = 0; i < codes.size(); ++i) {
    wrong += std::bit_cast<uint32_t>(out[i]) != values[codes[i]] ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

// Casts to 8 bits may replace the lower half of a float32 by one bit that tells whether it is zero:
// every upper half, with lower halves of zero, one, a half, all and those beside them.
TEST(Cast, EveryUpperHalfIsRoundedByTheRuleInEveryDeterministicMode) {
  std::vector<float> in;
  for (uint32_t high = 0; high < 0x10000; high += SampleEvery(3)) {
    for (const uint32_t low : {0u, 1u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      in.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  for (const char* format : {"e4m3fn", "e5m2", "e2m5", "bnb-e4m3", "bnb-e5m2"}) {
    for (const RoundingMode mode : {RoundingMode::kNearestEven,
                                    RoundingMode::kNearestAway,
                                    RoundingMode::kTowardZero,
                                    RoundingMode::kUp,
                                    RoundingMode::kDown,
                                    RoundingMode::kToOdd}) {
      const EncodePlan plan = MakeEncodePlan(ParseFormat(format).spec, {mode});
      SCOPED_TRACE(Describe(plan));
      const std::vector<uint32_t> codes = ScalarCodes(plan, in, {});
      WithEachBackend([&] { EXPECT_TRUE(Same(ArrayCodes(plan, in, {}), codes)); });
    }
  }
}

// Lengths about every multiple of a vector, and some about the block of random words.
bool IsTestedLength(size_t n) { return n <= 70 || (n >= 1023 && n <= 1026) || n == 4099; }

TEST(Cast, EveryLengthAndAlignmentIsConvertedToItsLastElement) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    SCOPED_TRACE(Describe(plan));
    const std::vector<float> in = MixedInputs(plan.format, 4200);
    for (size_t offset = 0; offset < 4; ++offset) {
      const std::span<const float> from = std::span(in).subspan(offset);
      const ArrayRandom random = {kStream, 62 + offset};
      const std::vector<uint32_t> codes = ScalarCodes(plan, from, random);
      const std::vector<uint32_t> values = ScalarValues(plan.format, codes);
      WithEachBackend([&] {
        for (size_t n = 0; n <= 4099; ++n) {
          if (!IsTestedLength(n)) continue;
          const auto part = std::span(codes).first(n);
          const auto rounded = std::span(values).first(n);
          EXPECT_TRUE(Same(ArrayCodes(plan, from.first(n), random, offset), part));
          for (Place place : {Place::kApart, Place::kInPlace}) {
            EXPECT_TRUE(Same(ArrayRounded(plan, from.first(n), random, place, offset), rounded));
          }
          EXPECT_TRUE(Same(ArrayValues(plan.format, part, offset), rounded));
        }
      });
    }
  }
}

TEST(Cast, DrawsAreThoseOfTheElementsIndexWhereverTheArrayStarts) {
  for (int bits : {1, 8, 9, 16, 17, 32}) {
    const EncodePlan plan = Stochastic("e4m3fn", bits);
    const std::vector<float> in = MixedInputs(plan.format, 1100);
    for (uint64_t base : {uint64_t{0}, (uint64_t{1} << 32) - 70, uint64_t{1} << 40}) {
      for (uint64_t offset : {0, 1, 63, 64, 255, 1000003}) {
        const ArrayRandom random = {kStream, base + offset};
        SCOPED_TRACE(fmt::format("{} bits from element {}", bits, random.first_index));
        const std::vector<uint32_t> codes = ScalarCodes(plan, in, random);
        WithEachBackend([&] { EXPECT_TRUE(Same(ArrayCodes(plan, in, random), codes)); });
      }
    }
  }
}

// Appends the number above `whole`, a value of the format, whose fraction is the least that the random bits
// of the element round away, or the float32 before it. `spacing` is the binary exponent of the spacing.
void AddAtEdge(const EncodePlan& plan,
               const ArrayRandom& random,
               double whole,
               int spacing,
               std::vector<float>& in) {
  const size_t i = in.size();
  const double draw = std::ldexp(Draw(plan, random, i), -plan.rounding.random_bits);
  const auto x = static_cast<float>(whole + std::ldexp(1 - draw, spacing));
  in.push_back((i % 2 == 0 ? x : std::nextafter(x, 0.0f)) * (i % 3 == 0 ? -1.0f : 1.0f));
}

// Below the smallest value, one in 2^9 edges is a fraction that begins with nine zeros.
TEST(Cast, TheLastUnitOfTheFractionDecidesAboutStochasticRounding) {
  const ArrayRandom random{kStream, 77};
  for (const char* name : {"e2m1fn", "e3m2fn", "e2m3fn", "e4m3fn", "e5m2", "e4m3fnuz", "fp16"}) {
    for (const int bits : {8, 13, 32}) {
      const EncodePlan plan = Stochastic(name, bits);
      const int least = plan.min_exponent - plan.mantissa_bits;
      std::vector<float> in;
      for (size_t i = 0; i < 20011; ++i) AddAtEdge(plan, random, 0, least, in);
      for (int exponent = least; exponent <= plan.min_exponent + 4; ++exponent) {
        const int spacing = std::max(exponent - plan.mantissa_bits, least);
        for (size_t i = 0; i < 203; ++i) {
          AddAtEdge(plan, random, std::ldexp(1.0, exponent), spacing, in);
        }
      }
      const std::vector<uint32_t> codes = ScalarCodes(plan, in, random);
      size_t away = 0;
      for (size_t i = 0; i < in.size(); ++i) {
        away += std::fabs(Decode(plan.format, codes[i])) > std::fabs(in[i]) ? 1 : 0;
      }
      EXPECT_GT(away, in.size() / 5) << Describe(plan);
      EXPECT_LT(away, in.size() - in.size() / 5) << Describe(plan);
      WithEachBackend(
          [&] { EXPECT_TRUE(Same(ArrayCodes(plan, in, random), codes)) << Describe(plan); });
    }
  }
}

TEST(Cast, TwoCallsOneAfterTheOtherEqualOneCall) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    SCOPED_TRACE(Describe(plan));
    const std::vector<float> inputs = MixedInputs(plan.format, 2500);
    const std::span<const float> in = inputs;
    const ArrayRandom random = {kStream, 5};
    WithEachBackend([&] {
      const std::vector<uint32_t> codes = ArrayCodes(plan, in, random);
      const std::span<const uint32_t> whole = codes;
      for (size_t cut : {1, 7, 59, 63, 64, 100, 1019, 1024, 1025, 2499}) {
        const ArrayRandom rest = {kStream, random.first_index + cut};
        EXPECT_TRUE(Same(ArrayCodes(plan, in.first(cut), random), whole.first(cut)));
        EXPECT_TRUE(Same(ArrayCodes(plan, in.subspan(cut), rest), whole.subspan(cut)));
      }
    });
  }
}

TEST(Cast, ThreadsDoNotChangeABit) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    SCOPED_TRACE(Describe(plan));
    const std::vector<float> in = MixedInputs(plan.format, kLarge);
    const ArrayRandom random = {kStream, 1001};
    const std::vector<uint32_t> codes = ScalarCodes(plan, in, random);
    const std::vector<uint32_t> values = ScalarValues(plan.format, codes);
    WithEachBackend([&] {
      for (int threads : {1, 2, 3}) {
        SCOPED_TRACE(threads);
        SetThreadCount(threads);
        EXPECT_TRUE(Same(ArrayCodes(plan, in, random), codes));
        EXPECT_TRUE(Same(ArrayRounded(plan, in, random, Place::kInPlace), values));
        EXPECT_TRUE(Same(ArrayValues(plan.format, codes), values));
      }
    });
  }
}

TEST(Cast, Float64IsRoundedOnceByTheScalarRule) {
  for (const EncodePlan& plan : PlansOfEveryPath()) {
    std::vector<double> in;
    for (float x : MixedInputs(plan.format, kLarge)) {
      const double step = static_cast<double>(in.size() % 3) - 1;
      in.push_back(static_cast<double>(x) * (1 + step * 0x1p-40));  // often near a tie
    }
    const ArrayRandom random = {kStream, 77};
    std::vector<uint32_t> codes;
    for (double x : in) {
      codes.push_back(
          EncodeF64(plan, std::bit_cast<uint64_t>(x), Draw(plan, random, codes.size())));
    }
    const ExecutionState state;
    for (int threads : {1, 2, 3}) {
      SetThreadCount(threads);
      Framed<uint32_t> got(in.size(), 0);
      Encode(plan, std::span<const double>(in), got.Get(), random);
      EXPECT_TRUE(Same(got.Words(), codes)) << Describe(plan) << ", " << threads << " threads";
    }
  }
}

TEST(RandomBitsArray, EqualsRandomBitsForEveryWidthLengthAndThreadCount) {
  for (int bits = 1; bits <= 32; ++bits) {
    const uint64_t first = (uint64_t{1} << 32) - static_cast<uint64_t>(bits);
    std::vector<uint32_t> draws;
    for (size_t i = 0; i < 17000; ++i) draws.push_back(RandomBits(kStream, first + i, bits));
    WithEachBackend([&] {
      for (size_t n : {0, 1, 63, 257, 1025, 17000}) {
        SetThreadCount(1 + static_cast<int>(n % 3));
        Framed<uint32_t> drawn(n, 3);
        RandomBitsArray({kStream, first}, bits, drawn.Get());
        EXPECT_TRUE(Same(drawn.Words(), std::span(draws).first(n))) << bits << " bits, " << n;
      }
    });
  }
}

}  // namespace
}  // namespace numsim
