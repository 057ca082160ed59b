// Kernels (kernel_blocks.h) that run a text of *_rule.inc on all rows of a matrix, and functions that
// launch them: launch(kernel, blocks) is cuda::BlockLauncher on a device, FiberLauncher in tests.
#pragma once

#include <cstddef>

#include "numsim/backend/shared/kernel_blocks.h"
#include "numsim/ops/internal/pieces.h"
#include "numsim/ops/internal/thread_lanes.h"

namespace numsim {

inline constexpr unsigned kRowThreads = 256;
inline constexpr size_t kRowGroups = kRowThreads / kRowLanes;  // of 16 threads

// rule(lanes, row, begin, n) for pieces of rows, each by 32 threads.
template <class Rule>
struct PieceKernel {
  static constexpr unsigned kThreads = kRowThreads, kLanes = 32;
  static constexpr size_t kPiece = 1024, kGroups = kThreads / kLanes;
  using Shared = NothingShared;
  Rule rule;
  size_t rows, cols;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared&) const {
    const size_t pieces = BlocksOf(cols, kPiece);
    const size_t item = env.Block() * kGroups + env.Thread() / kLanes;
    const size_t row = item / pieces, begin = item % pieces * kPiece;
    if (row >= rows) return;
    const size_t n = cols - begin < kPiece ? cols - begin : kPiece;
    rule(ThreadLanes<Env, kLanes>(env), row, begin, n);
  }
};
template <class Launch, class Rule>
void LaunchPieces(const Launch& launch, size_t rows, size_t cols, const Rule& rule) {
  using Kernel = PieceKernel<Rule>;
  const size_t items = rows * BlocksOf(cols, Kernel::kPiece);
  launch(Kernel{rule, rows, cols}, BlocksOf(items, Kernel::kGroups));
}

// rule(lanes, row, v) for vectors v of rows, each by 16 threads.
template <class Rule>
struct VectorKernel {
  static constexpr unsigned kThreads = kRowThreads;
  using Shared = NothingShared;
  Rule rule;
  size_t rows, vectors;  // of a row

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared&) const {
    const size_t item = env.Block() * kRowGroups + env.Thread() / kRowLanes;
    if (item < rows * vectors) rule(ThreadLanes<Env>(env), item / vectors, item % vectors);
  }
};
template <class Launch, class Rule>
void LaunchVectors(const Launch& launch, size_t rows, size_t vectors, const Rule& rule) {
  launch(VectorKernel<Rule>{rule, rows, vectors}, BlocksOf(rows * vectors, kRowGroups));
}

// Sums over rows take two kernels. The first adds the terms of each block of kSumRows rows, in
// ascending order; sum k of block b is at block_sums[(b * kSums + k) * n]. The second adds those.
template <size_t kSums>
struct JoinSumsKernel {
  static constexpr unsigned kThreads = kRowThreads;
  using Shared = NothingShared;
  const float* block_sums;
  size_t blocks, n;
  float* sums[kSums];

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared&) const {
    const size_t at = env.Block() * kThreads + env.Thread();
    if (at >= kSums * n) return;
    float sum = 0;
    for (size_t b = 0; b < blocks; ++b) sum += block_sums[b * kSums * n + at];
    for (size_t k = 0; k < kSums; ++k) {  // with a constant index `sums` stays in registers
      if (at / n == k) sums[k][at % n] = sum;
    }
  }
};
template <class Launch, size_t kSums>
void LaunchJoin(const Launch& launch,
                const float* block_sums,
                size_t rows,
                const std::array<MatrixSpan<float>, kSums>& sums) {
  JoinSumsKernel<kSums> kernel{block_sums, BlocksOf(rows, kSumRows), sums[0].cols, {}};
  for (size_t k = 0; k < kSums; ++k) kernel.sums[k] = sums[k].data;
  launch(kernel, BlocksOf(kSums * sums[0].cols, kRowThreads));
}

// Returns the number of floats that block_sums must have room for.
template <size_t kSums>
size_t BlockSums(size_t rows, const std::array<MatrixSpan<float>, kSums>& sums) {
  return BlocksOf(rows, kSumRows) * kSums * sums[0].cols;
}

// rule(lanes, row, begin, n, sums) for the rows of a block: a thread has a column.
template <class Rule>
struct ColumnSumsKernel {
  static constexpr unsigned kThreads = 128;
  using Shared = NothingShared;
  Rule rule;
  size_t rows, cols;
  float* block_sums;

  // The sum of a thread.
  struct ThreadSum {
    float* of;
    template <class L>
    NUMSIM_INLINE void Add(const L&, size_t, size_t, size_t, float term) const {
      *of += term;
    }
  };

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared&) const {
    const size_t pieces = BlocksOf(cols, kThreads), block = env.Block() / pieces;
    const size_t begin = env.Block() % pieces * kThreads;
    const size_t n = cols - begin < kThreads ? cols - begin : kThreads;
    const ThreadLanes<Env, kThreads> l(env);
    const size_t first = block * kSumRows;
    const size_t end = rows - first < kSumRows ? rows : first + kSumRows;
    float sum = 0;
    for (size_t row = first; row < end; ++row) rule(l, row, begin, n, ThreadSum{&sum});
    l.Store(sum, block_sums + block * cols + begin, n);
  }
};
template <class Launch, class Rule>
void LaunchColumnSums(const Launch& launch,
                      size_t rows,
                      const Rule& rule,
                      float* block_sums,
                      const std::array<MatrixSpan<float>, 1>& sums) {
  using Kernel = ColumnSumsKernel<Rule>;
  const size_t cols = sums[0].cols;
  launch(Kernel{rule, rows, cols, block_sums},
         BlocksOf(rows, kSumRows) * BlocksOf(cols, Kernel::kThreads));
  LaunchJoin(launch, block_sums, rows, sums);
}

// rule(lanes, row, v, sums) for the vectors of one block of kSumRows rows: 16 vectors at a time, each
// by 16 threads. Terms go through shared memory to the thread that has their column, so memory is
// read once for both.
template <class Rule>
struct VectorSumsKernel {
  static constexpr unsigned kThreads = kRowThreads;
  static constexpr size_t kSums = Rule::kSums, kColumns = kThreads;
  struct Shared {
    // The two rows that a warp writes are in different banks.
    float terms[kSums][kRowGroups][kColumns + kRowLanes];
  };
  Rule rule;
  size_t rows, vectors, n;
  float* block_sums;

  // The sums of a rule while the block is at one 16 vectors.
  template <class Env>
  struct TileSums {
    Env& env;
    Shared& shared;
    size_t n;
    float* of;      // the block's sums
    bool first;     // of the block's vectors: nothing has been added yet
    size_t count;   // vectors of this round, at most 16
    size_t* begin;  // of the columns in shared memory

    template <class L, class Term>
    NUMSIM_INLINE float SumRow(const L& l, size_t, const Term& term) const {
      float sum = 0;
      for (*begin = 0; *begin < n; *begin += kColumns) {
        const size_t width = n - *begin < kColumns ? n - *begin : kColumns;
        l.AddTerms(
            width, [&](size_t i, size_t lanes) { return term(*begin + i, lanes); }, sum);
        env.Sync();
        if (env.Thread() < width) AddColumn(*begin + env.Thread());
        env.Sync();
      }
      return l.Total(sum);
    }
    template <class L>
    NUMSIM_INLINE void Add(const L& l, size_t k, size_t i, size_t lanes, float term) const {
      l.Store(term, shared.terms[k][env.Thread() / kRowLanes] + (i - *begin), lanes);
    }

   private:
    NUMSIM_INLINE void AddColumn(size_t column) const {
      for (size_t k = 0; k < kSums; ++k) {
        float sum = first ? 0.0f : of[k * n + column];
        for (size_t r = 0; r < count; ++r) sum += shared.terms[k][r][column - *begin];
        of[k * n + column] = sum;
      }
    }
  };

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared& shared) const {
    const size_t row = env.Block() * kSumRows;
    const size_t count = (rows - row < kSumRows ? rows - row : kSumRows) * vectors;
    for (size_t round = 0; round < count; round += kRowGroups) {
      const size_t left = count - round < kRowGroups ? count - round : kRowGroups;
      const size_t group = env.Thread() / kRowLanes;
      // A group without a vector comes along with the first one's: all threads meet at barriers.
      const size_t v = round + (group < left ? group : 0);
      size_t begin = 0;
      const TileSums<Env> sums{
          env, shared, n, block_sums + env.Block() * kSums * n, round == 0, left, &begin};
      rule(ThreadLanes<Env>(env, group < left), row + v / vectors, v % vectors, sums);
    }
  }
};
template <class Launch, class Rule, size_t kSums>
void LaunchVectorSums(const Launch& launch,
                      size_t rows,
                      size_t vectors,
                      const Rule& rule,
                      float* block_sums,
                      const std::array<MatrixSpan<float>, kSums>& sums) {
  static_assert(kSums == Rule::kSums);
  launch(VectorSumsKernel<Rule>{rule, rows, vectors, sums[0].cols, block_sums},
         BlocksOf(rows, kSumRows));
  LaunchJoin(launch, block_sums, rows, sums);
}

}  // namespace numsim
