// Exact GEMM by slices. The values of an operand are integers of W bits in units of its smallest
// bit. If W_a + W_b plus the carries of the sum fit the 53 bits of a float64, one float64 GEMM is
// exact. Otherwise the integers are cut into slices of s bits, such that GEMMs of slices are exact,
// and their results are added as 128-bit integers: the scheme of [Ozaki].
#include <bit>
#include <cmath>

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

void CopySums(std::vector<double>& sums, size_t cols, const TilePlace& at, const double* from) {
  for (size_t r = 0; r < at.rows; ++r) {
    std::copy_n(from + r * at.stride, at.cols, sums.data() + (at.row + r) * cols + at.col);
  }
}

}  // namespace

bool ExactSums(const GemmOperand& a,
               const OperandRange& range_a,
               const GemmOperand& b,
               const OperandRange& range_b,
               InnerRange segment,
               std::vector<double>& sums) {
  const int width_a = WidthOf(range_a), width_b = WidthOf(range_b);
  const int carries = std::bit_width(segment.Size());
  const int width = width_a + width_b + carries;
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
  const int bits = (kDoubleBits - carries) / 2;
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
