// The store of sums that are in memory, as a kernel (backend/shared/kernel_threads.h): sums of parts are
// added in order, then scaled and rounded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "numsim/backend/shared/kernel_threads.h"
#include "numsim/base/host_device.h"
#include "numsim/base/matrix_shape.h"
#include "numsim/gemm/internal/gemm_scaled_sum.h"

namespace numsim::cuda {

// Scales of rows or columns: data[index * stride], or 1 without data.
struct StoreScales {
  const float* data = nullptr;
  size_t stride = 0;

  NUMSIM_INLINE float At(size_t index) const {
    return data == nullptr ? 1.0f : data[index * stride];
  }
};

// Stores `kWidth` neighbours of a row at a time: 1, or 8 where columns and strides are multiples of 8 and
// addresses are aligned to 16 bytes. Out is float, or uint16_t for codes of bf16.
template <typename Sum, typename Out, size_t kWidth>
struct StoreKernel {
  static_assert(kWidth == 1 || kWidth == 8);

  // The sums of part p and row i begin at sums + p * part_stride + i * stride. Results may lie in the place
  // of the first part: a thread reads all sums of its elements before it writes there.
  const Sum* sums = nullptr;
  size_t stride = 0, parts = 1, part_stride = 0;
  Out* out = nullptr;
  MatrixShape shape = {};
  StoreScales rows = {}, columns = {};
  float nan = 0;        // replaces every NaN that is stored in float32
  size_t row_step = 1;  // from one row of a thread to its next

  size_t Threads() const { return row_step * Groups(); }

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const size_t group = thread % Groups(), j = group * kWidth;
    float of_columns[kWidth];
    NUMSIM_UNROLL
    for (size_t v = 0; v < kWidth; ++v) of_columns[v] = columns.At(j + v);
    for (size_t i = thread / Groups(); i < shape.rows; i += row_step) {
      Sum total[kWidth] = {};
      for (size_t p = 0; p < parts; ++p) AddPart(sums + p * part_stride + i * stride + j, total);
      const float of_row = rows.At(i);
      float t[kWidth];
      NUMSIM_UNROLL
      for (size_t v = 0; v < kWidth; ++v) t[v] = ScaledExactly(total[v], of_row, of_columns[v]);
      // As a multiple of the width: the compiler sees that it may store 16 bytes at once.
      Write(t, out + (i * Groups() + group) * kWidth);
    }
  }

 private:
  // 16 bytes, which a device loads or stores at once.
  template <typename T>
  struct alignas(16) Piece {
    static constexpr size_t kCount = 16 / sizeof(T);
    T at[kCount];
  };
  struct __attribute__((may_alias, aligned(16))) Words {
    uint32_t at[4];
  };

  NUMSIM_INLINE size_t Groups() const { return shape.cols / kWidth; }

  NUMSIM_INLINE static void AddPart(const Sum* from, Sum (&total)[kWidth]) {
    if constexpr (kWidth == 1) {
      total[0] += *from;
    } else {
      using Loaded = Piece<Sum>;
      Loaded loaded[kWidth / Loaded::kCount];
      NUMSIM_UNROLL
      for (size_t i = 0; i < kWidth / Loaded::kCount; ++i) {
        loaded[i] = reinterpret_cast<const Loaded*>(from)[i];
      }
      NUMSIM_UNROLL
      for (size_t v = 0; v < kWidth; ++v) {
        total[v] += loaded[v / Loaded::kCount].at[v % Loaded::kCount];
      }
    }
  }

  NUMSIM_INLINE void Write(const float (&t)[kWidth], Out* to) const {
    uint32_t words[kWidth];
    NUMSIM_UNROLL
    for (size_t v = 0; v < kWidth; ++v) {
      words[v] =
          sizeof(Out) == 2 ? RoundToBf16(t[v]) : std::bit_cast<uint32_t>(t[v] == t[v] ? t[v] : nan);
    }
    if constexpr (kWidth == 8) {
      constexpr size_t kPieces = sizeof(Out) / 2;
      NUMSIM_UNROLL
      for (size_t i = 0; i < kPieces; ++i) {
        Words piece;
        NUMSIM_UNROLL
        for (size_t w = 0; w < 4; ++w) {
          piece.at[w] = kPieces == 2 ? words[4 * i + w] : words[2 * w] | words[2 * w + 1] << 16;
        }
        reinterpret_cast<Words*>(to)[i] = piece;
      }
    } else if constexpr (std::is_same_v<Out, float>) {
      *to = std::bit_cast<float>(words[0]);
    } else {
      *to = static_cast<Out>(words[0]);
    }
  }
};

// Returns the rows between two of a thread, for a store of `groups` columns of threads. Eight rows per
// thread read and widen the scales of its columns once, but fewer rows do where the device would not be
// full.
inline size_t RowStep(size_t rows, size_t groups) {
  constexpr size_t kFull = size_t{1} << 18;
  const size_t wanted = (kFull + groups - 1) / groups;
  return std::clamp<size_t>(wanted, (rows + 7) / 8, rows);
}

}  // namespace numsim::cuda
