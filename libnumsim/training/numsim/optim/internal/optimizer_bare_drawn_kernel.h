// The kernel that takes a step of stochastically rounded weights without its report.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/optimizer_bare_step_kernel.h"

namespace numsim {

// Takes the step of weights that are rounded stochastically: a thread takes every eighth of 64
// elements, whose random bits two blocks of random words hold (TileDraws).
struct BareDrawnStepKernel {
  static constexpr int kBlocksTogether = 1, kFp8BlocksTogether = 1;
  StepArguments args;

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    constexpr BareStates kOne = kStored == BareStates::kFloat ? kStored : BareStates::kAny;
    using Elements = BareElements<kKind, kOne>;
    const BareLane at(args.tables, thread, true);
    if (!at.plan.moves) return;
    Elements elements(args, at.row, at.plan, true);
    const BareStep step(args.constants, at, elements);
    BareMaxima maxima;
    Take<Env>(at, step, elements, maxima);
    maxima.Store<Env, Elements::kStates>(at.plan);
  }

 private:
  static constexpr unsigned kTiles = kSumBlock / kTileElements / (kBareThreads / kSumLanes);
  static constexpr unsigned kAhead = 3;  // elements that are loaded before they are taken

  // An element as it is in memory.
  template <class Elements>
  struct Stored {
    float g = 0, w = 0;
    uint32_t states[Elements::kStates] = {};
  };

  // One element at a time, because the code of two would not fit into the instruction cache.
  template <class Env, class Elements>
  NUMSIM_INLINE void Take(const BareLane& at,
                          const BareStep& step,
                          Elements& elements,
                          BareMaxima& maxima) const {
    const int bits = args.constants.rule.plan.rounding.random_bits;
    const RandomStream stream = {args.constants.update_seed,
                                 TensorStream(args.step, at.block.tensor)};
    TileDraws draws;
    Stored<Elements> next[kAhead];
    NUMSIM_UNROLL
    for (unsigned a = 0; a < kAhead; ++a) Load(at, elements, a, next[a]);
    NUMSIM_ROLL
    for (unsigned number = 0; number < kTiles * kTileSteps; ++number) {
      const Stored<Elements> stored = next[0];
      NUMSIM_UNROLL
      for (unsigned a = 1; a < kAhead; ++a) next[a - 1] = next[a];
      Load(at, elements, number + kAhead, next[kAhead - 1]);
      const unsigned first = TileOf(at, number), k = number % kTileSteps;
      if (first >= at.count) return;
      if (k == 0) {
        if (step.goes) draws.MoveTo(stream, bits, at.begin + first, at.lane % kSumLanes);
        elements.TakeScales(at.begin + first);
      }
      const unsigned offset = OffsetOf(at, number);
      if (offset >= at.count) continue;
      TakeOne<Env>(at.row, step, elements, at.begin + offset, stored, draws.At(k), maxima);
    }
  }

  // Returns where a tile of a thread begins in the block, and its element of that number.
  static NUMSIM_INLINE unsigned TileOf(const BareLane& at, unsigned number) {
    return (at.lane / kSumLanes * kTiles + number / kTileSteps) * kTileElements;
  }
  static NUMSIM_INLINE unsigned OffsetOf(const BareLane& at, unsigned number) {
    return TileOf(at, number) + number % kTileSteps * kSumLanes + at.lane % kSumLanes;
  }

  // Loads the element of that number; nothing where the thread has no more.
  template <class Elements>
  static NUMSIM_INLINE void Load(const BareLane& at,
                                 const Elements& elements,
                                 unsigned number,
                                 Stored<Elements>& stored) {
    const unsigned offset = OffsetOf(at, number);
    if (number >= kTiles * kTileSteps || offset >= at.count) return;
    const size_t i = at.begin + offset;
    stored.g = at.row.gradient[i];
    stored.w = at.row.weights[i];
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      const uint8_t* const codes = at.row.moments[s].codes;
      stored.states[s] = elements.IsCoded(s) ? LoadCode(elements.Codec(s), codes, i)
                                             : reinterpret_cast<const uint32_t*>(codes)[i];
    }
  }

  template <class Env, class Elements>
  NUMSIM_INLINE void TakeOne(const TensorRow& row,
                             const BareStep& step,
                             const Elements& elements,
                             size_t i,
                             const Stored<Elements>& stored,
                             uint32_t draw,
                             BareMaxima& maxima) const {
    typename Elements::Element e;
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      e.old[s] = elements.IsCoded(s) ? elements.ValueOf(s, stored.states[s])
                                     : std::bit_cast<float>(stored.states[s]);
    }
    elements.Advance(stored.g, e);
    maxima.TakeStates<Elements>(e);
    float direction = 0;
    if (step.moderate && elements.FromModerateElement(e) < kModerateSpan) {
      StoreStates<true>(elements, e, row, i);
      direction = elements.Direction(ModerateLanes<Env>{}, e);
    } else {
      StoreStates<false>(elements, e, row, i);
      direction = elements.Direction(ElementLanes{}, e);
    }
    if (!step.goes) return;
    const float u = DecayedDirection(UpdateKind::kStochastic, direction, step.decay, stored.w, {});
    bool beyond = false;
    const float after = StochasticRule{}.Next(step.weights, i, stored.w, u, {}, draw, beyond);
    row.weights[i] = after;
    maxima.weight = Greater(maxima.weight, MagnitudeBitsOf(after));
  }
};

}  // namespace numsim
