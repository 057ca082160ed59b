// The kernels of a step that treat stored states: their scales, and the loss of storing them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/optimizer_kernels.h"

namespace numsim {

// Finds the ranges of the new states, from which their scales follow.
struct StateRangeKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    switch (args.constants.kind) {
      case DirectionKind::kAdam:
        return RunAs<Env, DirectionKind::kAdam>(thread);
      case DirectionKind::kSgd:
        return RunAs<Env, DirectionKind::kSgd>(thread);
      case DirectionKind::kLion:
        return RunAs<Env, DirectionKind::kLion>(thread);
    }
  }

 private:
  template <class Env, DirectionKind kKind>
  NUMSIM_INLINE void RunAs(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves) return;
    TensorElements<kKind, false> elements(args, at.tensor, at.row, at.plan);
    MomentRange ranges[2];
    size_t indices[2] = {0, 0}, ends[2] = {0, 0};
    const auto flush = [&](int s) {
      if (ends[s] != 0) JoinRange<Env>(ranges[s], at.row.moments[s].ranges[indices[s]]);
      ranges[s] = {};
    };
    const auto scaled = [&](int s) {
      return elements.IsCoded(s) && elements.Codec(s).scaling != MomentScaling::kNone;
    };
    const auto visit = [&](const RawElement&, StepElement& e, size_t i, unsigned) {
      NUMSIM_UNROLL
      for (int s = 0; s < elements.kStates; ++s) {
        if (!scaled(s)) continue;
        if (i >= ends[s]) {
          flush(s);
          indices[s] = ScaleIndex(elements.Codec(s), i);
          ends[s] = EndOfScale(elements.Codec(s), i);
        }
        TakeIn(e.states[s], ranges[s]);
      }
    };
    ForElementsOf<false>(
        at, elements, [](size_t) {}, visit);
    for (int s = 0; s < elements.kStates; ++s) flush(s);
  }
};

// Adds up what storing the states loses, a thread per part of kMomentLossPart elements, which is the
// first lane of the part's first block.
struct StateLossKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    constexpr uint32_t kBlocks = kMomentLossPart / kSumBlock;
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves || at.lane != 0 || at.begin / kSumBlock % kBlocks != 0) return;
    switch (args.constants.kind) {
      case DirectionKind::kAdam:
        return RunAs<DirectionKind::kAdam>(at);
      case DirectionKind::kSgd:
        return RunAs<DirectionKind::kSgd>(at);
      case DirectionKind::kLion:
        return RunAs<DirectionKind::kLion>(at);
    }
  }

 private:
  template <DirectionKind kKind>
  NUMSIM_INLINE void RunAs(const BlockLane& at) const {
    TensorElements<kKind, false> elements(args, at.tensor, at.row, at.plan);
    MomentLoss losses[2];
    const size_t end =
        at.begin + kMomentLossPart < at.row.n ? at.begin + kMomentLossPart : at.row.n;
    for (size_t i = at.begin; i < end; ++i) {
      StepElement e = elements.Advance(elements.Load(i), i);
      const float fresh[2] = {e.states[0], e.states[1]};
      uint32_t draws[2] = {0, 0};
      DrawMoments(elements, i, draws);
      elements.Encode(e, i, draws);
      for (int s = 0; s < elements.kStates; ++s) {
        const MomentCodec& codec = elements.Codec(s);
        bool saturates = false;
        if (elements.IsCoded(s)) {
          const size_t index = ScaleIndex(codec, i);
          saturates =
              Saturates(codec, MakeNextScale{codec, at.row.moments[s].ranges}(index), fresh[s]);
        }
        AddLoss(fresh[s], elements.StoredValue(e, s, i), saturates, losses[s]);
      }
    }
    for (int s = 0; s < elements.kStates; ++s) {
      at.row.losses[s][at.begin / kMomentLossPart] = losses[s];
    }
  }
};

// Stores the scales of the new states and empties the ranges. A block's lanes take the scales whose
// first element is in the block.
struct StateScaleKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    if (HasNoScale(args, thread)) return;
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves) return;
    for (int s = 0; s < (args.constants.kind == DirectionKind::kAdam ? 2 : 1); ++s) {
      const MomentCodec& codec = args.constants.codecs[s];
      if (at.row.plain[s] || codec.scaling == MomentScaling::kNone) continue;
      const StoredMoment& moment = at.row.moments[s];
      const size_t block = codec.has_blocks ? codec.block : at.row.n;
      const size_t end = (at.begin + at.count + block - 1) / block;
      for (size_t index = (at.begin + block - 1) / block + at.lane; index < end;
           index += kSumLanes) {
        StoreScale(codec, NextScale(codec, moment.ranges[index]), moment.scales, index);
        moment.ranges[index] = {};
      }
    }
  }
};

}  // namespace numsim
