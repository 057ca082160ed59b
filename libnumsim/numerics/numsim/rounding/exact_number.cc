#include "numsim/rounding/exact_number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/formats/named_formats.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/internal/natural.h"
#include "numsim/rounding/shared/float64_bits.h"

namespace numsim {
namespace {

constexpr size_t kMostCharacters = 100000;
constexpr double kLog2Of5 = 2.321928094887362;
// Magnitudes beyond 2^kExtreme are all alike to every format.
constexpr int kExtreme = 1 << 18;
// A term that is so many binades below another one decides only on which side of it the sum lies:
// the digits of a text reach less far.
constexpr double kApart = 1 << 20;
// Sums are refused if an exponent of 2 or of 5 would have to be expanded further than this.
constexpr int64_t kMostExpanded = int64_t{1} << 22;
// Exponents in texts are cut to this; their number of digits cannot bring them back into range.
constexpr int64_t kMostExponent = int64_t{1} << 40;

// Returns N * 2^twos * 5^fives, rounded to odd.
Unrounded RoundedProduct(const Natural& n, int64_t twos, int64_t fives) {
  Natural product = n;
  product.Multiply(PowerOfFive(fives));
  Unrounded x;
  bool rest = false;
  x.significand = product.HighBits(63, &rest);
  x.exponent = static_cast<int>(twos + std::max<int64_t>(product.BitLength() - 63, 0));
  x.significand |= rest ? 1 : 0;
  return x;
}

// Returns N * 2^twos / 5^fives, rounded to odd, by long division in base 2.
Unrounded RoundedQuotient(const Natural& n, int64_t twos, int64_t fives) {
  Natural rest = n, divisor = PowerOfFive(fives);
  const int64_t shift = rest.BitLength() - divisor.BitLength();
  shift < 0 ? rest.ShiftLeft(-shift) : divisor.ShiftLeft(shift);
  uint64_t quotient = 0;  // rest / divisor < 2: 63 bits with one before the point
  for (int i = 0; i < 63; ++i) {
    quotient <<= 1;
    if (Compare(rest, divisor) >= 0) {
      rest.Subtract(divisor);
      quotient |= 1;
    }
    rest.ShiftLeft(1);
  }
  Unrounded x;
  x.significand = quotient | (rest.IsZero() ? 0 : 1);
  x.exponent = static_cast<int>(shift + twos - 62);
  return x;
}

}  // namespace

ExactNumber::ExactNumber(const Unrounded& exact)
    : kind_(exact.kind),
      negative_(exact.negative),
      natural_(std::make_shared<const Natural>(exact.significand)),
      twos_(exact.exponent) {}

ExactNumber ExactNumber::FromFloat64(double value) {
  return ExactNumber(ExactFloat64(std::bit_cast<uint64_t>(value)));
}

bool ExactNumber::IsZero() const { return IsFinite() && natural_->IsZero(); }

double ExactNumber::Log2() const {
  return static_cast<double>(natural_->BitLength()) + static_cast<double>(twos_) +
         kLog2Of5 * static_cast<double>(fives_);
}

Unrounded ExactNumber::Rounded() const {
  Unrounded x;
  if (!IsZero() && IsFinite()) {
    const double size = Log2();
    if (size > kExtreme || size < -kExtreme) {
      x.significand = (uint64_t{1} << 61) | 1;
      x.exponent = size > 0 ? kExtreme : -kExtreme - 61;
    } else {
      x = fives_ < 0 ? RoundedQuotient(*natural_, twos_, -fives_)
                     : RoundedProduct(*natural_, twos_, fives_);
    }
  }
  x.kind = kind_;
  x.negative = negative_;
  return x;
}

double ExactNumber::ToFloat64() const {
  const double sign = negative_ ? -1 : 1;
  if (kind_ == NumberKind::kNan) return std::copysign(std::nan(""), sign);
  if (kind_ == NumberKind::kInfinity) return sign * std::numeric_limits<double>::infinity();
  const Unrounded x = Rounded();
  if (x.significand == 0) return sign * 0.0;
  const int width = static_cast<int>(std::bit_width(x.significand));
  // A float64 has 53 bits, and fewer below 2^-1022: none below 2^-1074.
  const int kept = std::min(53, x.exponent + width + 1074);
  const int cut = width - kept;
  if (kept < 0) return sign * 0.0;
  if (cut <= 0) return sign * std::ldexp(static_cast<double>(x.significand), x.exponent);
  const uint64_t half = uint64_t{1} << (cut - 1);
  const uint64_t low = x.significand & (2 * half - 1);
  uint64_t high = x.significand >> cut;
  if (low > half || (low == half && high % 2 != 0)) ++high;
  return sign * std::ldexp(static_cast<double>(high), x.exponent + cut);
}

float ExactNumber::ToFloat32() const {
  return std::bit_cast<float>(EncodeUnrounded(MakeEncodePlan(kFp32), Rounded()).code);
}

bool ExactNumber::IsFloat64() const {
  if (!IsFinite()) return true;
  const double nearest = ToFloat64();
  return std::isfinite(nearest) && (*this - FromFloat64(nearest)).IsZero();
}

bool ExactNumber::IsFloat32() const {
  return !IsFinite() || EncodeUnrounded(MakeEncodePlan(kFp32), Rounded()).flags == 0;
}

ExactNumber ExactNumber::operator-() const {
  ExactNumber result = *this;
  result.negative_ = !negative_;
  return result;
}

ExactNumber operator+(const ExactNumber& a, const ExactNumber& b) {
  if (a.kind_ == NumberKind::kNan) return a;
  if (b.kind_ == NumberKind::kNan) return b;
  if (!a.IsFinite() && !b.IsFinite() && a.negative_ != b.negative_) {
    return ExactNumber(Unrounded{NumberKind::kNan, false, 0, 0});
  }
  if (!a.IsFinite()) return a;
  if (!b.IsFinite()) return b;
  if (a.IsZero() && b.IsZero()) return a.negative_ ? b : a;  // -0 only if both are
  if (a.IsZero() || b.IsZero()) return a.IsZero() ? b : a;
  if (a.Log2() < b.Log2()) return b + a;

  ExactNumber sum = a;
  Natural left = *a.natural_, right(1);
  if (a.Log2() - b.Log2() > kApart) {
    left.ShiftLeft(64);
    sum.twos_ -= 64;
  } else {
    sum.twos_ = std::min(a.twos_, b.twos_);
    sum.fives_ = std::min(a.fives_, b.fives_);
    right = *b.natural_;
    const auto expand = [&sum](Natural& n, const ExactNumber& x) {
      const int64_t twos = x.twos_ - sum.twos_, fives = x.fives_ - sum.fives_;
      if (twos > kMostExpanded || fives > kMostExpanded) {
        throw Error("the exponents of the two terms are too far apart to add them exactly");
      }
      n.Multiply(PowerOfFive(fives));
      n.ShiftLeft(twos);
    };
    expand(left, a);
    expand(right, b);
  }
  if (a.negative_ == b.negative_) {
    left.Add(right);
  } else {
    const int order = Compare(left, right);
    sum.negative_ = order != 0 && (order > 0 ? a.negative_ : b.negative_);
    if (order < 0) std::swap(left, right);
    left.Subtract(right);
  }
  sum.natural_ = std::make_shared<const Natural>(std::move(left));
  return sum;
}

// Reads numbers from the front of a text.
class ExactNumberReader {
 public:
  explicit ExactNumberReader(std::string_view text) : text_(text) {}

  bool AtEnd() const { return text_.empty(); }
  bool AtSign() const { return text_.starts_with('+') || text_.starts_with('-'); }

  // Returns the number at the front and removes it, or nothing if there is none.
  std::optional<ExactNumber> Next() {
    ExactNumber number;
    const bool negative = text_.starts_with('-');
    if (AtSign()) text_.remove_prefix(1);
    if (TakeWord("infinity") || TakeWord("inf")) {
      number.kind_ = NumberKind::kInfinity;
    } else if (TakeWord("nan")) {
      number.kind_ = NumberKind::kNan;
    } else if (!(IsHexadecimal() ? TakeDigits(16, number) : TakeDigits(10, number))) {
      return std::nullopt;
    }
    number.negative_ = negative;
    return number;
  }

 private:
  static char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
  static int Digit(char c) {
    const char lower = Lower(c);
    if (lower >= '0' && lower <= '9') return lower - '0';
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 99;
  }

  bool TakeWord(std::string_view word) {
    if (text_.size() < word.size()) return false;
    for (size_t i = 0; i < word.size(); ++i) {
      if (Lower(text_[i]) != word[i]) return false;
    }
    text_.remove_prefix(word.size());
    return true;
  }

  bool IsHexadecimal() const {
    return text_.size() > 2 && text_[0] == '0' && Lower(text_[1]) == 'x' &&
           (Digit(text_[2]) < 16 || text_[2] == '.');
  }

  // Reads digits with at most one point, and an exponent.
  bool TakeDigits(int base, ExactNumber& number) {
    if (base == 16) text_.remove_prefix(2);
    Natural natural;
    size_t digits = 0, after_point = 0;
    bool point = false;
    for (; !text_.empty(); text_.remove_prefix(1)) {
      const char c = text_.front();
      if (c == '.' && !point) {
        point = true;
      } else if (Digit(c) < base) {
        AddDigit(base, static_cast<uint32_t>(Digit(c)), natural);
        ++digits;
        after_point += point ? 1 : 0;
      } else {
        break;
      }
    }
    Flush(natural);
    if (digits == 0) return false;
    const int64_t exponent = TakeExponent(base == 16 ? 'p' : 'e');
    const auto places = static_cast<int64_t>(after_point);
    number.twos_ = exponent - (base == 16 ? 4 * places : places);
    number.fives_ = base == 16 ? 0 : exponent - places;
    number.natural_ = std::make_shared<const Natural>(std::move(natural));
    return true;
  }

  // Collects digits, so that the long number is multiplied once for several of them.
  void AddDigit(int base, uint32_t digit, Natural& natural) {
    constexpr uint32_t kMost = (uint32_t{1} << 28) - 1;
    pending_ = pending_ * static_cast<uint32_t>(base) + digit;
    factor_ *= static_cast<uint32_t>(base);
    if (factor_ > kMost / 16) Flush(natural);
  }
  void Flush(Natural& natural) {
    if (natural.IsZero()) {
      natural = Natural(pending_);
    } else {
      natural.MultiplyAdd(factor_, pending_);
    }
    pending_ = 0;
    factor_ = 1;
  }

  // Reads an exponent, or nothing if there is no complete one.
  int64_t TakeExponent(char letter) {
    if (text_.empty() || Lower(text_.front()) != letter) return 0;
    size_t i = 1;
    const bool negative = i < text_.size() && text_[i] == '-';
    if (i < text_.size() && (text_[i] == '-' || text_[i] == '+')) ++i;
    if (i >= text_.size() || Digit(text_[i]) > 9) return 0;
    int64_t exponent = 0;
    for (; i < text_.size() && Digit(text_[i]) <= 9; ++i) {
      exponent = std::min(10 * exponent + Digit(text_[i]), kMostExponent);
    }
    text_.remove_prefix(i);
    return negative ? -exponent : exponent;
  }

  std::string_view text_;
  uint32_t pending_ = 0, factor_ = 1;
};

namespace {

void CheckLength(std::string_view text, std::string_view what) {
  if (text.size() <= kMostCharacters) return;
  throw Error::Format(
      "{} has {} characters, expected at most {}", what, text.size(), kMostCharacters);
}

}  // namespace

ExactNumber ParseExactNumber(std::string_view text, std::string_view what) {
  CheckLength(text, what);
  ExactNumberReader reader(text);
  const std::optional<ExactNumber> number = reader.Next();
  if (number && reader.AtEnd()) return *number;
  throw Error::Format("{} '{}' is not a number, e.g. 0.78, 0x1.8p-1, -inf", what, Printable(text));
}

ExactNumber ParseExactSum(std::string_view text, std::string_view what) {
  CheckLength(text, what);
  ExactNumberReader reader(text);
  const std::optional<ExactNumber> first = reader.Next();
  if (first && reader.AtEnd()) return *first;
  if (first && reader.AtSign()) {
    const std::optional<ExactNumber> second = reader.Next();
    if (second && reader.AtEnd()) return *first + *second;
  }
  throw Error::Format("{} '{}' is not a number or a sum A+B, e.g. 0.78, 0x1.8p-1, -inf, 0.75+0.03",
                      what,
                      Printable(text));
}

}  // namespace numsim
