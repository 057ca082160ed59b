#include "tests/reference/arith/hardware_judge.h"

#include <cmath>
#include <limits>

namespace numsim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Float64Result {
  double value;
  bool exact;
};

Float64Result Calculate(HardwareOperation operation, double a, double b) {
  switch (operation) {
    case HardwareOperation::kAdd: {
      const double sum = a + b;
      // Knuth's error of a sum, itself exact.
      const double b_part = sum - a;
      const double error = (a - (sum - b_part)) + (b - b_part);
      return {sum, error == 0};
    }
    case HardwareOperation::kMultiply:
      return {a * b, true};
    case HardwareOperation::kDivide:
      break;
  }
  // A quotient of numbers of 11 bits is no closer than 2^-24 of itself to one that it does not
  // equal.
  return {a / b, true};
}

}  // namespace

HardwareJudge::HardwareJudge(std::string_view format) : format_(oracle::FindFormat(format)) {
  const oracle::Grid grid(format_);
  for (uint32_t code = 0; code < uint32_t{1} << format_.bits; ++code) {
    const oracle::Real real = oracle::DecodeCode(grid, code);
    const bool nan = real.kind == oracle::Real::Kind::kNan;
    const double magnitude = nan ? std::numeric_limits<double>::quiet_NaN()
                             : real.kind == oracle::Real::Kind::kInfinity ? kInfinity
                                                                          : real.magnitude;
    values_.push_back(real.negative ? -magnitude : magnitude);
    const uint32_t quiet_bit = uint32_t{1} << (format_.mantissa_bits - 1);
    signalling_.push_back(nan && (code & quiet_bit) == 0);
  }
  low_ = {0};
  for (int64_t p = 0; p < grid.end(); ++p) {
    const double middle = (grid.Value(p) + grid.Value(p + 1)) / 2;
    const bool down = oracle::Encode(grid, {oracle::Real::Kind::kFinite, false, middle}, {}) == p;
    high_.push_back(down ? middle : std::nextafter(middle, 0));
    low_.push_back(down ? std::nextafter(middle, kInfinity) : middle);
  }
  high_.push_back(kInfinity);
  // Just below the smallest normal number, values that a normal binade there would round up to it.
  const double smallest_normal = grid.Value(int64_t{1} << format_.mantissa_bits);
  tiny_below_ = smallest_normal * (1 - std::ldexp(1.0, -format_.mantissa_bits - 2));
}

Flags HardwareJudge::FlagsOf(double magnitude, bool exact, uint32_t code) const {
  if (code == format_.infinity) {
    return std::isinf(magnitude) ? 0 : static_cast<Flags>(kOverflow | kInexact);
  }
  if (exact && magnitude == values_[code]) return 0;
  return static_cast<Flags>(kInexact | (magnitude < tiny_below_ ? kUnderflow : 0));
}

bool HardwareJudge::IsRight(HardwareOperation operation,
                            uint32_t a,
                            uint32_t b,
                            Rounded result) const {
  const double x = values_[a];
  const double y = values_[b];
  const Float64Result expected = Calculate(operation, x, y);
  if (std::isnan(expected.value)) {
    const bool operand_nan = std::isnan(x) || std::isnan(y);
    const bool invalid = !operand_nan || signalling_[a] || signalling_[b];
    return result == Rounded{format_.nan_plus, static_cast<Flags>(invalid ? kInvalid : 0)};
  }
  const uint32_t sign = uint32_t{1} << (format_.bits - 1);
  const uint32_t magnitude_code = result.code & ~sign;
  if (magnitude_code > format_.infinity) return false;
  if (((result.code & sign) != 0) != std::signbit(expected.value)) return false;
  const double magnitude = std::fabs(expected.value);
  if (magnitude < low_[magnitude_code] || magnitude > high_[magnitude_code]) return false;
  if (operation == HardwareOperation::kDivide && y == 0 && !std::isinf(x)) {
    return result.flags == kDivideByZero;
  }
  return result.flags == FlagsOf(magnitude, expected.exact, magnitude_code);
}

}  // namespace numsim
