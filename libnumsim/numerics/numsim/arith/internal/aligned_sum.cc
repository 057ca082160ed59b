// Sums of tensor cores that align products by their exponents and cut the bits below.
#include <algorithm>
#include <bit>

#include "numsim/arith/arith.h"
#include "numsim/arith/internal/aligned_number.h"
#include "numsim/arith/internal/tensor_cores.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr size_t kWordGroup = 32;  // products per group that ProductOrder::kBytePairs reorders

// The products of two vectors in the order of a tensor core, at positions 0, 1, ... Positions
// beyond the vectors hold +0.
class Products {
 public:
  Products(const AccumulationMode& mode, const DotOperand& a, const DotOperand& b)
      : order_(mode.order), a_(a), b_(b) {}

  // Returns the number of positions that cover all products.
  size_t Count() const {
    const size_t n = a_.values.size();
    if (order_ != ProductOrder::kBytePairs) return n;
    return (n + kWordGroup - 1) / kWordGroup * kWordGroup;
  }
  // Returns the product at a position. A non-finite product is added to `specials` and counts as
  // zero.
  Aligned At(size_t position, Specials& specials) const {
    const size_t k = Index(position);
    if (k >= a_.values.size()) return {};
    const Unrounded a = Value(a_, k), b = Value(b_, k);
    specials.Add(a, b);
    if (a.kind != NumberKind::kFinite || b.kind != NumberKind::kFinite) return {};
    return AlignedProduct(AlignedValue(a, a_.format.MinExponent()),
                          AlignedValue(b, b_.format.MinExponent()));
  }

 private:
  static Unrounded Value(const DotOperand& x, size_t k) {
    return ExactValue(kFp32, std::bit_cast<uint32_t>(x.values[k]));
  }
  size_t Index(size_t position) const {
    if (order_ != ProductOrder::kBytePairs) return position;
    const size_t group = position / kWordGroup * kWordGroup;
    const size_t half = position % kWordGroup / (kWordGroup / 2);
    const size_t pair = position % (kWordGroup / 2) / 2;
    return group + 4 * pair + 2 * half + position % 2;
  }

  ProductOrder order_;
  DotOperand a_, b_;
};

// Returns x * 2^up, rounded down. Requires the result to fit.
int64_t ScaledDown(int64_t x, int up) {
  if (up >= 0) return x << up;
  return x >> std::min(-up, 63);
}

uint32_t AddF32(uint32_t a, uint32_t b) {
  static const EncodePlan plan = MakeEncodePlan(kFp32);
  return Add({kFp32, a}, {kFp32, b}, plan).code;
}

// Adds one chunk of kAligned to `acc` and returns the new accumulator.
uint32_t AlignedChunk(const AccumulationMode& mode,
                      const Products& products,
                      size_t begin,
                      uint32_t acc) {
  Specials specials;
  const Unrounded acc_value = ExactValue(kFp32, acc);
  specials.Add(acc_value);
  const size_t end = begin + static_cast<size_t>(mode.chunk);
  const Aligned start = F32Accumulator(acc);
  int largest = kLeastAlignment;
  if (start.significand != 0) largest = start.exponent;
  for (size_t i = begin; i < end; ++i) {
    const Aligned p = products.At(i, specials);
    if (p.significand != 0) largest = std::max(largest, p.exponent);
  }
  if (const auto special = specials.Sum()) return *special;
  const int unit = largest - mode.fraction_bits;
  int64_t sum = Truncated(start, unit);
  for (size_t i = begin; i < end; ++i) sum += Truncated(products.At(i, specials), unit);
  return TruncatedF32(sum, unit, std::min(mode.fraction_bits, 23));
}

// The sum of products that were truncated below the largest of their exponents.
struct PartialSum {
  int64_t sum = 0;  // in units of 2^(exponent - F)
  int exponent = 0;
};

// Sums the products at positions begin, begin + step, ... before end. The exponent of a zero
// product is -126. A product beyond float32 is infinite.
PartialSum TruncatedProducts(const Products& products,
                             size_t begin,
                             size_t end,
                             size_t step,
                             int fraction_bits,
                             Specials& specials) {
  PartialSum out{0, begin < end ? INT32_MIN : kF32MinExponent};
  for (size_t i = begin; i < end; i += step) {
    const Aligned p = products.At(i, specials);
    const int binade = p.lowest + static_cast<int>(std::bit_width(p.significand)) - 1;
    if (p.significand != 0 && binade > kF32MaxExponent) specials.AddInfinity(p.negative);
    out.exponent = std::max(out.exponent, p.significand == 0 ? kF32MinExponent : p.exponent);
  }
  for (size_t i = begin; i < end; i += step) {
    out.sum += Truncated(products.At(i, specials), out.exponent - fraction_bits);
  }
  return out;
}

// Returns the sum of a and b, both rounded down to the unit of the larger exponent.
PartialSum Joined(const PartialSum& a, const PartialSum& b) {
  const int exponent = std::max(a.exponent, b.exponent);
  return {ScaledDown(a.sum, a.exponent - exponent) + ScaledDown(b.sum, b.exponent - exponent),
          exponent};
}

// Adds one chunk of kAlignedDown to `acc` and returns the new accumulator.
uint32_t AlignedDownChunk(const AccumulationMode& mode,
                          const Products& products,
                          size_t begin,
                          uint32_t acc) {
  constexpr int kGuardBits = 7;  // extra bits below F that the sum of products keeps
  static const EncodePlan nearest = MakeEncodePlan(kFp32);
  const int f = mode.fraction_bits;
  const bool halves = mode.order == ProductOrder::kEvenOdd;
  const size_t end = begin + static_cast<size_t>(mode.chunk);
  Specials specials;
  specials.Add(ExactValue(kFp32, acc));
  PartialSum part = TruncatedProducts(products, begin, end, halves ? 2 : 1, f, specials);
  if (halves) {
    part = Joined(part, TruncatedProducts(products, begin + 1, end, 2, f, specials));
  }
  if (const auto special = specials.Sum()) return *special;
  const Aligned start = F32Accumulator(acc);
  const int exponent = std::max(part.exponent, start.exponent);
  int64_t sum = ScaledDown(part.sum, part.exponent - exponent + kGuardBits);
  if (!halves || start.exponent >= exponent - f - 1) {
    const int64_t value = static_cast<int64_t>(start.significand);
    sum += ScaledDown(start.negative ? -value : value, start.lowest - (exponent - f)) *
           (int64_t{1} << kGuardBits);
  }
  const Unrounded out{NumberKind::kFinite,
                      sum < 0,
                      exponent - f - kGuardBits,
                      static_cast<uint64_t>(sum < 0 ? -sum : sum)};
  return EncodeUnrounded(nearest, out).code;
}

}  // namespace

uint32_t AlignedSum(const AccumulationMode& mode,
                    const DotOperand& a,
                    const DotOperand& b) noexcept {
  const Products products(mode, a, b);
  const size_t promote = static_cast<size_t>(mode.promote);
  uint32_t total = 0, acc = 0;
  for (size_t k = 0; k < products.Count(); k += static_cast<size_t>(mode.chunk)) {
    if (promote != 0 && k % promote == 0) {
      total = AddF32(total, acc);
      acc = 0;
    }
    acc = AlignedChunk(mode, products, k, acc);
  }
  return promote != 0 ? AddF32(total, acc) : acc;
}

uint32_t AlignedDownSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept {
  const Products products(mode, a, b);
  uint32_t acc = 0;
  for (size_t k = 0; k < products.Count(); k += static_cast<size_t>(mode.chunk)) {
    acc = AlignedDownChunk(mode, products, k, acc);
  }
  return acc;
}

}  // namespace numsim
