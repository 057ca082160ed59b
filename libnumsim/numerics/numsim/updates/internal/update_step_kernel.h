// The pass that takes a step, as the work of single threads, on host and device.
//
// A group of kStepThreads threads takes the step of one block of kSumBlock elements, kPart elements
// at a time. Each thread computes elements of its own and leaves the terms of the sums in shared
// memory; then one thread per sum and lane adds them in the order of step_sums.h. So neighbouring
// threads read neighbouring elements, and a block is done soon after it was begun.
//
// The numbers may turn out not to be finite, or the update to be zero, only after the step is taken.
// So what it overwrites is kept, and RestoreElement takes it back.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/random/shared/tile_draws.h"
#include "numsim/updates/internal/update_passes_device.h"
#include "numsim/updates/shared/element_rules.h"
#include "numsim/updates/step_sums.h"

#ifndef NUMSIM_UNROLL
#define NUMSIM_UNROLL
#endif

namespace numsim {

inline constexpr unsigned kSumLanes = 8;  // partial sums of a block
inline constexpr unsigned kStepThreads = 128;
inline constexpr unsigned kThreadElements = 4;  // of a part, 16 elements apart
inline constexpr unsigned kPart = kStepThreads * kThreadElements;
inline constexpr unsigned kParts = kSumBlock / kPart;
static_assert(kPart % 64 == 0 && kSumBlock % kPart == 0 && kParts * kThreadElements <= 32);

// The place of element k of a thread in its part.
NUMSIM_INLINE unsigned PlaceInPart(unsigned thread, unsigned k) {
  return thread / 16 * 64 + thread % 16 + 16 * k;
}
// The thread of the element at a place of a block, and the element's bit in KeptNumbers::lost.
NUMSIM_INLINE unsigned ThreadOfPlace(unsigned place) {
  return place % kPart / 64 * 16 + place % 16;
}
NUMSIM_INLINE uint32_t LostBit(unsigned part, unsigned k) {
  return 1u << (part * kThreadElements + k);
}
NUMSIM_INLINE uint32_t LostBitOfPlace(unsigned place) {
  return LostBit(place / kPart, place % 64 / 16);
}

NUMSIM_INLINE uint16_t UpperHalf(float x) {
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16);
}
// Returns what a value most likely was before the step: its upper half, if that is kept, or the
// master from which a small step comes to the new one.
NUMSIM_INLINE float ValueBefore(const DeviceStep& step, float now, uint16_t half, float u) {
  if (step.kept.halves != nullptr) return std::bit_cast<float>(uint32_t{half} << 16);
  return now - step.learning_rate * u;
}
NUMSIM_INLINE bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

// The terms of a part. The padding puts the sums into different banks.
struct PartTerms {
  double of[kStepSums][kPart + kSumLanes];
};

// The counts of one thread in a block.
struct StepCounts {
  uint32_t moved = 0, saturated = 0;
  bool finite = true;  // weights and state; an update that is not finite shows in its sum

  // Packs the counts of any number of threads of a block: their sum is that of the words, except
  // that the upper part is nonzero if any number is not finite.
  NUMSIM_INLINE uint64_t Packed() const {
    return moved | uint64_t{saturated} << 16 | (finite ? uint64_t{0} : uint64_t{1} << 32);
  }
};

// The numbers of a thread's elements of one part.
struct PartNumbers {
  float w[kThreadElements], u[kThreadElements];
  ElementState state[kThreadElements];
};

// The work of one thread in one block. kWhole: all elements of the block exist.
template <class Rule, bool kWhole>
class BlockThread {
 public:
  NUMSIM_INLINE BlockThread(const DeviceStep& step, const Rule& rule, size_t block, unsigned thread)
      : step_(step), rule_(rule), thread_(thread), begin_(block * kSumBlock) {
    const size_t rest = step.n - begin_;
    count_ = static_cast<unsigned>(rest < kSumBlock ? rest : kSumBlock);
  }

  NUMSIM_INLINE unsigned Parts() const { return kWhole ? kParts : (count_ + kPart - 1) / kPart; }

  // Reads the numbers of a part; elements that do not exist are zero.
  NUMSIM_INLINE void Load(unsigned part, PartNumbers& x) const {
    NUMSIM_UNROLL
    for (unsigned k = 0; k < kThreadElements; ++k) {
      const bool exists = Exists(part, k);
      const size_t i = At(part, k);
      x.w[k] = exists ? step_.weights[i] : 0.0f;
      x.u[k] = exists ? step_.update[i] : 0.0f;
      x.state[k] = {};
      if (exists) x.state[k] = rule_.Load(step_, i);
    }
  }

  // Takes the step of the elements of a part.
  NUMSIM_INLINE void Take(unsigned part, const PartNumbers& x, PartTerms& terms) {
    if constexpr (Rule::kDraws) {
      const size_t first = begin_ + part * kPart + thread_ / 16 * 64;
      const int bits = step_.rule.plan.rounding.random_bits;
      if (bits == 32) {
        const QuarterDraws<true> draws(step_.random, bits, first, thread_ % 16);
        TakeAll(part, x, draws, terms);
      } else {
        const QuarterDraws<false> draws(step_.random, bits, first, thread_ % 16);
        TakeAll(part, x, draws, terms);
      }
    } else {
      TakeAll(part, x, NoDraws{}, terms);
    }
  }

  // Returns the counts, after the last part. Writes which of the old values are kept.
  NUMSIM_INLINE StepCounts Finish() const {
    if constexpr (Rule::kState == RuleState::kValues) {
      if (step_.kept.lost != nullptr) {
        step_.kept.lost[begin_ / kSumBlock * kStepThreads + thread_] = lost_;
      }
    }
    StepCounts counts = counts_;
    counts.finite = poison_ == 0;
    return counts;
  }

 private:
  NUMSIM_INLINE size_t At(unsigned part, unsigned k) const {
    return begin_ + part * kPart + PlaceInPart(thread_, k);
  }
  NUMSIM_INLINE bool Exists(unsigned part, unsigned k) const {
    return kWhole || part * kPart + PlaceInPart(thread_, k) < count_;
  }

  struct NoDraws {
    NUMSIM_INLINE uint32_t At(unsigned) const { return 0; }
  };

  template <class Draws>
  NUMSIM_INLINE void TakeAll(unsigned part,
                             const PartNumbers& x,
                             const Draws& draws,
                             PartTerms& terms) {
    NUMSIM_UNROLL
    for (unsigned k = 0; k < kThreadElements; ++k) {
      const float w = x.w[k], u = x.u[k];
      float after = w;
      if (Exists(part, k)) after = TakeOne(part, k, w, u, x.state[k], draws.At(k));
      // Terms of a weight that does not move are zeros, of any sign, and no sum is -0.
      const double d = static_cast<double>(after) - static_cast<double>(w);
      const double wanted = static_cast<double>(u);
      const unsigned place = PlaceInPart(thread_, k);
      terms.of[0][place] = wanted * wanted;
      terms.of[1][place] = d * d;
      terms.of[2][place] = d * wanted;
    }
  }

  NUMSIM_INLINE float TakeOne(
      unsigned part, unsigned k, float w, float u, const ElementState& state, uint32_t draw) {
    const size_t i = At(part, k);
    bool beyond = false;
    const float after = rule_.Next(step_, i, w, u, state, draw, beyond);
    Keep(part, k, w, u, state);
    step_.new_weights[i] = after;
    counts_.saturated += beyond ? 1 : 0;
    counts_.moved += after != w ? 1 : 0;
    return after;
  }

  // Keeps what the step overwrites, and looks whether it was finite.
  NUMSIM_INLINE void Keep(unsigned part, unsigned k, float w, float u, const ElementState& state) {
    const size_t i = At(part, k);
    const KeptNumbers& kept = step_.kept;
    if constexpr (Rule::kState == RuleState::kValues) {
      const float now = step_.values[i];  // the compiler still has it: nothing was stored since
      const uint16_t half = UpperHalf(state.value);
      const bool told =
          kept.lost != nullptr && SameBits(ValueBefore(step_, now, half, u), state.value);
      if (kept.halves != nullptr) kept.halves[i] = half;
      if (kept.values != nullptr && !told) {
        kept.values[i] = state.value;
        lost_ |= LostBit(part, k);
      }
      Test(state.value);
    }
    if (kept.weights != nullptr) kept.weights[i] = w;
    Test(w);
    if constexpr (Rule::kState == RuleState::kWords) {
      Test(JoinMaster(w, static_cast<uint16_t>(state.word)));
      if (kept.words != nullptr) kept.words[i] = static_cast<uint16_t>(state.word);
    }
  }

  // A product with zero is zero, unless a number is not finite.
  NUMSIM_INLINE void Test(float x) { poison_ = std::fma(x, 0.0f, poison_); }

  const DeviceStep& step_;
  const Rule& rule_;
  unsigned thread_, count_ = 0;
  size_t begin_;
  StepCounts counts_;
  float poison_ = 0;
  uint32_t lost_ = 0;
};

// Returns the sum with the terms of a part added: sum `adder` / kSumLanes of lane
// `adder` % kSumLanes. Terms beyond the end of the array are zeros, and no sum is -0.
NUMSIM_INLINE double AddPart(const PartTerms& terms, unsigned adder, double sum) {
  const double* const of = &terms.of[adder / kSumLanes][adder % kSumLanes];
  NUMSIM_UNROLL
  for (unsigned row = 0; row < kPart / kSumLanes; ++row) sum += of[row * kSumLanes];
  return sum;
}

// Takes the step of element i back: new weights are the old ones, and the state is the old one.
NUMSIM_INLINE void RestoreElement(const DeviceStep& step, size_t i) {
  const KeptNumbers& kept = step.kept;
  step.new_weights[i] = kept.weights != nullptr ? kept.weights[i] : step.weights[i];
  if (kept.words != nullptr) step.words[i] = kept.words[i];
  if (kept.values == nullptr) return;
  if (kept.lost != nullptr) {
    const auto place = static_cast<unsigned>(i % kSumBlock);
    const uint32_t lost = kept.lost[i / kSumBlock * kStepThreads + ThreadOfPlace(place)];
    if ((lost & LostBitOfPlace(place)) == 0) {
      const uint16_t half = kept.halves != nullptr ? kept.halves[i] : uint16_t{0};
      step.values[i] = ValueBefore(step, step.values[i], half, step.update[i]);
      return;
    }
  }
  step.values[i] = kept.values[i];
}

}  // namespace numsim
