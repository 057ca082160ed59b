// Comparisons, extrema, neighbours and sign operations, judged through decoded
// values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <iterator>

#include "numsim/arith/arith.h"
#include "tests/support/codes.h"

namespace numsim {
namespace {

Relation RelationOf(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) return Relation::kUnordered;
  return x < y ? Relation::kLess : x > y ? Relation::kGreater : Relation::kEqual;
}

void ExpectRelation(const Operand& a, const Operand& b) {
  ASSERT_EQ(Compare(a, b), RelationOf(Value(a), Value(b))) << Text(a) << " and " << Text(b);
}

// Formats whose codes are compared with one another: each with the next.
constexpr const char* kChain[] = {"e4m3fn",
                                  "e5m2",
                                  "e8m0fnu",
                                  "int8",
                                  "e4m3fnuz",
                                  "binary8p8ue",
                                  "bnb-e4m3",
                                  "binary8p1uf",
                                  "e2m1fn"};

// All pairs of codes of neighbouring formats, either way round.
template <typename Check>
void ForMixedPairs(const Check& check) {
  for (size_t i = 0; i + 1 < std::size(kChain); ++i) {
    const std::vector<Operand> others = AllCodes(Spec(kChain[i + 1]));
    for (const Operand& a : AllCodes(Spec(kChain[i]))) {
      for (const Operand& b : others) {
        check(a, b);
        check(b, a);
      }
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Compare, FollowsTheValuesOfAllPairsOfEveryNarrowFormat) {
  for (const Format& format : NarrowFormats()) {
    for (const Operand& a : AllCodes(format.spec)) {
      for (const Operand& b : AllCodes(format.spec)) ExpectRelation(a, b);
    }
    if (HasFailure()) return;
  }
}

TEST(Compare, FollowsTheValuesAcrossFormats) {
  ForMixedPairs(ExpectRelation);
  std::vector<Operand> wide;
  for (const char* name : {"fp32", "fp16", "bf16", "tf32", "e5m2", "e8m0fnu", "int8"}) {
    for (const Operand& a : RandomCodes(Spec(name), 150, 3)) wide.push_back(a);
  }
  for (const Operand& a : wide) {
    for (const Operand& b : wide) ExpectRelation(a, b);
    if (HasFailure()) return;
  }
}

TEST(Compare, ZerosOfBothSignsAreEqualAndNanDiffersFromItself) {
  const FormatSpec fp16 = Spec("fp16");
  const Operand minus_zero = {fp16, 0x8000}, plus_zero = {fp16, 0}, nan = {fp16, 0x7E00};
  EXPECT_EQ(Compare(minus_zero, plus_zero), Relation::kEqual);
  EXPECT_EQ(Compare(minus_zero, {Spec("e4m3fn"), 0}), Relation::kEqual);
  EXPECT_EQ(Compare(nan, nan), Relation::kUnordered);
  // Below any difference that float32 would show: 1 against 1 + 2^-23.
  const FormatSpec fp32 = Spec("fp32");
  EXPECT_EQ(Compare({fp32, 0x3F800001}, {Spec("e8m0fnu"), 127}), Relation::kGreater);
}

// The result of each predicate, and whether it signals for quiet NaNs.
struct PredicateRule {
  Predicate predicate;
  bool (*holds)(double, double);
  bool signalling;
};
constexpr PredicateRule kPredicates[] = {
    {Predicate::kEqual, [](double x, double y) { return x == y; }, false},
    {Predicate::kLess, [](double x, double y) { return x < y; }, true},
    {Predicate::kLessEqual, [](double x, double y) { return x <= y; }, true},
    {Predicate::kEqualSignaling, [](double x, double y) { return x == y; }, true},
    {Predicate::kLessQuiet, [](double x, double y) { return x < y; }, false},
    {Predicate::kLessEqualQuiet, [](double x, double y) { return x <= y; }, false},
    {Predicate::kUnordered,
     [](double x, double y) { return std::isnan(x) || std::isnan(y); },
     false},
};

void ExpectPredicates(const Operand& a, const Operand& b) {
  const double x = Value(a), y = Value(b);
  const bool nan = std::isnan(x) || std::isnan(y);
  for (const PredicateRule& rule : kPredicates) {
    const Truth truth = Holds(rule.predicate, a, b);
    const bool invalid = Signals(a) || Signals(b) || (rule.signalling && nan);
    ASSERT_EQ(truth.value, rule.holds(x, y)) << Text(a) << " and " << Text(b);
    ASSERT_EQ(truth.flags, invalid ? kInvalid : 0) << Text(a) << " and " << Text(b);
  }
}

TEST(Holds, FollowsTheValuesAndSignalsAsThePredicateSays) {
  for (const char* name : {"e5m2", "e4m3", "e6m1", "e4m3fn", "binary8p4se", "e2m1fn", "int8"}) {
    const std::vector<Operand> codes = AllCodes(Spec(name));
    for (const Operand& a : codes) {
      for (const Operand& b : codes) ExpectPredicates(a, b);
      if (HasFailure()) return;
    }
  }
  ForMixedPairs(ExpectPredicates);
}

TEST(IsSignalingNan, IsANanOfAnIeeeFormatWithTheTopMantissaBitClear) {
  for (const Format& format : NarrowFormats()) {
    for (const Operand& a : AllCodes(format.spec)) ASSERT_EQ(IsSignalingNan(a), Signals(a));
  }
  for (const Operand& a : AllCodes(Spec("fp16"))) {
    ASSERT_EQ(IsSignalingNan(a), (a.code & 0x7E00) == 0x7C00 && (a.code & 0x1FF) != 0) << Text(a);
  }
  EXPECT_TRUE(IsSignalingNan({Spec("e5m2"), 0x7D}));
  EXPECT_TRUE(IsSignalingNan({Spec("fp32"), 0xFF800001}));
  EXPECT_FALSE(IsSignalingNan({Spec("fp32"), 0xFF800000}));
  EXPECT_FALSE(IsSignalingNan({Spec("e6m1"), 0x7F}));
}

// x before y in the order in which -0 is less than +0.
bool Precedes(double x, double y) {
  return x < y || (x == y && std::signbit(x) && !std::signbit(y));
}
double Least(double x, double y) { return Precedes(y, x) ? y : x; }
double Greatest(double x, double y) { return Precedes(x, y) ? y : x; }
double LeastMagnitude(double x, double y) {
  if (std::abs(x) == std::abs(y)) return Least(x, y);
  return std::abs(x) < std::abs(y) ? x : y;
}
double GreatestMagnitude(double x, double y) {
  if (std::abs(x) == std::abs(y)) return Greatest(x, y);
  return std::abs(x) > std::abs(y) ? x : y;
}

enum class Rule { kNanWins, kNumberWins, kFiniteWins };
struct ExtremumRule {
  Extremum extremum;
  double (*of_numbers)(double, double);
  Rule rule;
};
constexpr ExtremumRule kExtrema[] = {
    {Extremum::kMinimum, Least, Rule::kNanWins},
    {Extremum::kMaximum, Greatest, Rule::kNanWins},
    {Extremum::kMinimumNumber, Least, Rule::kNumberWins},
    {Extremum::kMaximumNumber, Greatest, Rule::kNumberWins},
    {Extremum::kMinimumMagnitude, LeastMagnitude, Rule::kNanWins},
    {Extremum::kMaximumMagnitude, GreatestMagnitude, Rule::kNanWins},
    {Extremum::kMinimumMagnitudeNumber, LeastMagnitude, Rule::kNumberWins},
    {Extremum::kMaximumMagnitudeNumber, GreatestMagnitude, Rule::kNumberWins},
    {Extremum::kMinimumFinite, Least, Rule::kFiniteWins},
    {Extremum::kMaximumFinite, Greatest, Rule::kFiniteWins},
};

double Chosen(const ExtremumRule& rule, double x, double y) {
  if (std::isnan(x) || std::isnan(y)) {
    if (rule.rule == Rule::kNanWins) return std::nan("");
    return std::isnan(x) ? y : x;
  }
  if (rule.rule == Rule::kFiniteWins && std::isinf(x) != std::isinf(y)) {
    return std::isinf(x) ? y : x;
  }
  return rule.of_numbers(x, y);
}

void ExpectChosen(const Operand& a, const Operand& b, const EncodePlan& to) {
  for (const ExtremumRule& rule : kExtrema) {
    const double value = Chosen(rule, Value(a), Value(b));
    const Rounded got = Choose(rule.extremum, a, b, to);
    const bool invalid = Signals(a) || Signals(b) || (std::isnan(value) && !to.format.HasNan());
    const auto where = [&a = a, &b = b, &to = to, &rule = rule] {
      return fmt::format("extremum {} of {} and {} to {}",
                         static_cast<int>(rule.extremum),
                         Text(a),
                         Text(b),
                         Text(to));
    };
    if (std::isnan(value)) {
      ASSERT_EQ(got.code, Encode(to.format, std::nan(""))) << where();
    } else {
      ASSERT_EQ(got.code, Encode(to.format, value, to.rounding, to.overflow)) << where();
    }
    ASSERT_EQ((got.flags & kInvalid) != 0, invalid) << where();
    const double delivered = Value(to.format, got.code);
    const bool changed = !std::isnan(value) && !(delivered == value);
    ASSERT_EQ((got.flags & kInexact) != 0, changed) << where();
  }
}

TEST(Choose, ReturnsAnOperandOrNanByTheRuleOfEachExtremum) {
  for (const char* name : {"e5m2", "e4m3fn", "e4m3fnuz", "binary8p4se", "e2m3fn", "bnb-e4m3"}) {
    const FormatSpec format = Spec(name);
    const EncodePlan to = MakeEncodePlan(format);
    for (const Operand& a : AllCodes(format)) {
      for (const Operand& b : AllCodes(format)) ExpectChosen(a, b, to);
      if (HasFailure()) return;
    }
  }
}

TEST(Choose, DeliversMixedOperandsInAnotherFormatRoundedOnce) {
  for (const char* target : {"bf16", "e4m3fn", "binary8p3se", "e2m1fn"}) {
    for (RoundingMode mode : {RoundingMode::kNearestEven, RoundingMode::kUp}) {
      const EncodePlan to = MakeEncodePlan(Spec(target), {.mode = mode});
      const std::vector<Operand> e5m2 = AllCodes(Spec("e5m2"));
      for (const Operand& b : RandomCodes(Spec("fp16"), 40, 9)) {
        for (const Operand& a : e5m2) ExpectChosen(a, b, to);
        for (const Operand& a : RandomCodes(Spec("fp32"), 40, 10)) ExpectChosen(b, a, to);
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Choose, NegativeZeroIsLessThanPositiveZero) {
  const FormatSpec format = Spec("fp16");
  const EncodePlan to = MakeEncodePlan(format);
  const Operand minus = {format, 0x8000}, plus = {format, 0};
  for (Extremum least : {Extremum::kMinimum,
                         Extremum::kMinimumNumber,
                         Extremum::kMinimumMagnitude,
                         Extremum::kMinimumMagnitudeNumber,
                         Extremum::kMinimumFinite}) {
    EXPECT_EQ(Choose(least, minus, plus, to), (Rounded{0x8000, 0}));
    EXPECT_EQ(Choose(least, plus, minus, to), (Rounded{0x8000, 0}));
  }
  for (Extremum greatest : {Extremum::kMaximum,
                            Extremum::kMaximumNumber,
                            Extremum::kMaximumMagnitude,
                            Extremum::kMaximumMagnitudeNumber,
                            Extremum::kMaximumFinite}) {
    EXPECT_EQ(Choose(greatest, minus, plus, to), (Rounded{0, 0}));
    EXPECT_EQ(Choose(greatest, plus, minus, to), (Rounded{0, 0}));
  }
}

// Every number of the format once, ascending: a signed zero as +0, no unused
// code.
std::vector<double> AscendingValues(const FormatSpec& format) {
  std::vector<double> values;
  for (const Operand& a : AllCodes(format)) {
    const ValueClass kind = Classify(format, a.code);
    if (kind == ValueClass::kNan || kind == ValueClass::kUnused) continue;
    values.push_back(Value(a) == 0 ? 0.0 : Value(a));
  }
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// The neighbour of `x` by search among all values of the format.
double UpFrom(const std::vector<double>& ascending, double x, bool negative_zero) {
  const auto above = std::upper_bound(ascending.begin(), ascending.end(), x);
  if (above == ascending.end()) return x;
  return *above == 0 && negative_zero ? -0.0 : *above;
}
double DownFrom(const std::vector<double>& ascending, double x) {
  const auto at = std::lower_bound(ascending.begin(), ascending.end(), x);
  return at == ascending.begin() ? x : *std::prev(at);
}

void ExpectNeighbours(const FormatSpec& format) {
  const std::vector<double> ascending = AscendingValues(format);
  for (const Operand& a : AllCodes(format)) {
    const Rounded up = NextUp(a), down = NextDown(a);
    if (std::isnan(Value(a))) {
      const Rounded nan = {format.NanCode(), Signals(a) ? kInvalid : Flags{0}};
      ASSERT_EQ(up, nan) << Text(a);
      ASSERT_EQ(down, nan) << Text(a);
      continue;
    }
    if (Classify(format, a.code) == ValueClass::kUnused) continue;
    const double above = UpFrom(ascending, Value(a), HoldsNegativeZero(format));
    const double below = DownFrom(ascending, Value(a));
    ASSERT_TRUE(SameValue(Value(format, up.code), above)) << Text(a) << Text(format, up);
    ASSERT_TRUE(SameValue(Value(format, down.code), below)) << Text(a) << Text(format, down);
    ASSERT_EQ(up.flags | down.flags, 0) << Text(a);
  }
}

TEST(NextUpAndNextDown, AreTheNeighboursAmongAllValuesOfEveryNarrowFormat) {
  for (const Format& format : NarrowFormats()) {
    SCOPED_TRACE(format.name);
    ExpectNeighbours(format.spec);
  }
}

TEST(NextUpAndNextDown, AreTheNeighboursAmongAllValuesOf16Bits) {
  for (const char* name : {"fp16", "bf16"}) ExpectNeighbours(Spec(name));
}

TEST(NextUpAndNextDown, AgreeWithTheHostOnFp32) {
  const FormatSpec fp32 = Spec("fp32");
  for (const Operand& a : RandomCodes(fp32, 20000, 4)) {
    const float x = Decode(fp32, a.code);
    if (std::isnan(x)) continue;
    const float above = std::nextafter(x, INFINITY), below = std::nextafter(x, -INFINITY);
    const double up = Value(fp32, NextUp(a).code), down = Value(fp32, NextDown(a).code);
    ASSERT_TRUE(SameValue(up, static_cast<double>(above))) << Text(a);
    ASSERT_TRUE(SameValue(down, static_cast<double>(below))) << Text(a);
  }
}

TEST(NextUpAndNextDown, KeepToTheEndsOfTheRangeByIeee754) {
  const FormatSpec fp16 = Spec("fp16");
  EXPECT_EQ(NextUp({fp16, 0x7BFF}), (Rounded{0x7C00, 0}));  // the largest number
  EXPECT_EQ(NextUp({fp16, 0x7C00}), (Rounded{0x7C00, 0}));
  EXPECT_EQ(NextUp({fp16, 0xFC00}), (Rounded{0xFBFF, 0}));  // minus infinity
  EXPECT_EQ(NextUp({fp16, 0x8001}), (Rounded{0x8000, 0}));  // to -0
  EXPECT_EQ(NextDown({fp16, 0x0001}), (Rounded{0x0000, 0}));
  EXPECT_EQ(NextUp({fp16, 0x8000}), (Rounded{0x0001, 0}));
  EXPECT_EQ(NextDown({fp16, 0x0000}), (Rounded{0x8001, 0}));
  EXPECT_EQ(NextUp({Spec("e4m3fn"), 0x7E}), (Rounded{0x7E, 0}));
  EXPECT_EQ(NextDown({Spec("e4m3fnuz"), 0x00}), (Rounded{0x81, 0}));
  EXPECT_EQ(NextUp({Spec("e4m3fnuz"), 0x81}), (Rounded{0x00, 0}));
  EXPECT_EQ(NextDown({Spec("e8m0fnu"), 0x00}), (Rounded{0x00, 0}));
  EXPECT_EQ(NextUp({Spec("int8"), 0xFF}), (Rounded{0x00, 0}));
  EXPECT_EQ(NextDown({Spec("int8"), 0x81}), (Rounded{0x81, 0}));
  EXPECT_EQ(NextUp({Spec("e5m2"), 0x7D}), (Rounded{0x7E, kInvalid}));
}

// Expectations for sign-magnitude formats, from the layout of a code alone.
void ExpectSignOperations(const Operand& a) {
  const FormatSpec& format = a.format;
  const uint32_t magnitude = a.code & ~format.SignBit();
  const bool one_code = magnitude == 0 && !HoldsNegativeZero(format);  // +0 and perhaps NaN
  const Rounded negated = {one_code ? a.code : a.code ^ format.SignBit(), 0};
  const Rounded absolute = {one_code ? a.code : magnitude, 0};
  ASSERT_EQ(Negate(a), negated) << Text(a);
  ASSERT_EQ(Absolute(a), absolute) << Text(a);
}

TEST(NegateAndAbsolute, ChangeTheSignBitAloneInSignMagnitudeFormats) {
  std::vector<Format> formats = NarrowFormats();
  for (const char* name : {"fp16", "bf16"}) formats.push_back(ParseFormat(name));
  for (const Format& format : formats) {
    if (format.spec.sign != Sign::kSignMagnitude) continue;
    for (const Operand& a : AllCodes(format.spec)) ExpectSignOperations(a);
  }
  for (const Operand& a : RandomCodes(Spec("fp32"), 5000, 6)) ExpectSignOperations(a);
}

TEST(NegateAndAbsolute, NegateIntegersAndSaturateTheUnusedCode) {
  const FormatSpec format = Spec("int8");
  for (const Operand& a : AllCodes(format)) {
    if (a.code == 0x80) continue;
    EXPECT_EQ(Value(format, Negate(a).code), -Value(a));
    EXPECT_EQ(Value(format, Absolute(a).code), std::abs(Value(a)));
    EXPECT_EQ(Negate(a).flags | Absolute(a).flags, 0);
  }
  const Rounded largest = {0x7F, kOverflow | kInexact};
  EXPECT_EQ(Negate({format, 0x80}), largest);
  EXPECT_EQ(Absolute({format, 0x80}), largest);
}

TEST(NegateAndAbsolute, UnsignedFormatsHaveNoNegation) {
  for (const Format& format : NarrowFormats()) {
    if (format.spec.IsSigned()) continue;
    const uint32_t none = format.spec.HasNan() ? format.spec.NanCode() : 0;
    for (const Operand& a : AllCodes(format.spec)) {
      const bool unchanged = std::isnan(Value(a)) || Value(a) == 0;
      const Rounded negated = unchanged ? Rounded{a.code, 0} : Rounded{none, kInvalid};
      ASSERT_EQ(Negate(a), negated) << Text(a);
      ASSERT_EQ(Absolute(a), (Rounded{a.code, 0})) << Text(a);
    }
  }
}

}  // namespace
}  // namespace numsim
