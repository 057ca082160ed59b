#include "numsim/rounding/shared/table_rule.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "numsim/base/shared/float_environment.h"
#include "numsim/formats/named_formats.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/exact_number.h"
#include "numsim/rounding/rounding_modes.h"
#include "numsim/rounding/shared/float64_bits.h"

namespace numsim::table_rule {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double Above(double x) { return std::nextafter(x, kInfinity); }

// True if the lower of two neighbours is the one toward zero: the one of smaller magnitude.
bool LowIsTowardZero(float low, float high) { return std::abs(low) <= std::abs(high); }

// Returns the smallest float64 that is nearer to `high` than to `low`, or as near and the tie goes up.
double NearestStep(double low, double high, bool tie_goes_up) {
  // The sum of two float64 is sum + rest, exactly [Knuth's two-sum]. Halving is exact.
  const double sum = low + high;
  const double part = sum - low;
  const double rest = (low - (sum - part)) + (high - part);
  const double middle = sum / 2;
  const bool is_up = rest < 0 || (rest == 0 && tie_goes_up);
  return is_up ? middle : Above(middle);
}

// Returns the smallest float64 that is rounded to the position after `position`.
double StepAbove(const ValueTable& table, size_t position, RoundingMode mode) {
  const auto low = static_cast<double>(table.values[position]);
  const auto high = static_cast<double>(table.values[position + 1]);
  const bool to_low = LowIsTowardZero(table.values[position], table.values[position + 1]);
  const bool low_is_even = position % 2 == 0;
  switch (mode) {
    case RoundingMode::kNearestEven:
      return NearestStep(low, high, !low_is_even);
    case RoundingMode::kNearestAway:
      return NearestStep(low, high, to_low);
    case RoundingMode::kTowardZero:
      return to_low ? high : Above(low);
    case RoundingMode::kUp:
      return Above(low);
    case RoundingMode::kToOdd:
      return low_is_even ? Above(low) : high;
    case RoundingMode::kDown:
    case RoundingMode::kStochastic:
      break;
  }
  return high;
}

float RoundedUp(double x) {
  const auto nearest = static_cast<float>(x);
  return static_cast<double>(nearest) < x
             ? std::nextafter(nearest, std::numeric_limits<float>::infinity())
             : nearest;
}

// Nothing lies between -0 and 0, so a step at 0 that is put at -0 treats both alike.
template <typename Key>
Key WithoutNegativeZero(Key key) {
  return key == 0 ? -1 : key;
}

[[gnu::noinline]] Steps MakeSteps(const ValueTable& table, RoundingMode mode) {
  Steps steps;
  for (size_t i = 0; i + 1 < table.values.size(); ++i) {
    const double step = StepAbove(table, i, mode);
    const float step32 = RoundedUp(step);
    steps.f64.push_back(WithoutNegativeZero(KeyOf(std::bit_cast<uint64_t>(step))));
    steps.f32.push_back(WithoutNegativeZero(KeyOf(std::bit_cast<uint32_t>(step32))));
  }
  return steps;
}

constexpr size_t kModes = 8;
using StepsOfTable = std::array<Steps, kModes>;

StepsOfTable MakeAllSteps(const ValueTable& table) {
  const DefaultFloatEnvironment environment;
  StepsOfTable all;
  for (const RoundingMode mode : kDeterministicModes) {
    all[static_cast<size_t>(mode)] = MakeSteps(table, mode);
  }
  all[static_cast<size_t>(RoundingMode::kStochastic)] = MakeSteps(table, RoundingMode::kStochastic);
  return all;
}

size_t PositionOf(const std::vector<int64_t>& steps, int64_t key) {
  return static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), key) - steps.begin());
}

// value * factor, exactly: float32 has 24 significant bits and the factor at most 34.
ExactNumber Times(float value, uint64_t factor, bool negate) {
  Unrounded x = ExactValue(kFp32, std::bit_cast<uint32_t>(value));
  x.significand *= factor;
  x.negative = x.negative != negate;
  return ExactNumber(x);
}

ExactNumber AsExact(float value) { return Times(value, 1, false); }

// Differences of zeros may be -0.
bool IsBelowZero(const ExactNumber& x) { return x.negative() && !x.IsZero(); }

uint32_t HighestCode(const ValueTable& table) { return table.codes.back(); }

Flags FlagsOf(const ValueTable& table, uint32_t code, const ExactNumber& x) {
  if ((x - AsExact(table.by_code[code])).IsZero()) return 0;
  const bool beyond = IsBelowZero(x - AsExact(table.values.front())) ||
                      IsBelowZero(AsExact(table.values.back()) - x);
  return static_cast<Flags>(kInexact | (beyond ? kOverflow : 0));
}

// Returns true if x is rounded to `position` + 1 in a deterministic mode, or in a stochastic one.
bool RoundsToNext(const EncodePlan& plan,
                  const ValueTable& table,
                  size_t position,
                  const Unrounded& unrounded,
                  uint32_t random) {
  const float low = table.values[position], high = table.values[position + 1];
  const ExactNumber x(unrounded), from_low = x - AsExact(low), to_high = AsExact(high) - x;
  if (from_low.IsZero()) return false;
  const ExactNumber beyond_middle = from_low - to_high;
  const bool to_low = LowIsTowardZero(low, high), low_is_even = position % 2 == 0;
  switch (plan.rounding.mode) {
    case RoundingMode::kNearestEven:
      return beyond_middle.IsZero() ? !low_is_even : !beyond_middle.negative();
    case RoundingMode::kNearestAway:
      return beyond_middle.IsZero() ? to_low : !beyond_middle.negative();
    case RoundingMode::kTowardZero:
      return !to_low;
    case RoundingMode::kUp:
      return true;
    case RoundingMode::kDown:
      return false;
    case RoundingMode::kToOdd:
      return low_is_even;
    case RoundingMode::kStochastic:
      break;
  }
  return RoundsUp(plan, position, unrounded, random);
}

}  // namespace

Threshold ThresholdOf(const Rounding& rounding, uint32_t random) {
  const int n = rounding.random_bits;
  const uint64_t words = uint64_t{1} << n, r = random & (words - 1);
  switch (rounding.variant) {
    case StochasticVariant::kA:
      return {n, words - r, true};
    case StochasticVariant::kB:
      return {n + 1, 2 * words - 2 * r - 1, true};
    case StochasticVariant::kC:
      // rint(nu 2^n) >= words - r; the tie at words - r - 1/2 rounds up if words - r is even.
      return {n + 1, 2 * (words - r) - 1, (words - r) % 2 == 0};
  }
  return {};
}

const Steps& StepsOf(const FormatSpec& format, RoundingMode mode) {
  static std::array<std::atomic<const StepsOfTable*>, 256> known = {};
  static std::mutex mutex;
  std::atomic<const StepsOfTable*>& entry = known[format.table];
  const StepsOfTable* steps = entry.load(std::memory_order_acquire);
  if (steps == nullptr) {
    const std::lock_guard lock(mutex);
    steps = entry.load(std::memory_order_relaxed);
    if (steps == nullptr) {
      steps = new StepsOfTable(MakeAllSteps(TableOf(format)));  // kept, as tables are
      entry.store(steps, std::memory_order_release);
    }
  }
  return (*steps)[static_cast<size_t>(mode)];
}

bool RoundsUp(const EncodePlan& plan, size_t position, const Unrounded& x, uint32_t random) {
  const ValueTable& table = TableOf(plan.format);
  const float low = table.values[position], high = table.values[position + 1];
  const bool from_low = LowIsTowardZero(low, high);
  const float t = from_low ? low : high, away = from_low ? high : low;
  const Threshold threshold = ThresholdOf(plan.rounding, random);
  // nu 2^shift - least has the sign of (x - t) 2^shift - (away - t) least, times that of away - t.
  const uint64_t whole = uint64_t{1} << threshold.shift;
  Unrounded scaled = x;
  if (scaled.significand != 0) scaled.exponent += threshold.shift;
  ExactNumber beyond = ExactNumber(scaled) + Times(t, whole - threshold.least, true) +
                       Times(away, threshold.least, true);
  if (!from_low) beyond = -beyond;
  const bool rounds_away = beyond.IsZero() ? threshold.or_equal : !beyond.negative();
  return rounds_away == from_low;
}

uint32_t EncodeF64(const EncodePlan& plan, uint64_t value_bits, uint32_t random) noexcept {
  const ValueTable& table = TableOf(plan.format);
  if ((value_bits << 1) > 0xFFE0000000000000u) return HighestCode(table);  // NaN
  const Steps& steps = StepsOf(plan.format, plan.rounding.mode);
  size_t position = PositionOf(steps.f64, KeyOf(value_bits));
  const bool between =
      position + 1 < table.values.size() &&
      KeyOf(value_bits) >=
          KeyOf(std::bit_cast<uint64_t>(static_cast<double>(table.values.front())));
  if (plan.rounding.mode == RoundingMode::kStochastic && between) {
    position += RoundsUp(plan, position, ExactFloat64(value_bits), random) ? 1 : 0;
  }
  return table.codes[position];
}

Rounded EncodeUnrounded(const EncodePlan& plan, const Unrounded& x, uint32_t random) noexcept {
  const ValueTable& table = TableOf(plan.format);
  if (x.kind == NumberKind::kNan) return {HighestCode(table), kInvalid};
  const Flags beyond = kOverflow | kInexact;
  if (x.kind == NumberKind::kInfinity) {
    return {x.negative ? table.codes.front() : HighestCode(table), beyond};
  }
  const ExactNumber exact(x);
  const auto above = std::upper_bound(
      table.values.begin(), table.values.end(), exact, [](const ExactNumber& a, float b) {
        return IsBelowZero(a - AsExact(b));
      });
  if (above == table.values.begin()) return {table.codes.front(), beyond};
  size_t position = static_cast<size_t>(above - table.values.begin()) - 1;
  if (position + 1 < table.values.size() && RoundsToNext(plan, table, position, x, random)) {
    ++position;
  }
  const uint32_t code = table.codes[position];
  return {code, FlagsOf(table, code, exact)};
}

}  // namespace numsim::table_rule
