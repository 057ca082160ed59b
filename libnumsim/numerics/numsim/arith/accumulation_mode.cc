// Accumulation modes that round once at the end or after each product. The sums of tensor cores are
// in aligned_sum.cc, block_scaled_sum.cc and tensor_core_sum.cc.
#include "numsim/arith/accumulation_mode.h"

#include <algorithm>
#include <bit>

#include "numsim/arith/arith.h"
#include "numsim/arith/internal/tensor_cores.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/arith/shared/exact_sum.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr int kF64Bits = 53;

Operand F32Operand(float value) { return {kFp32, std::bit_cast<uint32_t>(value)}; }

Unrounded F32Value(float value) { return ExactValue(kFp32, std::bit_cast<uint32_t>(value)); }

Unrounded ExactDot(const DotOperand& a, const DotOperand& b) {
  ExactSum sum;
  sum.Add(Unrounded{});  // +0
  for (size_t k = 0; k < a.values.size(); ++k) {
    sum.Add(exact::Product(F32Value(a.values[k]), F32Value(b.values[k])).value);
  }
  return sum.Result();
}

// Rounds to the 53 bits of a float64, to nearest even. The exponent range of float64 always
// suffices: sums of products of float32 values are multiples of 2^-298 and below 2^400.
Unrounded RoundedToF64(Unrounded x) {
  const int cut = static_cast<int>(std::bit_width(x.significand)) - kF64Bits;
  if (x.kind != NumberKind::kFinite || cut <= 0) return x;
  const uint64_t half = uint64_t{1} << (cut - 1);
  const uint64_t rest = x.significand & (2 * half - 1);
  x.significand >>= cut;
  if (rest > half || (rest == half && (x.significand & 1) != 0)) ++x.significand;
  x.exponent += cut;
  return x;
}

Unrounded F64Dot(const DotOperand& a, const DotOperand& b) {
  Unrounded acc;
  for (size_t k = 0; k < a.values.size(); ++k) {
    const Unrounded product = exact::Product(F32Value(a.values[k]), F32Value(b.values[k])).value;
    acc = RoundedToF64(exact::Sum(acc, product, false).value);
  }
  return acc;
}

// Returns the code of the sum, which is rounded to `format` after each step.
uint32_t SequentialDot(const FormatSpec& format,
                       bool fused,
                       const DotOperand& a,
                       const DotOperand& b) {
  const EncodePlan step = MakeEncodePlan(format);
  Operand acc{format, EncodeUnrounded(step, Unrounded{}).code};
  for (size_t k = 0; k < a.values.size(); ++k) {
    const Operand x = F32Operand(a.values[k]), y = F32Operand(b.values[k]);
    acc.code = fused ? FusedMultiplyAdd(x, y, acc, step).code
                     : Add(acc, {format, Multiply(x, y, step).code}, step).code;
  }
  return acc.code;
}

DotOperand Part(const DotOperand& x, size_t begin, size_t count) {
  return {x.format, x.values.subspan(begin, std::min(count, x.values.size() - begin))};
}

uint32_t ChunkedDot(size_t chunk, const DotOperand& a, const DotOperand& b) {
  const EncodePlan step = MakeEncodePlan(kFp32);
  Operand total{kFp32, 0};
  for (size_t k = 0; k < a.values.size(); k += chunk) {
    const uint32_t part = SequentialDot(kFp32, true, Part(a, k, chunk), Part(b, k, chunk));
    total.code = Add(total, {kFp32, part}, step).code;
  }
  return total.code;
}

Unrounded Sum(const AccumulationMode& mode, const DotOperand& a, const DotOperand& b) {
  switch (mode.kind) {
    case AccumulationKind::kExact:
      return ExactDot(a, b);
    case AccumulationKind::kFloat64:
      return F64Dot(a, b);
    case AccumulationKind::kFormat:
    case AccumulationKind::kFormatUnfused: {
      const bool fused = mode.kind == AccumulationKind::kFormat;
      return ExactValue(mode.format, SequentialDot(mode.format, fused, a, b));
    }
    case AccumulationKind::kChunked:
      return ExactValue(kFp32, ChunkedDot(static_cast<size_t>(mode.chunk), a, b));
    case AccumulationKind::kAligned:
      return ExactValue(kFp32, AlignedSum(mode, a, b));
    case AccumulationKind::kAlignedDown:
      return ExactValue(kFp32, AlignedDownSum(mode, a, b));
    case AccumulationKind::kBlockScaled:
      return ExactValue(kFp32, BlockScaledSum(mode, a, b));
    case AccumulationKind::kExactChunks:
      return ExactValue(kFp32, ExactChunkSum(mode, a, b));
    case AccumulationKind::kFlushedPairs:
      return ExactValue(kFp32, FlushedPairSum(mode, a, b));
    case AccumulationKind::kLibrary:
      break;
  }
  NUMSIM_CHECK(false, "mode library has no stated order of summation ({})", a.values.size());
  return {};
}

}  // namespace

Unrounded Accumulate(const AccumulationMode& mode,
                     const DotOperand& a,
                     const DotOperand& b) noexcept {
  NUMSIM_CHECK(a.values.size() == b.values.size(),
               "vectors of {} and {} elements",
               a.values.size(),
               b.values.size());
  Unrounded sum = Sum(mode, a, b);
  if (sum.kind == NumberKind::kNan) sum.negative = false;
  return sum;
}

uint32_t NanResult(const AccumulationMode& mode) {
  return mode.kind == AccumulationKind::kAligned || IsBlockScaled(mode) ? 0x7FFFFFFF : 0x7FC00000;
}

bool IsOrderedMode(const AccumulationMode& mode) {
  return mode.kind == AccumulationKind::kFloat64 || mode.kind == AccumulationKind::kChunked ||
         (mode.kind == AccumulationKind::kFormat && mode.format == kFp32);
}

}  // namespace numsim
