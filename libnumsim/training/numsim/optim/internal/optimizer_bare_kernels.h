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

// Raises `most` to the bits of the magnitude of x, if that is finite.
NUMSIM_INLINE void RaiseByFinite(float x, uint32_t& most) {
  const uint32_t magnitude = MagnitudeBitsOf(x);
  if (magnitude < 0x7F800000u) most = Greater(most, magnitude);
}

// Finds the greatest magnitudes of the new states, from which their scales follow.
struct BareRangeKernel {
  static constexpr int kBlocksTogether = 8, kFp8BlocksTogether = 8;
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
    using Quad = BareQuad<Elements>;
    const auto load = [&](unsigned first, Quad& quad) {
      PlaceQuad(at, first, at.lane, quad);
      LoadQuadAt(elements, at.row, at.begin, aligned, quad);
    };
    ForSteps<Quad, Elements::kLoadsAhead>(at, load, [&](const Quad& quad) {
      typename Elements::Element e[kQuad];
      if (quad.count != 0) {
        elements.TakeScales(at.begin + quad.offset);
        DecodeQuad<Env>(elements, quad, e);
      }
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) {
        elements.Advance(quad.g.x[c], e[c]);
        NUMSIM_UNROLL
        for (int s = 0; s < Elements::kStates; ++s) RaiseByFinite(e[c].states[s], most[s]);
      }
      NUMSIM_UNROLL
      for (int s = 0; s < Elements::kStates; ++s) {
        // Neighbours whose threads call together share a scale.
        if (elements.IsCoded(s) && elements.Codec(s).has_blocks) {
          const size_t run = at.begin + quad.offset / kBareBlock * kBareBlock;
          raise(s, elements.ScaleNumber(s, run));
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

// Does the work of GradientKernel and of BareRangeKernel in one pass, where the gradients' factor is
// known before their norm (StepConstants::ranges_with_gradient).
struct GradientRangeKernel {
  static constexpr int kBlocksTogether = 8, kFp8BlocksTogether = 8;
  StepArguments args;

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (at.plan.skipped) return;
    const bool knows_weights =
        args.only_writer && args.tables.states[at.tensor].weights_bits != kNotKnown;
    const bool coded = kStored == BareStates::kFp8 && !HasPlainState<kKind>(at.row);
    if (!knows_weights || !coded) GradientKernel{args}.template Run<Env>(thread);
    if constexpr (kStored == BareStates::kFp8) {
      if (coded) knows_weights ? Find<Env, kKind, true>(at) : Find<Env, kKind, false>(at);
    }
  }

 private:
  static constexpr unsigned kQuads = 2;  // that a thread loads together

  template <class Env, DirectionKind kKind, bool kSums>
  NUMSIM_INLINE void Find(const BlockLane& at) const {
    using Elements = BareElements<kKind, BareStates::kFp8>;
    const Elements elements(args, at.row, at.plan, false);
    double square = 0;
    uint32_t most[2] = {0, 0};
    NUMSIM_ROLL
    for (unsigned first = at.lane; first < at.count; first += kQuads * kQuad * kSumLanes) {
      float g[kQuads][kQuad];
      uint32_t codes[kQuads][Elements::kStates];
      NUMSIM_UNROLL
      for (unsigned q = 0; q < kQuads; ++q) {
        Load<Elements>(at, first + q * kQuad * kSumLanes, g[q], codes[q]);
      }
      NUMSIM_UNROLL
      for (unsigned q = 0; q < kQuads; ++q) {
        typename Elements::Element e[kQuad];
        NUMSIM_UNROLL
        for (int s = 0; s < Elements::kStates; ++s) {
          elements.template ValuesOf<Env>(s, codes[q][s], e);
        }
        NUMSIM_UNROLL
        for (unsigned c = 0; c < kQuad; ++c) {
          if constexpr (kSums) square = AddSquare(g[q][c], square);
          elements.Advance(g[q][c], e[c]);
          NUMSIM_UNROLL
          for (int s = 0; s < Elements::kStates; ++s) RaiseByFinite(e[c].states[s], most[s]);
        }
      }
    }
    if constexpr (kSums) StoreLane(args.tables, at, kGradientSum, square);
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      Env::RaiseTo(&at.row.moments[s].ranges[0].most, most[s]);
    }
  }

  // Loads every eighth element from `first` on, four of them, and the codes of their states as the
  // bytes of words. Elements beyond the end are zero.
  template <class Elements>
  static NUMSIM_INLINE void Load(const BlockLane& at,
                                 unsigned first,
                                 float (&g)[kQuad],
                                 uint32_t (&codes)[Elements::kStates]) {
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) codes[s] = 0;
    NUMSIM_UNROLL
    for (unsigned c = 0; c < kQuad; ++c) {
      const unsigned offset = first + c * kSumLanes;
      g[c] = 0;
      if (offset >= at.count) continue;
      const size_t i = at.begin + offset;
      g[c] = at.row.gradient[i];
      NUMSIM_UNROLL
      for (int s = 0; s < Elements::kStates; ++s) {
        codes[s] |= static_cast<uint32_t>(at.row.moments[s].codes[i]) << (8 * c);
      }
    }
  }
};

// Computes the factors by which new states are encoded. A block's lanes take the scales whose first
// element is in the block.
struct InverseKernel {
  StepArguments args;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    if (HasNoScale(args, thread)) return;
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
  static constexpr int kBlocksTogether = kStored == BareStates::kAny   ? 1
                                         : kStored == BareStates::kFp8 ? Kernel::kFp8BlocksTogether
                                                                       : Kernel::kBlocksTogether;
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
