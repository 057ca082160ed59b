#include "tests/reference/accumulate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace oracle {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int kMinExponent32 = -126;
constexpr int kLeastAlignment = -133;  // of NVIDIA's units

ExactNumber Number(bool negative, uint64_t significand, int64_t exponent) {
  ExactNumber x;
  x.negative = negative;
  x.numerator = significand;
  x.exponent = exponent;
  return x;
}

ExactNumber FromDouble(double x) {
  ExactNumber number;
  number.negative = std::signbit(x);
  if (std::isnan(x)) number.kind = Real::Kind::kNan;
  if (std::isinf(x)) number.kind = Real::Kind::kInfinity;
  if (!std::isfinite(x)) return number;
  const Dyadic dyadic = ToDyadic(std::fabs(x));
  const int zeros = dyadic.significand == 0 ? 0 : __builtin_ctzll(dyadic.significand);
  return Number(number.negative, dyadic.significand >> zeros, dyadic.exponent + zeros);
}

double SpecialOrZero(const ExactNumber& x) {
  if (x.IsNan()) return kNan;
  return std::copysign(x.IsInfinite() ? kInfinity : 0.0, x.negative ? -1.0 : 1.0);
}

// floor(log2 |x|). Requires x finite and not zero.
int TopExponent(const ExactNumber& x) {
  return static_cast<int>(x.numerator.BitLength() + x.exponent) - 1;
}

// |x| = (floor + rest) 2^place with 0 <= rest < 1.
struct Cut {
  uint64_t floor = 0;
  bool exact = true;      // rest == 0
  int rest_and_half = 0;  // negative, zero, positive: rest below, at, above one half
};

// Reads the digits of |x| from the top. Requires floor < 2^64.
Cut CutAt(const ExactNumber& x, int place) {
  Cut cut;
  Natural rest = x.numerator;
  const int64_t unit = place - x.exponent;  // place in units of the numerator
  while (!rest.IsZero() && rest.BitLength() > unit) {
    const int top = rest.BitLength() - 1;
    cut.floor += uint64_t{1} << (top - unit);
    rest = rest - (Natural(1) << top);
  }
  cut.exact = rest.IsZero();
  const int64_t below_half = rest.BitLength() - unit;
  cut.rest_and_half = cut.exact || below_half < 0 ? -1 : 1;
  if (!cut.exact && below_half == 0) {
    cut.rest_and_half = Compare(rest, Natural(1) << (rest.BitLength() - 1));
  }
  return cut;
}

ExactNumber TowardZero(const ExactNumber& x, int place) {
  if (x.kind != Real::Kind::kFinite || x.exponent >= place) return x;
  return Number(x.negative, CutAt(x, place).floor, place);
}

ExactNumber Down(const ExactNumber& x, int place) {
  if (x.kind != Real::Kind::kFinite || x.exponent >= place) return x;
  const Cut cut = CutAt(x, place);
  return Number(x.negative, cut.floor + (x.negative && !cut.exact ? 1 : 0), place);
}

ExactNumber SumOf(const ExactNumber& x, const ExactNumber& y) {
  const ExactNumber both[] = {x, y};
  return ExactSum(both);
}

double Round32(const ExactNumber& x) { return RoundToNearest(x, kFloat32); }
double Add32(double x, double y) { return Round32(SumOf(FromDouble(x), FromDouble(y))); }

struct Product {
  ExactNumber value;
  int exponent = 0;     // the sum of those of the operands; read only when finite and not zero
  bool counts = false;  // the exponent is read when zero, too
};
using Products = std::vector<Product>;

int OperandExponent(float x, int min_exponent) {
  return x == 0 || !std::isfinite(x) ? 0 : std::max(std::ilogb(x), min_exponent);
}

Products ProductsOf(const DotSide& a, const DotSide& b) {
  Products products(a.values.size());
  for (size_t k = 0; k < products.size(); ++k) {
    const float x = a.values[k];
    const float y = b.values[k];
    products[k] = {ExactProduct(FromDouble(x), FromDouble(y)),
                   OperandExponent(x, a.min_exponent) + OperandExponent(y, b.min_exponent)};
  }
  return products;
}

ExactNumber Total(const Products& products) {
  ExactNumber sum;
  for (const Product& product : products) sum = SumOf(sum, product.value);
  return sum;
}

bool IsSpecial(const Products& products, double acc) {
  return !std::isfinite(acc) ||
         std::any_of(products.begin(), products.end(), [](const Product& product) {
           return product.value.kind != Real::Kind::kFinite;
         });
}

// Returns the sum if a product or the accumulator is NaN or infinite.
double SpecialSum(const Products& products, double acc) {
  ExactNumber sum = FromDouble(acc);
  for (const Product& product : products) {
    if (product.value.kind != Real::Kind::kFinite) sum = SumOf(sum, product.value);
  }
  return SpecialOrZero(sum);
}

std::vector<Products> Chunks(const Products& products, size_t chunk) {
  std::vector<Products> chunks;
  for (size_t k = 0; k < products.size(); ++k) {
    if (k % chunk == 0) chunks.emplace_back();
    chunks.back().push_back(products[k]);
  }
  return chunks;
}

// Of 32 products at most: those with k mod 4 in {0, 1}, then the others.
std::vector<Products> BytePairs(const Products& products) {
  std::vector<Products> chunks(2);
  for (size_t k = 0; k < products.size(); ++k) chunks[k / 2 % 2].push_back(products[k]);
  return chunks;
}

// Of the products that are not zero, of acc if it is not zero, and of -133.
int AlignmentExponent(const Products& chunk, double acc) {
  int largest = kLeastAlignment;
  for (const Product& product : chunk) {
    if (product.counts || !product.value.IsZero()) largest = std::max(largest, product.exponent);
  }
  if (acc != 0) largest = std::max({largest, std::ilogb(acc), kMinExponent32});
  return largest;
}

// Toward zero to `fraction_bits` bits behind the leading one; below 2^-126 to a multiple of 2^-149.
// Zero is +0.
double Truncate32(const ExactNumber& x, int fraction_bits) {
  if (x.IsZero()) return 0;
  const int top = TopExponent(x);
  const double sign = x.negative ? -1 : 1;
  if (top > kFloat32.emax) return sign * kInfinity;
  const int place = top < kMinExponent32 ? kMinExponent32 - 23 : top - fraction_bits;
  const uint64_t floor = CutAt(x, place).floor;
  return floor == 0 ? 0 : sign * std::ldexp(static_cast<double>(floor), place);
}

double AlignedChunk(const Products& chunk, double acc, int fraction_bits) {
  if (IsSpecial(chunk, acc)) return SpecialSum(chunk, acc);
  const int place = AlignmentExponent(chunk, acc) - fraction_bits;
  ExactNumber sum = TowardZero(FromDouble(acc), place);
  for (const Product& product : chunk) sum = SumOf(sum, TowardZero(product.value, place));
  return Truncate32(sum, std::min(fraction_bits, 23));
}

// From zero.
double AlignedSum(const Products& products, const AlignedUnit& unit) {
  double acc = 0;
  for (const Products& part : Chunks(products, unit.byte_pairs ? 32 : unit.chunk)) {
    const auto chunks = unit.byte_pairs ? BytePairs(part) : std::vector<Products>(1, part);
    for (const Products& chunk : chunks) acc = AlignedChunk(chunk, acc, unit.fraction_bits);
  }
  return acc;
}

float ScaleOf(const ScaledSide& x, size_t k) { return x.scales[x.block == 0 ? 0 : k / x.block]; }

// One addend per product, or per group: their sum, whose exponent is that of its scales.
Products ScaledAddends(const ScaledSide& a, const ScaledSide& b, const ScaledUnit& unit) {
  Products addends = ProductsOf(a.side, b.side);
  for (size_t k = 0; k < addends.size(); ++k) {
    const float sa = ScaleOf(a, k), sb = ScaleOf(b, k);
    const int exponent =
        OperandExponent(sa, unit.scale_min_exponent) + OperandExponent(sb, unit.scale_min_exponent);
    Product& x = addends[k];
    x.value = ExactProduct(x.value, ExactProduct(FromDouble(sa), FromDouble(sb)));
    x.exponent = unit.group == 0 ? x.exponent + exponent : exponent;
    x.counts = unit.group != 0 && sa != 0 && sb != 0;
  }
  if (unit.group == 0) return addends;
  Products sums;
  for (const Products& group : Chunks(addends, unit.group)) {
    sums.push_back(group[0]);
    sums.back().value = Total(group);
  }
  return sums;
}

// CDNA3. The exponent of zero is -126.
constexpr int kFractionBits = 24;     // of products and accumulator
constexpr int kSumFractionBits = 31;  // of their sum

int ExponentOf(const Products& products) {
  int largest = std::numeric_limits<int>::min();
  for (const Product& product : products) {
    largest = std::max(largest, product.value.IsZero() ? kMinExponent32 : product.exponent);
  }
  return largest;
}

ExactNumber CutSum(const Products& products) {
  const int place = ExponentOf(products) - kFractionBits;
  ExactNumber sum;
  for (const Product& product : products) sum = SumOf(sum, TowardZero(product.value, place));
  return sum;
}

// Requires an even number of products.
ExactNumber EvenAndOddSum(const Products& chunk) {
  Products even, odd;
  for (size_t k = 0; k < chunk.size(); ++k) (k % 2 == 0 ? even : odd).push_back(chunk[k]);
  const int place = ExponentOf(chunk) - kFractionBits;
  return SumOf(Down(CutSum(even), place), Down(CutSum(odd), place));
}

double AlignedDownChunk(const Products& chunk, double acc, bool even_odd) {
  if (IsSpecial(chunk, acc)) return SpecialSum(chunk, acc);
  const int acc_exponent = acc == 0 ? kMinExponent32 : std::max(std::ilogb(acc), kMinExponent32);
  const int largest = std::max(ExponentOf(chunk), acc_exponent);
  const bool left_out = even_odd && acc_exponent < largest - kFractionBits - 1;
  const ExactNumber addend =
      left_out ? ExactNumber() : Down(FromDouble(acc), largest - kFractionBits);
  const ExactNumber sum = even_odd ? EvenAndOddSum(chunk) : CutSum(chunk);
  const ExactNumber result = SumOf(Down(sum, largest - kSumFractionBits), addend);
  return result.IsZero() ? 0 : Round32(result);
}

double Flushed(double x) { return std::fabs(x) < 0x1p-126 ? std::copysign(0.0, x) : x; }
double FlushedSum(double x, double y) { return Flushed(Add32(x, y)); }

double FlushedProduct(float x, int min_x, float y, int min_y) {
  const ExactNumber a = FromDouble(std::fabs(x) < std::ldexp(1.0, min_x) ? 0 : x);
  const ExactNumber b = FromDouble(std::fabs(y) < std::ldexp(1.0, min_y) ? 0 : y);
  return Flushed(Round32(ExactProduct(a, b)));
}

}  // namespace

double RoundToNearest(const ExactNumber& x, const FloatGrid& grid) {
  if (x.kind != Real::Kind::kFinite || x.IsZero()) return SpecialOrZero(x);
  const double sign = x.negative ? -1 : 1;
  const int place = std::max(TopExponent(x), grid.emin) - (grid.precision - 1);
  const Cut cut = CutAt(x, place);
  const bool up = cut.rest_and_half > 0 || (cut.rest_and_half == 0 && cut.floor % 2 != 0);
  const ExactNumber rounded = Number(x.negative, cut.floor + (up ? 1 : 0), place);
  if (rounded.IsZero()) return sign * 0.0;
  if (TopExponent(rounded) > grid.emax) return sign * kInfinity;
  return sign * std::ldexp(static_cast<double>(cut.floor + (up ? 1 : 0)), place);
}

bool IsRoundedToOdd(const ExactNumber& x, uint64_t significand, int exponent, int bits) {
  if (x.CompareWith({significand, exponent}) == 0) return true;
  return significand % 2 != 0 && significand >> (bits - 1) != 0 &&
         x.CompareWith({significand - 1, exponent}) > 0 &&
         x.CompareWith({significand + 1, exponent}) < 0;
}

ExactNumber ExactDot(const DotSide& a, const DotSide& b) {
  ExactNumber sum = Total(ProductsOf(a, b));
  if (sum.IsNan() || sum.IsZero()) sum.negative = false;
  return sum;
}

double SequentialDot(const DotSide& a, const DotSide& b, const FloatGrid& grid, bool fused) {
  const Products products = ProductsOf(a, b);
  double acc = 0;
  for (const Product& product : products) {
    const ExactNumber addend =
        fused ? product.value : FromDouble(RoundToNearest(product.value, grid));
    acc = RoundToNearest(SumOf(FromDouble(acc), addend), grid);
  }
  return acc;
}

double ChunkedDot(const DotSide& a, const DotSide& b, size_t chunk) {
  double acc = 0;
  for (size_t k = 0; k < a.values.size(); k += chunk) {
    const size_t n = std::min(chunk, a.values.size() - k);
    acc = Add32(acc,
                SequentialDot({a.values.subspan(k, n), a.min_exponent},
                              {b.values.subspan(k, n), b.min_exponent},
                              kFloat32,
                              true));
  }
  return acc;
}

double AlignedDot(const DotSide& a, const DotSide& b, const AlignedUnit& unit) {
  const Products products = ProductsOf(a, b);
  if (unit.promote == 0) return AlignedSum(products, unit);
  double total = 0;
  for (const Products& part : Chunks(products, unit.promote)) {
    total = Add32(total, AlignedSum(part, unit));
  }
  return total;
}

double BlockScaledDot(const ScaledSide& a, const ScaledSide& b, const ScaledUnit& unit) {
  const size_t chunk = unit.chunk / std::max<size_t>(unit.group, 1);
  double acc = 0;
  for (const Products& part : Chunks(ScaledAddends(a, b, unit), chunk)) {
    acc = AlignedChunk(part, acc, unit.fraction_bits);
  }
  return acc;
}

double ExactChunksDot(const DotSide& a, const DotSide& b, size_t chunk) {
  const Products products = ProductsOf(a, b);
  double acc = 0;
  for (const Products& part : Chunks(products, chunk)) {
    acc = Round32(SumOf(FromDouble(acc), Total(part)));
  }
  return acc;
}

double FlushedPairsDot(const DotSide& a, const DotSide& b, size_t chunk) {
  double acc = 0;
  for (size_t begin = 0; begin < a.values.size(); begin += chunk) {
    double products[4] = {};
    for (size_t k = begin; k < std::min(begin + chunk, a.values.size()); ++k) {
      products[k - begin] =
          FlushedProduct(a.values[k], a.min_exponent, b.values[k], b.min_exponent);
    }
    double sum = FlushedSum(products[0], products[1]);
    if (chunk == 4) sum = FlushedSum(sum, FlushedSum(products[2], products[3]));
    acc = FlushedSum(acc, sum);
  }
  return acc;
}

double AlignedDownDot(const DotSide& a, const DotSide& b, size_t chunk, bool even_odd) {
  Products products = ProductsOf(a, b);
  while (products.size() % chunk != 0) products.emplace_back();
  for (Product& product : products) {
    ExactNumber& x = product.value;
    const bool huge = x.kind == Real::Kind::kFinite && !x.IsZero() && TopExponent(x) >= 128;
    if (huge) x.kind = Real::Kind::kInfinity;
  }
  double acc = 0;
  for (const Products& part : Chunks(products, chunk)) {
    acc = AlignedDownChunk(part, acc, even_odd);
  }
  return acc;
}

}  // namespace oracle
