// The kernel of GatherRowsGradient (sequence.h).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/kernel_blocks.h"
#include "numsim/ops/internal/row_kernels.h"

namespace numsim {

// A block of threads adds the rows of g that have one id, for some columns. It looks through all
// ids, kChunk at a time, and lists those rows in ascending order.
struct GatherGradientKernel {
  static constexpr unsigned kThreads = kRowThreads, kChunk = 4 * kThreads, kWord = 32;
  static constexpr size_t kMostColumns = 4;  // of a thread
  struct Shared {
    uint32_t found[kChunk / kWord];  // a bit per id of the chunk
    uint32_t rows[kChunk];           // offsets of those that are found
  };
  RowView<const float> g;
  const int32_t* ids;
  size_t count;  // of ids
  RowView<float> table_gradient;
  size_t cols, columns;  // of a thread

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared& shared) const {
    const size_t width = columns * kThreads, pieces = BlocksOf(cols, width);
    const size_t row = env.Block() / pieces;
    const size_t column = env.Block() % pieces * width + env.Thread();
    float sums[kMostColumns] = {};
    for (size_t begin = 0; begin < count; begin += kChunk) {
      Find(env, shared, begin, row);
      env.Sync();  // all have read the list of the chunk before
      const uint32_t found = List(env, shared);
      env.Sync();
      for (size_t k = 0; k < kMostColumns; ++k) {
        const size_t c = column + k * kThreads;
        if (k < columns && c < cols) sums[k] = AddRows(shared, begin, found, c, sums[k]);
      }
    }
    for (size_t k = 0; k < kMostColumns; ++k) {
      const size_t c = column + k * kThreads;
      if (k < columns && c < cols) table_gradient.Row(row)[c] = sums[k];
    }
  }

 private:
  template <class Env>
  NUMSIM_INLINE void Find(Env& env, Shared& shared, size_t begin, size_t row) const {
    const unsigned lane = env.Thread() % kWord;
    for (unsigned at = env.Thread(); at < kChunk; at += kThreads) {
      const bool is = begin + at < count && ids[begin + at] == static_cast<int32_t>(row);
      uint32_t bits = is ? 1u << lane : 0u;
      for (unsigned half = kWord / 2; half > 0; half /= 2) {
        bits |= env.template ShuffleXor<kWord>(bits, half);
      }
      if (lane == 0) shared.found[at / kWord] = bits;
    }
  }
  // Returns the number of rows of the list.
  template <class Env>
  NUMSIM_INLINE uint32_t List(Env& env, Shared& shared) const {
    uint32_t before = 0;
    for (unsigned word = 0; word < kChunk / kWord; ++word) {
      const uint32_t bits = shared.found[word];
      if (bits == 0) continue;
      const unsigned lane = env.Thread() % kWord;
      const uint32_t below = bits & ((1u << lane) - 1);
      if (env.Thread() / kWord == word % (kThreads / kWord) && (bits >> lane & 1u) != 0) {
        shared.rows[before + static_cast<uint32_t>(std::popcount(below))] = word * kWord + lane;
      }
      before += static_cast<uint32_t>(std::popcount(bits));
    }
    return before;
  }
  // Loads several rows before it adds them, for memory answers late.
  NUMSIM_INLINE float AddRows(
      const Shared& shared, size_t begin, uint32_t found, size_t column, float sum) const {
    constexpr uint32_t kAtOnce = 8;
    uint32_t i = 0;
    for (; i + kAtOnce <= found; i += kAtOnce) {
      float terms[kAtOnce];
      for (uint32_t j = 0; j < kAtOnce; ++j) {
        terms[j] = g.Row(begin + shared.rows[i + j])[column];
      }
      for (uint32_t j = 0; j < kAtOnce; ++j) sum += terms[j];
    }
    for (; i < found; ++i) sum += g.Row(begin + shared.rows[i])[column];
    return sum;
  }
};
}  // namespace numsim
