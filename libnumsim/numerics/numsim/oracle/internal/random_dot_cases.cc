// The cases of random:N for dot products. Uniform codes would make most long sums NaN or infinite
// and test no rounding, so the operands of nearly all cases are finite and their sums stay within
// the range of the result.
#include <algorithm>
#include <bit>

#include "numsim/oracle/internal/case_makers.h"
#include "numsim/oracle/internal/random_codes.h"

namespace numsim {
namespace {

// The kinds of cases. Of 32 consecutive cases, one has special operands, one has a sum around
// the largest value, and the rest take turns.
enum class DotKind : uint8_t {
  kNear,      // products within a few binades, of random signs
  kCancel,    // products over more binades, three of four of which meet their negative, or nearly
  kWide,      // products that spread over more binades than a result has bits
  kOneSign,   // as kNear, all products of one sign
  kLargest,   // as kOneSign, with a sum around the largest value
  kSpecials,  // as kNear, with one to three operands that are zero, smallest, largest, not finite or
              // any code
};

DotKind KindOf(uint64_t index) {
  if (index % 32 == 31) return DotKind::kSpecials;
  if (index % 32 == 15) return DotKind::kLargest;
  constexpr DotKind kTurns[] = {
      DotKind::kNear, DotKind::kCancel, DotKind::kWide, DotKind::kOneSign};
  return kTurns[index % 4];
}

struct Interval {
  int low = 0, high = 0;
  bool empty() const { return low > high; }
};

// Returns the exponents that the largest product may have.
Interval ProductExponents(DotKind kind,
                          const FormatSpec& a,
                          const FormatSpec& b,
                          const RandomCaseShape& shape) {
  const Interval possible = {FirstExponent(a) + FirstExponent(b),
                             LastExponent(a) + LastExponent(b)};
  // N products below 2^(e + 2) add up to less than 2^(e + 2 + growth).
  const int growth = static_cast<int>(std::bit_width(shape.length - 1));
  Interval wanted = {shape.sum_low, shape.sum_high - growth - 2};
  if (kind == DotKind::kLargest) wanted = {wanted.high + 1, wanted.high + growth + 3};
  Interval range = {std::clamp(wanted.low, possible.low, possible.high),
                    std::clamp(wanted.high, possible.low, possible.high)};
  range.low = std::min(range.low, range.high);
  if (kind == DotKind::kWide) range.low += (range.high - range.low) / 2;  // room below
  return range;
}

// Returns the part of the range around 1 in half of the cases, else the range.
Interval MaybeModerate(const Interval& range, DotKind kind, uint32_t word) {
  constexpr int kModerate = 8;
  const Interval moderate = {std::max(range.low, -kModerate), std::min(range.high, kModerate)};
  const bool all = kind == DotKind::kLargest || (word & 1) != 0 || moderate.empty();
  return all ? range : moderate;
}

uint32_t MagnitudeOf(const FormatSpec& format, uint64_t code) {
  const auto bits = static_cast<uint32_t>(code);
  const bool complement = format.sign == Sign::kTwosComplement && (bits & format.SignBit()) != 0;
  return complement ? (0u - bits) & format.CodeMask() : bits & format.MagnitudeMask();
}

bool IsNegative(const FormatSpec& format, uint64_t code) { return (code & format.SignBit()) != 0; }

// Returns the code with the given sign; a zero of a format without -0 and codes of an unsigned
// format stay.
uint64_t WithSign(const FormatSpec& format, uint64_t code, bool negative) {
  const uint32_t magnitude = MagnitudeOf(format, code);
  if (!format.IsSigned() || (magnitude == 0 && format.zero != Zero::kSigned)) return code;
  return SignedCode(format, magnitude, negative);
}

// Returns the code with the last bit of its magnitude flipped, if both are finite and not zero.
uint64_t Neighbour(const FormatSpec& format, uint64_t code) {
  const uint32_t magnitude = MagnitudeOf(format, code) ^ 1;
  if (magnitude <= 1 || magnitude > format.MaxFiniteCode()) return code;
  return SignedCode(format, magnitude, IsNegative(format, code));
}

uint64_t SpecialCode(const FormatSpec& format, const PhiloxCounter& words) {
  const bool negative = (words[2] & 1) != 0;
  const auto code = [&](uint32_t magnitude) {
    return WithSign(format, SignedCode(format, magnitude, false), negative);
  };
  const uint64_t largest = code(format.MaxFiniteCode());
  const uint64_t infinity = format.HasInfinity() ? code(format.InfinityCode()) : largest;
  switch (words[3] % 6) {
    case 0:
      return code(0);
    case 1:
      return code(1);
    case 2:
      return largest;
    case 3:
      return infinity;
    case 4:
      return format.HasNan() ? format.NanCode() : infinity;
    default:
      return Masked(Bits(words), format.Bits());
  }
}

// Makes one case.
class DotCase {
 public:
  DotCase(std::span<const Column> columns,
          const RandomCaseShape& shape,
          uint64_t seed,
          uint64_t index,
          std::span<uint64_t> inputs)
      : a_(columns[0].format->spec),
        b_(columns[shape.length].format->spec),
        length_(shape.length),
        seed_(seed),
        index_(index),
        inputs_(inputs),
        kind_(KindOf(index)) {
    const PhiloxCounter shared = RandomBlock({seed, kSharedStream}, index);
    const Interval range = ProductExponents(kind_, a_, b_, shape);
    const Interval narrowed = MaybeModerate(range, kind_, shared[0]);
    const int product = UniformBetween(narrowed.low, narrowed.high, shared[1]);
    exponent_a_ = UniformBetween(std::max(FirstExponent(a_), product - LastExponent(b_)),
                                 std::min(LastExponent(a_), product - FirstExponent(b_)),
                                 shared[2]);
    exponent_b_ = product - exponent_a_;
    // Partners are neighbours, or one half of the product apart.
    distance_ = (shared[3] & 1) != 0 && length_ > 1 ? length_ / 2 : 1;
    negative_ = (shared[3] & 2) != 0;
  }

  void Make() {
    for (size_t i = 0; i < length_; ++i) {
      const PhiloxCounter words = Words(i);
      inputs_[i] = FiniteCode(a_, exponent_a_ - Below(a_, words[2]), Bits(words));
    }
    for (size_t i = 0; i < length_; ++i) {
      const PhiloxCounter words = Words(length_ + i);
      B(i) = FiniteCode(b_, exponent_b_ - Below(b_, words[2]), Bits(words));
      if (kind_ == DotKind::kCancel && HasPartner(i) && words[3] % 4 != 0) Cancel(i, words[3]);
      if (kind_ == DotKind::kOneSign || kind_ == DotKind::kLargest) SetProductSign(i, negative_);
    }
    if (kind_ == DotKind::kSpecials) PutSpecials();
  }

 private:
  uint64_t& B(size_t i) { return inputs_[length_ + i]; }
  PhiloxCounter Words(size_t column) const {
    return RandomBlock({seed_, kRandomCaseStream + column}, index_);
  }

  // Returns how many binades below the largest exponent an operand lies.
  int Below(const FormatSpec& format, uint32_t word) const {
    const int most = kind_ == DotKind::kWide     ? format.mantissa_bits + 8
                     : kind_ == DotKind::kCancel ? format.mantissa_bits + 4
                                                 : 3;
    return UniformBetween(0, most, word);
  }

  // Partners are (0, 1), (2, 3), ... or (0, N/2), (1, N/2 + 1), ...
  bool HasPartner(size_t i) const {
    return distance_ == 1 ? i % 2 == 1 : i >= distance_ && i < 2 * distance_;
  }
  void Cancel(size_t i, uint32_t word) {
    inputs_[i] = inputs_[i - distance_];
    B(i) = B(i - distance_);
    SetProductSign(i, !ProductIsNegative(i - distance_));
    if ((word & 0xF0) < 0x40) B(i) = Neighbour(b_, B(i));  // a quarter leaves a small rest
  }

  bool ProductIsNegative(size_t i) { return IsNegative(a_, inputs_[i]) != IsNegative(b_, B(i)); }
  void SetProductSign(size_t i, bool negative) {
    if (a_.IsSigned()) {
      inputs_[i] = WithSign(a_, inputs_[i], negative != IsNegative(b_, B(i)));
    } else {
      B(i) = WithSign(b_, B(i), negative);
    }
  }

  void PutSpecials() {
    const PhiloxCounter places = RandomBlock({seed_, kSecondSharedStream}, index_);
    const size_t count = 1 + places[3] % 3;
    for (size_t k = 0; k < count; ++k) {
      const size_t column = places[k] % (2 * length_);
      // The words of the column made the code that is replaced, those of a later block are free.
      const PhiloxCounter words = RandomBlock({seed_, kSecondSharedStream - 1 - column}, index_);
      inputs_[column] = SpecialCode(column < length_ ? a_ : b_, words);
    }
  }

  const FormatSpec& a_;
  const FormatSpec& b_;
  size_t length_;
  uint64_t seed_, index_;
  std::span<uint64_t> inputs_;
  DotKind kind_;
  int exponent_a_ = 0, exponent_b_ = 0;
  size_t distance_ = 1;
  bool negative_ = false;
};

// Chooses the block scales and the tensor scales of a case.
class ScaleCase {
 public:
  ScaleCase(std::span<const Column> columns,
            const RandomCaseShape& shape,
            uint64_t seed,
            uint64_t index,
            std::span<uint64_t> inputs)
      : columns_(columns), shape_(shape), seed_(seed), index_(index), inputs_(inputs) {}

  void Make() {
    const size_t first = 2 * shape_.length;
    const FormatSpec& format = columns_[first].format->spec;
    const PhiloxCounter shared = RandomBlock({seed_, kSecondSharedStream}, index_);
    const Interval range = Exponents(format);
    const int both = UniformBetween(range.low, range.high, shared[0]);
    const int left = both / 2;
    for (size_t c = first; c < first + shape_.scales; ++c) {
      const PhiloxCounter words = Words(c);
      const bool second = c >= first + shape_.scales / 2;
      const int exponent = (second ? both - left : left) - UniformBetween(0, Spread(), words[2]);
      inputs_[c] = FiniteCode(format, exponent, Bits(words) & ~(uint64_t{1} << 63));
    }
    if (index_ % 32 == 31) {
      const size_t c = first + shared[1] % shape_.scales;
      inputs_[c] = SpecialCode(format, RandomBlock({seed_, kSecondSharedStream - 1 - c}, index_));
    }
    for (size_t c = first + shape_.scales; c < shape_.operands; ++c) {
      const PhiloxCounter words = Words(c);
      inputs_[c] = FiniteCode(columns_[c].format->spec,
                              UniformBetween(-4, 4, words[2]),
                              Bits(words) & ~(uint64_t{1} << 63));
    }
  }

 private:
  PhiloxCounter Words(size_t column) const {
    return RandomBlock({seed_, kRandomCaseStream + column}, index_);
  }

  // Returns how many binades below the largest exponent a scale lies at most.
  int Spread() const {
    constexpr int kFew = 3, kSome = 9, kMany = 20;
    if (!shape_.wide_scales) return kFew;
    return index_ % 4 == 0 ? kFew : index_ % 4 == 2 ? kMany : kSome;
  }

  // Returns the exponents that the product of two scales may have: around 1 in half of the cases,
  // and always such that sums of the elements stay within the range of the result.
  Interval Exponents(const FormatSpec& format) const {
    constexpr int kTensors = 10;  // two tensor scales below 2^5
    const FormatSpec& a = columns_[0].format->spec;
    const FormatSpec& b = columns_[shape_.length].format->spec;
    const int growth = static_cast<int>(std::bit_width(shape_.length));
    const int most = shape_.sum_high - growth - 2 - kTensors - LastExponent(a) - LastExponent(b);
    const int least = shape_.sum_low + kTensors - FirstExponent(a) - FirstExponent(b);
    Interval range = {std::max(2 * FirstExponent(format), least),
                      std::min(2 * LastExponent(format), most)};
    if (range.empty()) range = {0, 0};
    return MaybeModerate(range, DotKind::kNear, static_cast<uint32_t>(index_ / 4));
  }

  std::span<const Column> columns_;
  const RandomCaseShape& shape_;
  uint64_t seed_, index_;
  std::span<uint64_t> inputs_;
};

}  // namespace

void RandomDotCase(std::span<const Column> columns,
                   const RandomCaseShape& shape,
                   uint64_t seed,
                   uint64_t index,
                   std::span<uint64_t> inputs) noexcept {
  DotCase(columns, shape, seed, index, inputs).Make();
  if (shape.scales > 0) ScaleCase(columns, shape, seed, index, inputs).Make();
  for (size_t c = shape.operands; c < columns.size(); ++c) {  // random bits
    const PhiloxCounter words = RandomBlock({seed, kRandomCaseStream + c}, index);
    inputs[c] = Masked(Bits(words), columns[c].bits);
  }
}

}  // namespace numsim
