// Sums of tensor cores that take the scales of blocks with the operands.
#include <algorithm>
#include <bit>

#include "numsim/arith/internal/aligned_number.h"
#include "numsim/arith/internal/tensor_cores.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

Unrounded ExactF32(float x) { return ExactValue(kFp32, std::bit_cast<uint32_t>(x)); }

// An addend of a chunk. `counts`: its exponent is one of those among which the largest is sought.
struct ScaledAddend {
  Aligned value;
  bool counts = false;
};

// The addends of two vectors: scaled products, or scaled sums of groups of products.
class ScaledAddends {
 public:
  ScaledAddends(const AccumulationMode& mode, const DotOperand& a, const DotOperand& b)
      : a_(a),
        b_(b),
        group_(static_cast<size_t>(mode.group)),
        scale_min_exponent_(mode.format.MinExponent()) {}

  // Returns the number of products of an addend.
  size_t Step() const { return std::max<size_t>(group_, 1); }

  // Returns the addend of the products from k on. What is not finite is added to `specials` and
  // counts as zero.
  ScaledAddend At(size_t k, Specials& specials) const {
    const Aligned scale =
        AlignedProduct(ScaleAt(a_.scales, k, specials), ScaleAt(b_.scales, k, specials));
    if (group_ == 0) {
      const Aligned value = AlignedProduct(ProductAt(k, specials), scale);
      return {value, value.significand != 0};
    }
    Aligned value = AlignedProduct(GroupAt(k, specials), scale);
    value.exponent = scale.exponent;
    return {value, scale.significand != 0};
  }

 private:
  // Returns the same number without the zeros at the end of its significand, so that products with it
  // fit 64 bits.
  static Aligned Shortened(Aligned x) {
    if (x.significand == 0) return x;
    const int zeros = std::countr_zero(x.significand);
    x.significand >>= zeros;
    x.lowest += zeros;
    return x;
  }

  Aligned ScaleAt(const DotScales& scales, size_t k, Specials& specials) const {
    if (scales.values.empty()) return {.significand = 1};
    const Unrounded scale = ExactF32(scales.values[scales.block == 0 ? 0 : k / scales.block]);
    if (scale.kind == NumberKind::kNan) specials.nan = true;
    return Shortened(AlignedValue(scale, scale_min_exponent_));
  }

  Aligned ProductAt(size_t k, Specials& specials) const {
    const Unrounded a = ExactF32(a_.values[k]), b = ExactF32(b_.values[k]);
    specials.Add(a, b);
    if (a.kind != NumberKind::kFinite || b.kind != NumberKind::kFinite) return {};
    return AlignedProduct(AlignedValue(a, a_.format.MinExponent()),
                          AlignedValue(b, b_.format.MinExponent()));
  }

  // Returns the exact sum of a group, whose products are multiples of the least of each format.
  Aligned GroupAt(size_t begin, Specials& specials) const {
    const int unit = a_.format.SubnormalExponent() + b_.format.SubnormalExponent();
    const size_t end = std::min(begin + group_, a_.values.size());
    int64_t sum = 0;
    for (size_t k = begin; k < end; ++k) sum += Truncated(ProductAt(k, specials), unit);
    return {.negative = sum < 0,
            .significand = static_cast<uint64_t>(sum < 0 ? -sum : sum),
            .lowest = unit};
  }

  DotOperand a_, b_;
  size_t group_;
  int scale_min_exponent_;
};

// Adds one chunk to `acc` and returns the new accumulator.
uint32_t ScaledChunk(const AccumulationMode& mode,
                     const ScaledAddends& addends,
                     size_t begin,
                     size_t end,
                     uint32_t acc) {
  Specials specials;
  specials.Add(ExactValue(kFp32, acc));
  const Aligned start = F32Accumulator(acc);
  int largest = kLeastAlignment;
  if (start.significand != 0) largest = start.exponent;
  for (size_t k = begin; k < end; k += addends.Step()) {
    const ScaledAddend addend = addends.At(k, specials);
    if (addend.counts) largest = std::max(largest, addend.value.exponent);
  }
  if (const auto special = specials.Sum()) return *special;
  const int unit = largest - mode.fraction_bits;
  int64_t sum = Truncated(start, unit);
  for (size_t k = begin; k < end; k += addends.Step()) {
    sum += Truncated(addends.At(k, specials).value, unit);
  }
  return TruncatedF32(sum, unit, std::min(mode.fraction_bits, 23));
}

}  // namespace

uint32_t BlockScaledSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept {
  const ScaledAddends addends(mode, a, b);
  const size_t n = a.values.size(), chunk = static_cast<size_t>(mode.chunk);
  uint32_t acc = 0;
  for (size_t k = 0; k < n; k += chunk) {
    acc = ScaledChunk(mode, addends, k, std::min(k + chunk, n), acc);
  }
  return acc;
}

}  // namespace numsim
