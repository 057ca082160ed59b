// The lanes of rows_rule.inc as threads: each of kLanes threads of a kernel (kernel_blocks.h) has one
// of the lanes. With it all texts of *_rule.inc for kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "numsim/backend/shared/kernel_blocks.h"
#include "numsim/base/host_device.h"
#include "numsim/base/shared/elementary_text.h"
#include "numsim/ops/internal/row_view.h"

namespace numsim {

#define NUMSIM_RULE NUMSIM_INLINE
#define NUMSIM_BODY
#include "numsim/ops/internal/activation_rule.inc"
#include "numsim/ops/internal/elementwise_rule.inc"
#include "numsim/ops/internal/loss_rule.inc"
#include "numsim/ops/internal/norm_rule.inc"
#include "numsim/ops/internal/rows_rule.inc"
#undef NUMSIM_BODY
#undef NUMSIM_RULE

// Sums and maxima need 16 lanes, and all threads of a group at once.
template <class Env, unsigned kLanes = kRowLanes>
class ThreadLanes {
 public:
  // Lanes without a row of their own, `active` == false, take part in sums, load zeros and store
  // nothing.
  NUMSIM_INLINE explicit ThreadLanes(Env& env, bool active = true)
      : env_(&env), lane_(active ? env.Thread() % kLanes : kNoLane) {}

  NUMSIM_INLINE float Set(float x) const { return x; }
  NUMSIM_INLINE float Add(float a, float b) const { return a + b; }
  NUMSIM_INLINE float Sub(float a, float b) const { return a - b; }
  NUMSIM_INLINE float Mul(float a, float b) const { return a * b; }
  NUMSIM_INLINE float Div(float a, float b) const { return a / b; }
  NUMSIM_INLINE float Min(float a, float b) const { return a < b ? a : b; }
  NUMSIM_INLINE float Neg(float a) const { return -a; }
  NUMSIM_INLINE bool Lt(float a, float b) const { return a < b; }
  NUMSIM_INLINE bool Le(float a, float b) const { return a <= b; }
  NUMSIM_INLINE bool Ge(float a, float b) const { return a >= b; }
  NUMSIM_INLINE bool Eq(float a, float b) const { return a == b; }
  NUMSIM_INLINE float Select(bool m, float yes, float no) const { return m ? yes : no; }
  NUMSIM_INLINE float AddExponent(float p, float k) const {
    return std::bit_cast<float>(std::bit_cast<uint32_t>(p) + (std::bit_cast<uint32_t>(k) << 23));
  }
  NUMSIM_INLINE float Load(const float* p, size_t count) const {
    return lane_ < count ? p[lane_] : 0.0f;
  }
  NUMSIM_INLINE void Store(float v, float* p, size_t count) const {
    if (lane_ < count) p[lane_] = v;
  }
  template <class Body>
  NUMSIM_INLINE void ForRow(size_t n, const Body& body) const {
    for (size_t i = 0; i < n; i += kLanes) body(i, n - i < kLanes ? n - i : kLanes);
  }
  template <class Term>
  NUMSIM_INLINE float SumRow(size_t n, const Term& term) const {
    float sum = 0;
    AddTerms(n, term, sum);
    return Total(sum);
  }
  NUMSIM_INLINE float MaxRow(const float* p, size_t n) const {
    float max = -std::numeric_limits<float>::infinity();
    ForRow(n, [&](size_t i, size_t count) {
      if (lane_ < count) max = p[i + lane_] > max ? p[i + lane_] : max;
    });
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      const float other = env_->template ShuffleXor<kLanes>(max, half);
      max = other > max ? other : max;
    }
    return max;
  }
  NUMSIM_INLINE bool Contains(const float* p, size_t n, float x) const {
    uint32_t found = 0;
    ForRow(n, [&](size_t i, size_t count) {
      if (lane_ < count && p[i + lane_] == x) found = 1;
    });
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      found |= env_->template ShuffleXor<kLanes>(found, half);
    }
    return found != 0;
  }
  NUMSIM_INLINE float At(const float* p, size_t i) const {
    return env_->template Shuffle<kLanes>(Owns(i) ? p[i] : 0.0f, static_cast<unsigned>(i % kLanes));
  }
  NUMSIM_INLINE bool Owns(size_t i) const { return lane_ == i % kLanes; }

  // SumRow in parts: adds the terms of n elements to the lane's sum. Requires that of all parts but
  // the last n is a multiple of 16.
  template <class Term>
  NUMSIM_INLINE void AddTerms(size_t n, const Term& term, float& sum) const {
    static_assert(kLanes == kRowLanes);
    ForRow(n, [&](size_t i, size_t count) {
      const float t = term(i, count);
      if (lane_ < count) sum += t;
    });
  }
  NUMSIM_INLINE float Total(float sum) const {
    for (unsigned half = kLanes / 2; half > 0; half /= 2) {
      sum += env_->template ShuffleXor<kLanes>(sum, half);
    }
    return sum;
  }

 private:
  static constexpr size_t kNoLane = std::numeric_limits<size_t>::max();

  Env* env_;
  size_t lane_;  // of its group, or kNoLane
};

}  // namespace numsim
