// Sums of tensor cores that add a few products at a time with ordinary roundings [MMA-Sim].
#include <bit>
#include <cstdlib>

#include "numsim/arith/arith.h"
#include "numsim/arith/internal/tensor_cores.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }

const EncodePlan& NearestF32() {
  static const EncodePlan plan = MakeEncodePlan(kFp32);
  return plan;
}

// Returns true if a float32, given as its bits, is zero or its magnitude is below 2^min_exponent.
// Requires min_exponent >= -126.
bool IsBelow(uint32_t bits, int min_exponent) {
  const uint32_t field = bits >> 23 & 0xFF;
  return static_cast<int>(field) - 127 < min_exponent;
}

// Flushes an operand or the accumulator: subnormals and zeros of both signs become +0.
uint32_t FlushedToPositive(uint32_t bits, int min_exponent) {
  return IsBelow(bits, min_exponent) ? 0 : bits;
}
// Flushes a float32 result: a subnormal becomes a zero of the same sign.
uint32_t FlushedResult(uint32_t bits) {
  return IsBelow(bits, kFp32.MinExponent()) ? bits & kFp32.SignBit() : bits;
}

uint32_t FlushedAdd(uint32_t a, uint32_t b) {
  return FlushedResult(Add({kFp32, a}, {kFp32, b}, NearestF32()).code);
}

// Returns the product at k, or +0 beyond the vectors.
uint32_t FlushedProduct(const DotOperand& a, const DotOperand& b, size_t k) {
  if (k >= a.values.size()) return 0;
  const uint32_t x = FlushedToPositive(Bits(a.values[k]), a.format.MinExponent());
  const uint32_t y = FlushedToPositive(Bits(b.values[k]), b.format.MinExponent());
  return FlushedResult(Multiply({kFp32, x}, {kFp32, y}, NearestF32()).code);
}

// Returns p0 + p1 for two products, (p0 + p1) + (p2 + p3) for four. Requires `count` to be a power
// of two.
uint32_t FlushedTree(const DotOperand& a, const DotOperand& b, size_t begin, size_t count) {
  if (count == 1) return FlushedProduct(a, b, begin);
  const size_t half = count / 2;
  return FlushedAdd(FlushedTree(a, b, begin, half), FlushedTree(a, b, begin + half, half));
}

}  // namespace

uint32_t ExactChunkSum(const AccumulationMode& mode,
                       const DotOperand& a,
                       const DotOperand& b) noexcept {
  const size_t n = a.values.size(), chunk = static_cast<size_t>(mode.chunk);
  uint32_t acc = 0;
  for (size_t begin = 0; begin < n; begin += chunk) {
    ExactSum sum;
    sum.Add(ExactValue(kFp32, acc));
    for (size_t k = begin; k < n && k < begin + chunk; ++k) {
      sum.Add(
          exact::Product(ExactValue(kFp32, Bits(a.values[k])), ExactValue(kFp32, Bits(b.values[k])))
              .value);
    }
    acc = EncodeUnrounded(NearestF32(), sum.Result()).code;
  }
  return acc;
}

uint32_t FlushedPairSum(const AccumulationMode& mode,
                        const DotOperand& a,
                        const DotOperand& b) noexcept {
  const size_t chunk = static_cast<size_t>(mode.chunk);
  uint32_t acc = 0;
  for (size_t k = 0; k < a.values.size(); k += chunk) {
    acc = FlushedAdd(FlushedToPositive(acc, kFp32.MinExponent()), FlushedTree(a, b, k, chunk));
  }
  return acc;
}

}  // namespace numsim
