#include "numsim/cast/shared/arithmetic_simd.h"

#include <cmath>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/shared/arithmetic_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/lanes-inl.h"
#include "numsim/cast/internal/odd-inl.h"
#include "numsim/cast/internal/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {

template <typename T>
using UintOf = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Returns a * b + c with one rounding. Highway's MulAdd rounds twice if the processor has no such
// instruction.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V FusedMulAdd(D d, V a, V b, V c) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulAdd(a, b, c);
#else
  using T = hn::TFromD<D>;
  HWY_ALIGN T as[HWY_MAX_BYTES / sizeof(T)], bs[HWY_MAX_BYTES / sizeof(T)],
      cs[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(a, d, as);
  hn::Store(b, d, bs);
  hn::Store(c, d, cs);
  for (size_t i = 0; i < hn::Lanes(d); ++i) as[i] = std::fma(as[i], bs[i], cs[i]);
  return hn::Load(d, as);
#endif
}

// Returns a + b, exact or rounded to odd.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V OddSum(D d, const OddOperation& operation, V a, V b) {
  auto sum = hn::Add(a, b);
  if (!operation.exact) sum = SumToOdd(d, a, b, sum);
  if (operation.zero_negative) {
    const auto zero = hn::Zero(d);
    const auto sign = hn::And(hn::Or(a, b), hn::SignBit(d));
    sum = hn::IfThenElse(hn::Eq(sum, zero), sign, sum);
  }
  return sum;
}

// Returns a / b rounded to odd.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V OddQuotient(D d, V a, V b) {
  const auto zero = hn::Zero(d);
  const auto quotient = hn::Div(a, b);
  // The sign of a - quotient * b is the sign of the error times the sign of b.
  const auto rest = FusedMulAdd(d, hn::Neg(quotient), b, a);
  const auto error = hn::Xor(rest, hn::And(b, hn::SignBit(d)));
  // Infinite quotients are exact.
  const auto finite = hn::Lt(hn::Abs(quotient), hn::Inf(d));
  return hn::IfThenElse(finite, ToOdd(d, quotient, hn::IfThenElse(finite, error, zero)), quotient);
}

// Returns sqrt(a) rounded to odd.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V OddRoot(D d, V a) {
  const auto root = hn::Sqrt(a);
  const auto rest = FusedMulAdd(d, hn::Neg(root), root, a);
  const auto finite = hn::Lt(root, hn::Inf(d));
  return hn::IfThenElse(finite, ToOdd(d, root, hn::IfThenElse(finite, rest, hn::Zero(d))), root);
}

// Computes one vector of results and its flags.
template <ArithmeticOp kOp, class D>
HWY_INLINE void OddVector(D d,
                          const OddOperation& operation,
                          const hn::TFromD<D>* HWY_RESTRICT a_in,
                          const hn::TFromD<D>* HWY_RESTRICT b_in,
                          const hn::TFromD<D>* HWY_RESTRICT c_in,
                          hn::TFromD<D>* HWY_RESTRICT out,
                          uint8_t* HWY_RESTRICT flags) {
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  const auto a = hn::LoadU(d, a_in);
  auto b = a, c = a;
  if constexpr (kOp != ArithmeticOp::kSquareRoot) b = hn::LoadU(d, b_in);
  if constexpr (kOp == ArithmeticOp::kFma) c = hn::LoadU(d, c_in);
  auto x = a;
  if constexpr (kOp == ArithmeticOp::kAdd) x = OddSum(d, operation, a, b);
  if constexpr (kOp == ArithmeticOp::kSubtract) x = OddSum(d, operation, a, hn::Neg(b));
  if constexpr (kOp == ArithmeticOp::kMultiply) x = hn::Mul(a, b);
  if constexpr (kOp == ArithmeticOp::kFma) x = OddSum(d, operation, hn::Mul(a, b), c);
  if constexpr (kOp == ArithmeticOp::kDivide) x = OddQuotient(d, a, b);
  if constexpr (kOp == ArithmeticOp::kSquareRoot) x = OddRoot(d, a);
  const auto is_nan = hn::IsNaN(x);
  const hn::VFromD<D> quiet_nan =
      hn::BitCast(d,
                  hn::Set(du,
                          sizeof(U) == 4 ? static_cast<U>(0x7FC00000u)
                                         : static_cast<U>(0x7FF8u) << (8 * sizeof(U) - 16)));
  hn::StoreU(hn::IfThenElse(is_nan, quiet_nan, x), d, out);
  if (flags == nullptr) return;
  // Invalid: the result of an elementary operation is NaN and none of its operands is. In
  // inf * 0 + NaN that is the product.
  auto invalid = hn::AndNot(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), is_nan);
  if constexpr (kOp == ArithmeticOp::kFma) {
    const auto product = hn::IsNaN(hn::Mul(a, b));
    const auto sum = hn::AndNot(hn::Or(product, hn::IsNaN(c)), is_nan);
    invalid = hn::Or(hn::AndNot(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), product), sum);
  }
  auto raised =
      hn::IfThenElseZero(hn::RebindMask(du, invalid), hn::Set(du, static_cast<U>(kInvalid)));
  if constexpr (kOp == ArithmeticOp::kDivide) {
    const auto by_zero = hn::And(hn::Eq(hn::Abs(x), hn::Inf(d)), hn::Lt(hn::Abs(a), hn::Inf(d)));
    raised = hn::Or(raised,
                    hn::IfThenElseZero(hn::RebindMask(du, by_zero),
                                       hn::Set(du, static_cast<U>(kDivideByZero))));
  }
  const hn::Rebind<uint8_t, decltype(du)> d8;
  hn::StoreU(hn::TruncateTo(d8, raised), d8, flags);
}

template <ArithmeticOp kOp, typename T>
HWY_NOINLINE void OddBlock(const OddOperation& operation_ref,
                           const T* HWY_RESTRICT a,
                           const T* HWY_RESTRICT b,
                           const T* HWY_RESTRICT c,
                           size_t n,
                           T* HWY_RESTRICT x,
                           uint8_t* HWY_RESTRICT flags) {
  const OddOperation operation = operation_ref;
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    OddVector<kOp>(
        d, operation, a + i, b + i, c + i, x + i, flags == nullptr ? nullptr : flags + i);
  }
}

template <typename T>
void OddAny(const OddOperation& operation,
            const T* a,
            const T* b,
            const T* c,
            size_t n,
            T* x,
            uint8_t* flags) {
  switch (operation.op) {
    case ArithmeticOp::kAdd:
      return OddBlock<ArithmeticOp::kAdd>(operation, a, b, c, n, x, flags);
    case ArithmeticOp::kSubtract:
      return OddBlock<ArithmeticOp::kSubtract>(operation, a, b, c, n, x, flags);
    case ArithmeticOp::kMultiply:
      return OddBlock<ArithmeticOp::kMultiply>(operation, a, b, c, n, x, flags);
    case ArithmeticOp::kDivide:
      return OddBlock<ArithmeticOp::kDivide>(operation, a, b, c, n, x, flags);
    case ArithmeticOp::kFma:
      return OddBlock<ArithmeticOp::kFma>(operation, a, b, c, n, x, flags);
    case ArithmeticOp::kSquareRoot:
      return OddBlock<ArithmeticOp::kSquareRoot>(operation, a, b, c, n, x, flags);
  }
}

void OddF32(const OddOperation& operation,
            const float* a,
            const float* b,
            const float* c,
            size_t n,
            float* x,
            uint8_t* flags) {
  OddAny(operation, a, b, c, n, x, flags);
}
void OddF64(const OddOperation& operation,
            const double* a,
            const double* b,
            const double* c,
            size_t n,
            double* x,
            uint8_t* flags) {
  OddAny(operation, a, b, c, n, x, flags);
}

template <RuleMode kMode, bool kWantFlags, typename T>
HWY_NOINLINE void EncodeOddBlock(const EncodePlan& plan_ref,
                                 const T* HWY_RESTRICT x,
                                 size_t n,
                                 uint32_t* HWY_RESTRICT codes,
                                 const uint32_t* HWY_RESTRICT random,
                                 uint8_t* HWY_RESTRICT flags) {
  using U = UintOf<T>;
  const EncodePlan plan = plan_ref;
  const hn::ScalableTag<U> du;
  const VectorLanes<decltype(du), sizeof(T) == 4 ? 23 : 52, sizeof(T) == 4 ? 127 : 1023> lanes;
  const hn::Rebind<uint32_t, decltype(du)> d32;
  const hn::Rebind<uint8_t, decltype(du)> d8;
  for (size_t i = 0; i < n; i += hn::Lanes(du)) {
    const auto bits = hn::LoadU(du, reinterpret_cast<const U*>(x + i));
    auto word = hn::Zero(du);
    if constexpr (kMode == RuleMode::kStochastic) word = LoadRandom(du, random + i);
    auto code = hn::Zero(du);
    if constexpr (kWantFlags) {
      const auto r = EncodeWordWithFlags<kMode>(lanes, plan, bits, word);
      code = r.code;
      hn::StoreU(hn::Or(hn::LoadU(d8, flags + i), hn::TruncateTo(d8, r.flags)), d8, flags + i);
    } else {
      if constexpr (sizeof(T) == 8) {
        // Subnormals of float64 are far below half the smallest nonzero value of any format.
        code = EncodeNarrower<kMode>(lanes, plan, bits, word);
      } else {
        code = EncodeWord<kMode, ExponentRange::kGeneral>(lanes, plan, bits, word);
      }
    }
    if constexpr (sizeof(U) == 4) {
      hn::StoreU(code, d32, codes + i);
    } else {
      hn::StoreU(hn::TruncateTo(d32, code), d32, codes + i);
    }
  }
}

template <RuleMode kMode, typename T>
void EncodeOddMode(const EncodePlan& plan,
                   const T* x,
                   size_t n,
                   uint32_t* codes,
                   const uint32_t* random,
                   uint8_t* flags) {
  if (flags != nullptr) return EncodeOddBlock<kMode, true>(plan, x, n, codes, random, flags);
  return EncodeOddBlock<kMode, false>(plan, x, n, codes, random, flags);
}

template <typename T>
void EncodeOddAny(const EncodePlan& plan,
                  const T* x,
                  size_t n,
                  uint32_t* codes,
                  const ArrayRandom& random,
                  uint8_t* flags) {
  switch (RuleModeOf(plan.rounding.mode)) {
    case RuleMode::kNearestEven:
      return EncodeOddMode<RuleMode::kNearestEven>(plan, x, n, codes, nullptr, flags);
    case RuleMode::kStochastic: {
      HWY_ALIGN uint32_t words[kDrawnWords];
      const uint32_t* const drawn = DrawBlock(random, plan.rounding.random_bits, 0, n, words);
      return EncodeOddMode<RuleMode::kStochastic>(plan, x, n, codes, drawn, flags);
    }
    case RuleMode::kOther:
      return EncodeOddMode<RuleMode::kOther>(plan, x, n, codes, nullptr, flags);
  }
}

void EncodeOddF32(const EncodePlan& plan,
                  const float* x,
                  size_t n,
                  uint32_t* codes,
                  const ArrayRandom& random,
                  uint8_t* flags) {
  EncodeOddAny(plan, x, n, codes, random, flags);
}
void EncodeOddF64(const EncodePlan& plan,
                  const double* x,
                  size_t n,
                  uint32_t* codes,
                  const ArrayRandom& random,
                  uint8_t* flags) {
  EncodeOddAny(plan, x, n, codes, random, flags);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(OddF32);
HWY_EXPORT(OddF64);
HWY_EXPORT(EncodeOddF32);
HWY_EXPORT(EncodeOddF64);

void OddResults(const OddOperation& operation,
                const float* a,
                const float* b,
                const float* c,
                size_t n,
                float* x,
                uint8_t* flags) {
  HWY_DYNAMIC_DISPATCH(OddF32)(operation, a, b, c, n, x, flags);
}
void OddResults(const OddOperation& operation,
                const double* a,
                const double* b,
                const double* c,
                size_t n,
                double* x,
                uint8_t* flags) {
  HWY_DYNAMIC_DISPATCH(OddF64)(operation, a, b, c, n, x, flags);
}
void EncodeOdd(const EncodePlan& plan,
               const float* x,
               size_t n,
               uint32_t* codes,
               const ArrayRandom& random,
               uint8_t* flags) {
  HWY_DYNAMIC_DISPATCH(EncodeOddF32)(plan, x, n, codes, random, flags);
}
void EncodeOdd(const EncodePlan& plan,
               const double* x,
               size_t n,
               uint32_t* codes,
               const ArrayRandom& random,
               uint8_t* flags) {
  HWY_DYNAMIC_DISPATCH(EncodeOddF64)(plan, x, n, codes, random, flags);
}

}  // namespace numsim
#endif  // HWY_ONCE
