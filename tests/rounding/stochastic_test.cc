// Stochastic rounding by exact probability: all 2^N random words of an input are tried and those
// that round away from zero are counted against the definition, in every binade of float32, also
// below the smallest subnormal and above the largest value.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"
#include "tests/reference/format_param.h"
#include "tests/reference/inputs.h"
#include "tests/reference/oracle.h"
#include "tests/support/sampling.h"
#include "tests/support/vocabulary.h"

namespace numsim {
namespace {

using oracle::Format;
using oracle::Grid;
using oracle::Place;
using oracle::Real;
using oracle::Setting;

// An input given as its bits, and how the library converts it.
struct Input {
  bool is_f64;
  uint64_t bits;

  Real Value() const {
    return is_f64 ? oracle::FromFloat64(bits) : oracle::FromFloat32(static_cast<uint32_t>(bits));
  }
  uint32_t Encode(const EncodePlan& plan, uint32_t word) const {
    return is_f64 ? EncodeF64(plan, bits, word)
                  : EncodeF32(plan, static_cast<uint32_t>(bits), word);
  }
};

Input F32(uint32_t bits) { return {false, bits}; }
Input F64(double x) { return {true, std::bit_cast<uint64_t>(x)}; }

enum class Words { kAll, kAroundTheThreshold };

// One format, variant and number of random bits.
class Prober {
 public:
  Prober(const Grid& grid, const Setting& setting)
      : grid_(grid),
        setting_(setting),
        plan_(MakeEncodePlan(
            ParseFormat(grid.format().name).spec, RoundingOf(setting), ToLibrary(setting.policy))) {
  }

  // Checks that exactly the top `away` of all 2^N words round away, where `away` follows from the
  // definition. Trying all words thus checks the count and that the result is monotone in R.
  void Check(const Input& input, Words words) {
    const Real x = input.Value();
    const Place place = grid_.Locate(x.magnitude);
    const uint64_t count = uint64_t{1} << setting_.random_bits;
    const uint64_t away = oracle::WordsThatRoundAway(place, setting_.variant, setting_.random_bits);
    const uint64_t threshold = count - away;  // the first word that rounds away
    const uint32_t low = oracle::Finish(grid_, place.position, x.negative, setting_);
    const uint32_t high = oracle::Finish(grid_, place.position + 1, x.negative, setting_);
    if (words == Words::kAll) {
      for (uint64_t r = 0; r < count; ++r) {
        Expect(input, r, r >= threshold ? high : low, away);
      }
    } else {
      for (uint64_t r : {uint64_t{0}, threshold - 1, threshold, threshold + 1, count - 1}) {
        if (r < count) Expect(input, r, r >= threshold ? high : low, away);
      }
    }
  }

 private:
  void Expect(const Input& input, uint64_t word, uint32_t expected, uint64_t away) {
    const uint32_t got = input.Encode(plan_, static_cast<uint32_t>(word));
    if (got == expected) return;
    if (++failures_ > 3) return;
    ADD_FAILURE() << grid_.format().name << " " << oracle::Describe(setting_) << ": "
                  << (input.is_f64 ? "float64 0x" : "float32 0x") << std::hex << input.bits
                  << std::dec << " word " << word << ": library " << got << ", oracle " << expected
                  << "; " << away << " words round away";
  }

  const Grid& grid_;
  Setting setting_;
  EncodePlan plan_;
  int failures_ = 0;
};

// Leading bits of a float32 in each of its 277 binades, subnormal ones included; then sets the bits
// below from `fill`.
std::vector<uint32_t> OneInEveryBinade(uint32_t fill) {
  std::vector<uint32_t> all;
  for (unsigned bit = 0; bit < 23; bit += SampleEvery(5)) {
    const uint32_t top = uint32_t{1} << bit;
    all.push_back(top | (fill & (top - 1)));
  }
  for (uint32_t field = 1; field < 255; field += SampleEvery(5))
    all.push_back(field << 23 | (fill & 0x7FFFFF));
  return all;
}

// Significands of 1, just above 1, 1.5, its neighbours, just below 2, and two with all kinds of
// bits.
constexpr uint32_t kFills[] = {
    0x000000, 0x000001, 0x400000, 0x3FFFFF, 0x400001, 0x7FFFFF, 0x2AAAAA, 0x6C3D19};

Setting Stochastic(oracle::Variant variant, int bits) {
  return {oracle::Mode::kStochastic, oracle::Policy::kNonsaturate, variant, bits};
}

constexpr oracle::Variant kVariants[] = {
    oracle::Variant::kA, oracle::Variant::kB, oracle::Variant::kC};

class StochasticProbability : public testing::TestWithParam<Format> {
 protected:
  const Grid grid_{GetParam()};
};

std::vector<Format> ProbedFormats() {
  std::vector<Format> formats;
  for (const char* name : {"e4m3fn",
                           "e5m2",
                           "bf16",
                           "fp16",
                           "e2m1fn",
                           "binary8p3se",
                           "binary8p1uf",
                           "bnb-e4m3",
                           "bnb-e5m2",
                           "int8",
                           "e8m0fnu",
                           "e8m3:bias=146"}) {
    formats.push_back(oracle::FindFormat(name));
  }
  return formats;
}

INSTANTIATE_TEST_SUITE_P(,
                         StochasticProbability,
                         testing::ValuesIn(ProbedFormats()),
                         oracle::ParamName);

TEST_P(StochasticProbability, IsExactOverAllWordsOfUpToEightBits) {
  for (oracle::Variant variant : kVariants) {
    for (int bits : {1, 2, 3, 8}) {
      Prober prober(grid_, Stochastic(variant, bits));
      for (uint32_t fill : kFills) {
        for (uint32_t x : OneInEveryBinade(fill)) {
          prober.Check(F32(x), Words::kAll);
          prober.Check(F32(x | 0x80000000u), Words::kAll);
        }
      }
    }
  }
}

TEST_P(StochasticProbability, IsExactOverAllWordsOfThirteenAndSixteenBits) {
  oracle::TestRandom random(31);
  for (oracle::Variant variant : kVariants) {
    for (int bits : {13, 16}) {
      Prober prober(grid_, Stochastic(variant, bits));
      for (uint32_t x : OneInEveryBinade(random.Next32())) {
        // Far away from the range all words agree; a few are enough.
        const double magnitude = oracle::FromFloat32(x).magnitude;
        const bool near =
            magnitude > std::ldexp(grid_.Value(1), -20) && magnitude < 2 * grid_.Value(grid_.end());
        prober.Check(F32(x | (random.Next32() & 0x80000000u)),
                     near ? Words::kAll : Words::kAroundTheThreshold);
      }
    }
  }
}

TEST_P(StochasticProbability, HasTheDefinedThresholdForWiderWords) {
  for (oracle::Variant variant : kVariants) {
    for (int bits : {13, 16, 20, 21, 24, 31, 32}) {
      Prober prober(grid_, Stochastic(variant, bits));
      for (uint32_t fill : kFills) {
        for (uint32_t x : OneInEveryBinade(fill)) {
          prober.Check(F32(x), Words::kAroundTheThreshold);
          prober.Check(F32(x | 0x80000000u), Words::kAroundTheThreshold);
        }
      }
    }
  }
}

TEST_P(StochasticProbability, IsExactFromFloat64) {
  oracle::TestRandom random(32);
  for (oracle::Variant variant : kVariants) {
    for (int bits : {1, 3, 8, 13, 16, 31, 32}) {
      Prober prober(grid_, Stochastic(variant, bits));
      for (uint32_t fill : kFills) {
        for (uint32_t x : OneInEveryBinade(fill)) {
          const double exact = oracle::FromFloat32(x).magnitude;
          const Words words = bits <= 8 ? Words::kAll : Words::kAroundTheThreshold;
          // Low bits that no float32 has: they matter to C's ties and to B's last step.
          for (double y : {exact,
                           std::nextafter(exact, INFINITY),
                           std::nextafter(exact, 0.0),
                           exact * (1 + std::ldexp(1.0, -28))}) {
            prober.Check(F64(random.Below(2) ? y : -y), words);
          }
        }
      }
      // Numbers below float32's range never round away.
      for (double tiny : {0x1p-150, 0x1p-200, 0x1.8p-1000, 0x1p-1074}) {
        prober.Check(F64(tiny), Words::kAroundTheThreshold);
        prober.Check(F64(-tiny), Words::kAroundTheThreshold);
      }
    }
  }
}

// nu 2^N close to an integer or halfway between two: where floor and rint step.
TEST_P(StochasticProbability, StepsExactlyWhereTheDefinitionSteps) {
  oracle::TestRandom random(33);
  for (oracle::Variant variant : kVariants) {
    for (int bits : {1, 3, 8, 13, 16, 32}) {
      Prober prober(grid_, Stochastic(variant, bits));
      for (int i = 0; i < 400; ++i) {
        const auto position = static_cast<int64_t>(random.Below(grid_.end()));
        const double low = grid_.Value(position);
        const double gap = grid_.Value(position + 1) - low;
        const double halves = static_cast<double>(random.Next() >> (63 - bits));
        const double step = low + std::ldexp(gap, -bits - 1) * halves;
        for (double y : {step, std::nextafter(step, INFINITY), std::nextafter(step, 0.0)}) {
          prober.Check(F64(i % 2 ? y : -y), Words::kAroundTheThreshold);
        }
      }
    }
  }
}

// bitsandbytes' subnormal gap is 25 quarter-steps wide: nu is no binary fraction there.
TEST(StochasticSubnormalGap, DividesTheSubnormalGapExactly) {
  for (const char* name : {"bnb-e4m3", "bnb-e5m2"}) {
    const Grid grid(oracle::FindFormat(name));
    const int64_t last_subnormal = (int64_t{1} << grid.format().mantissa_bits) - 1;
    const double low = grid.Value(last_subnormal);
    const double gap = grid.Value(last_subnormal + 1) - low;
    oracle::TestRandom random(34);
    for (oracle::Variant variant : kVariants) {
      for (int bits : {1, 2, 5, 8, 13, 16, 24, 31, 32}) {
        Prober prober(grid, Stochastic(variant, bits));
        for (int i = 0; i < 300; ++i) {
          const double x = low + gap * std::ldexp(static_cast<double>(random.Next() >> 11), -53);
          const Words words = bits <= 8 ? Words::kAll : Words::kAroundTheThreshold;
          prober.Check(F64(i % 2 ? x : -x), words);
          prober.Check(F32(std::bit_cast<uint32_t>(static_cast<float>(x))), words);
        }
      }
    }
  }
}

uint64_t CountAway(const EncodePlan& plan, float x, uint32_t away_code) {
  uint64_t count = 0;
  for (uint64_t r = 0; r < uint64_t{1} << plan.rounding.random_bits; ++r) {
    count += EncodeF32(plan, std::bit_cast<uint32_t>(x), static_cast<uint32_t>(r)) == away_code;
  }
  return count;
}

// Worked examples, by hand.
TEST(StochasticRounding, FarBelowTheSmallestSubnormalRoundsUpRarely) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  const EncodePlan plan =
      MakeEncodePlan(e4m3fn, {RoundingMode::kStochastic, StochasticVariant::kA, 16});
  EXPECT_EQ(CountAway(plan, 0x1p-20f, 1), 32u);   // nu = 2^-11
  EXPECT_EQ(CountAway(plan, 0x1p-25f, 1), 1u);    // nu = 2^-16
  EXPECT_EQ(CountAway(plan, 0x1.8p-26f, 1), 0u);  // nu 2^16 = 0.75
  EXPECT_EQ(CountAway(plan, 0x1p-149f, 1), 0u);
}

TEST(StochasticRounding, VariantsDifferByTheirRoundingOfTheProbability) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  const auto count = [&](StochasticVariant variant, float nu) {
    const EncodePlan plan = MakeEncodePlan(e4m3fn, {RoundingMode::kStochastic, variant, 3});
    return CountAway(plan, 1 + nu / 8, 0x39);
  };
  using enum StochasticVariant;
  // nu 2^3 = 2.5: floor 2, half up 3, ties to even 2.
  EXPECT_EQ(count(kA, 2.5f / 8), 2u);
  EXPECT_EQ(count(kB, 2.5f / 8), 3u);
  EXPECT_EQ(count(kC, 2.5f / 8), 2u);
  // 3.5: floor 3, half up 4, ties to even 4. 7.75: B and C always round away.
  EXPECT_EQ(count(kA, 3.5f / 8), 3u);
  EXPECT_EQ(count(kB, 3.5f / 8), 4u);
  EXPECT_EQ(count(kC, 3.5f / 8), 4u);
  EXPECT_EQ(count(kA, 7.75f / 8), 7u);
  EXPECT_EQ(count(kB, 7.75f / 8), 8u);
  EXPECT_EQ(count(kC, 7.75f / 8), 8u);
}

TEST(StochasticRounding, AboveTheLargestValueOverflowsWithTheProbabilityOfTheNextValue) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  const Rounding rounding = {RoundingMode::kStochastic, StochasticVariant::kA, 8};
  const EncodePlan plan = MakeEncodePlan(e4m3fn, rounding);
  EXPECT_EQ(CountAway(plan, 456.0f, 0x7F), 64u);  // a quarter of the way from 448 to 480
  EXPECT_EQ(CountAway(plan, 480.0f, 0x7F), 256u);
  const EncodePlan saturating = MakeEncodePlan(e4m3fn, rounding, Overflow::kSaturate);
  EXPECT_EQ(CountAway(saturating, 456.0f, 0x7E), 256u);
}

TEST(StochasticRounding, IgnoresBitsAboveTheRandomWord) {
  const FormatSpec e4m3fn = FindFormat("e4m3fn")->spec;
  for (int bits = 1; bits < 32; ++bits) {
    const Rounding rounding = {RoundingMode::kStochastic, StochasticVariant::kA, bits};
    for (uint32_t r : {0u, 1u, (1u << bits) - 1}) {
      EXPECT_EQ(Encode(e4m3fn, 1.07f, rounding, Overflow::kNonsaturate, r),
                Encode(e4m3fn, 1.07f, rounding, Overflow::kNonsaturate, r | ~0u << bits));
    }
  }
}

}  // namespace
}  // namespace numsim
