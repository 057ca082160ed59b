#include "numsim/oracle/kappa.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "numsim/formats/decode.h"
#include "tests/oracle/made_up_operation.h"
#include "tests/support/io_fixture.h"

namespace numsim {
namespace {

TEST(ValueSteps, CountsRepresentableValuesUpToTheOther) {
  for (const char* const name :
       {"e4m3fn", "e5m2", "e2m1fn", "e8m0fnu", "int8", "binary8p3se", "binary8p1uf", "bnb-e4m3"}) {
    const FormatSpec format = ParseFormat(name).spec;
    std::vector<float> all = DecodeTable(format);
    if (format.sign == Sign::kTwosComplement) all[format.SignBit()] = NAN;  // unused
    std::vector<float> values;  // distinct and finite, ascending; -0 == +0
    std::copy_if(all.begin(), all.end(), std::back_inserter(values), [](float value) {
      return std::isfinite(value);
    });
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (uint32_t a = 0; a < all.size(); ++a) {
      for (uint32_t b = 0; b < all.size(); ++b) {
        if (!std::isfinite(all[a]) || !std::isfinite(all[b])) continue;
        const auto low = std::lower_bound(values.begin(), values.end(), std::min(all[a], all[b]));
        const auto high = std::lower_bound(values.begin(), values.end(), std::max(all[a], all[b]));
        ASSERT_EQ(ValueSteps(format, a, b), static_cast<uint64_t>(high - low))
            << name << " " << a << " " << b;
      }
    }
  }
}

TEST(ValueSteps, SpecialValuesAreTheSameOrIncomparable) {
  const FormatSpec e5m2 = ParseFormat("e5m2").spec;
  EXPECT_EQ(ValueSteps(e5m2, 0x7C, 0x7C), 0u);
  EXPECT_EQ(ValueSteps(e5m2, 0x7D, 0xFF), 0u);  // NaNs
  EXPECT_EQ(ValueSteps(e5m2, 0x7C, 0xFC), std::nullopt);
  EXPECT_EQ(ValueSteps(e5m2, 0x7B, 0x7C), std::nullopt);
  EXPECT_EQ(ValueSteps(e5m2, 0x7E, 0x7C), std::nullopt);
  EXPECT_EQ(ValueSteps(e5m2, 0x00, 0x7E), std::nullopt);
  EXPECT_EQ(ValueSteps(ParseFormat("int8").spec, 0x80, 0x81), std::nullopt);
}

TEST(ValueSteps, WideFormatsDoNotWrap) {
  const FormatSpec fp32 = ParseFormat("fp32").spec;
  EXPECT_EQ(ValueSteps(fp32, 0x7F7FFFFF, 0xFF7FFFFF), 2 * uint64_t{0x7F7FFFFF});
}

TEST(KappaMeter, BinsAreExactToFourThenDouble) {
  for (size_t bin = 0; bin <= 4; ++bin) EXPECT_EQ(KappaMeter::BinOf(bin), bin);
  for (const uint64_t steps : {5, 6, 7, 8}) EXPECT_EQ(KappaMeter::BinOf(steps), 5u);
  EXPECT_EQ(KappaMeter::BinOf(9), 6u);
  EXPECT_EQ(KappaMeter::BinOf(16), 6u);
  EXPECT_EQ(KappaMeter::BinOf(17), 7u);
  EXPECT_LT(KappaMeter::BinOf(2 * uint64_t{0x7F7FFFFF}), KappaMeter::kBins);
  EXPECT_EQ(KappaMeter::BinText(4), "4");
  EXPECT_EQ(KappaMeter::BinText(5), "5-8");
  EXPECT_EQ(KappaMeter::BinText(6), "9-16");
}

TEST(KappaMeter, MeasuresTheLargestErrorAndWhereItIsFirst) {
  const MadeUpOperation operation;
  KappaMeter total(operation, NanRule::kAny);
  const auto add = [&](uint64_t place, std::vector<uint64_t> row) {
    const std::unique_ptr<CaseTally> part = total.Fresh();
    part->Add(place, row);
    total.Append(*part);
  };
  add(1, {3, 4, 7, 0});        // right; the bit, which is no code, does not count
  add(2, {3, 4, 8, 1});        // one step
  add(3, {3, 4, 4, 1});        // three steps
  add(4, {0, 3, 0x80, 0});     // three steps again: -0 where 3 is right
  add(5, {0x80, 0, 0x00, 0});  // +0 for -0
  add(6, {0x7F, 0, 0xFF, 1});  // NaN for NaN
  EXPECT_EQ(total.cases(), 6u);
  EXPECT_EQ(total.largest(), 3u);
  EXPECT_EQ(total.largest_at(), (KappaPlace{3, 0, {3, 4, 4, 1}, 7}));
  EXPECT_EQ(total.incomparable().Total(), 0u);
  EXPECT_EQ(total.histogram()[0], 3u);
  EXPECT_EQ(total.histogram()[1], 1u);
  EXPECT_EQ(total.histogram()[3], 2u);
  add(7, {0, 3, 0x7F, 0});  // NaN where a number is right
  add(8, {0x7F, 0, 3, 1});  // a number where NaN is right
  EXPECT_EQ(total.incomparable(), (KappaMeter::Incomparable{1, 0, 1, 0, 2}));
  EXPECT_EQ(total.incomparable_at(), (KappaPlace{7, 0, {0, 3, 0x7F, 0}, 3}));
  EXPECT_EQ(total.largest(), 3u);
}

// check and kappa agree on which NaN is right.
TEST(KappaMeter, OtherNanCodesAreForNanAnyAlone) {
  const MadeUpOperation operation;
  for (const NanRule rule : {NanRule::kExact, NanRule::kAny}) {
    KappaMeter total(operation, rule);
    const std::unique_ptr<CaseTally> part = total.Fresh();
    part->Add(1, std::vector<uint64_t>{0x7F, 0, 0x7F, 1});
    part->Add(2, std::vector<uint64_t>{0x7F, 0, 0xFF, 1});
    total.Append(*part);
    const uint64_t others = rule == NanRule::kExact ? 1 : 0;
    EXPECT_EQ(total.incomparable(), (KappaMeter::Incomparable{0, 0, 0, others, 0}));
    EXPECT_EQ(total.histogram()[0], 2 - others);
    EXPECT_EQ(total.incomparable_at().has_value(), rule == NanRule::kExact);
  }
}

TEST(KappaMeter, FirstPlaceWithinAPartStays) {
  const MadeUpOperation operation;
  KappaMeter meter(operation, NanRule::kExact);
  meter.Add(1, std::vector<uint64_t>{3, 4, 8, 1});
  meter.Add(2, std::vector<uint64_t>{3, 5, 9, 1});
  EXPECT_EQ(meter.largest_at()->place, 1u);
}

// An operation whose result is a truth value has no steps to count.
class TruthOperation : public Operation {
 public:
  TruthOperation() : Operation({"truth", "", false, {}}, CaseShape::kElementwise) {
    Column column;
    column.name = "result";
    column.bits = 1;
    column.kind = ColumnKind::kTruth;
    results_ = {column};
  }
  Flags Evaluate(std::span<const uint64_t>, std::span<uint64_t> results) const noexcept override {
    results[0] = 1;
    return 0;
  }
};

TEST(KappaMeter, RefusesOperationsWithoutCodes) {
  const TruthOperation operation;
  ExpectMessage(ErrorOf([&] { KappaMeter meter(operation, NanRule::kAny); }),
                {"--op truth", "no value steps"});
}

}  // namespace
}  // namespace numsim
