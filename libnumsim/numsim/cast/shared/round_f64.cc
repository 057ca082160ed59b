#include "numsim/cast/shared/round_f64.h"

#include <algorithm>
#include <bit>

#include "numsim/backend/backend.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/decode.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

// The buffers of one block of elements for the vector code of arithmetic_simd.h.
struct Block {
  alignas(64) double a[kPaddedBlock], b[kPaddedBlock];
};

// Copies a block and zeroes the elements beyond it, which vectors read too.
void Load(const double* x, size_t n, double* to) {
  std::copy_n(x, n, to);
  std::fill_n(to + n, kPaddedBlock - n, 0.0);
}

bool UsesVectors(const EncodePlan& plan) {
  return !UsesScalarReference() && plan.format.subnormal_shift == 0;
}

// Narrows the codes to their storage type, which DecodeSerial decodes in vectors.
template <typename Code>
void DecodeNarrow(const FormatSpec& format, const uint32_t* codes, size_t n, float* out) {
  alignas(64) Code narrow[kArithmeticBlock];
  for (size_t i = 0; i < n; ++i) narrow[i] = static_cast<Code>(codes[i]);
  DecodeSerial(format, narrow, n, out);
}

float RoundOne(const EncodePlan& plan, double x) {
  return Decode(plan.format, EncodeF64(plan, std::bit_cast<uint64_t>(x), 0));
}

}  // namespace

void RoundOddBlock(
    const EncodePlan& plan, const double* x, size_t n, float* out, const ArrayRandom& random) {
  alignas(64) uint32_t codes[kPaddedBlock];
  EncodeOdd(plan, x, n, codes, random, nullptr);
  switch (plan.format.StorageBytes()) {
    case 1:
      return DecodeNarrow<uint8_t>(plan.format, codes, n, out);
    case 2:
      return DecodeNarrow<uint16_t>(plan.format, codes, n, out);
    default:
      return DecodeSerial(plan.format, codes, n, out);
  }
}

void RoundF64Serial(const EncodePlan& plan, const double* x, size_t n, float* out) {
  if (!UsesVectors(plan)) {
    for (size_t i = 0; i < n; ++i) out[i] = RoundOne(plan, x[i]);
    return;
  }
  Block block;
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    Load(x + begin, count, block.a);
    RoundOddBlock(plan, block.a, count, out + begin, {});
  }
}

void RoundSumSerial(
    const EncodePlan& plan, const double* a, const double* b, size_t n, float* out) {
  if (!UsesVectors(plan)) {
    for (size_t i = 0; i < n; ++i) out[i] = RoundOne(plan, OddSum(a[i], b[i]));
    return;
  }
  Block block;
  const OddOperation sum{ArithmeticOp::kAdd, false, false};
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    Load(a + begin, count, block.a);
    Load(b + begin, count, block.b);
    OddResults(sum, block.a, block.b, nullptr, count, block.a, nullptr);
    RoundOddBlock(plan, block.a, count, out + begin, {});
  }
}

void EncodeF64Serial(const EncodePlan& plan, const double* x, size_t n, uint16_t* codes) {
  if (!UsesVectors(plan)) {
    for (size_t i = 0; i < n; ++i) {
      codes[i] = static_cast<uint16_t>(EncodeF64(plan, std::bit_cast<uint64_t>(x[i]), 0));
    }
    return;
  }
  Block block;
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    Load(x + begin, count, block.a);
    alignas(64) uint32_t wide[kPaddedBlock];
    EncodeOdd(plan, block.a, count, wide, {}, nullptr);
    for (size_t i = 0; i < count; ++i) codes[begin + i] = static_cast<uint16_t>(wide[i]);
  }
}

}  // namespace numsim
