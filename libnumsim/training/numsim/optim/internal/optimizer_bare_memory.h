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

// Four neighbours before a step; `count` of them are there. `stored` are their states as they lie in
// memory: numbers, or codes in the first words.
template <class Elements>
struct BareQuad {
  unsigned offset, count;  // offset: of the first one in the block
  QuadOf<float> g;
  QuadOf<uint32_t> stored[Elements::kStates];
};

// Loads gradients and states. MomentStore aligns its memory.
template <class Elements>
NUMSIM_INLINE void LoadQuadAt(const Elements& elements,
                              const TensorRow& row,
                              size_t begin,
                              bool aligned,
                              BareQuad<Elements>& quad) {
  const size_t i = begin + quad.offset;
  quad.g = LoadQuad(row.gradient + i, aligned, quad.count);
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    const uint8_t* const codes = row.moments[s].codes;
    if (!elements.IsCoded(s)) {
      quad.stored[s] = LoadQuad(reinterpret_cast<const uint32_t*>(codes) + i, true, quad.count);
    } else if (elements.IsWide(s)) {
      const QuadOf<uint16_t> words =
          LoadQuad(reinterpret_cast<const uint16_t*>(codes) + i, true, quad.count);
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) quad.stored[s].x[c] = words.x[c];
    } else {
      quad.stored[s].x[0] = LoadBytes(codes + i, quad.count);
    }
  }
}

// Sets the old states of four neighbours.
template <class Env, class Elements>
NUMSIM_INLINE void DecodeQuad(const Elements& elements,
                              const BareQuad<Elements>& quad,
                              typename Elements::Element (&e)[kQuad]) {
  NUMSIM_UNROLL
  for (int s = 0; s < Elements::kStates; ++s) {
    const uint32_t(&stored)[kQuad] = quad.stored[s].x;
    if (elements.IsCoded(s) && !elements.IsWide(s)) {
      elements.template ValuesOf<Env>(s, stored[0], e);
      continue;
    }
    NUMSIM_UNROLL
    for (unsigned c = 0; c < kQuad; ++c) {
      e[c].old[s] =
          elements.IsCoded(s) ? elements.ValueOf(s, stored[c]) : std::bit_cast<float>(stored[c]);
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

// Stores the states of one element.
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

// Sets which quad a lane takes of those of a step, which begins with element `first` of the block.
template <class Quad>
NUMSIM_INLINE void PlaceQuad(const BareLane& at, unsigned first, uint32_t lane, Quad& quad) {
  quad.offset = first + kQuad * lane;
  const unsigned left = quad.offset < at.count ? at.count - quad.offset : 0;
  quad.count = left < kQuad ? left : kQuad;
}

// Calls load(first, item) and visit(item) for each step of the threads of a block, in which they take
// kQuad * kBareThreads elements. kAhead: an item is loaded before the one before it is visited.
template <class Item, bool kAhead, class Load, class Visit>
NUMSIM_INLINE void ForSteps(const BareLane& at, const Load& load, const Visit& visit) {
  constexpr unsigned kStep = kQuad * kBareThreads;
  Item next;
  if constexpr (kAhead) load(0, next);
  NUMSIM_ROLL
  for (unsigned first = 0; first < at.count; first += kStep) {
    if constexpr (kAhead) {
      const Item item = next;
      if (first + kStep < at.count) load(first + kStep, next);
      visit(item);
    } else {
      load(first, next);
      visit(next);
    }
  }
}

}  // namespace numsim
