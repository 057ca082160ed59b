// The kernel that takes the step: it writes states and weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/optim/internal/optimizer_kernels.h"

namespace numsim {

// The sums of a thread of the step.
struct LaneSums {
  double ratio = 0, direction = 0, decayed = 0, step = 0, projection = 0;
  uint32_t moved = 0, saturated = 0;
  uint32_t direction_bits = 0, m_bits = 0, v_bits = 0, weights_bits = 0, state_bits = 0;

  NUMSIM_INLINE void AddWeight(float before, float after, float update, bool beyond) {
    const double u = static_cast<double>(update);
    decayed += u * u;
    weights_bits = Greater(weights_bits, MagnitudeBitsOf(after));
    saturated += beyond ? 1 : 0;
    if (after == before) return;  // the terms would be zero, and sums are never -0
    const double d = static_cast<double>(after) - static_cast<double>(before);
    step += d * d;
    projection += d * u;
    ++moved;
  }
};

// Takes the step. RunAs is the kernel of one kind of optimiser; kPlain: all states are float32;
// kPlainWeights: naive steps of float32 weights.
struct StepKernel {
  StepArguments args;

  template <class Env, DirectionKind kKind, bool kPlain, bool kPlainWeights>
  NUMSIM_HOST_DEVICE void RunAs(size_t thread) const {
    const BlockLane at(args.tables, thread);
    if (!at.plan.moves) return;
    const StepConstants& constants = args.constants;
    using Elements = TensorElements<kKind, kPlain>;
    Elements elements(args, at.tensor, at.row, at.plan);
    const WeightStep step{constants.rule,
                          constants.own,
                          constants.largest,
                          static_cast<double>(constants.largest),
                          at.plan.learning_rate,
                          at.row.values,
                          at.row.words};
    const bool goes = at.plan.verdict == WeightVerdict::kGo && !constants.apart;
    const bool draws_weights =
        !kPlainWeights && goes && constants.update == UpdateKind::kStochastic;
    MomentDraws moments;
    TileDraws weights;
    LaneSums sums;
    const auto prepare = [&](size_t first) {
      if constexpr (!kPlain) moments.Prepare(elements, first, at.lane);
      if constexpr (!kPlainWeights) {
        if (draws_weights) {
          const int bits = constants.rule.plan.rounding.random_bits;
          weights = TileDraws(elements.UpdateStream(), bits, first, at.lane);
        }
      }
    };
    const auto visit = [&](const RawElement& raw, StepElement& e, size_t i, unsigned k) {
      if constexpr (!kPlain) {
        uint32_t draws[2];
        moments.At(k, draws);
        elements.Encode(e, i, draws);
      }
      elements.Direct(raw, e);
      elements.template StoreStates<Env>(raw, e, i);
      AddStates<Elements::kStates>(e, sums);
      if (constants.apart) at.row.direction[i] = e.direction;
      if (!goes) return;
      const float update = elements.Decayed(raw, e.direction);
      bool beyond = false;
      float after = 0;
      if constexpr (kPlainWeights) {
        beyond = WantedBeyond(step, step.learning_rate, raw.weight, update);
        after = NextPlainWeight(step, raw.weight, update);
      } else {
        const uint32_t draw = draws_weights ? weights.At(k) : 0;
        after = NextWeight(constants.update, step, i, raw.weight, update, raw.update, draw, beyond);
      }
      at.row.weights[i] = after;
      sums.AddWeight(raw.weight, after, update, beyond);
      if constexpr (!kPlainWeights) {
        if (at.row.values != nullptr) {
          sums.state_bits = Greater(sums.state_bits, MagnitudeBitsOf(at.row.values[i]));
        } else if (at.row.words != nullptr) {
          const float master = JoinMaster(after, at.row.words[i]);
          sums.state_bits = Greater(sums.state_bits, MagnitudeBitsOf(master));
        }
      }
    };
    ForElementsOf<kPlain && kPlainWeights>(at, elements, prepare, visit);
    Store<Env>(at, sums);
  }

 private:
  template <int kStates>
  static NUMSIM_INLINE void AddStates(const StepElement& e, LaneSums& sums) {
    const double direction = static_cast<double>(e.direction);
    sums.direction += direction * direction;
    const double ratio = static_cast<double>(e.ratio);
    sums.ratio += ratio * ratio;
    sums.direction_bits = Greater(sums.direction_bits, MagnitudeBitsOf(e.direction));
    sums.m_bits = Greater(sums.m_bits, MagnitudeBitsOf(e.states[0]));
    if constexpr (kStates == 2) {
      sums.v_bits = Greater(sums.v_bits, std::bit_cast<uint32_t>(e.states[1]));
    }
  }

  template <class Env>
  NUMSIM_INLINE void Store(const BlockLane& at, const LaneSums& sums) const {
    const StepTables& tables = args.tables;
    if (!args.constants.clips_by_rms) StoreLane(tables, at, kRatioSum, sums.ratio);
    StoreLane(tables, at, kDirectionSum, sums.direction);
    StoreLane(tables, at, kDecayedSum, sums.decayed);
    StoreLane(tables, at, kStepSum, sums.step);
    StoreLane(tables, at, kProjectionSum, sums.projection);
    StoreLane(tables, at, kMovedSum, static_cast<double>(sums.moved));
    StoreLane(tables, at, kSaturatedSum, static_cast<double>(sums.saturated));
    TensorPlan& plan = tables.plans[at.tensor];
    Env::RaiseTo(&plan.direction_bits, sums.direction_bits);
    Env::RaiseTo(&plan.m_bits, sums.m_bits);
    Env::RaiseTo(&plan.v_bits, sums.v_bits);
    Env::RaiseTo(&plan.new_weights_bits, sums.weights_bits);
    Env::RaiseTo(&plan.new_state_bits, sums.state_bits);
  }
};

// StepKernel of one kind of optimiser.
template <DirectionKind kKind, bool kPlain, bool kPlainWeights>
struct StepKernelOf {
  StepKernel kernel;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(size_t thread) const {
    kernel.RunAs<Env, kKind, kPlain, kPlainWeights>(thread);
  }
};

// Calls launch(StepKernelOf<...>) with the one that serves the optimiser.
template <class Launch>
void WithStepKernel(const StepKernel& kernel, const Launch& launch) {
  const auto with_weights = [&]<DirectionKind kKind, bool kPlain>() {
    if (kernel.args.constants.plain_weights) {
      launch(StepKernelOf<kKind, kPlain, true>{kernel});
    } else {
      launch(StepKernelOf<kKind, kPlain, false>{kernel});
    }
  };
  const auto with_moments = [&]<DirectionKind kKind>() {
    if (kernel.args.constants.plain_moments) {
      with_weights.template operator()<kKind, true>();
    } else {
      with_weights.template operator()<kKind, false>();
    }
  };
  switch (kernel.args.constants.kind) {
    case DirectionKind::kAdam:
      return with_moments.template operator()<DirectionKind::kAdam>();
    case DirectionKind::kSgd:
      return with_moments.template operator()<DirectionKind::kSgd>();
    case DirectionKind::kLion:
      return with_moments.template operator()<DirectionKind::kLion>();
  }
}

}  // namespace numsim
