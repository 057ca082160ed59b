#include "numsim/cast/arithmetic.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>

#include "numsim/backend/backend.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/shared/arithmetic_simd.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/cast/shared/cast_simd.h"
#include "numsim/formats/value_table.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

constexpr size_t kGrain = size_t{1} << 14;
static_assert(kGrain % kArithmeticBlock == 0);

// The ways to compute the results of an operation: in vectors of float32 or float64, or by the
// scalar functions.
enum class Path { kFloat32, kFloat64, kScalar };

struct Job {
  ArithmeticOp op;
  ArrayOperand a, b, c;
  EncodePlan plan;
  Path path = Path::kScalar;
  bool exact = false;
};

// The range of numbers that a path must hold: magnitudes below 2^(top + 1) that are multiples of
// 2^low and have at most `precision` significant bits.
struct Range {
  int top;
  int low;
  int precision;
};

Range RangeOf(const FormatSpec& format) {
  // The unused code of a two's complement format is worth one more than the largest magnitude.
  const int unused = format.sign == Sign::kTwosComplement ? 1 : 0;
  return {format.MaxExponent() + unused, format.SubnormalExponent(), format.mantissa_bits + 1};
}

Range ProductRange(const Range& a, const Range& b) {
  return {a.top + b.top + 1, a.low + b.low, a.precision + b.precision};
}

Range SumRange(const Range& a, const Range& b) {
  const int top = std::max(a.top, b.top) + 1;
  const int low = std::min(a.low, b.low);
  return {top, low, top - low + 1};
}

// The significant bits and the exponent range of a source type.
struct SourceLimits {
  int precision;
  int top;
  int low;         // exponent of the smallest subnormal
  int min_normal;  // exponent of the smallest normal number
};
constexpr SourceLimits kF32{24, 127, -149, -126};
constexpr SourceLimits kF64{53, 1023, -1074, -1022};

bool Holds(const SourceLimits& source, const Range& range) {
  return range.top <= source.top && range.low >= source.low;
}

// True if rounding to odd in the source type and then to the target equals rounding once. The
// source type needs two bits more than the final rounding looks at.
bool OddSuffices(const SourceLimits& source, const EncodePlan& to) {
  const bool stochastic = to.rounding.mode == RoundingMode::kStochastic;
  const int bits = to.format.mantissa_bits + 1 + 2 + (stochastic ? to.rounding.random_bits : 0);
  return bits <= source.precision;
}

// True if a path that computes in `source` serves the job. *exact then tells if the results always
// fit the source type.
bool Serves(const SourceLimits& source, const Job& job, bool* exact) {
  // The rounding rule needs mantissa bits to discard.
  if (job.plan.mantissa_bits + 1 >= source.precision) return false;
  const Range a = RangeOf(job.a.format), b = RangeOf(job.b.format), c = RangeOf(job.c.format);
  Range result = a;
  switch (job.op) {
    case ArithmeticOp::kAdd:
    case ArithmeticOp::kSubtract:
      result = SumRange(a, b);
      break;
    case ArithmeticOp::kMultiply:
      result = ProductRange(a, b);
      if (result.precision > source.precision) return false;
      break;
    case ArithmeticOp::kFma:
      result = ProductRange(a, b);
      if (result.precision > source.precision) return false;
      result = SumRange(result, c);
      break;
    case ArithmeticOp::kDivide:
      // The quotient q must be normal. The residual a - q b must not underflow: its last bit lies
      // below that of a by the number of bits of q and b together.
      *exact = false;
      return a.top - b.low <= source.top && a.low - b.top - 1 >= source.min_normal &&
             a.low - source.precision - b.precision >= source.low && OddSuffices(source, job.plan);
    case ArithmeticOp::kSquareRoot:
      *exact = false;
      return a.low - 2 * source.precision >= source.low && OddSuffices(source, job.plan);
  }
  *exact = result.precision <= source.precision;
  return Holds(source, result) && (*exact || OddSuffices(source, job.plan));
}

void ChoosePath(Job& job) {
  job.path = Path::kScalar;
  if (UsesScalarReference() || job.plan.format.subnormal_shift != 0 || job.plan.format.IsTable()) {
    return;
  }
  if (Serves(kF32, job, &job.exact)) {
    job.path = Path::kFloat32;
  } else if (Serves(kF64, job, &job.exact)) {
    job.path = Path::kFloat64;
  }
}

// Returns code i of an operand, with the bits above its format cleared.
Operand At(const ArrayOperand& operand, size_t i) {
  return {operand.format, operand.codes[i] & operand.format.CodeMask()};
}

Rounded EvaluateScalar(const Job& job, size_t i, uint32_t random) {
  const Operand a = At(job.a, i);
  switch (job.op) {
    case ArithmeticOp::kAdd:
      return Add(a, At(job.b, i), job.plan, random);
    case ArithmeticOp::kSubtract:
      return Subtract(a, At(job.b, i), job.plan, random);
    case ArithmeticOp::kMultiply:
      return Multiply(a, At(job.b, i), job.plan, random);
    case ArithmeticOp::kDivide:
      return Divide(a, At(job.b, i), job.plan, random);
    case ArithmeticOp::kFma:
      return FusedMultiplyAdd(a, At(job.b, i), At(job.c, i), job.plan, random);
    case ArithmeticOp::kSquareRoot:
      break;
  }
  return SquareRoot(a, job.plan, random);
}

Flags ScalarRange(const Job& job,
                  const Codes& out,
                  size_t begin,
                  size_t end,
                  const ArrayRandom& random,
                  uint8_t* flags) {
  Flags all = 0;
  for (size_t i = begin; i < end; ++i) {
    const Rounded r = EvaluateScalar(job, i, Draw(job.plan, random, i));
    out.Set(i, r.code);
    if (flags != nullptr) flags[i] = r.flags;
    all |= r.flags;
  }
  return all;
}

// Calls work(p) with p a pointer to element `begin`, typed as the element type of the codes.
template <typename Work>
void WithPointer(const ConstCodes& codes, size_t begin, Work work) {
  switch (codes.bytes()) {
    case 1:
      return work(static_cast<const uint8_t*>(codes.data()) + begin);
    case 2:
      return work(static_cast<const uint16_t*>(codes.data()) + begin);
    default:
      return work(static_cast<const uint32_t*>(codes.data()) + begin);
  }
}

template <typename T>
struct Buffers {
  alignas(64) T a[kPaddedBlock], b[kPaddedBlock], c[kPaddedBlock], x[kPaddedBlock];
  alignas(64) uint32_t codes[kPaddedBlock];
  alignas(64) uint8_t flags[kPaddedBlock];
};

template <typename T>
void DecodeOperand(const ArrayOperand& operand, size_t begin, size_t n, T* out) {
  if (operand.codes.size() == 0) return;
  WithPointer(operand.codes, begin, [&](const auto* codes) {
    if constexpr (std::is_same_v<T, float>) {
      DecodeSerial(operand.format, codes, n, out);
    } else {
      alignas(64) float values[kArithmeticBlock];
      DecodeSerial(operand.format, codes, n, values);
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<double>(values[i]);
    }
  });
}

// ORs kInvalid into the flags of each element whose operand is a signalling NaN.
void AddSignaling(const ArrayOperand& operand, size_t begin, size_t n, uint8_t* flags) {
  const FormatSpec& format = operand.format;
  if (operand.codes.size() == 0 || format.nan != Nan::kIeee || format.mantissa_bits < 2) return;
  const uint32_t mask = format.MagnitudeMask();
  const uint32_t first = format.MaxFiniteCode() + (format.HasInfinity() ? 2 : 1);
  const uint32_t end = format.NanCode();  // the first quiet NaN
  WithPointer(operand.codes, begin, [&](const auto* codes) {
    for (size_t i = 0; i < n; ++i) {
      const uint32_t magnitude = codes[i] & mask;
      const bool signaling = magnitude >= first && magnitude < end;
      flags[i] = static_cast<uint8_t>(flags[i] | (signaling ? kInvalid : 0));
    }
  });
}

template <typename Code>
void Narrow(const uint32_t* codes, size_t n, Code* out) {
  for (size_t i = 0; i < n; ++i) out[i] = static_cast<Code>(codes[i]);
}

// Encodes block.x into out[begin, begin + n).
template <typename T>
void EncodeResults(const Job& job,
                   Buffers<T>& block,
                   const Codes& out,
                   size_t begin,
                   size_t n,
                   const ArrayRandom& random,
                   bool want_flags) {
  const auto encode_to = [&](auto* codes) {
    if constexpr (std::is_same_v<T, float>) {
      if (!want_flags) return EncodeSerial(job.plan, block.x, n, codes, random);
    }
    EncodeOdd(job.plan, block.x, n, block.codes, random, want_flags ? block.flags : nullptr);
    Narrow(block.codes, n, codes);
  };
  switch (out.bytes()) {
    case 1:
      return encode_to(static_cast<uint8_t*>(out.data()) + begin);
    case 2:
      return encode_to(static_cast<uint16_t*>(out.data()) + begin);
    default:
      return encode_to(static_cast<uint32_t*>(out.data()) + begin);
  }
}

template <typename T>
Flags VectorRange(const Job& job,
                  const Codes& out,
                  size_t begin,
                  size_t end,
                  const ArrayRandom& random,
                  bool want_flags,
                  uint8_t* flags) {
  const DefaultFloatEnvironment environment;
  const OddOperation operation{job.op, job.exact, ZeroSumIsNegative(job.plan.rounding.mode)};
  Buffers<T> block{};
  Flags all = 0;
  for (size_t i = begin; i < end; i += kArithmeticBlock) {
    const size_t n = std::min(kArithmeticBlock, end - i);
    DecodeOperand(job.a, i, n, block.a);
    DecodeOperand(job.b, i, n, block.b);
    DecodeOperand(job.c, i, n, block.c);
    uint8_t* block_flags = want_flags ? block.flags : nullptr;
    OddResults(operation, block.a, block.b, block.c, n, block.x, block_flags);
    if (want_flags) {
      for (const ArrayOperand* x : {&job.a, &job.b, &job.c}) AddSignaling(*x, i, n, block.flags);
    }
    const ArrayRandom advanced = Advance(random, i);
    EncodeResults(job, block, out, i, n, advanced, want_flags);
    if (!want_flags) continue;
    for (size_t j = 0; j < n; ++j) all |= block.flags[j];
    if (flags != nullptr) std::copy_n(block.flags, n, flags + i);
  }
  return all;
}

void CheckOperand(const ArrayOperand& operand, const char* name, bool present, size_t n) {
  RequireSize(operand.codes.size(), present ? n : 0, "Arithmetic", name);
  if (!present) return;
  RefuseTable(operand.format, "Arithmetic");
  RequireCodeBytes(
      static_cast<size_t>(operand.codes.bytes()), operand.format.Bits(), "Arithmetic", name);
}

}  // namespace

int Arity(ArithmeticOp op) {
  switch (op) {
    case ArithmeticOp::kSquareRoot:
      return 1;
    case ArithmeticOp::kFma:
      return 3;
    default:
      return 2;
  }
}

Flags Arithmetic(ArithmeticOp op,
                 const ArrayOperand& a,
                 const ArrayOperand& b,
                 const ArrayOperand& c,
                 const EncodePlan& to,
                 Codes out,
                 const ArrayRandom& random,
                 bool want_flags,
                 std::span<uint8_t> flags) {
  const size_t n = out.size();
  CheckOperand(a, "a", true, n);
  CheckOperand(b, "b", Arity(op) >= 2, n);
  CheckOperand(c, "c", Arity(op) >= 3, n);
  RequireCodeBytes(static_cast<size_t>(out.bytes()), to.format.Bits(), "Arithmetic", "out");
  if (!flags.empty()) RequireSize(flags.size(), n, "Arithmetic", "flags");
  want_flags = want_flags || !flags.empty();
  Job job{op, a, b, c, to};
  // Absent operands get the format of `a`, which restricts no path further.
  if (Arity(op) < 2) job.b.format = a.format;
  if (Arity(op) < 3) job.c.format = a.format;
  ChoosePath(job);
  std::atomic<Flags> all{0};
  ParallelFor(n, kGrain, [&](size_t begin, size_t end) {
    uint8_t* flag_array = flags.empty() ? nullptr : flags.data();
    Flags raised = 0;
    switch (job.path) {
      case Path::kFloat32:
        raised = VectorRange<float>(job, out, begin, end, random, want_flags, flag_array);
        break;
      case Path::kFloat64:
        raised = VectorRange<double>(job, out, begin, end, random, want_flags, flag_array);
        break;
      case Path::kScalar:
        raised = ScalarRange(job, out, begin, end, random, flag_array);
        break;
    }
    all.fetch_or(raised);
  });
  return want_flags ? all.load() : Flags{0};
}

}  // namespace numsim
