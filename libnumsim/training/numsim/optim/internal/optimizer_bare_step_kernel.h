// The kernels that take a step without its report.
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
  static constexpr int kBlocksTogether = kPlain ? 6 : 1;
  StepArguments args;

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    const BareLane at(args.tables, thread, true);
    if (!at.plan.moves) return;
    if constexpr (kStored == BareStates::kFp8) {
      if (!kPlain || HasPlainState<kKind>(at.row)) {
        return Take<Env, kKind, BareStates::kAny>(at);
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

  template <class Env, DirectionKind kKind, BareStates kStored>
  NUMSIM_INLINE void Take(const BareLane& at) const {
    using Elements = BareElements<kKind, kStored>;
    Elements elements(args, at.row, at.plan, true);
    const BareStep step(args.constants, at, elements);
    const bool aligned = IsAligned(at.row.gradient) && IsAligned(at.row.weights);
    BareMaxima maxima;
    ForQuads(at, [&](unsigned offset, unsigned count) {
      if (count == 0) return;
      const size_t i = at.begin + offset;
      const QuadOf<float> g = LoadQuad(at.row.gradient + i, aligned, count);
      Weights weights;
      if (step.goes) Load(at.row, i, aligned, count, weights);
      elements.TakeScales(i);
      typename Elements::Element e[kQuad];
      LoadStates<Env>(elements, at.row, i, count, e);
      uint32_t from = step.moderate ? 0 : kModerateSpan;
      NUMSIM_UNROLL
      for (unsigned c = 0; c < kQuad; ++c) {
        elements.Advance(g.x[c], e[c]);
        from = Greater(from, elements.FromModerateElement(e[c]));
        maxima.TakeStates<Elements>(e[c]);
      }
      if (from < kModerateSpan) {
        StoreStates<Env, true>(elements, e, at.row, i, count);
        StepWeights(ModerateLanes<Env>{}, elements, step, e, weights, maxima);
      } else {
        StoreStates<Env, false>(elements, e, at.row, i, count);
        StepWeights(ElementLanes{}, elements, step, e, weights, maxima);
      }
      if (step.goes) Store(weights, at.row, i, aligned, count);
    });
    maxima.Store<Env, Elements::kStates>(at.plan);
  }

  static NUMSIM_INLINE void Load(
      const TensorRow& row, size_t i, bool aligned, unsigned count, Weights& weights) {
    weights.w = LoadQuad(row.weights + i, aligned, count);
    if constexpr (!kPlain) {
      if (row.values != nullptr) {
        weights.values = LoadQuad(row.values + i, IsAligned(row.values), count);
      }
      if (row.words != nullptr) {
        weights.words = LoadQuad(row.words + i, IsAligned(row.words), count);
      }
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

// Takes the step of weights that are rounded stochastically: a thread takes every eighth of 64
// elements, whose random bits two blocks of random words hold (TileDraws).
struct BareDrawnStepKernel {
  static constexpr int kBlocksTogether = 1;
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
  template <class Env, class Elements>
  NUMSIM_INLINE void Take(const BareLane& at,
                          const BareStep& step,
                          Elements& elements,
                          BareMaxima& maxima) const {
    constexpr unsigned kTiles = kSumBlock / kTileElements / (kBareThreads / kSumLanes);
    const unsigned lane = at.lane % kSumLanes, group = at.lane / kSumLanes;
    const int bits = args.constants.rule.plan.rounding.random_bits;
    const RandomStream stream = {args.constants.update_seed,
                                 TensorStream(args.step, at.block.tensor)};
    TileDraws draws;
    NUMSIM_ROLL
    for (unsigned tile = 0; tile < kTiles; ++tile) {
      const unsigned first = (group * kTiles + tile) * kTileElements;
      if (first >= at.count) return;
      if (step.goes) draws.MoveTo(stream, bits, at.begin + first, lane);
      elements.TakeScales(at.begin + first);
      NUMSIM_UNROLL_2
      for (unsigned k = 0; k < kTileSteps; ++k) {
        const unsigned offset = first + k * kSumLanes + lane;
        if (offset < at.count) {
          TakeOne<Env>(at.row, step, elements, at.begin + offset, draws.At(k), maxima);
        }
      }
    }
  }

  template <class Env, class Elements>
  NUMSIM_INLINE void TakeOne(const TensorRow& row,
                             const BareStep& step,
                             const Elements& elements,
                             size_t i,
                             uint32_t draw,
                             BareMaxima& maxima) const {
    typename Elements::Element e;
    LoadStates(elements, row, i, e);
    const float w = row.weights[i];
    elements.Advance(row.gradient[i], e);
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
    const float u = DecayedDirection(UpdateKind::kStochastic, direction, step.decay, w, {});
    bool beyond = false;
    const float after = StochasticRule{}.Next(step.weights, i, w, u, {}, draw, beyond);
    row.weights[i] = after;
    maxima.weight = Greater(maxima.weight, MagnitudeBitsOf(after));
  }
};

}  // namespace numsim
