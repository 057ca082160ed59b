// Exact GEMM by slices. The values of an operand are integers of W bits in units of its smallest
// bit. If W_a + W_b plus the carries of the sum fit the 53 bits of a float64, one float64 GEMM is
// exact. Otherwise the integers are cut into slices of s bits, such that GEMMs of slices are exact,
// and their results are added as 128-bit integers: the scheme of [Ozaki]. On processors that
// multiply int8 much faster than float64, gemm_paths_digits.h takes digits of 8 bits instead.
#include <algorithm>
#include <bit>
#include <cmath>

#include "numsim/gemm/internal/gemm_digits_simd.h"
#include "numsim/gemm/internal/gemm_parts.h"
#include "numsim/gemm/internal/gemm_paths.h"
#include "numsim/gemm/internal/gemm_tiles.h"
#include "numsim/rounding/shared/lanes_scalar.h"

namespace numsim {
namespace {

constexpr int kDoubleBits = 53;
constexpr int kWideBits = 127;

// Returns the bits of an operand's values as integers in units of their grid.
int WidthOf(const OperandRange& range) {
  return range.zero ? 1 : range.high_exponent + 1 - range.unit;
}

// Returns an integer times 2^unit as a float64, rounded to odd.
double RoundedToOdd(bool negative, scalar::Uint128 magnitude, int unit) {
  const uint64_t high = static_cast<uint64_t>(magnitude >> 64);
  const int width =
      high != 0 ? 64 + std::bit_width(high) : std::bit_width(static_cast<uint64_t>(magnitude));
  if (width > kDoubleBits) {
    const int cut = width - kDoubleBits;
    const bool inexact = (magnitude & ((scalar::Uint128{1} << cut) - 1)) != 0;
    magnitude >>= cut;
    if (inexact) magnitude |= 1;
    unit += cut;
  }
  const double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(magnitude)), unit);
  return negative ? -value : value;
}

// The bits of the sum of `products` products as an integer.
int SumWidth(const OperandRange& a, const OperandRange& b, size_t products) {
  return WidthOf(a) + WidthOf(b) + std::bit_width(products);
}

// Returns the bits of slices whose products have exact sums in float64.
int SliceBits(size_t products) { return (kDoubleBits - std::bit_width(products)) / 2; }

// Returns the least number of digits that hold the operand's integers, up to kMostDigits, or more
// than kMostDigits.
int DigitsOf(const GemmOperand& x, const OperandRange& range) {
  constexpr uint64_t kMost = 0x7F7F7F7F7F7F7F7F;  // of kMostDigits digits
  const int width = WidthOf(range);
  if (width >= 63) return kMostDigits + 1;
  const int zeros = std::max(0, width - x.format.mantissa_bits - 1);
  const uint64_t largest = (uint64_t{1} << width) - (uint64_t{1} << zeros);
  int digits = 1;
  while (digits <= kMostDigits && largest > kMost >> (8 * (kMostDigits - digits))) ++digits;
  return digits;
}

// Whether GEMMs of digits are faster than one of float64. Measured with 1 to 9 of them and 16 to 1024
// products: adding up the sums of digits takes as long as 40 float64 products. Where several float64
// GEMMs are needed, digits were always faster, twice or more, so that nothing has to be compared.
bool IsFaster(int digit_products, size_t products, int rate) {
  constexpr size_t kStart = 40;
  const auto each = static_cast<size_t>(digit_products), so_many = static_cast<size_t>(rate);
  return products > kStart && each * products < so_many * (products - kStart);
}

void CopySums(std::vector<double>& sums, size_t cols, const TilePlace& at, const double* from) {
  for (size_t r = 0; r < at.rows; ++r) {
    std::copy_n(from + r * at.stride, at.cols, sums.data() + (at.row + r) * cols + at.col);
  }
}

}  // namespace

std::optional<DigitPlan> PlanDigits(const GemmOperand& a,
                                    const OperandRange& range_a,
                                    const GemmOperand& b,
                                    const OperandRange& range_b,
                                    size_t products,
                                    int rate) {
  constexpr size_t kMostProducts = size_t{1} << 20;  // beyond, a limb of four weights may overflow
  constexpr int kWidthOfOne = 62, kWidthOfTwo = 94;
  const int width = SumWidth(range_a, range_b, products);
  if (products > kMostProducts || width > kWidthOfTwo) return std::nullopt;
  const int digits_a = DigitsOf(a, range_a), digits_b = DigitsOf(b, range_b);
  if (std::max(digits_a, digits_b) > kMostDigits) return std::nullopt;
  if (width <= kDoubleBits && !IsFaster(digits_a * digits_b, products, rate)) return std::nullopt;
  return DigitPlan{
      {range_a.unit, digits_a}, {range_b.unit, digits_b}, width <= kWidthOfOne ? 1 : 2};
}

bool ExactSums(const GemmOperand& a,
               const OperandRange& range_a,
               const GemmOperand& b,
               const OperandRange& range_b,
               InnerRange segment,
               std::vector<double>& sums) {
  const int width_a = WidthOf(range_a), width_b = WidthOf(range_b);
  const int width = SumWidth(range_a, range_b, segment.Size());
  if (width > kWideBits) return false;
  sums.resize(a.rows * b.rows);
  const auto store = [&](const TilePlace& at, const double* from) {
    CopySums(sums, b.rows, at, from);
  };
  if (width <= kDoubleBits) {
    const Slice whole(true);
    Float64Path path(a, b, whole, whole);
    MultiplyTiles(path, a.rows, b.rows, segment, store);
    return true;
  }
  const int bits = SliceBits(segment.Size());
  if (bits < 1) return false;
  // Two's complement: sums of signed numbers modulo 2^128.
  std::vector<scalar::Uint128> totals(sums.size());
  for (int from_a = 0; from_a < width_a; from_a += bits) {
    for (int from_b = 0; from_b < width_b; from_b += bits) {
      Float64Path path(a, b, Slice(range_a.unit, from_a, bits), Slice(range_b.unit, from_b, bits));
      MultiplyTiles(path, a.rows, b.rows, segment, store);
      ParallelFor(sums.size(), 4096, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          const scalar::Uint128 part = static_cast<scalar::Uint128>(static_cast<int64_t>(sums[i]));
          totals[i] += part << (from_a + from_b);
        }
      });
    }
  }
  const int unit = range_a.unit + range_b.unit;
  ParallelFor(sums.size(), 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const bool negative = (totals[i] >> 127) != 0;
      sums[i] = RoundedToOdd(negative, negative ? 0 - totals[i] : totals[i], unit);
    }
  });
  return true;
}

}  // namespace numsim
