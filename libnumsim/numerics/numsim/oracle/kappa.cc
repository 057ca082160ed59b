#include "numsim/oracle/kappa.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "numsim/base/error.h"

namespace numsim {
namespace {

// Returns the position of a finite code in the order of values; both zeros have position 0.
int64_t Ordinal(const FormatSpec& format, uint32_t code) {
  if ((code & format.SignBit()) == 0) return code;
  if (format.sign == Sign::kTwosComplement) {
    return int64_t{code} - (int64_t{1} << format.Bits());
  }
  return -int64_t{code & format.MagnitudeMask()};
}

bool IsFinite(ValueClass value_class) {
  return value_class == ValueClass::kZero || value_class == ValueClass::kSubnormal ||
         value_class == ValueClass::kNormal;
}

}  // namespace

std::optional<uint64_t> ValueSteps(const FormatSpec& format, uint32_t a, uint32_t b) noexcept {
  const ValueClass class_a = Classify(format, a);
  const ValueClass class_b = Classify(format, b);
  if (IsFinite(class_a) && IsFinite(class_b)) {
    const int64_t difference = Ordinal(format, a) - Ordinal(format, b);
    return static_cast<uint64_t>(difference < 0 ? -difference : difference);
  }
  const bool nans = class_a == ValueClass::kNan && class_b == ValueClass::kNan;
  if (a == b || nans) return 0;
  return std::nullopt;
}

size_t KappaMeter::BinOf(uint64_t steps) noexcept {
  if (steps <= 4) return steps;
  return std::min<size_t>(kBins - 1, 2 + static_cast<size_t>(std::bit_width(steps - 1)));
}

std::string KappaMeter::BinText(size_t bin) {
  if (bin <= 4) return fmt::format("{}", bin);
  const uint64_t high = uint64_t{1} << (bin - 2);
  return fmt::format("{}-{}", high / 2 + 1, high);
}

KappaMeter::KappaMeter(const Operation& operation, NanRule nan)
    : operation_(operation),
      nan_(nan),
      inputs_(operation.inputs().size()),
      expected_(operation.results().size()) {
  const auto& results = operation.results();
  const bool any = std::any_of(
      results.begin(), results.end(), [](const Column& c) { return c.format.has_value(); });
  if (!any) {
    throw Error::Format("--op {}: the result is not a code of a format, so it has no value steps",
                        operation.info().name);
  }
}

std::unique_ptr<CaseTally> KappaMeter::Fresh() const {
  return std::make_unique<KappaMeter>(operation_, nan_);
}

void KappaMeter::Add(uint64_t place, std::span<const uint64_t> row) noexcept {
  ++cases_;
  operation_.Evaluate(row.first(inputs_), expected_);
  for (size_t i = 0; i < expected_.size(); ++i) {
    if (operation_.results()[i].format) AddResult(place, row, i);
  }
}

void KappaMeter::AddResult(uint64_t place, std::span<const uint64_t> row, size_t result) {
  const FormatSpec& format = operation_.results()[result].format->spec;
  const auto got = static_cast<uint32_t>(row[inputs_ + result]);
  const auto expected = static_cast<uint32_t>(expected_[result]);
  const auto here = [&] {
    return KappaPlace{place, result, std::vector<uint64_t>(row.begin(), row.end()), expected};
  };
  const bool other_nan = nan_ == NanRule::kExact && got != expected &&
                         Classify(format, got) == ValueClass::kNan &&
                         Classify(format, expected) == ValueClass::kNan;
  const auto steps = other_nan ? std::nullopt : ValueSteps(format, got, expected);
  if (steps) {
    ++histogram_[BinOf(*steps)];
    if (*steps > largest_) {
      largest_ = *steps;
      largest_at_ = here();
    }
    return;
  }
  const bool got_nan = Classify(format, got) == ValueClass::kNan;
  if (got_nan != (Classify(format, expected) == ValueClass::kNan)) ++incomparable_.nan_on_one_side;
  switch (Classify(format, expected)) {
    case ValueClass::kInfinity:
      ++incomparable_.infinity_expected;
      break;
    case ValueClass::kNan:
      ++(other_nan ? incomparable_.nan_code : incomparable_.nan_expected);
      break;
    default:
      ++incomparable_.finite_expected;
      break;
  }
  if (!incomparable_at_) incomparable_at_ = here();
}

void KappaMeter::Append(const CaseTally& later) {
  const KappaMeter& other = static_cast<const KappaMeter&>(later);
  cases_ += other.cases_;
  if (other.largest_ > largest_) {
    largest_ = other.largest_;
    largest_at_ = other.largest_at_;
  }
  incomparable_.finite_expected += other.incomparable_.finite_expected;
  incomparable_.infinity_expected += other.incomparable_.infinity_expected;
  incomparable_.nan_expected += other.incomparable_.nan_expected;
  incomparable_.nan_code += other.incomparable_.nan_code;
  incomparable_.nan_on_one_side += other.incomparable_.nan_on_one_side;
  if (!incomparable_at_) incomparable_at_ = other.incomparable_at_;
  for (size_t bin = 0; bin < kBins; ++bin) histogram_[bin] += other.histogram_[bin];
}

}  // namespace numsim
