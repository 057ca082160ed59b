// Why float64 is exact here. A value of a format has at most 24 significant bits and lies between
// 2^-149 and 2^128, as does a gap between neighbours. Let v be the value below x, v > 0. Then
// x < 8 v (the largest ratio of neighbours is 32/7, in bitsandbytes' subnormal gap), so v is a
// multiple of the last bit of x: v's last bit is at least 2^-23 v > 2^-26 x. Hence x - v is a
// multiple of that bit too, and no larger than x: 53 bits hold it. For v = 0 the distance is x
// itself.
#include "tests/reference/oracle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace oracle {
namespace {

// Formats with more values than this are searched by arithmetic instead of a list.
constexpr int64_t kMaxListed = int64_t{1} << 20;

// Exponent of the smallest binade of normal numbers.
int LowestExponent(const Format& f) { return (f.has_zero ? 1 : 0) - f.bias; }

std::vector<double> ListValues(const Format& f, int64_t count) {
  std::vector<double> values;
  const int lowest = LowestExponent(f);
  const double smallest_normal = std::ldexp(1.0, lowest);
  if (f.has_zero) {
    const double step = std::ldexp(1.0, lowest - f.mantissa_bits - f.finer);
    for (int k = 0; k < 1 << f.mantissa_bits; ++k) values.push_back(k * step);
  }
  double value = smallest_normal;
  double binade_end = 2 * smallest_normal;
  double step = std::ldexp(1.0, lowest - f.mantissa_bits);
  while (static_cast<int64_t>(values.size()) < count) {
    values.push_back(value);
    value += step;
    if (value == binade_end) {
      binade_end *= 2;
      step *= 2;
    }
  }
  values.resize(count);
  return values;
}

// x = significand 2^exponent with an odd significand below 2^53 (or zero).
struct Dyadic {
  uint64_t significand;
  int exponent;
};

Dyadic Split(double x) {
  if (x == 0) return {0, 0};
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  const auto significand = static_cast<uint64_t>(std::ldexp(fraction, 53));
  const int zeros = std::countr_zero(significand);
  return {significand >> zeros, exponent - 53 + zeros};
}

bool RoundsTowardZeroThere(Mode mode, bool negative) {
  switch (mode) {
    case Mode::kTowardZero:
    case Mode::kToOdd:
      return true;
    case Mode::kUp:
      return negative;
    case Mode::kDown:
      return !negative;
    case Mode::kNearestEven:
    case Mode::kNearestAway:
    case Mode::kStochastic:
      break;
  }
  return false;
}

uint32_t NanOf(const Format& f, bool negative) {
  if (f.nan_plus == kNoCode) return f.max_code;
  return negative ? f.nan_minus : f.nan_plus;
}

uint32_t WithSign(const Format& f, uint32_t positive_code, bool negative) {
  if (!negative) return positive_code;
  const uint32_t top = uint32_t{1} << (f.bits - 1);
  if (positive_code == 0) return f.minus_zero ? top : 0;
  if (f.signs == Signs::kTwosComplement) return 2 * top - positive_code;
  return top + positive_code;
}

// The code of the number farthest from zero on that side.
uint32_t EndOf(const Format& f, bool negative) {
  return WithSign(f, f.max_code + (negative && f.lowest ? 1 : 0), negative);
}

// The result for a negative number that an unsigned format cannot hold. The value nearest to it is
// the smallest, which also stands in for a NaN that the format lacks.
uint32_t NegativeInUnsigned(const Format& f, bool infinite, Policy policy) {
  const bool clamp = policy == Policy::kSaturate || (policy == Policy::kPropagate && !infinite);
  return clamp || f.nan_plus == kNoCode ? 0 : NanOf(f, true);
}

uint32_t EncodeInfinity(const Format& f, bool negative, Policy policy) {
  if (negative && f.signs == Signs::kNone) return NegativeInUnsigned(f, true, policy);
  if (policy == Policy::kSaturate) return EndOf(f, negative);
  if (f.infinity != kNoCode) return WithSign(f, f.infinity, negative);
  if (f.spill == Spill::kToNan) return NanOf(f, negative);
  return EndOf(f, negative);
}

uint32_t EncodeOverflow(const Format& f, bool negative, Mode mode, Policy policy) {
  const bool to_max = policy != Policy::kNonsaturate || RoundsTowardZeroThere(mode, negative);
  if (!to_max && f.spill == Spill::kToInfinity) return WithSign(f, f.infinity, negative);
  if (!to_max && f.spill == Spill::kToNan) return NanOf(f, negative);
  return EndOf(f, negative);
}

}  // namespace

Real FromFloat32(uint32_t bits) {
  const bool negative = bits >> 31;
  const int field = static_cast<int>(bits >> 23 & 0xFF);
  const uint32_t fraction = bits & 0x7FFFFF;
  if (field == 255) return {fraction ? Real::Kind::kNan : Real::Kind::kInfinity, negative, 0};
  const double magnitude =
      field == 0 ? std::ldexp(fraction, -149) : std::ldexp(fraction + 8388608.0, field - 150);
  return {Real::Kind::kFinite, negative, magnitude};
}

Real FromFloat64(uint64_t bits) {
  const double x = std::bit_cast<double>(bits);
  const bool negative = std::signbit(x);
  if (std::isnan(x)) return {Real::Kind::kNan, negative, 0};
  if (std::isinf(x)) return {Real::Kind::kInfinity, negative, 0};
  return {Real::Kind::kFinite, negative, std::fabs(x)};
}

Grid::Grid(const Format& format) : format_(format) {
  if (end() < kMaxListed) values_ = ListValues(format_, end(true) + 1);
}

double Grid::Value(int64_t position) const {
  if (position < 0) return 0;
  if (!values_.empty()) return values_[position];
  const int64_t binade_size = int64_t{1} << format_.mantissa_bits;
  const int lowest = LowestExponent(format_);
  const int64_t binade = position / binade_size;
  const double offset = static_cast<double>(position % binade_size);
  if (binade == 0) return std::ldexp(offset, lowest - format_.mantissa_bits);
  return std::ldexp(offset + binade_size,
                    lowest + static_cast<int>(binade) - 1 - format_.mantissa_bits);
}

Place Grid::Locate(double x) const {
  if (values_.empty()) return LocateByScaling(x);
  if (x >= values_.back()) return {end(true), 0, values_.back()};
  const auto above = std::upper_bound(values_.begin(), values_.end(), x);
  const int64_t position = above - values_.begin() - 1;
  const double low = Value(position);
  return {position, x - low, *above - low};
}

// For wide formats (fp32): x is cut to a multiple of the spacing of its binade.
Place Grid::LocateByScaling(double x) const {
  if (x >= Value(end())) return {end(), 0, Value(end())};
  const int lowest = LowestExponent(format_);
  const int exponent = x == 0 ? lowest : std::max(std::ilogb(x), lowest);
  const double gap = std::ldexp(1.0, exponent - format_.mantissa_bits);
  const double steps = std::floor(x / gap);  // a power of two: the quotient is exact, or below 1
  const double low = steps * gap;
  // Every binade above the lowest begins 2^mantissa_bits positions after the one before it.
  const int64_t begin = (int64_t{exponent} - lowest) << format_.mantissa_bits;
  return {begin + static_cast<int64_t>(steps), x - low, gap};
}

const Grid& GridOf(std::string_view format) {
  static std::map<std::string, Grid, std::less<>> grids;
  const auto found = grids.find(format);
  if (found != grids.end()) return found->second;
  return grids.emplace(format, Grid(FindFormat(format))).first->second;
}

Real DecodeCode(const Grid& grid, uint32_t code) {
  const Format& f = grid.format();
  const bool top_bit = code >> (f.bits - 1) & 1;
  for (const CodeRange& range : f.nans) {
    if (code < range.first || code > range.last) continue;
    return {Real::Kind::kNan, top_bit && f.nan_plus != f.nan_minus, 0};
  }
  const uint32_t below_sign =
      f.signs == Signs::kNone ? code : code & ((uint32_t{1} << (f.bits - 1)) - 1);
  if (f.flushes && below_sign < uint32_t{1} << f.mantissa_bits) {
    return {Real::Kind::kFinite, top_bit && f.signs != Signs::kNone, 0};
  }
  if (f.signs == Signs::kNone || !top_bit) {
    if (code == f.infinity) return {Real::Kind::kInfinity, false, 0};
    return {Real::Kind::kFinite, false, grid.Value(code)};
  }
  const uint32_t top = uint32_t{1} << (f.bits - 1);
  if (f.signs == Signs::kTwosComplement) {
    if (code == top && !f.lowest) return {Real::Kind::kUnused, true, 0};
    return {Real::Kind::kFinite, true, grid.Value(int64_t{2} * top - code)};
  }
  if (code - top == f.infinity) return {Real::Kind::kInfinity, true, 0};
  return {Real::Kind::kFinite, true, grid.Value(code - top)};
}

float ValueOf(const Grid& grid, uint32_t code) {
  const Real real = DecodeCode(grid, code);
  if (real.kind == Real::Kind::kNan) return std::numeric_limits<float>::quiet_NaN();
  const double magnitude =
      real.kind == Real::Kind::kInfinity ? std::numeric_limits<double>::infinity() : real.magnitude;
  return static_cast<float>(real.negative ? -magnitude : magnitude);
}

ScaledFraction ScaleFraction(double distance, double gap, int bits) {
  __extension__ using Wide = unsigned __int128;  // GCC and clang
  using Rest = ScaledFraction::Rest;
  const Dyadic d = Split(distance);
  const Dyadic g = Split(gap);
  if (d.significand == 0) return {0, Rest::kZero};
  // d / g 2^bits = numerator / denominator, both integers.
  const int shift = d.exponent + bits - g.exponent;
  // The quotient is below 2^53 2^-70, far from one half. Also keeps the shifts below 128 bits.
  if (shift < -70) return {0, Rest::kBelowHalf};
  const Wide numerator = shift >= 0 ? Wide{d.significand} << shift : Wide{d.significand};
  const Wide denominator = shift >= 0 ? Wide{g.significand} : Wide{g.significand} << -shift;
  const Wide twice_rest = 2 * (numerator % denominator);
  const Rest rest = twice_rest == 0             ? Rest::kZero
                    : twice_rest < denominator  ? Rest::kBelowHalf
                    : twice_rest == denominator ? Rest::kHalf
                                                : Rest::kAboveHalf;
  return {static_cast<uint64_t>(numerator / denominator), rest};
}

uint64_t WordsThatRoundAway(const Place& place, Variant variant, int random_bits) {
  using Rest = ScaledFraction::Rest;
  const ScaledFraction nu = ScaleFraction(place.distance, place.gap, random_bits);
  switch (variant) {
    case Variant::kA:
      return nu.floor;
    case Variant::kB:
      return nu.floor + (nu.rest == Rest::kHalf || nu.rest == Rest::kAboveHalf);
    case Variant::kC:
      return nu.floor + (nu.rest == Rest::kAboveHalf || (nu.rest == Rest::kHalf && nu.floor % 2));
  }
  return 0;
}

bool RoundsAway(const Place& place, bool negative, const Setting& setting, uint32_t random) {
  if (place.distance == 0) return false;
  const double twice = 2 * place.distance;
  switch (setting.mode) {
    case Mode::kNearestEven:
      return twice > place.gap || (twice == place.gap && place.position % 2 != 0);
    case Mode::kNearestAway:
      return twice >= place.gap;
    case Mode::kTowardZero:
      return false;
    case Mode::kUp:
      return !negative;
    case Mode::kDown:
      return negative;
    case Mode::kToOdd:
      return place.position % 2 == 0;
    case Mode::kStochastic: {
      const uint64_t words = uint64_t{1} << setting.random_bits;
      const uint64_t away = WordsThatRoundAway(place, setting.variant, setting.random_bits);
      return (random & (words - 1)) >= words - away;
    }
  }
  return false;
}

uint32_t Finish(const Grid& grid, int64_t rounded, bool negative, const Setting& setting) {
  const Format& f = grid.format();
  const bool vanishes = f.flushes && rounded < int64_t{1} << f.mantissa_bits;
  const int64_t position = vanishes ? 0 : rounded;
  // In a format without zero the result is never zero: position -1 becomes the smallest value.
  const bool is_zero = f.has_zero && position == 0;
  if (negative && f.signs == Signs::kNone && !is_zero) {
    return NegativeInUnsigned(f, false, setting.policy);
  }
  if (position >= grid.end(negative))
    return EncodeOverflow(f, negative, setting.mode, setting.policy);
  if (position < 0) return 0;
  return f.signs == Signs::kNone ? static_cast<uint32_t>(position)
                                 : WithSign(f, static_cast<uint32_t>(position), negative);
}

uint32_t EncodeAt(
    const Grid& grid, const Real& x, const Place& place, const Setting& setting, uint32_t random) {
  if (x.kind == Real::Kind::kNan) return NanOf(grid.format(), x.negative);
  if (x.kind == Real::Kind::kInfinity)
    return EncodeInfinity(grid.format(), x.negative, setting.policy);
  // -0 is no negative number.
  if (x.magnitude == 0) return grid.format().has_zero ? WithSign(grid.format(), 0, x.negative) : 0;
  const int64_t away = RoundsAway(place, x.negative, setting, random) ? 1 : 0;
  return Finish(grid, place.position + away, x.negative, setting);
}

uint32_t Encode(const Grid& grid, const Real& x, const Setting& setting, uint32_t random) {
  const Place place = x.kind == Real::Kind::kFinite ? grid.Locate(x.magnitude) : Place{};
  return EncodeAt(grid, x, place, setting, random);
}

float RoundFloat32(const Grid& grid, float x, const Setting& setting, uint32_t random) {
  return ValueOf(grid, Encode(grid, FromFloat32(std::bit_cast<uint32_t>(x)), setting, random));
}

}  // namespace oracle
