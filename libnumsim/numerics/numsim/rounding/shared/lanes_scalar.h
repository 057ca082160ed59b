// The encoding and decoding rules for one number at a time, on host and device.
#pragma once

#include <bit>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim::scalar {

// The policy of encode_rule.inc and decode_rule.inc with one lane: a float32 in a 32-bit word, a
// float64 in a 64-bit word, or an unrounded result in a 128-bit word.
template <typename U, typename I, typename F, int kMantissa, int kExponentBias>
struct ScalarLanes {
  using Word = U;
  using Mask = bool;
  static constexpr int kWordBits = 8 * sizeof(U);
  static constexpr int kMantissaBits = kMantissa;
  static constexpr int kBias = kExponentBias;
  static constexpr U kMagnitudeMask = static_cast<U>(~U{0}) >> 1;
  static constexpr U kInfinityBits = kMagnitudeMask >> kMantissa << kMantissa;

  template <typename Integer>
  static constexpr NUMSIM_INLINE U Set(Integer x) {
    return static_cast<U>(x);
  }
  static constexpr NUMSIM_INLINE U TopBits(int n) {
    return static_cast<U>(~U{0} << (kWordBits - n));
  }
  static constexpr NUMSIM_INLINE U Add(U a, U b) { return a + b; }
  static constexpr NUMSIM_INLINE U Sub(U a, U b) { return a - b; }
  static constexpr NUMSIM_INLINE U And(U a, U b) { return a & b; }
  static constexpr NUMSIM_INLINE U Or(U a, U b) { return a | b; }
  static constexpr NUMSIM_INLINE U Not(U a) { return ~a; }
  static constexpr NUMSIM_INLINE U Shl(U a, U n) { return a << n; }
  static constexpr NUMSIM_INLINE U Shr(U a, U n) { return a >> n; }
  static constexpr NUMSIM_INLINE U ShlBy(U a, int n) { return a << n; }
  static constexpr NUMSIM_INLINE U ShrBy(U a, int n) { return a >> n; }
  static constexpr NUMSIM_INLINE U MinI(U a, U b) { return GtI(a, b) ? b : a; }
  static constexpr NUMSIM_INLINE U MaxI(U a, U b) { return GtI(a, b) ? a : b; }
  static constexpr NUMSIM_INLINE bool GtI(U a, U b) {
    return static_cast<I>(a) > static_cast<I>(b);
  }
  static constexpr NUMSIM_INLINE bool GtU(U a, U b) { return a > b; }
  static constexpr NUMSIM_INLINE bool Eq(U a, U b) { return a == b; }
  static constexpr NUMSIM_INLINE U Select(bool m, U yes, U no) { return m ? yes : no; }
  static constexpr NUMSIM_INLINE bool AndMask(bool a, bool b) { return a && b; }
  static constexpr NUMSIM_INLINE bool OrMask(bool a, bool b) { return a || b; }
  // Exact in every rounding mode: the argument has at most kMantissaBits bits.
  static constexpr NUMSIM_INLINE U FloatBitsOfInt(U a) {
    return std::bit_cast<U>(static_cast<F>(static_cast<I>(a)));
  }
};

using F32Lanes = ScalarLanes<uint32_t, int32_t, float, 23, 127>;
using F64Lanes = ScalarLanes<uint64_t, int64_t, double, 52, 1023>;

// The 128-bit integers of GCC and clang.
__extension__ using Uint128 = unsigned __int128;
__extension__ using Int128 = __int128;

// Lanes for numbers of 63 significant bits with any exponent that arithmetic gives. There are no
// subnormals, so the rule uses the result of FloatBitsOfInt only for zero.
struct WideLanes : ScalarLanes<Uint128, Int128, double, 62, 1 << 21> {
  static constexpr NUMSIM_INLINE Uint128 FloatBitsOfInt(Uint128 a) { return a; }
};

#define NUMSIM_RULE constexpr NUMSIM_INLINE
#include "numsim/rounding/shared/decode_rule.inc"
#include "numsim/rounding/shared/encode_rule.inc"
#undef NUMSIM_RULE

}  // namespace numsim::scalar
