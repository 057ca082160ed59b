// The kernel that takes a step without its report, and what it shares with that of stochastic weights
// (optimizer_bare_drawn_kernel.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/optimizer_bare_kernels.h"

namespace numsim {

// Bits of the greatest magnitudes; v: of the greatest number, where a negative one is the greatest.
struct BareMaxima {
  uint32_t states[2] = {0, 0};
  uint32_t weight = 0, rule = 0;

  template <class Elements>
  NUMSIM_INLINE void TakeStates(const typename Elements::Element& e) {
    states[0] = Greater(states[0], MagnitudeBitsOf(e.states[0]));
    if constexpr (Elements::kStates == 2) {
      states[1] = Greater(states[1], std::bit_cast<uint32_t>(e.states[1]));
    }
  }
  template <class Env, int kStates>
  NUMSIM_INLINE void Store(TensorPlan& plan) const {
    Env::RaiseToTogether(&plan.m_bits, states[0]);
    if constexpr (kStates == 2) Env::RaiseToTogether(&plan.v_bits, states[1]);
    Env::RaiseToTogether(&plan.new_weights_bits, weight);
    Env::RaiseToTogether(&plan.new_state_bits, rule);
  }
};

// The constants of a tensor's step.
struct BareStep {
  WeightStep weights;
  UpdateKind update;
  float decay;
  bool goes, moderate;

  template <class Elements>
  NUMSIM_INLINE BareStep(const StepConstants& constants,
                         const BareLane& at,
                         const Elements& elements)
      : weights{constants.rule,
                constants.own,
                constants.largest,
                static_cast<double>(constants.largest),
                at.plan.learning_rate,
                at.row.values,
                at.row.words},
        update(constants.update),
        decay(at.plan.decay),
        goes(at.plan.verdict == WeightVerdict::kGo),
        moderate(elements.IsModerateStep()) {}
};

// Takes the step of rules that draw no random numbers, four neighbours at a time. kPlain: naive steps
// of float32 weights.
template <bool kPlain>
struct BareStepKernel {
  static constexpr int kBlocksTogether = kPlain ? 6 : 1, kFp8BlocksTogether = kPlain ? 5 : 1;
  StepArguments args;

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    const BareLane at(args.tables, thread, true);
    if (!at.plan.moves) return;
    if constexpr (kStored == BareStates::kFp8) {
      if (!kPlain || HasPlainState<kKind>(at.row)) {
        return Take<Env, kKind, BareStates::kAny>(at);
      }
      if constexpr (kPlain) {
        if (args.constants.ranges_in_step) return TakeRuns<Env, kKind>(at);
      }
    }
    if constexpr (kPlain || kStored != BareStates::kFp8) Take<Env, kKind, kStored>(at);
  }

 private:
  // The weights of four neighbours and the state of their rule.
  struct Weights {
    QuadOf<float> w = {}, values = {};
    QuadOf<uint16_t> words = {};
  };

  // Four neighbours, their weights, and the stored scales of their states.
  template <class Elements>
  struct Quad : BareQuad<Elements> {
    Weights weights;
    float scales[Elements::kStates];
  };

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_INLINE void Take(const BareLane& at) const {
    using Elements = BareElements<kKind, kStored>;
    Elements elements(args, at.row, at.plan, true);
    const BareStep step(args.constants, at, elements);
    const bool aligned = IsAligned(at.row.gradient) && IsAligned(at.row.weights);
    BareMaxima maxima;
    const auto load = [&](unsigned first, Quad<Elements>& quad) {
      PlaceQuad(at, first, at.lane, quad);
      Load(elements, at, step, aligned, quad);
    };
    ForSteps<Quad<Elements>, Elements::kLoadsAhead>(at, load, [&](const Quad<Elements>& quad) {
      if (quad.count == 0) return;
      elements.TakeScales(at.begin + quad.offset);
      typename Elements::Element e[kQuad];
      DecodeQuad<Env>(elements, quad, e);
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) elements.Advance(quad.g.x[c], e[c]);
      Finish<Env>(elements, at, step, aligned, quad, e, maxima);
    });
    maxima.Store<Env, Elements::kStates>(at.plan);
  }

  // The same for states whose scales are those of kBareBlock neighbours, which the threads that act
  // together take: they find the new scales on the way.
  template <class Env, DirectionKind kKind>
  NUMSIM_INLINE void TakeRuns(const BareLane& at) const {
    using Elements = BareElements<kKind, BareStates::kFp8>;
    constexpr unsigned kQuads = kBareBlock / kQuad / Env::kTogether;  // per thread
    if (at.lane % kQuads != 0) return;
    struct Run {
      Quad<Elements> quads[kQuads];
    };
    Elements elements(args, at.row, at.plan, false);
    const BareStep step(args.constants, at, elements);
    const bool aligned = IsAligned(at.row.gradient) && IsAligned(at.row.weights);
    BareMaxima maxima;
    const auto load = [&](unsigned first, Run& run) {
      NUMSIM_UNROLL
      for (unsigned q = 0; q < kQuads; ++q) {
        PlaceQuad(at, first, at.lane + q, run.quads[q]);
        Load(elements, at, step, aligned, run.quads[q]);
        if (run.quads[q].count != 0) LoadScales(elements, at, run.quads[q]);
      }
    };
    ForSteps<Run, true>(at, load, [&](const Run& run) {
      typename Elements::Element e[kQuads][kQuad];
      uint32_t most[2] = {0, 0};
      NUMSIM_UNROLL
      for (unsigned q = 0; q < kQuads; ++q) {
        if (run.quads[q].count == 0) continue;
        elements.SetScales(run.quads[q].scales);
        DecodeQuad<Env>(elements, run.quads[q], e[q]);
        NUMSIM_UNROLL
        for (unsigned c = 0; c < kQuad; ++c) {
          elements.Advance(run.quads[q].g.x[c], e[q][c]);
          NUMSIM_UNROLL
          for (int s = 0; s < Elements::kStates; ++s) RaiseByFinite(e[q][c].states[s], most[s]);
        }
      }
      Rescale<Env>(elements, at, run.quads[0], most);
      NUMSIM_UNROLL
      for (unsigned q = 0; q < kQuads; ++q) {
        if (run.quads[q].count == 0) continue;
        Finish<Env>(elements, at, step, aligned, run.quads[q], e[q], maxima);
      }
    });
    maxima.Store<Env, Elements::kStates>(at.plan);
  }

  // Sets, and stores, the scales under which states are encoded whose greatest magnitudes the threads
  // that act together have found.
  template <class Env, class Elements>
  static NUMSIM_INLINE void Rescale(Elements& elements,
                                    const BareLane& at,
                                    const Quad<Elements>& quad,
                                    uint32_t (&most)[2]) {
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) most[s] = Env::MostTogether(most[s]);
    Scale scales[2];
    Env::EachOfTwo(
        [&](int s) -> Scale {
          MomentRange range;
          range.most = s == 0 ? most[0] : most[1];
          const MomentScale next = NextScale(elements.Codec(s), range);
          return {next.scale, next.inverse};
        },
        scales);
    const bool stores = quad.count != 0 && at.lane % (kBareBlock / kQuad) == 0;
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      elements.SetInverse(s, scales[s].inv_scale);
      const size_t number = elements.ScaleNumber(s, at.begin + quad.offset);
      if (stores) at.row.moments[s].scales[number] = scales[s].scale;
    }
  }

  // Stores new states, and takes the step of their weights.
  template <class Env, class Elements>
  static NUMSIM_INLINE void Finish(const Elements& elements,
                                   const BareLane& at,
                                   const BareStep& step,
                                   bool aligned,
                                   const Quad<Elements>& quad,
                                   const typename Elements::Element (&e)[kQuad],
                                   BareMaxima& maxima) {
    const size_t i = at.begin + quad.offset;
    uint32_t from = step.moderate ? 0 : kModerateSpan;
    NUMSIM_UNROLL
    for (unsigned c = 0; c < kQuad; ++c) {
      from = Greater(from, elements.FromModerateElement(e[c]));
      maxima.TakeStates<Elements>(e[c]);
    }
    Weights weights = quad.weights;
    if (from < kModerateSpan) {
      StoreStates<Env, true>(elements, e, at.row, i, quad.count);
      StepWeights(ModerateLanes<Env>{}, elements, step, e, weights, maxima);
    } else {
      StoreStates<Env, false>(elements, e, at.row, i, quad.count);
      StepWeights(ElementLanes{}, elements, step, e, weights, maxima);
    }
    if (step.goes) Store(weights, at.row, i, aligned, quad.count);
  }

  template <class Elements>
  static NUMSIM_INLINE void Load(const Elements& elements,
                                 const BareLane& at,
                                 const BareStep& step,
                                 bool aligned,
                                 Quad<Elements>& quad) {
    LoadQuadAt<Elements>(elements, at.row, at.begin, aligned, quad);
    if (!step.goes) return;
    const TensorRow& row = at.row;
    const size_t i = at.begin + quad.offset;
    quad.weights.w = LoadQuad(row.weights + i, aligned, quad.count);
    if constexpr (!kPlain) {
      if (row.values != nullptr) {
        quad.weights.values = LoadQuad(row.values + i, IsAligned(row.values), quad.count);
      }
      if (row.words != nullptr) {
        quad.weights.words = LoadQuad(row.words + i, IsAligned(row.words), quad.count);
      }
    }
  }
  template <class Elements>
  static NUMSIM_INLINE void LoadScales(const Elements& elements,
                                       const BareLane& at,
                                       Quad<Elements>& quad) {
    NUMSIM_UNROLL
    for (int s = 0; s < Elements::kStates; ++s) {
      quad.scales[s] = at.row.moments[s].scales[elements.ScaleNumber(s, at.begin + quad.offset)];
    }
  }
  static NUMSIM_INLINE void Store(
      const Weights& weights, const TensorRow& row, size_t i, bool aligned, unsigned count) {
    StoreQuad(weights.w, aligned, count, row.weights + i);
    if constexpr (!kPlain) {
      if (row.values != nullptr) {
        StoreQuad(weights.values, IsAligned(row.values), count, row.values + i);
      }
      if (row.words != nullptr) {
        StoreQuad(weights.words, IsAligned(row.words), count, row.words + i);
      }
    }
  }

  template <class Lanes, class Elements>
  static NUMSIM_INLINE void StepWeights(const Lanes& lanes,
                                        const Elements& elements,
                                        const BareStep& step,
                                        const typename Elements::Element (&e)[kQuad],
                                        Weights& weights,
                                        BareMaxima& maxima) {
    WeightStep local = step.weights;  // rules write the state of an element to registers
    local.values = weights.values.x;
    local.words = weights.words.x;
    NUMSIM_UNROLL
    for (unsigned c = 0; c < kQuad; ++c) {
      float& w = weights.w.x[c];
      const float direction = elements.Direction(lanes, e[c]);
      const ElementState state = {weights.values.x[c], weights.words.x[c]};
      const float u = DecayedDirection(
          kPlain ? UpdateKind::kNaive : step.update, direction, step.decay, w, state);
      if constexpr (kPlain) {
        w = NextPlainWeight(local, w, u);
      } else {
        bool beyond = false;
        w = NextWeight(step.update, local, c, w, u, state, 0, beyond);
        maxima.rule = Greater(maxima.rule, RuleBits(step, weights, c));
      }
      maxima.weight = Greater(maxima.weight, MagnitudeBitsOf(w));
    }
  }
  static NUMSIM_INLINE uint32_t RuleBits(const BareStep& step, const Weights& weights, unsigned c) {
    if (step.weights.values != nullptr) return MagnitudeBitsOf(weights.values.x[c]);
    if (step.weights.words == nullptr) return 0;
    return MagnitudeBitsOf(JoinMaster(weights.w.x[c], weights.words.x[c]));
  }
};

}  // namespace numsim
