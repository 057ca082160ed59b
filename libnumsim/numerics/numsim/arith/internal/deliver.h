// Deliver: rounds an exact outcome to a format, for all operations of arith.h and p3109.h.
#pragma once

#include "numsim/arith/arith.h"
#include "numsim/arith/shared/exact.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {

inline Flags SignalingFlags(const Operand& a) noexcept {
  return IsSignalingNan(a) ? kInvalid : Flags{0};
}

// Rounds `value` once and adds the flags that its computation raised.
inline Rounded Deliver(const Unrounded& value,
                       Flags raised,
                       const EncodePlan& to,
                       uint32_t random) noexcept {
  Rounded r = EncodeUnrounded(to, value, random);
  r.flags |= raised;
  return r;
}

}  // namespace numsim
