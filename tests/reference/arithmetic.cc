#include "tests/reference/arithmetic.h"

#include <algorithm>

namespace oracle {
namespace {

// Bits of the fraction nu that stochastic rounding can tell apart: 32 and one
// that decides ties.
constexpr int kFractionBits = 33;

// Two neighbouring values, low and low + gap, in units of 2^exponent.
struct Neighbours {
  uint64_t low;
  uint64_t gap;
  int exponent;
};

int LowestExponent(const Format& f) { return (f.has_zero ? 1 : 0) - f.bias; }

// Position of the smallest normal number.
int64_t SmallestNormal(const Format& f) { return f.has_zero ? int64_t{1} << f.mantissa_bits : 0; }

Neighbours Between(double low, double high) {
  const Dyadic a = ToDyadic(low);
  const Dyadic b = ToDyadic(high);
  // In units of the lower last bit; both are below 2^30 of it, for they have at
  // most 24 bits.
  const auto zeros = [](const Dyadic& x) { return __builtin_ctzll(x.significand); };
  int exponent = b.exponent + zeros(b);
  if (low > 0) exponent = std::min(exponent, a.exponent + zeros(a));
  const auto integer = [exponent](const Dyadic& x) {
    const int shift = x.exponent - exponent;
    return shift >= 0 ? x.significand << shift : x.significand >> -shift;
  };
  return {low > 0 ? integer(a) : 0, integer(b) - (low > 0 ? integer(a) : 0), exponent};
}

// The largest k below 2^kFractionBits with low + gap k / 2^kFractionBits <= x,
// by halving.
uint64_t FloorOfFraction(const ExactNumber& x, const Neighbours& interval) {
  uint64_t k = 0;
  for (int bit = kFractionBits - 1; bit >= 0; --bit) {
    const uint64_t next = k | uint64_t{1} << bit;
    const uint64_t significand = (interval.low << kFractionBits) + interval.gap * next;
    if (x.CompareWith({significand, interval.exponent - kFractionBits}) >= 0) k = next;
  }
  return k;
}

// A place with a distance and a gap that are not x's but lead to the same
// decision in every mode: a quarter, a half or three quarters of the gap; for
// stochastic modes, nu cut to kFractionBits bits and half of the last one more
// where anything was cut.
Place PlaceBetween(const ExactNumber& x,
                   const Neighbours& interval,
                   int64_t position,
                   Modes modes) {
  if (x.CompareWith({interval.low, interval.exponent}) == 0) return {position, 0, 1};
  if (modes == Modes::kDeterministic) {
    const int half = x.CompareWith({2 * interval.low + interval.gap, interval.exponent - 1});
    return {position, 0.5 + 0.25 * half, 1};
  }
  const uint64_t k = FloorOfFraction(x, interval);
  const uint64_t significand = (interval.low << kFractionBits) + interval.gap * k;
  const bool more = x.CompareWith({significand, interval.exponent - kFractionBits}) > 0;
  return {position, 2 * static_cast<double>(k) + more, 2 * 0x1p33};
}

// The position of the largest value <= x, up to target.end(true). Guessed, then
// made sure.
int64_t PositionOf(const Grid& target, const ExactNumber& x) {
  const int64_t first = target.format().has_zero ? 0 : -1;
  int64_t position = target.Locate(x.Approximate()).position;
  while (position > first && x.CompareWith(ToDyadic(target.Value(position))) < 0) --position;
  while (position < target.end(true) && x.CompareWith(ToDyadic(target.Value(position + 1))) >= 0) {
    ++position;
  }
  return position;
}

}  // namespace

Placement::Placement(const Grid& target, const ExactNumber& x, Modes modes)
    : target_(&target),
      kind_(x.kind),
      negative_(x.negative),
      sign_by_mode_(x.sign_by_mode),
      zero_(x.IsZero()),
      flags_(x.flags) {
  if (kind_ != Real::Kind::kFinite || zero_) return;
  const Format& f = target.format();
  const int64_t position = PositionOf(target, x);
  if (position == target.end(true)) {
    place_ = {position, 0, 1};
  } else {
    place_ = PlaceBetween(
        x, Between(target.Value(position), target.Value(position + 1)), position, modes);
  }
  const int exponent = LowestExponent(f) - 1 - f.mantissa_bits;
  const uint64_t significand = uint64_t{2} << f.mantissa_bits;  // the smallest normal number
  below_normal_ = x.CompareWith({significand, exponent}) < 0;
  in_last_gap_ = below_normal_ && x.CompareWith({significand - 1, exponent}) >= 0;
  if (in_last_gap_) {
    last_gap_ = PlaceBetween(x, {significand - 1, 1, exponent}, SmallestNormal(f) - 1, modes);
  }
}

bool Placement::IsTiny(bool negative,
                       const Setting& setting,
                       Tininess tininess,
                       uint32_t random) const {
  if (IsFixedPoint(target_->format()) || !below_normal_) return false;
  if (tininess == Tininess::kBeforeRounding || !in_last_gap_) return true;
  return !RoundsAway(last_gap_, negative, setting, random);
}

Outcome Placement::RoundFinite(bool negative,
                               const Setting& setting,
                               Tininess tininess,
                               uint32_t random) const {
  const Format& f = target_->format();
  const int64_t position =
      place_.position + (RoundsAway(place_, negative, setting, random) ? 1 : 0);
  Outcome outcome = {Finish(*target_, position, negative, setting), 0};
  const bool vanishes = f.flushes && position < int64_t{1} << f.mantissa_bits;
  const bool becomes_zero = f.has_zero && (position == 0 || vanishes);
  if (negative && f.signs == Signs::kNone && !becomes_zero) return {outcome.code, kInvalidFlag};
  // Never both, also where a format has no normal number: there the largest value is subnormal.
  if (position >= target_->end(negative)) {
    outcome.flags = kOverflowFlag | kInexactFlag;
  } else if (vanishes) {
    outcome.flags = kInexactFlag | kUnderflowFlag;
  } else if (place_.distance != 0) {
    outcome.flags = kInexactFlag;
    if (IsTiny(negative, setting, tininess, random)) outcome.flags |= kUnderflowFlag;
  }
  return outcome;
}

Outcome Placement::Round(const Setting& setting, Tininess tininess, uint32_t random) const {
  const Format& f = target_->format();
  const bool negative = sign_by_mode_ ? setting.mode == Mode::kDown : negative_;
  Outcome outcome;
  if (kind_ == Real::Kind::kFinite && !zero_) {
    outcome = RoundFinite(negative, setting, tininess, random);
  } else {
    outcome.code = EncodeAt(*target_, {kind_, negative, 0}, Place{}, setting, random);
    if (kind_ == Real::Kind::kNan && f.nan_plus == kNoCode) outcome.flags = kInvalidFlag;
    // A zero that becomes the smallest value has changed, but is not tiny: [IEEE754] 7.5 speaks of
    // numbers other than zero.
    if (zero_ && !f.has_zero) outcome.flags = kInexactFlag;
    if (kind_ == Real::Kind::kInfinity) {
      const bool delivered = f.infinity != kNoCode && setting.policy != Policy::kSaturate;
      if (!delivered) outcome.flags = kOverflowFlag | kInexactFlag;
      if (negative && f.signs == Signs::kNone) outcome.flags = kInvalidFlag;
    }
  }
  outcome.flags |= flags_;
  return outcome;
}

uint64_t Placement::WordsAway(Variant variant, int random_bits) const {
  if (kind_ != Real::Kind::kFinite || zero_ || place_.distance == 0) return 0;
  return WordsThatRoundAway(place_, variant, random_bits);
}

int Arity(Operation operation) {
  switch (operation) {
    case Operation::kFusedMultiplyAdd:
    case Operation::kFusedAddAdd:
      return 3;
    case Operation::kSquareRoot:
    case Operation::kReciprocal:
    case Operation::kConvert:
      return 1;
    default:
      return 2;
  }
}

const char* ToString(Operation operation) {
  constexpr const char* kNames[] = {"Add",
                                    "Subtract",
                                    "Multiply",
                                    "Divide",
                                    "FusedMultiplyAdd",
                                    "FusedAddAdd",
                                    "SquareRoot",
                                    "Reciprocal",
                                    "Remainder",
                                    "Convert"};
  return kNames[static_cast<int>(operation)];
}

ExactNumber Exact(Operation operation, std::span<const ExactNumber> x) {
  switch (operation) {
    case Operation::kAdd:
      return ExactSum(x.first(2));
    case Operation::kSubtract: {
      const ExactNumber addends[] = {x[0], Negated(x[1])};
      return ExactSum(addends);
    }
    case Operation::kMultiply:
      return ExactProduct(x[0], x[1]);
    case Operation::kDivide:
      return ExactQuotient(x[0], x[1]);
    case Operation::kFusedMultiplyAdd: {
      const ExactNumber addends[] = {ExactProduct(x[0], x[1]), x[2]};
      return ExactSum(addends);
    }
    case Operation::kFusedAddAdd:
      return ExactSum(x.first(3));
    case Operation::kSquareRoot:
      return ExactRoot(x[0]);
    case Operation::kReciprocal: {
      ExactNumber one;
      one.numerator = 1;
      return ExactQuotient(one, x[0]);
    }
    case Operation::kRemainder:
      return ExactRemainder(x[0], x[1]);
    case Operation::kConvert:
      return x[0];
  }
  return {};
}

std::vector<ExactNumber> AllExact(const Grid& grid) {
  std::vector<ExactNumber> all;
  const uint32_t count = uint32_t{1} << grid.format().bits;
  for (uint32_t code = 0; code < count; ++code) all.push_back(ExactOf(grid, code));
  return all;
}

}  // namespace oracle
