// The kernels of a step that treat elements (backend/shared/kernel_threads.h). A thread takes, in
// ascending order, the elements of one of the eight partial sums of a block of kSumBlock elements
// (step_sums.h), and writes its part of each sum to memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/backend/shared/kernel_threads.h"
#include "numsim/optim/internal/optimizer_element.h"
#include "numsim/optim/internal/optimizer_tables.h"
#include "numsim/random/shared/tile_draws.h"

namespace numsim {

inline constexpr unsigned kSumLanes = 8;   // partial sums of a block
inline constexpr unsigned kTileSteps = 8;  // elements that a thread loads together
inline constexpr unsigned kTileElements = kSumLanes * kTileSteps;
static_assert(kSumBlock % kTileElements == 0);

// The place of a thread: a lane of a block of a tensor.
struct BlockLane {
  uint32_t block, lane, tensor;
  TensorRow row;
  const TensorPlan& plan;
  size_t begin;    // of the block
  unsigned count;  // elements of the block

  NUMSIM_INLINE BlockLane(const StepTables& tables, size_t thread)
      : block(static_cast<uint32_t>(thread / kSumLanes)),
        lane(static_cast<uint32_t>(thread % kSumLanes)),
        tensor(tables.blocks[block].tensor),
        row(tables.rows[tensor]),
        plan(tables.plans[tensor]),
        begin(tables.blocks[block].index * kSumBlock),
        count(row.n - begin < kSumBlock ? static_cast<unsigned>(row.n - begin)
                                        : static_cast<unsigned>(kSumBlock)) {}
};

// True if a thread has no scale to treat because the first lane of each tensor has its only one.
NUMSIM_INLINE bool HasNoScale(const StepArguments& args, size_t thread) {
  const MomentCodec(&codecs)[2] = args.constants.codecs;
  if (codecs[0].has_blocks || codecs[1].has_blocks) return false;
  return thread % kSumLanes != 0 || args.tables.blocks[thread / kSumLanes].index != 0;
}

NUMSIM_INLINE void StoreLane(const StepTables& tables, const BlockLane& at, StepSum sum, double x) {
  tables.lanes[(static_cast<size_t>(sum) * tables.block_count + at.block) * kSumLanes + at.lane] =
      x;
}

NUMSIM_INLINE uint32_t MagnitudeBitsOf(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFFu; }
NUMSIM_INLINE uint32_t Greater(uint32_t a, uint32_t b) { return a > b ? a : b; }

// Returns sum + x^2. The square is exact in float64, so that a fused operation rounds as two do.
NUMSIM_INLINE double AddSquare(float x, double sum) {
  const double value = static_cast<double>(x);
  return fma(value, value, sum);
}

// Sums the squares of the gradients as given, and finds the greatest weights and states of the
// update rule, unless they are known.
struct GradientKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (at.plan.skipped) return;
    const TensorState& known = args.tables.states[at.tensor];
    if (args.only_writer && known.weights_bits != kNotKnown) return SumSquares(at);
    double square = 0;
    uint32_t weights = 0, state = 0;
    for (unsigned tile = 0; tile < at.count; tile += kTileElements) {
      float g[kTileSteps], w[kTileSteps];
      NUMSIM_UNROLL
      for (unsigned k = 0; k < kTileSteps; ++k) {
        const unsigned i = tile + k * kSumLanes + at.lane;
        g[k] = i < at.count ? at.row.gradient[at.begin + i] : 0.0f;
        w[k] = i < at.count ? at.row.weights[at.begin + i] : 0.0f;
      }
      if (at.row.values != nullptr || at.row.words != nullptr) {
        NUMSIM_UNROLL
        for (unsigned k = 0; k < kTileSteps; ++k) {
          const unsigned i = tile + k * kSumLanes + at.lane;
          if (i >= at.count) continue;
          const size_t element = at.begin + i;
          const float x = at.row.values != nullptr ? at.row.values[element]
                                                   : JoinMaster(w[k], at.row.words[element]);
          state = Greater(state, MagnitudeBitsOf(x));
        }
      }
      NUMSIM_UNROLL
      for (unsigned k = 0; k < kTileSteps; ++k) {
        weights = Greater(weights, MagnitudeBitsOf(w[k]));
        square = AddSquare(g[k], square);  // beyond the end it adds +0
      }
    }
    StoreLane(args.tables, at, kGradientSum, square);
    TensorPlan& plan = args.tables.plans[at.tensor];
    Env::RaiseTo(&plan.weights_bits, weights);
    if (state != 0) Env::RaiseTo(&plan.state_bits, state);
  }

 private:
  NUMSIM_INLINE void SumSquares(const BlockLane& at) const {
    constexpr unsigned kSteps = 2 * kTileSteps;
    const float* const gradient = at.row.gradient + at.begin;
    double square = 0;
    NUMSIM_ROLL
    for (unsigned first = at.lane; first < at.count; first += kSteps * kSumLanes) {
      float g[kSteps];
      NUMSIM_UNROLL
      for (unsigned k = 0; k < kSteps; ++k) {
        const unsigned i = first + k * kSumLanes;
        g[k] = i < at.count ? gradient[i] : 0.0f;
      }
      NUMSIM_UNROLL
      for (unsigned k = 0; k < kSteps; ++k) square = AddSquare(g[k], square);
    }
    StoreLane(args.tables, at, kGradientSum, square);
  }
};

// Calls visit(raw, element, i, k) for the elements of a thread, with their new states. prepare(first)
// is called before each 64 consecutive elements from `first` on. kUnroll is for short `visit`: the
// code of a long one would not fit into the instruction cache eight times.
template <bool kUnroll, class Elements, class Prepare, class Visit>
NUMSIM_INLINE void ForElementsOf(const BlockLane& at,
                                 Elements& elements,
                                 const Prepare& prepare,
                                 const Visit& visit) {
  for (unsigned tile = 0; tile < at.count; tile += kTileElements) {
    RawElement raw[kTileSteps];
    NUMSIM_UNROLL
    for (unsigned k = 0; k < kTileSteps; ++k) {
      const unsigned i = tile + k * kSumLanes + at.lane;
      if (i < at.count) raw[k] = elements.Load(at.begin + i);
    }
    prepare(at.begin + tile);
    const auto visit_one = [&](unsigned k) {
      const unsigned i = tile + k * kSumLanes + at.lane;
      if (i >= at.count) return;
      const size_t element = at.begin + i;
      StepElement e = elements.Advance(raw[k], element);
      visit(raw[k], e, element, k);
    };
    if constexpr (kUnroll) {
      NUMSIM_UNROLL
      for (unsigned k = 0; k < kTileSteps; ++k) visit_one(k);
    } else {
      NUMSIM_ROLL
      for (unsigned k = 0; k < kTileSteps; ++k) visit_one(k);
    }
  }
}

// The random bits of the moments of 64 elements.
class MomentDraws {
 public:
  template <class Elements>
  NUMSIM_INLINE void Prepare(const Elements& elements, size_t first, unsigned lane) {
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      draws_[s] = elements.Draws(s);
      if (!draws_[s]) continue;
      const int bits = elements.Codec(s).plan.rounding.random_bits;
      tiles_[s] = TileDraws(elements.MomentStream(s), bits, first, lane);
    }
  }
  NUMSIM_INLINE void At(unsigned k, uint32_t (&draws)[2]) const {
    NUMSIM_UNROLL
    for (int s = 0; s < 2; ++s) draws[s] = draws_[s] ? tiles_[s].At(k) : 0;
  }

 private:
  bool draws_[2] = {false, false};
  TileDraws tiles_[2];
};

// Returns the random bits of the moments of element i.
template <class Elements>
NUMSIM_HOST_DEVICE inline void DrawMoments(const Elements& elements,
                                           size_t i,
                                           uint32_t (&draws)[2]) {
  for (int s = 0; s < Elements::kStates; ++s) {
    if (!elements.Draws(s)) continue;
    const int bits = elements.Codec(s).plan.rounding.random_bits;
    const TileDraws tile(elements.MomentStream(s), bits, i / 64 * 64, i % 8);
    draws[s] = tile.At(static_cast<unsigned>(i % 64 / 8));
  }
}

// Sums the squares behind RMS, before the step, for optimisers that clip by it.
struct RatioKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves) return;
    TensorElements<DirectionKind::kAdam, false> elements(args, at.tensor, at.row, at.plan);
    MomentDraws moments;
    double square = 0;
    const auto prepare = [&](size_t first) {
      if (args.constants.from_stored) moments.Prepare(elements, first, at.lane);
    };
    const auto visit = [&](const RawElement& raw, StepElement& e, size_t i, unsigned k) {
      uint32_t draws[2];
      moments.At(k, draws);
      if (args.constants.from_stored) elements.Encode(e, i, draws);
      elements.Direct(raw, e);
      const double ratio = static_cast<double>(e.ratio);
      square += ratio * ratio;
    };
    ForElementsOf<false>(at, elements, prepare, visit);
    StoreLane(args.tables, at, kRatioSum, square);
  }
};

// Finds the greatest direction and the greatest update with weight decay, for tensors of which it is
// not known that they are finite and not all zero.
struct ScanKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves || at.plan.verdict != WeightVerdict::kUnknown) return;
    switch (args.constants.kind) {
      case DirectionKind::kAdam:
        return RunAs<Env, DirectionKind::kAdam>(at);
      case DirectionKind::kSgd:
        return RunAs<Env, DirectionKind::kSgd>(at);
      case DirectionKind::kLion:
        return RunAs<Env, DirectionKind::kLion>(at);
    }
  }

 private:
  template <class Env, DirectionKind kKind>
  NUMSIM_INLINE void RunAs(const BlockLane& at) const {
    TensorElements<kKind, false> elements(args, at.tensor, at.row, at.plan);
    uint32_t direction = 0, decayed = 0;
    const auto visit = [&](const RawElement& raw, StepElement& e, size_t i, unsigned) {
      if (args.constants.from_stored) {
        uint32_t draws[2] = {0, 0};
        DrawMoments(elements, i, draws);
        elements.Encode(e, i, draws);
      }
      elements.Direct(raw, e);
      direction = Greater(direction, MagnitudeBitsOf(e.direction));
      decayed = Greater(decayed, MagnitudeBitsOf(elements.Decayed(raw, e.direction)));
    };
    ForElementsOf<false>(
        at, elements, [](size_t) {}, visit);
    TensorPlan& plan = args.tables.plans[at.tensor];
    Env::RaiseTo(&plan.direction_bits, direction);
    Env::RaiseTo(&plan.decayed_bits, decayed);
  }
};

}  // namespace numsim
