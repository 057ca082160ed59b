#include "numsim/quantize/internal/transpose_simd.h"

#include "numsim/backend/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numsim/quantize/internal/transpose_simd.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace numsim::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Transposes rows [r0, r1) x columns [c0, c1), element by element.
template <typename T>
void TransposeElements(const T* HWY_RESTRICT in,
                       size_t in_stride,
                       size_t r0,
                       size_t r1,
                       size_t c0,
                       size_t c1,
                       T* HWY_RESTRICT out,
                       size_t out_stride) {
  for (size_t c = c0; c < c1; ++c) {
    for (size_t r = r0; r < r1; ++r) out[c * out_stride + r] = in[r * in_stride + c];
  }
}

// Not for vectors whose length is unknown at compile time: C++ has no arrays of them.
#if HWY_TARGET != HWY_SCALAR && !HWY_HAVE_SCALABLE
// The number of bytes of a block. Highway's interleaving operations work within blocks.
constexpr size_t kBlockBytes = 16;
constexpr size_t kMaxBlocks = HWY_MAX_BYTES / kBlockBytes;

// Returns a vector whose block b is the block at in + b * step.
template <size_t kBlocks, class D>
HWY_INLINE hn::Vec<D> GatherBlocks(D d, const hn::TFromD<D>* in, size_t step) {
  if constexpr (kBlocks == 1) {
    (void)step;
    return hn::LoadU(d, in);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d,
                       GatherBlocks<kBlocks / 2>(half, in + kBlocks / 2 * step, step),
                       GatherBlocks<kBlocks / 2>(half, in, step));
  }
}

// Transposes each block of n vectors, one vector per row, where n = 16 / sizeof(T) is the number of
// elements of a block. Interleaving vector i with vector i + n/2 into vectors 2i and 2i + 1 moves
// the top bit of an element's row number below its column number, which rotates the bits (row,
// column) by one. After log2(n) such steps, row and column have changed places.
template <size_t kRows, class D>
HWY_INLINE void TransposeBlocks(D d, hn::Vec<D>* v) {
  HWY_UNROLL(4)
  for (size_t bit = 1; bit < kRows; bit *= 2) {
    hn::Vec<D> interleaved[kRows];
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows / 2; ++i) {
      interleaved[2 * i] = hn::InterleaveLower(d, v[i], v[i + kRows / 2]);
      interleaved[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kRows / 2]);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kRows; ++i) v[i] = interleaved[i];
  }
}

// Transposes rows [r0, rows) in bands of as many rows as a vector of kBlocks blocks has elements,
// in all whole blocks of columns. Returns the first row that remains.
template <size_t kBlocks, typename T>
HWY_NOINLINE size_t TransposeBands(const T* HWY_RESTRICT in,
                                   size_t in_stride,
                                   size_t r0,
                                   size_t rows,
                                   size_t cols,
                                   T* HWY_RESTRICT out,
                                   size_t out_stride) {
  constexpr size_t kElements = kBlockBytes / sizeof(T);
  const hn::FixedTag<T, kElements * kBlocks> d;
  for (; r0 + kElements * kBlocks <= rows; r0 += kElements * kBlocks) {
    for (size_t c = 0; c + kElements <= cols; c += kElements) {
      hn::Vec<decltype(d)> v[kElements];
      HWY_UNROLL(16)
      for (size_t i = 0; i < kElements; ++i) {
        v[i] = GatherBlocks<kBlocks>(d, in + (r0 + i) * in_stride + c, kElements * in_stride);
      }
      TransposeBlocks<kElements>(d, v);
      HWY_UNROLL(16)
      for (size_t i = 0; i < kElements; ++i) hn::StoreU(v[i], d, out + (c + i) * out_stride + r0);
    }
  }
  return r0;
}

template <typename T>
void TransposeMatrix(
    const T* in, size_t in_stride, size_t rows, size_t cols, T* out, size_t out_stride) {
  size_t done = TransposeBands<kMaxBlocks>(in, in_stride, 0, rows, cols, out, out_stride);
  if constexpr (kMaxBlocks > 1) {
    done = TransposeBands<1>(in, in_stride, done, rows, cols, out, out_stride);
  }
  const size_t whole = cols - cols % (kBlockBytes / sizeof(T));
  TransposeElements(in, in_stride, 0, done, whole, cols, out, out_stride);
  TransposeElements(in, in_stride, done, rows, 0, cols, out, out_stride);
}
#else
template <typename T>
void TransposeMatrix(
    const T* in, size_t in_stride, size_t rows, size_t cols, T* out, size_t out_stride) {
  TransposeElements(in, in_stride, 0, rows, 0, cols, out, out_stride);
}
#endif

void TransposeU8(const uint8_t* in,
                 size_t in_stride,
                 size_t rows,
                 size_t cols,
                 uint8_t* out,
                 size_t out_stride) {
  TransposeMatrix(in, in_stride, rows, cols, out, out_stride);
}
void TransposeU16(const uint16_t* in,
                  size_t in_stride,
                  size_t rows,
                  size_t cols,
                  uint16_t* out,
                  size_t out_stride) {
  TransposeMatrix(in, in_stride, rows, cols, out, out_stride);
}

}  // namespace numsim::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace numsim {
namespace {

template <typename T>
void TransposeReference(
    const T* in, size_t in_stride, size_t rows, size_t cols, T* out, size_t out_stride) {
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) out[c * out_stride + r] = in[r * in_stride + c];
  }
}

}  // namespace

HWY_EXPORT(TransposeU8);
HWY_EXPORT(TransposeU16);

void Transpose(const uint8_t* in,
               size_t in_stride,
               size_t rows,
               size_t cols,
               uint8_t* out,
               size_t out_stride) {
  if (UsesScalarReference()) {
    return TransposeReference(in, in_stride, rows, cols, out, out_stride);
  }
  HWY_DYNAMIC_DISPATCH(TransposeU8)(in, in_stride, rows, cols, out, out_stride);
}

void Transpose(const uint16_t* in,
               size_t in_stride,
               size_t rows,
               size_t cols,
               uint16_t* out,
               size_t out_stride) {
  if (UsesScalarReference()) {
    return TransposeReference(in, in_stride, rows, cols, out, out_stride);
  }
  HWY_DYNAMIC_DISPATCH(TransposeU16)(in, in_stride, rows, cols, out, out_stride);
}

}  // namespace numsim
#endif  // HWY_ONCE
