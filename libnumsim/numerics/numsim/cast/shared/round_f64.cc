#include "numsim/cast/shared/round_f64.h"

#include <algorithm>
#include <bit>

#include "numsim/backend/backend.h"
#include "numsim/cast/internal/encode_f64_simd.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/table_cast_simd.h"
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

template <typename Code>
void EncodeF64Any(
    const EncodePlan& plan, const double* x, size_t n, Code* codes, const ArrayRandom& random) {
  if (!UsesScalarReference() && EncodesF64InVectors(plan)) {
    return EncodeF64Simd(plan, x, n, codes, random);
  }
  if constexpr (sizeof(Code) == 1) {
    if (!UsesScalarReference() && plan.format.IsTable()) {
      return EncodeInTable(plan, x, n, codes, random);
    }
  }
  for (size_t i = 0; i < n; ++i) {
    const uint64_t bits = std::bit_cast<uint64_t>(x[i]);
    codes[i] = static_cast<Code>(EncodeF64(plan, bits, Draw(plan, random, i)));
  }
}

// Encodes a block to codes of the storage type, which DecodeSerial decodes in vectors.
template <typename Code>
void RoundBlock(
    const EncodePlan& plan, const double* x, size_t n, float* out, const ArrayRandom& random) {
  alignas(64) Code codes[kArithmeticBlock];
  EncodeF64Any(plan, x, n, codes, random);
  DecodeSerial(plan.format, codes, n, out);
}

}  // namespace

void RoundF64Serial(
    const EncodePlan& plan, const double* x, size_t n, float* out, const ArrayRandom& random) {
  const int bytes = plan.format.StorageBytes();
  const auto round = bytes == 1   ? RoundBlock<uint8_t>
                     : bytes == 2 ? RoundBlock<uint16_t>
                                  : RoundBlock<uint32_t>;
  for (size_t i = 0; i < n; i += kArithmeticBlock) {
    const ArrayRandom advanced = Advance(random, i);
    round(plan, x + i, std::min(kArithmeticBlock, n - i), out + i, advanced);
  }
}

void RoundSumSerial(
    const EncodePlan& plan, const double* a, const double* b, size_t n, float* out) {
  Block block;
  const OddOperation sum{ArithmeticOp::kAdd, false, false};
  for (size_t begin = 0; begin < n; begin += kArithmeticBlock) {
    const size_t count = std::min(kArithmeticBlock, n - begin);
    if (UsesScalarReference()) {
      std::transform(a + begin, a + begin + count, b + begin, block.a, OddSum);
    } else {
      Load(a + begin, count, block.a);
      Load(b + begin, count, block.b);
      OddResults(sum, block.a, block.b, nullptr, count, block.a, nullptr);
    }
    RoundF64Serial(plan, block.a, count, out + begin);
  }
}

void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint8_t* codes,
                     const ArrayRandom& random) noexcept {
  EncodeF64Any(plan, x, n, codes, random);
}
void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint16_t* codes,
                     const ArrayRandom& random) noexcept {
  EncodeF64Any(plan, x, n, codes, random);
}
void EncodeF64Serial(const EncodePlan& plan,
                     const double* x,
                     size_t n,
                     uint32_t* codes,
                     const ArrayRandom& random) noexcept {
  EncodeF64Any(plan, x, n, codes, random);
}

}  // namespace numsim
