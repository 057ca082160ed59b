#include <algorithm>

#include "numsim/arith/shared/exact.h"
#include "numsim/oracle/internal/case_makers.h"
#include "numsim/oracle/internal/random_codes.h"
#include "numsim/rounding/encode_plan.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

// Returns a uniformly distributed exponent field of the format, minus the bias.
int UniformExponent(const FormatSpec& format, uint32_t word) {
  const auto fields = (format.MaxFiniteCode() >> format.mantissa_bits) + 1;
  return static_cast<int>((uint64_t{word} * fields) >> 32) - format.bias;
}

// Returns a random offset of an exponent: half of the time -1, 0 or 1, otherwise at most the number
// of mantissa bits + 3 in magnitude.
int Spread(const FormatSpec& format, uint32_t word) {
  const int reach = (word & 1) != 0 ? 1 : format.mantissa_bits + 3;
  const int64_t offsets = 2 * int64_t{reach} + 1;
  return static_cast<int>((word * offsets) >> 32) - reach;
}

// Base exponents of the operands in odd cases.
class CloseExponents {
 public:
  CloseExponents(std::span<const Column> columns,
                 const RandomCaseShape& shape,
                 const PhiloxCounter& shared)
      : shape_(shape) {
    for (const Column& column : columns.first(shape.operands)) {
      if (!column.format) continue;
      first_ = UniformExponent(column.format->spec, shared[0]);
      break;
    }
    if (shape.shape == CaseShape::kProductSum) {
      // The exponents of a and c are random; that of b is chosen so that a b is near c.
      third_ = UniformExponent(columns[2].format->spec, shared[1]);
      second_ = third_ - first_;
    } else if (shape.shape == CaseShape::kDot) {
      second_ = UniformExponent(columns[shape.length].format->spec, shared[1]);
    }
  }

  int Of(size_t column) const {
    switch (shape_.shape) {
      case CaseShape::kProductSum:
        return column == 0 ? first_ : column == 1 ? second_ : third_;
      case CaseShape::kDot:
        return column < shape_.length ? first_ : second_;
      default:
        return first_;
    }
  }

 private:
  RandomCaseShape shape_;
  int first_ = 0, second_ = 0, third_ = 0;
};

// Returns an integer with a uniformly distributed number of bits, so that small magnitudes are as
// frequent as large ones.
uint64_t IntegerOf(const Column& column, const PhiloxCounter& words) {
  const int length = 1 + static_cast<int>(words[2] % static_cast<uint32_t>(column.bits));
  const uint64_t magnitude = Masked(Bits(words), length);
  const bool negative = column.is_signed && (words[3] & 1) != 0;
  return Masked(negative ? 0 - magnitude : magnitude, column.bits);
}

// Returns a float64 with an exponent of the result's format or just beside it. Of every four, one
// has 25 significant bits, so that it is often a tie or next to a value.
uint64_t Float64Of(const RandomCaseShape& shape, const PhiloxCounter& words) {
  const int exponent = UniformBetween(shape.sum_low - 2, shape.sum_high + 1, words[2]);
  uint64_t mantissa = Masked(Bits(words), 52);
  if ((words[3] & 3) == 0) mantissa &= ~LargestOf(28);
  const uint64_t sign = uint64_t{words[3] >> 31} << 63;
  return sign | static_cast<uint64_t>(exponent + 1023) << 52 | mantissa;
}

// Makes every second product approximately the negative of the one before it.
void CancelPairs(const FormatSpec& format, size_t length, std::span<uint64_t> inputs) {
  if (format.sign != Sign::kSignMagnitude) return;
  for (size_t i = 1; i < length; i += 2) {
    const uint64_t before = inputs[i - 1];
    if ((before & format.MagnitudeMask()) != 0) inputs[i] = before ^ format.SignBit();
    const size_t b = length + i;
    if ((inputs[b] & 1) != 0) inputs[b] = inputs[b - 1];
  }
}

// Sets c to -a b, rounded toward zero, or to a neighbour of it.
void CancelProduct(std::span<const Column> columns, uint32_t word, std::span<uint64_t> inputs) {
  const auto value = [&](size_t c) {
    return ExactValue(columns[c].format->spec, static_cast<uint32_t>(inputs[c]));
  };
  const FormatSpec& format = columns[2].format->spec;
  const EncodePlan plan =
      MakeEncodePlan(format, {.mode = RoundingMode::kTowardZero}, Overflow::kSaturate);
  const Unrounded product = exact::Product(value(0), value(1)).value;
  const uint32_t code = EncodeUnrounded(plan, exact::Negated(product)).code;
  const uint32_t magnitude = (code & format.MagnitudeMask()) ^ (word & 1);
  const bool finite =
      format.sign == Sign::kSignMagnitude && magnitude != 0 && magnitude <= format.MaxFiniteCode();
  inputs[2] = finite ? (code & format.SignBit()) | magnitude : code;
}

// Sets the magnitude of b to that of a, except for the last two bits.
void CancelSecond(std::span<const Column> columns, uint32_t word, std::span<uint64_t> inputs) {
  const FormatSpec& format = columns[0].format->spec;
  if (format.sign != Sign::kSignMagnitude || columns[1].format->spec != format) return;
  const uint64_t magnitude = (inputs[0] & format.MagnitudeMask()) ^ (word & 3);
  if (magnitude == 0 || magnitude > format.MaxFiniteCode()) return;
  inputs[1] = (inputs[1] & format.SignBit()) | magnitude;
}

void Cancel(std::span<const Column> columns,
            const RandomCaseShape& shape,
            uint32_t word,
            std::span<uint64_t> inputs) {
  switch (shape.shape) {
    case CaseShape::kDot:
      CancelPairs(columns[0].format->spec, shape.length, inputs);
      break;
    case CaseShape::kProductSum:
      CancelProduct(columns, word, inputs);
      break;
    case CaseShape::kElementwise:
      if (shape.operands < 2) break;
      if (columns[0].format && columns[1].format) CancelSecond(columns, word, inputs);
      break;
    case CaseShape::kBlock:
    case CaseShape::kRow:
      break;
  }
}

}  // namespace

void RandomCase(std::span<const Column> columns,
                const RandomCaseShape& shape,
                uint64_t seed,
                uint64_t index,
                std::span<uint64_t> inputs,
                bool uniform) noexcept {
  const bool close = !uniform && index % 2 == 1;
  const PhiloxCounter shared = RandomBlock({seed, kSharedStream}, index);
  const CloseExponents exponents(columns, shape, shared);
  for (size_t c = 0; c < columns.size(); ++c) {
    const Column& column = columns[c];
    const PhiloxCounter words = RandomBlock({seed, kRandomCaseStream + c}, index);
    if (close && column.kind == ColumnKind::kCode) {
      const FormatSpec& format = column.format->spec;
      inputs[c] = FiniteCode(format, exponents.Of(c) + Spread(format, words[2]), Bits(words));
    } else if (close && column.kind == ColumnKind::kInteger) {
      inputs[c] = IntegerOf(column, words);
    } else if (close && column.kind == ColumnKind::kFloat64) {
      inputs[c] = Float64Of(shape, words);
    } else {
      inputs[c] = Masked(Bits(words), column.bits);
    }
  }
  // Applies to a quarter of all cases.
  if (close && (shared[2] & 1) != 0) Cancel(columns, shape, shared[3], inputs);
}

}  // namespace numsim
