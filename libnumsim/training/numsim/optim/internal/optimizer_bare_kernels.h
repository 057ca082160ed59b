// Kernels of a step without its report (Optimizer::SetReports): they write states and weights, and
// find the greatest magnitudes that the next step needs. Without sums, whose order binds threads to
// elements, a thread takes elements as memory likes it. This file has those before the step,
// optimizer_bare_step_kernel.h the step.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/optimizer_bare_memory.h"
#include "numsim/optim/internal/optimizer_kernels.h"

namespace numsim {

// Finds the greatest magnitudes of the new states, from which their scales follow.
struct BareRangeKernel {
  static constexpr int kBlocksTogether = 8;
  StepArguments args;

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    const BareLane at(args.tables, thread);
    if (!at.plan.moves) return;
    if constexpr (kStored == BareStates::kFp8) {
      if (HasPlainState<kKind>(at.row)) return Find<Env, kKind, BareStates::kAny>(at);
    }
    Find<Env, kKind, kStored>(at);
  }

 private:
  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_INLINE void Find(const BareLane& at) const {
    using Elements = BareElements<kKind, kStored>;
    Elements elements(args, at.row, at.plan, false);
    const bool aligned = IsAligned(at.row.gradient);
    uint32_t most[2] = {0, 0};
    const auto raise = [&](int s, size_t number) {
      Env::RaiseToTogether(&at.row.moments[s].ranges[number].most, most[s]);
      most[s] = 0;
    };
    ForQuads(at, [&](unsigned offset, unsigned count) {
      const size_t i = at.begin + offset;
      const QuadOf<float> g = LoadQuad(at.row.gradient + i, aligned, count);
      typename Elements::Element e[kQuad];
      if (count != 0) {
        elements.TakeScales(i);
        LoadStates<Env>(elements, at.row, i, count, e);
      }
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) {
        elements.Advance(g.x[c], e[c]);
        NUMSIM_UNROLL
        for (int s = 0; s < Elements::kStates; ++s) {
          const uint32_t magnitude = MagnitudeBitsOf(e[c].states[s]);
          if (magnitude < 0x7F800000u) most[s] = Greater(most[s], magnitude);
        }
      }
      NUMSIM_UNROLL
      for (int s = 0; s < Elements::kStates; ++s) {
        // Neighbours whose threads call together share a scale.
        if (elements.IsCoded(s) && elements.Codec(s).has_blocks) {
          raise(s, elements.ScaleNumber(s, at.begin + offset / kBareBlock * kBareBlock));
        }
      }
    });
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      const MomentCodec& codec = elements.Codec(s);
      if (elements.IsCoded(s) && codec.scaling == MomentScaling::kTensor) raise(s, 0);
    }
  }
};

// Computes the factors by which new states are encoded. A block's lanes take the scales whose first
// element is in the block.
struct InverseKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves) return;
    for (int s = 0; s < 2; ++s) {
      const MomentCodec& codec = args.constants.codecs[s];
      if (at.row.inverses[s] == nullptr || at.row.plain[s]) continue;
      if (!codec.has_blocks) {
        if (at.begin == 0 && at.lane == 0) Store(at.row, s, 0);
        continue;
      }
      const uint8_t shift = args.constants.block_shift[s];
      const size_t end = (at.begin + at.count + codec.block - 1) >> shift;
      for (size_t number = ((at.begin + codec.block - 1) >> shift) + at.lane; number < end;
           number += kSumLanes) {
        Store(at.row, s, number);
      }
    }
  }

 private:
  NUMSIM_INLINE void Store(const TensorRow& row, int s, size_t number) const {
    const MomentRange& range = row.moments[s].ranges[number];
    row.inverses[s][number] = NextScale(args.constants.codecs[s], range).inverse;
  }
};

// A kernel for one kind of optimiser and storage of states.
template <class Kernel, DirectionKind kKind, BareStates kStored>
struct BareKernelOf {
  static constexpr int kBlocksTogether = kStored == BareStates::kAny ? 1 : Kernel::kBlocksTogether;
  Kernel kernel;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    kernel.template RunAs<Env, kKind, kStored>(thread);
  }
};

// Calls launch(BareKernelOf<...>) with the one that serves the optimiser.
template <class Kernel, class Launch>
void WithBareKernel(const Kernel& kernel, const Launch& launch) {
  const StepConstants& constants = kernel.args.constants;
  const auto with_states = [&]<DirectionKind kKind>() {
    if (constants.plain_moments) {
      launch(BareKernelOf<Kernel, kKind, BareStates::kFloat>{kernel});
    } else if (constants.fp8_moments) {
      launch(BareKernelOf<Kernel, kKind, BareStates::kFp8>{kernel});
    } else {
      launch(BareKernelOf<Kernel, kKind, BareStates::kAny>{kernel});
    }
  };
  switch (constants.kind) {
    case DirectionKind::kAdam:
      return with_states.template operator()<DirectionKind::kAdam>();
    case DirectionKind::kSgd:
      return with_states.template operator()<DirectionKind::kSgd>();
    case DirectionKind::kLion:
      return with_states.template operator()<DirectionKind::kLion>();
  }
}

}  // namespace numsim
