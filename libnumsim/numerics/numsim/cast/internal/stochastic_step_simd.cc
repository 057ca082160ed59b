#include "numsim/cast/internal/stochastic_step_simd.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/cast/internal/stochastic_step_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "numsim/cast/internal/odd-inl.h"
#include "numsim/cast/internal/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE

// The constants of StochasticGrid in vectors.
template <class DD>
class StochasticVectors {
 public:
  using V = hn::Vec<DD>;
  using DU = hn::RebindToUnsigned<DD>;
  using U = hn::Vec<DU>;

  HWY_INLINE explicit StochasticVectors(const StochasticGrid& grid)
      : grid_(grid),
        kept_(hn::Set(DU(), ~uint64_t{0} << grid.cut)),
        undecided_(hn::Set(DU(), (uint64_t{1} << grid.undecided_bits) - 1)),
        min_normal_(hn::Set(DD(), grid.min_normal)),
        max_(hn::Set(DD(), grid.max)) {}

  // Returns the lanes in which the sum rounded to odd may round otherwise than the nearest one, and
  // all NaN: those whose lowest bits are zero. Elsewhere the nearest float64 has the same decisive
  // bits as the exact sum.
  HWY_INLINE hn::Mask<DD> Unusual(V sum) const {
    const auto low = hn::And(hn::BitCast(DU(), sum), undecided_);
    return hn::RebindMask(DD(), hn::Eq(low, hn::Zero(DU())));
  }

  // Returns the value that x rounds to. The low 32 bits of `random` have the random bits at their
  // top. Requires x exact or rounded to odd, or not Unusual.
  HWY_INLINE V Round(V x, U random) const {
    const auto magnitude = hn::Min(hn::Abs(x), max_);
    const auto bits = hn::BitCast(DU(), magnitude);
    const auto added = hn::ShiftLeftSame(hn::ShiftRightSame(random, 32 - grid_.random_bits),
                                         grid_.cut - grid_.random_bits);
    const auto small = hn::Lt(magnitude, min_normal_);
    auto value = hn::BitCast(DD(), RoundBits(bits, added));
    if (!hn::AllFalse(DD(), small)) {
      value = hn::IfThenElse(small, RoundSmall(bits, added), value);
    }
    const auto with_sign = hn::CopySignToAbs(value, x);
    return grid_.negative_zero ? with_sign : hn::Add(with_sign, hn::Zero(DD()));
  }

 private:
  HWY_INLINE U RoundBits(U bits, U added) const { return hn::And(hn::Add(bits, added), kept_); }

  // Rounds magnitudes below the smallest normal value 2^e. There, values are spaced as from 2^e to
  // 2^(e + 1). So the magnitude is shifted into the mantissa field of those, rounded, and moved
  // back. The bits that the shift drops lie below the decisive ones.
  HWY_INLINE V RoundSmall(U bits, U added) const {
    constexpr int kMantissa = 52;
    const DU du;
    const auto hidden = hn::Set(du, uint64_t{1} << kMantissa);
    const auto mantissa = hn::And(bits, hn::Sub(hidden, hn::Set(du, 1)));
    const auto first = hn::BitCast(du, min_normal_);
    const auto below = hn::Sub(hn::ShiftRight<kMantissa>(first), hn::ShiftRight<kMantissa>(bits));
    const auto moved = hn::Shr(hn::Or(mantissa, hidden), hn::Min(below, hn::Set(du, 63)));
    const auto rounded = hn::BitCast(DD(), hn::Add(RoundBits(moved, added), first));
    return hn::Sub(rounded, min_normal_);
  }

  StochasticGrid grid_;
  U kept_, undecided_;
  V min_normal_, max_;
};

// Computes one vector of steps. Returns false and stores nothing if a sum is NaN.
template <class DD>
HWY_INLINE bool StochasticVector(DD dd,
                                 const StochasticVectors<DD>& rounding,
                                 const float* w,
                                 const float* u,
                                 hn::Vec<DD> factor,
                                 const uint32_t* words,
                                 float* out) {
  const hn::Rebind<float, DD> df;
  const hn::Rebind<uint32_t, DD> d32;
  const hn::RebindToUnsigned<DD> du;
  const auto base = hn::PromoteTo(dd, hn::LoadU(df, w));
  const auto product = hn::Mul(hn::PromoteTo(dd, hn::LoadU(df, u)), factor);  // exact
  auto sum = hn::Add(base, product);
  if (!hn::AllFalse(dd, rounding.Unusual(sum))) {
    if (!hn::AllFalse(dd, hn::IsNaN(sum))) return false;
    sum = SumToOdd(dd, base, product, sum);
  }
  const auto random = hn::PromoteTo(du, hn::LoadU(d32, words));
  hn::StoreU(hn::DemoteTo(df, rounding.Round(sum, random)), df, out);
  return true;
}

// Computes a block of steps with their random words. Returns the length of the prefix without NaN.
size_t StochasticBlock(const StochasticGrid& grid,
                       const float* w,
                       const float* u,
                       float factor_value,
                       size_t n,
                       const uint32_t* words,
                       float* out) {
  using DD = hn::ScalableTag<double>;
  const DD dd;
  constexpr size_t kMaxLanes = HWY_MAX_BYTES / sizeof(double);
  const size_t lanes = hn::Lanes(dd);
  const StochasticVectors<DD> rounding(grid);
  const auto factor = hn::Set(dd, static_cast<double>(factor_value));
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    if (!StochasticVector(dd, rounding, w + i, u + i, factor, words + i, out + i)) return i;
  }
  if (i == n) return n;
  float w_tail[kMaxLanes] = {}, u_tail[kMaxLanes] = {};
  uint32_t word_tail[kMaxLanes] = {};
  std::copy(w + i, w + n, w_tail);
  std::copy(u + i, u + n, u_tail);
  std::copy(words + i, words + n, word_tail);
  if (!StochasticVector(dd, rounding, w_tail, u_tail, factor, word_tail, w_tail)) return i;
  std::copy(w_tail, w_tail + (n - i), out + i);
  return n;
}

size_t StochasticRange(const StochasticGrid& grid_ref,
                       const float* w,
                       const float* u,
                       float factor,
                       size_t n,
                       float* out,
                       const ArrayRandom& random) {
  const StochasticGrid grid = grid_ref;  // a local copy: the stores cannot alias it
  HWY_ALIGN uint32_t words[kDrawnWords];
  for (size_t i = 0; i < n; i += kDrawnBlock) {
    const size_t count = std::min(kDrawnBlock, n - i);
    const uint32_t* const drawn = DrawBlock(random, grid.random_bits, i, count, words);
    const size_t done = StochasticBlock(grid, w + i, u + i, factor, count, drawn, out + i);
    if (done < count) return i + done;
  }
  return n;
}

#else
size_t StochasticRange(
    const StochasticGrid&, const float*, const float*, float, size_t, float*, const ArrayRandom&) {
  return 0;
}
#endif

bool HasStochasticSteps() { return HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE; }

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {

HWY_EXPORT(StochasticRange);
HWY_EXPORT(HasStochasticSteps);

bool HasStochasticSteps() { return HWY_DYNAMIC_DISPATCH(HasStochasticSteps)(); }

size_t StochasticStepSimd(const StochasticGrid& grid,
                          const float* base,
                          const float* direction,
                          float factor,
                          size_t n,
                          float* out,
                          const ArrayRandom& random) {
  return HWY_DYNAMIC_DISPATCH(StochasticRange)(grid, base, direction, factor, n, out, random);
}

}  // namespace numsim
#endif  // HWY_ONCE
