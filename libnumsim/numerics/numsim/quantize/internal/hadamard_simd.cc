#include "numsim/quantize/internal/hadamard_simd.h"

#include <bit>

#include "numsim/backend/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/quantize/internal/hadamard_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Stores the products with the factor. Any NaN becomes one.
template <class D>
HWY_INLINE hn::Vec<D> Finished(D d, hn::Vec<D> x, float factor) {
  const hn::RebindToUnsigned<D> du;
  const auto product = hn::Mul(x, hn::Set(d, factor));
  const auto nan = hn::BitCast(d, hn::Set(du, 0x7FC00000u));
  return hn::IfThenElse(hn::IsNaN(product), nan, product);
}

// The stage of the transform that adds and subtracts vectors `kStep` apart, and all later ones.
template <size_t kVectors, size_t kStep, class V>
HWY_INLINE void Butterflies(V* v) {
  if constexpr (kStep < kVectors) {
    HWY_UNROLL(16)
    for (size_t k = 0; k < kVectors / 2; ++k) {
      const size_t i = k / kStep * 2 * kStep + k % kStep;
      const V a = v[i], b = v[i + kStep];
      v[i] = hn::Add(a, b);
      v[i + kStep] = hn::Sub(a, b);
    }
    Butterflies<kVectors, 2 * kStep>(v);
  }
}

// One element of a block is in one vector, and a vector has as many columns as lanes.
template <size_t kSize, class D>
HWY_INLINE void ColumnBlock(
    D d, const HadamardPlan& plan, const float* in, size_t stride, float* out) {
  const hn::RebindToUnsigned<D> du;
  hn::Vec<D> v[kSize];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSize; ++i) {
    const auto sign = hn::BitCast(d, hn::Set(du, plan.signs[i]));
    v[i] = hn::Xor(hn::LoadU(d, in + i * stride), sign);
  }
  Butterflies<kSize, 1>(v);
  HWY_UNROLL(16)
  for (size_t i = 0; i < kSize; ++i) {
    hn::StoreU(Finished(d, v[i], plan.factor), d, out + i * stride);
  }
}

#if HWY_TARGET == HWY_SCALAR
constexpr size_t kLanes = 1;
#else
constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(float);
#endif

template <size_t kSize>
void BandOfSize(const HadamardPlan& plan, const float* in, size_t stride, size_t cols, float* out) {
  const hn::CappedTag<float, kLanes> d;
  const hn::CappedTag<float, 1> d1;
  size_t c = 0;
  for (; c + hn::Lanes(d) <= cols; c += hn::Lanes(d)) {
    ColumnBlock<kSize>(d, plan, in + c, stride, out + c);
  }
  for (; c < cols; ++c) ColumnBlock<kSize>(d1, plan, in + c, stride, out + c);
}

#if HWY_TARGET != HWY_SCALAR
// Elements of a 128-bit block of a vector.
constexpr size_t kPart = 4;

// Returns a vector whose 128-bit blocks are those at in, in + step, in + 2 * step ...
template <class D>
HWY_INLINE hn::Vec<D> LoadParts(D d, const float* in, size_t step) {
  if constexpr (hn::MaxLanes(D()) == kPart) {
    (void)step;
    return hn::LoadU(d, in);
  } else {
    const hn::Half<D> half;
    const size_t parts = hn::MaxLanes(half) / kPart;
    return hn::Combine(d, LoadParts(half, in + parts * step, step), LoadParts(half, in, step));
  }
}

template <class D>
HWY_INLINE void StoreParts(hn::Vec<D> v, D d, float* out, size_t step) {
  if constexpr (hn::MaxLanes(D()) == kPart) {
    (void)step;
    hn::StoreU(v, d, out);
  } else {
    const hn::Half<D> half;
    const size_t parts = hn::MaxLanes(half) / kPart;
    StoreParts(hn::LowerHalf(half, v), half, out, step);
    StoreParts(hn::UpperHalf(half, v), half, out + parts * step, step);
  }
}

// The stages h = 1 and 2, within each 128-bit block.
template <class D>
HWY_INLINE hn::Vec<D> StagesWithinParts(D d, hn::Vec<D> v) {
  const hn::RebindToUnsigned<D> du;
  alignas(16) static constexpr uint32_t kOdd[kPart] = {0, 0x80000000u, 0, 0x80000000u};
  alignas(16) static constexpr uint32_t kUpper[kPart] = {0, 0, 0x80000000u, 0x80000000u};
  const auto odd = hn::BitCast(d, hn::LoadDup128(du, kOdd));
  const auto upper = hn::BitCast(d, hn::LoadDup128(du, kUpper));
  v = hn::Add(hn::Shuffle2301(v), hn::Xor(v, odd));
  return hn::Add(hn::Shuffle1032(v), hn::Xor(v, upper));
}

// Transforms as many consecutive blocks as a vector has 128-bit blocks. Vector k has elements 4k to
// 4k + 3 of each.
template <size_t kSize, class D>
HWY_INLINE void RowBlocks(D d, const HadamardPlan& plan, const float* in, float* out) {
  const hn::RebindToUnsigned<D> du;
  constexpr size_t kVectors = kSize / kPart;
  hn::Vec<D> v[kVectors];
  HWY_UNROLL(16)
  for (size_t k = 0; k < kVectors; ++k) {
    const auto signs = hn::BitCast(d, hn::LoadDup128(du, plan.signs + kPart * k));
    v[k] = StagesWithinParts(d, hn::Xor(LoadParts(d, in + kPart * k, kSize), signs));
  }
  Butterflies<kVectors, 1>(v);
  HWY_UNROLL(16)
  for (size_t k = 0; k < kVectors; ++k) {
    StoreParts(Finished(d, v[k], plan.factor), d, out + kPart * k, kSize);
  }
}

template <size_t kSize>
void BlocksOfSize(const HadamardPlan& plan, const float* in, size_t blocks, float* out) {
  const hn::CappedTag<float, kLanes> d;
  const hn::FixedTag<float, kPart> d1;
  const size_t parts = hn::Lanes(d) / kPart;
  size_t b = 0;
  for (; b + parts <= blocks; b += parts) {
    RowBlocks<kSize>(d, plan, in + b * kSize, out + b * kSize);
  }
  for (; b < blocks; ++b) RowBlocks<kSize>(d1, plan, in + b * kSize, out + b * kSize);
}
#else
// A block is a band of one column.
template <size_t kSize>
void BlocksOfSize(const HadamardPlan& plan, const float* in, size_t blocks, float* out) {
  for (size_t b = 0; b < blocks; ++b) {
    BandOfSize<kSize>(plan, in + b * kSize, 1, 1, out + b * kSize);
  }
}
#endif

void TransformBlocks(const HadamardPlan& plan, const float* in, size_t blocks, float* out) {
  switch (plan.size) {
    case 16:
      return BlocksOfSize<16>(plan, in, blocks, out);
    case 32:
      return BlocksOfSize<32>(plan, in, blocks, out);
    case 64:
      return BlocksOfSize<64>(plan, in, blocks, out);
    default:
      return BlocksOfSize<128>(plan, in, blocks, out);
  }
}

void TransformBand(
    const HadamardPlan& plan, const float* in, size_t stride, size_t cols, float* out) {
  switch (plan.size) {
    case 16:
      return BandOfSize<16>(plan, in, stride, cols, out);
    case 32:
      return BandOfSize<32>(plan, in, stride, cols, out);
    case 64:
      return BandOfSize<64>(plan, in, stride, cols, out);
    default:
      return BandOfSize<128>(plan, in, stride, cols, out);
  }
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {
namespace {

constexpr size_t kMostElements = 128;

// The definition: elements of a block are `step` apart.
void TransformBlock(const HadamardPlan& plan, const float* in, size_t step, float* out) {
  float x[kMostElements];
  for (size_t i = 0; i < plan.size; ++i) {
    x[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(in[i * step]) ^ plan.signs[i]);
  }
  for (size_t h = 1; h < plan.size; h *= 2) {
    for (size_t i = 0; i < plan.size; ++i) {
      if ((i & h) != 0) continue;
      const float a = x[i], b = x[i + h];
      x[i] = a + b;
      x[i + h] = a - b;
    }
  }
  for (size_t i = 0; i < plan.size; ++i) {
    const float product = x[i] * plan.factor;
    out[i * step] = product == product ? product : std::bit_cast<float>(0x7FC00000u);
  }
}

}  // namespace

HWY_EXPORT(TransformBlocks);
HWY_EXPORT(TransformBand);

void HadamardBlocks(const HadamardPlan& plan, const float* in, size_t blocks, float* out) {
  if (!UsesScalarReference()) {
    return HWY_DYNAMIC_DISPATCH(TransformBlocks)(plan, in, blocks, out);
  }
  for (size_t b = 0; b < blocks; ++b) {
    TransformBlock(plan, in + b * plan.size, 1, out + b * plan.size);
  }
}

void HadamardBand(
    const HadamardPlan& plan, const float* in, size_t stride, size_t cols, float* out) {
  if (!UsesScalarReference()) {
    return HWY_DYNAMIC_DISPATCH(TransformBand)(plan, in, stride, cols, out);
  }
  for (size_t c = 0; c < cols; ++c) TransformBlock(plan, in + c, stride, out + c);
}

}  // namespace numsim
#endif  // HWY_ONCE
