// Tables of values: casts against a search through the values in exact integers, around every value
// and every midpoint, in every mode; NF4 against its definition and against bitsandbytes' decisions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/encode.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/shared/float64_bits.h"
#include "numsim/rounding/unrounded.h"
#include "tests/support/error_of.h"
#include "tests/support/every_backend.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;

__extension__ using Integer = __int128;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Exact numbers as multiples of 2^-80, which hold every float32 from 2^-56 to 2^30 with its sums.
constexpr int kUnit = -80;

Integer AsInteger(double x) {
  if (x == 0) return 0;
  int exponent = 0;
  const auto wide = static_cast<int64_t>(std::ldexp(std::frexp(x, &exponent), 53));
  const int zeros = std::countr_zero(static_cast<uint64_t>(wide));
  const int shift = exponent - 53 + zeros - kUnit;
  EXPECT_TRUE(shift >= 0 && exponent <= 30) << x;
  return Integer{wide >> zeros} << shift;
}

// The definition, by a search through all values.
class Search {
 public:
  explicit Search(const std::vector<float>& by_code) {
    for (size_t code = 0; code < by_code.size(); ++code) {
      codes_.emplace(AsInteger(static_cast<double>(by_code[code])), code);  // keeps the first
    }
    for (const auto& [value, code] : codes_) values_.push_back(value);
  }

  uint32_t Encode(double x, const Rounding& rounding, uint32_t random) const {
    if (std::isnan(x)) return codes_.rbegin()->second;
    if (std::isinf(x)) return x > 0 ? codes_.rbegin()->second : codes_.begin()->second;
    const Integer exact = AsInteger(x);
    if (exact <= values_.front()) return codes_.begin()->second;
    if (exact >= values_.back()) return codes_.rbegin()->second;
    size_t position = 0;
    while (values_[position + 1] <= exact) ++position;
    const bool up = values_[position] != exact && RoundsUp(position, exact, rounding, random);
    return codes_.at(values_[position + (up ? 1 : 0)]);
  }

 private:
  static Integer Magnitude(Integer x) { return x < 0 ? -x : x; }

  bool RoundsUp(size_t position, Integer x, const Rounding& rounding, uint32_t random) const {
    const Integer low = values_[position], high = values_[position + 1];
    const bool low_is_near_zero = Magnitude(low) <= Magnitude(high);
    const Integer from_low = x - low, to_high = high - x;
    switch (rounding.mode) {
      case RoundingMode::kNearestEven:
        return from_low == to_high ? position % 2 == 1 : from_low > to_high;
      case RoundingMode::kNearestAway:
        return from_low == to_high ? low_is_near_zero : from_low > to_high;
      case RoundingMode::kTowardZero:
        return !low_is_near_zero;
      case RoundingMode::kUp:
        return true;
      case RoundingMode::kDown:
        return false;
      case RoundingMode::kToOdd:
        return position % 2 == 0;
      case RoundingMode::kStochastic:
        break;
    }
    const Integer distance = low_is_near_zero ? from_low : to_high;
    return RoundsAway(distance, high - low, rounding, random) == low_is_near_zero;
  }

  // The formulas of P3109, with nu = distance / gap, digit by digit in base 2.
  static bool RoundsAway(Integer distance, Integer gap, const Rounding& rounding, uint32_t random) {
    const int n = rounding.random_bits;
    const int digits = rounding.variant == StochasticVariant::kA ? n : n + 1;
    uint64_t floor = 0;
    Integer rest = distance;
    for (int i = 0; i < digits; ++i) {
      rest *= 2;
      floor = 2 * floor + (rest >= gap ? 1 : 0);
      if (rest >= gap) rest -= gap;
    }
    const uint64_t words = uint64_t{1} << n, r = random & (words - 1);
    switch (rounding.variant) {
      case StochasticVariant::kA:
        return floor + r >= words;
      case StochasticVariant::kB:
        return floor + 2 * r + 1 >= 2 * words;
      case StochasticVariant::kC: {
        const uint64_t whole = floor / 2;
        const bool half = floor % 2 == 1;
        const bool up = half && (rest != 0 || whole % 2 == 1);
        return whole + (up ? 1 : 0) + r >= words;
      }
    }
    return false;
  }

  std::map<Integer, size_t> codes_;
  std::vector<Integer> values_;
};

// Tables whose properties differ: codes in no order, a value twice, no zero, neighbours of equal
// magnitude, neighbours far apart, a number of values that is no power of two, one at the ends of the
// range.
const std::vector<std::vector<float>>& OwnTables() {
  static const std::vector<std::vector<float>> tables = {
      {0.5f, -0.5f},
      {3.0f, 0.0f, 1.0f, -2.0f, 1.0f},
      {-1.0f, -0.25f, 0.125f, 1.0f},
      {0.0f, 0x1p-40f, 1.0f, 0x1.000002p0f, 0x1p20f},
      {-3.0f, -1.5f, -1.0f},
      {1.0f,
       2.0f,
       4.0f,
       8.0f,
       16.0f,
       32.0f,
       64.0f,
       128.0f,
       256.0f,
       512.0f,
       1024.0f,
       2048.0f,
       4096.0f,
       8192.0f,
       16384.0f,
       32768.0f,
       65536.0f},
  };
  return tables;
}

std::vector<const ValueTable*> AllTables() {
  std::vector<const ValueTable*> tables(NamedTables().begin(), NamedTables().end());
  for (size_t i = 0; i < OwnTables().size(); ++i) {
    tables.push_back(&TableOf(AddTable("own" + std::to_string(i), OwnTables()[i]).spec));
  }
  return tables;
}

std::vector<float> WithoutUnused(const ValueTable& table) {
  std::vector<float> values = table.by_code;
  std::erase_if(values, [](float x) { return std::isnan(x); });
  return values;
}

// Numbers at and beside every value, every midpoint and quarters of every gap, and beyond the ends.
std::vector<float> Inputs(const ValueTable& table) {
  std::vector<double> points = {0, 1e-10, -1e-10, 1e6, -1e6};
  for (size_t i = 0; i < table.values.size(); ++i) {
    const auto low = static_cast<double>(table.values[i]);
    points.push_back(low);
    if (i + 1 == table.values.size()) break;
    const auto high = static_cast<double>(table.values[i + 1]);
    for (const double part : {0.25, 0.5, 0.75, 0.9}) points.push_back(low + part * (high - low));
  }
  std::vector<float> inputs = {-0.0f, kInfinity, -kInfinity, kNan, -kNan};
  for (const double point : points) {
    const auto near = static_cast<float>(point);
    float below = near, above = near;
    inputs.push_back(near);
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(below = std::nextafter(below, -kInfinity));
      inputs.push_back(above = std::nextafter(above, kInfinity));
    }
  }
  // The reference holds no number below 2^-56, and numbers beside 0 are far below it.
  std::erase_if(inputs, [](float x) { return x != 0 && std::abs(x) < 0x1p-56f; });
  return inputs;
}

std::vector<Rounding> AllRoundings() {
  std::vector<Rounding> all;
  for (const RoundingMode mode : kDeterministicModes) all.push_back({mode});
  for (const auto variant : {StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC}) {
    for (const int bits : {1, 3, 8, 32}) all.push_back({RoundingMode::kStochastic, variant, bits});
  }
  return all;
}

// Random words at which decisions change: 0, the largest, and those at a share of the range.
std::vector<uint32_t> Words(const Rounding& rounding) {
  if (rounding.mode != RoundingMode::kStochastic) return {0};
  const auto most = static_cast<uint32_t>((uint64_t{1} << rounding.random_bits) - 1);
  return {0, 1 & most, most / 4, most / 2, most / 2 + 1, most - most / 10, most};
}

TEST(TableCast, ScalarCodesAreThoseOfASearch) {
  for (const ValueTable* const table : AllTables()) {
    const Search search(WithoutUnused(*table));
    for (const Rounding& rounding : AllRoundings()) {
      const EncodePlan plan = MakeEncodePlan(table->spec, rounding);
      for (const float x : Inputs(*table)) {
        for (const uint32_t word : Words(rounding)) {
          const uint32_t expected = search.Encode(static_cast<double>(x), rounding, word);
          const auto wide = std::bit_cast<uint64_t>(static_cast<double>(x));
          ASSERT_EQ(EncodeF32(plan, std::bit_cast<uint32_t>(x), word), expected)
              << table->name << " " << x << " " << ToString(rounding.mode) << " " << word;
          ASSERT_EQ(EncodeUnrounded(plan, ExactFloat64(wide), word).code, expected)
              << table->name << " " << x << " " << ToString(rounding.mode) << " " << word;
        }
      }
    }
  }
}

TEST(TableCast, Float64IsRoundedOnce) {
  for (const ValueTable* const table : AllTables()) {
    const Search search(WithoutUnused(*table));
    for (const RoundingMode mode : kDeterministicModes) {
      const EncodePlan plan = MakeEncodePlan(table->spec, {mode});
      for (const float x : Inputs(*table)) {
        if (!std::isfinite(x) || std::abs(x) < 0x1p-20f) continue;
        for (const double y : {std::nextafter(static_cast<double>(x), -1e9),
                               std::nextafter(static_cast<double>(x), 1e9)}) {
          ASSERT_EQ(EncodeF64(plan, std::bit_cast<uint64_t>(y), 0), search.Encode(y, {mode}, 0))
              << table->name << " " << y << " " << ToString(mode);
        }
      }
    }
  }
}

void ExpectArraysAsTheScalarRule() {
  for (const ValueTable* const table : AllTables()) {
    std::vector<float> in = Inputs(*table);
    const size_t once = in.size();
    while (in.size() < 5000) in.push_back(in[in.size() - once]);
    const std::vector<double> wide(in.begin(), in.end());
    for (const Rounding& rounding : AllRoundings()) {
      const EncodePlan plan = MakeEncodePlan(table->spec, rounding);
      const ArrayRandom random{{7, 3}, 11};
      std::vector<uint8_t> codes(in.size()), codes64(in.size());
      std::vector<float> values(in.size());
      Encode(plan, std::span(std::as_const(in)), std::span(codes), random);
      Encode(plan, std::span(wide), std::span(codes64), random);
      FakeQuantize(plan, std::span(std::as_const(in)), std::span(values), random);
      for (size_t i = 0; i < in.size(); ++i) {
        const bool draws = rounding.mode == RoundingMode::kStochastic;
        const uint32_t word =
            draws ? RandomBits(random.stream, random.first_index + i, rounding.random_bits) : 0;
        const uint32_t expected = EncodeF32(plan, std::bit_cast<uint32_t>(in[i]), word);
        ASSERT_EQ(codes[i], expected)
            << table->name << " " << in[i] << " " << ToString(rounding.mode);
        ASSERT_EQ(codes64[i], expected) << table->name << " " << in[i];
        ASSERT_EQ(values[i], table->by_code[expected]);
      }
      std::vector<float> decoded(in.size());
      Decode(table->spec, std::span(std::as_const(codes)), std::span(decoded));
      ASSERT_EQ(decoded, values);
    }
  }
}

TEST(TableCast, ArraysEqualTheScalarRuleInEveryBackend) {
  WithEachBackend(ExpectArraysAsTheScalarRule);
}

TEST(TableCast, FlagsTellInexactAndBeyondTheEnds) {
  const EncodePlan plan = MakeEncodePlan(FindTable("nf4")->spec);
  const auto flags = [&](double x) {
    return EncodeUnrounded(plan, ExactFloat64(std::bit_cast<uint64_t>(x)), 0).flags;
  };
  EXPECT_EQ(flags(1), 0);
  EXPECT_EQ(flags(0), 0);
  EXPECT_EQ(flags(0.5), kInexact);
  EXPECT_EQ(flags(1.0000001), kInexact | kOverflow);
  EXPECT_EQ(flags(-2), kInexact | kOverflow);
  EXPECT_EQ(flags(static_cast<double>(kInfinity)), kInexact | kOverflow);
  EXPECT_EQ(flags(static_cast<double>(kNan)), kInvalid);
}

// Q^-1 of the normal distribution by halving its distribution function.
double Quantile(double p) {
  double low = -10, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(-middle / std::sqrt(2.0)) / 2 < p ? low : high) = middle;
  }
  return low;
}

// The published construction: 2^(bits-1) quantiles above 0 and one less below, whose probabilities
// fall equally from 0.9677083 to 1/2, divided by the largest.
std::vector<double> NormalFloat(int bits) {
  constexpr double kOffset = 0.9677083;
  const int half = 1 << (bits - 1);
  std::vector<double> values = {0};
  for (int i = 0; i < half; ++i) values.push_back(Quantile(kOffset + (0.5 - kOffset) * i / half));
  for (int i = 0; i < half - 1; ++i) {
    values.push_back(-Quantile(kOffset + (0.5 - kOffset) * i / (half - 1)));
  }
  std::sort(values.begin(), values.end());
  const double most = values.back();
  for (double& value : values) value /= most;
  return values;
}

TEST(NormalFloats, AreQuantilesOfTheNormalDistribution) {
  for (const int bits : {2, 3, 4}) {
    const ValueTable& table = *FindTable("nf" + std::to_string(bits));
    const std::vector<double> expected = NormalFloat(bits);
    ASSERT_EQ(table.values.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto value = static_cast<double>(table.values[i]);
      if (bits == 4) {  // published numbers, which were computed less exactly
        EXPECT_NEAR(value, expected[i], 1.2e-7);
      } else {
        EXPECT_EQ(table.values[i], static_cast<float>(expected[i]));
      }
      EXPECT_EQ(table.codes[i], i);
    }
  }
}

// The fifteen numbers with which bitsandbytes' kernels compare, strictly: x > t takes the code above.
// Each is the float32 nearest to the middle of two values, so two rules can differ in it alone.
TEST(NormalFloats, DecisionsOfBitsandbytes) {
  const std::vector<float> compared = {-0.8480964004993439f,
                                       -0.6106329262256622f,
                                       -0.4599952697753906f,
                                       -0.33967943489551544f,
                                       -0.23460740596055984f,
                                       -0.13791173323988914f,
                                       -0.045525018125772476f,
                                       0.03979014977812767f,
                                       0.1202552504837513f,
                                       0.2035212516784668f,
                                       0.2920137718319893f,
                                       0.3893125355243683f,
                                       0.5016634166240692f,
                                       0.6427869200706482f,
                                       0.8614784181118011f};
  const ValueTable& nf4 = *FindTable("nf4");
  const EncodePlan plan = MakeEncodePlan(nf4.spec);
  std::vector<size_t> differ;
  for (size_t i = 0; i < compared.size(); ++i) {
    float x = compared[i];
    for (int k = 0; k < 8; ++k) x = std::nextafter(x, -kInfinity);
    for (int k = 0; k < 17; ++k, x = std::nextafter(x, kInfinity)) {
      const uint32_t theirs = static_cast<uint32_t>(i) + (x > compared[i] ? 1 : 0);
      const uint32_t ours = EncodeF32(plan, std::bit_cast<uint32_t>(x), 0);
      if (ours == theirs) continue;
      EXPECT_EQ(x, compared[i]);
      differ.push_back(i);
    }
  }
  // docs/formats.md states these.
  EXPECT_EQ(differ, (std::vector<size_t>{1, 3, 4, 7, 8, 9, 11, 13}));
}

TEST(ValueTables, AreRefusedWithTheReason) {
  const auto refused = [](std::vector<float> values) {
    return ErrorOf([&] { AddTable("bad", values); });
  };
  EXPECT_THAT(refused({1}), HasSubstr("1 values, expected 2 to 256"));
  EXPECT_THAT(refused(std::vector<float>(257, 1)), HasSubstr("257 values"));
  EXPECT_THAT(refused({1, kInfinity}), HasSubstr("value 1 is inf"));
  EXPECT_THAT(refused({1, kNan}), HasSubstr("value 1 is nan"));
  EXPECT_THAT(refused({2, 2}), HasSubstr("all values are equal"));
  EXPECT_THAT(ErrorOf([] { ParseFormat("nf4"); }), HasSubstr("'nf4': a table of values"));
  EXPECT_THAT(ErrorOf([] { ParseFormat("torch.NF4"); }), HasSubstr("a table of values"));
  EXPECT_THAT(ErrorOf([] { ParseFormat("table:x.txt"); }), HasSubstr("a table of values"));
}

TEST(ValueTables, TheSameNameAndValuesAreTheSameFormat) {
  const std::vector<float> values = {1, 2, 4}, others = {1, 2, 8};
  const Format a = AddTable("twice", values), b = AddTable("twice", values);
  EXPECT_TRUE(a.spec == b.spec);
  EXPECT_FALSE(AddTable("twice", others).spec == a.spec);
  EXPECT_EQ(ToString(a.spec), "table:twice");
  EXPECT_EQ(a.spec.Bits(), 2);
  EXPECT_TRUE(std::isnan(Decode(a.spec, 3)));
  EXPECT_TRUE(ParseFormatOrTable("NF4").spec == FindTable("nf4")->spec);
  EXPECT_EQ(ParseFormatOrTable("e4m3fn").name, "e4m3fn");
}

}  // namespace
}  // namespace numsim
