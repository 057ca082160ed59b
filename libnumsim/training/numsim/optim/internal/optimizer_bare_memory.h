// How threads of bare kernels (optimizer_bare_kernels.h) share elements out, load and store them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/kernel_threads.h"
#include "numsim/optim/internal/optimizer_bare_element.h"
#include "numsim/optim/internal/optimizer_tables.h"
#include "numsim/updates/step_sums.h"

namespace numsim {

inline constexpr unsigned kBareThreads = 128;  // per block of kSumBlock elements

// The place of a thread: one of those of a block of a tensor. The last block comes first if
// `descending`: a kernel then begins where one before it ended, which caches remember.
struct BareLane {
  uint32_t lane;
  const BlockRow block;
  const TensorRow row;
  TensorPlan& plan;
  size_t begin;    // of the block
  unsigned count;  // elements of the block

  NUMSIM_INLINE BareLane(const StepTables& tables, size_t thread, bool descending = false)
      : lane(static_cast<uint32_t>(thread % kBareThreads)),
        block(tables.blocks[descending ? tables.block_count - 1 - thread / kBareThreads
                                       : thread / kBareThreads]),
        row(tables.rows[block.tensor]),
        plan(tables.plans[block.tensor]),
        begin(block.index * kSumBlock),
        count(row.n - begin < kSumBlock ? static_cast<unsigned>(row.n - begin)
                                        : static_cast<unsigned>(kSumBlock)) {}
};

// Four neighbours in memory.
template <typename T>
struct alignas(kQuad * sizeof(T)) QuadOf {
  T x[kQuad];
};

NUMSIM_INLINE bool IsAligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % sizeof(QuadOf<float>) == 0;
}

// Loads and stores four neighbours of an array, at once if that is `aligned`; only the first `count`
// of them if there are no more. The others are zero, and so are their new states and weights.
template <typename T>
NUMSIM_INLINE QuadOf<T> LoadQuad(const T* p, bool aligned, unsigned count) {
  if (aligned && count >= kQuad) return *reinterpret_cast<const QuadOf<T>*>(p);
  QuadOf<T> quad = {};
  NUMSIM_UNROLL
  for (unsigned c = 0; c < kQuad; ++c) {
    if (c < count) quad.x[c] = p[c];
  }
  return quad;
}
template <typename T>
NUMSIM_INLINE void StoreQuad(const QuadOf<T>& quad, bool aligned, unsigned count, T* p) {
  if (aligned && count >= kQuad) {
    *reinterpret_cast<QuadOf<T>*>(p) = quad;
    return;
  }
  NUMSIM_UNROLL
  for (unsigned c = 0; c < kQuad; ++c) {
    if (c < count) p[c] = quad.x[c];
  }
}

// Four neighbours of one byte, as a word: the first one is the lowest byte.
NUMSIM_INLINE uint32_t LoadBytes(const uint8_t* p, unsigned count) {
  if (count >= kQuad) return *reinterpret_cast<const uint32_t*>(p);
  uint32_t word = 0;
  NUMSIM_ROLL
  for (unsigned c = 0; c < count; ++c) word |= static_cast<uint32_t>(p[c]) << (8 * c);
  return word;
}
NUMSIM_INLINE void StoreBytes(uint32_t word, unsigned count, uint8_t* p) {
  if (count >= kQuad) {
    *reinterpret_cast<uint32_t*>(p) = word;
    return;
  }
  NUMSIM_ROLL
  for (unsigned c = 0; c < count; ++c) p[c] = static_cast<uint8_t>(word >> (8 * c));
}

// The old states of four neighbours. MomentStore aligns its memory.
template <class Env, class Elements>
NUMSIM_INLINE void LoadStates(const Elements& elements,
                              const TensorRow& row,
                              size_t i,
                              unsigned count,
                              typename Elements::Element (&e)[kQuad]) {
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    const uint8_t* const codes = row.moments[s].codes;
    if (!elements.IsCoded(s)) {
      const QuadOf<float> values = LoadQuad(reinterpret_cast<const float*>(codes) + i, true, count);
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) e[c].old[s] = values.x[c];
    } else if (elements.IsWide(s)) {
      const QuadOf<uint16_t> words =
          LoadQuad(reinterpret_cast<const uint16_t*>(codes) + i, true, count);
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) e[c].old[s] = elements.ValueOf(s, words.x[c]);
    } else {
      elements.template ValuesOf<Env>(s, LoadBytes(codes + i, count), e);
    }
  }
}

// Stores the new states of four neighbours.
template <class Env, bool kModerate, class Elements>
NUMSIM_INLINE void StoreStates(const Elements& elements,
                               const typename Elements::Element (&e)[kQuad],
                               const TensorRow& row,
                               size_t i,
                               unsigned count) {
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    uint8_t* const codes = row.moments[s].codes;
    if (!elements.IsCoded(s)) {
      QuadOf<float> values;
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) values.x[c] = e[c].states[s];
      StoreQuad(values, true, count, reinterpret_cast<float*>(codes) + i);
    } else if (elements.IsWide(s)) {
      QuadOf<uint16_t> words;
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) {
        words.x[c] = static_cast<uint16_t>(elements.template CodeOf<kModerate>(s, e[c].states[s]));
      }
      StoreQuad(words, true, count, reinterpret_cast<uint16_t*>(codes) + i);
    } else {
      StoreBytes(elements.template CodesOf<Env, kModerate>(s, e), count, codes + i);
    }
  }
}

// The states of one element.
template <class Elements>
NUMSIM_INLINE void LoadStates(const Elements& elements,
                              const TensorRow& row,
                              size_t i,
                              typename Elements::Element& e) {
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    const uint8_t* const codes = row.moments[s].codes;
    e.old[s] = elements.IsCoded(s) ? elements.ValueOf(s, LoadCode(elements.Codec(s), codes, i))
                                   : reinterpret_cast<const float*>(codes)[i];
  }
}
template <bool kModerate, class Elements>
NUMSIM_INLINE void StoreStates(const Elements& elements,
                               const typename Elements::Element& e,
                               const TensorRow& row,
                               size_t i) {
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    uint8_t* const codes = row.moments[s].codes;
    if (!elements.IsCoded(s)) {
      reinterpret_cast<float*>(codes)[i] = e.states[s];
      continue;
    }
    const uint32_t code = elements.template CodeOf<kModerate>(s, e.states[s]);
    if (elements.IsWide(s)) {
      reinterpret_cast<uint16_t*>(codes)[i] = static_cast<uint16_t>(code);
    } else {
      codes[i] = static_cast<uint8_t>(code);
    }
  }
}

// Calls visit(offset, count) for the quads of a thread: where one begins in the block, and its number
// of elements, which may be 0. All threads of a block call equally often.
template <class Visit>
NUMSIM_INLINE void ForQuads(const BareLane& at, const Visit& visit) {
  constexpr unsigned kStep = kQuad * kBareThreads;
  NUMSIM_ROLL
  for (unsigned first = 0; first < at.count; first += kStep) {
    const unsigned offset = first + kQuad * at.lane;
    const unsigned left = offset < at.count ? at.count - offset : 0;
    visit(offset, left < kQuad ? left : kQuad);
  }
}

}  // namespace numsim
