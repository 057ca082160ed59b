// One element of a tensor in a step of an optimiser, on host and device: new states and direction.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numsim/moments/shared/moment_kernels.h"
#include "numsim/optim/internal/optimizer_tables.h"

namespace numsim {

// The lanes of directions_rule.inc: one element.
struct ElementLanes {
  NUMSIM_INLINE float Set(float x) const { return x; }
  NUMSIM_INLINE float Add(float a, float b) const { return a + b; }
  NUMSIM_INLINE float Mul(float a, float b) const { return a * b; }
  NUMSIM_INLINE float Div(float a, float b) const { return a / b; }
  NUMSIM_INLINE float DivBy(float a, float b) const { return a / b; }
  NUMSIM_INLINE float Sqrt(float a) const { return sqrtf(a); }
  NUMSIM_INLINE float Neg(float a) const { return -a; }
  NUMSIM_INLINE bool Lt(float a, float b) const { return a < b; }
  NUMSIM_INLINE bool Gt(float a, float b) const { return a > b; }
  NUMSIM_INLINE float Select(bool m, float yes, float no) const { return m ? yes : no; }
};

#define NUMSIM_RULE NUMSIM_INLINE
#include "numsim/optim/internal/directions_rule.inc"
#undef NUMSIM_RULE

// An element as it is in memory; states: float32 bits or codes of m and v.
struct RawElement {
  float gradient = 0;
  uint32_t states[2] = {0, 0};
  float weight = 0;
  ElementState update;  // state of the update rule
};

struct StepElement {
  float gradient = 0;  // times the factor of the step
  float states[2] = {0, 0};
  uint32_t codes[2] = {0, 0};
  float direction = 0;
  float ratio = 0;  // enters DirectionSums::ratio_square
};

// Returns the update that a weight takes: the direction with weight decay.
NUMSIM_INLINE float DecayedDirection(
    UpdateKind kind, float direction, float decay, float weight, ElementState state) {
  if (decay == 0) return direction;
  const double u = static_cast<double>(direction), d = static_cast<double>(decay);
  if (kind == UpdateKind::kKahan) {
    return DecayedCompensated(u, d, static_cast<double>(weight), static_cast<double>(state.value));
  }
  if (kind == UpdateKind::kMasterFp32) weight = state.value;
  if (kind == UpdateKind::kSplitMaster) {
    weight = JoinMaster(weight, static_cast<uint16_t>(state.word));
  }
  return DecayedElement(u, d, static_cast<double>(weight));
}

// Computes elements of one tensor, in ascending order. kPlain: all states are float32.
template <DirectionKind kKind, bool kPlain>
class TensorElements {
 public:
  static constexpr int kStates = kKind == DirectionKind::kAdam ? 2 : 1;

  NUMSIM_INLINE TensorElements(const StepArguments& args,
                               uint32_t tensor,
                               const TensorRow& row,
                               const TensorPlan& plan)
      : constants_(args.constants),
        row_(row),
        rates_(plan.rates),
        decay_(plan.decay),
        factor_(args.tables.step->factor),
        stream_(TensorStream(args.step, tensor)),
        stored_m_(Codec(0), MakeStoredScale{Codec(0), row.moments[0].scales}),
        stored_v_(Codec(1), MakeStoredScale{Codec(1), row.moments[1].scales}),
        next_m_(Codec(0), MakeNextScale{Codec(0), row.moments[0].ranges}),
        next_v_(Codec(1), MakeNextScale{Codec(1), row.moments[1].ranges}) {}

  // True if the state is stored as codes.
  NUMSIM_INLINE bool IsCoded(int state) const { return !kPlain && !row_.plain[state]; }
  NUMSIM_INLINE bool Draws(int state) const {
    return IsCoded(state) && Codec(state).plan.rounding.mode == RoundingMode::kStochastic;
  }
  NUMSIM_INLINE RandomStream MomentStream(int state) const {
    return {constants_.moment_seed, 2 * stream_ + static_cast<uint64_t>(state)};
  }
  NUMSIM_INLINE RandomStream UpdateStream() const { return {constants_.update_seed, stream_}; }
  NUMSIM_INLINE const MomentCodec& Codec(int state) const { return constants_.codecs[state]; }

  NUMSIM_INLINE RawElement Load(size_t i) const {
    RawElement raw;
    raw.gradient = row_.gradient[i];
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) raw.states[s] = LoadState(s, i);
    raw.weight = row_.weights[i];
    if (!constants_.plain_weights) {
      if (row_.values != nullptr) raw.update.value = row_.values[i];
      if (row_.words != nullptr) raw.update.word = row_.words[i];
    }
    return raw;
  }

  // Computes the new states; Lion also its direction, and `ratio` if that is of the old v.
  NUMSIM_INLINE StepElement Advance(const RawElement& raw, size_t i) {
    constexpr ElementLanes l;
    StepElement e;
    e.gradient = raw.gradient * factor_;
    const float m = StateValue(0, raw, i);
    if constexpr (kKind == DirectionKind::kAdam) {
      const float v = StateValue(1, raw, i);
      const StableOptions& stable = constants_.stable;
      if (stable.previous_u && !stable.of_update) {
        e.ratio = GradientRatioLanes(l, e.gradient, v, rates_.previous, stable.epsilon_added);
      }
      e.states[1] = AverageLanes(l, v, e.gradient * e.gradient, rates_.v);
      e.states[0] = AverageLanes(l, m, e.gradient, rates_.m);
    } else {
      if constexpr (kKind == DirectionKind::kLion) {
        e.direction = LionDirectionLanes(l, e.gradient, m, constants_.of_direction);
      }
      e.states[0] = AverageLanes(l, m, e.gradient, constants_.of_m);
    }
    return e;
  }

  // Computes the codes of the new states, which the direction then sees if it is to be computed from
  // stored states. `draws` are the random bits of m and v.
  NUMSIM_INLINE void Encode(StepElement& e, size_t i, const uint32_t (&draws)[2]) {
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) {
      if (!IsCoded(s)) continue;
      const MomentScale& scale = s == 0 ? next_m_.At(i) : next_v_.At(i);
      e.codes[s] = EncodeMoment(Codec(s), scale, e.states[s], draws[s]);
      if (constants_.from_stored) e.states[s] = DecodeMoment(Codec(s), scale, e.codes[s]);
    }
  }

  // Returns the value that a new state has when it is stored.
  NUMSIM_INLINE float StoredValue(const StepElement& e, int s, size_t i) {
    if (!IsCoded(s)) return e.states[s];
    return DecodeMoment(Codec(s), s == 0 ? next_m_.At(i) : next_v_.At(i), e.codes[s]);
  }

  NUMSIM_INLINE void Direct(const RawElement& raw, StepElement& e) const {
    constexpr ElementLanes l;
    if constexpr (kKind == DirectionKind::kSgd) e.direction = e.states[0] * -1.0f;
    if constexpr (kKind == DirectionKind::kAdam) {
      const StableOptions& stable = constants_.stable;
      const float m = e.states[0], v = e.states[1];
      e.direction = AdamDirectionLanes(l, m, v, rates_.m_correction, rates_.denominator);
      if (stable.of_update) {
        const double decay =
            row_.decays ? static_cast<double>(static_cast<float>(constants_.weight_decay)) : 0;
        e.ratio = DecayedElement(
            static_cast<double>(e.direction), decay, static_cast<double>(raw.weight));
      } else if (stable.of_moment || !stable.previous_u) {
        const float numerator = stable.of_moment ? m : e.gradient;
        e.ratio = GradientRatioLanes(l, numerator, v, rates_.denominator, stable.epsilon_added);
      }
    }
  }

  // Returns the update that the weight takes: the direction with weight decay.
  NUMSIM_INLINE float Decayed(const RawElement& raw, float direction) const {
    return DecayedDirection(constants_.update, direction, decay_, raw.weight, raw.update);
  }

  template <class Env>
  NUMSIM_INLINE void StoreStates(const RawElement& raw, const StepElement& e, size_t i) const {
    NUMSIM_UNROLL
    for (int s = 0; s < kStates; ++s) {
      uint8_t* const codes = row_.moments[s].codes;
      if (IsCoded(s)) {
        ReplaceCode<Env>(Codec(s), codes, i, raw.states[s], e.codes[s]);
      } else {
        reinterpret_cast<float*>(codes)[i] = e.states[s];
      }
    }
  }

 private:
  NUMSIM_INLINE uint32_t LoadState(int s, size_t i) const {
    const uint8_t* const codes = row_.moments[s].codes;
    return IsCoded(s) ? LoadCode(Codec(s), codes, i) : reinterpret_cast<const uint32_t*>(codes)[i];
  }
  NUMSIM_INLINE float StateValue(int s, const RawElement& raw, size_t i) {
    if (!IsCoded(s)) return std::bit_cast<float>(raw.states[s]);
    return DecodeMoment(Codec(s), s == 0 ? stored_m_.At(i) : stored_v_.At(i), raw.states[s]);
  }

  const StepConstants& constants_;
  // Copies, which a device keeps in registers: what they are copied from may change with each store,
  // for all that its compiler knows.
  const TensorRow row_;
  const AdamRates rates_;
  const float decay_;
  float factor_;
  uint64_t stream_;
  ScaleCursor<MakeStoredScale> stored_m_, stored_v_;
  ScaleCursor<MakeNextScale> next_m_, next_v_;
};

// The arrays and constants of a tensor's weights, for the rules of element_rules.h.
struct WeightStep {
  const StepRule& rule;
  const StepRule& own;
  float largest;
  double limit;
  float learning_rate;
  float* values;
  uint16_t* words;
};

// Returns the float32 weight after a naive step.
NUMSIM_INLINE float NextPlainWeight(const WeightStep& step, float w, float u) {
  constexpr float kGreatest = 0x1.fffffep127f;
  const float sum = w + step.learning_rate * u;
  return sum < -kGreatest ? -kGreatest : sum > kGreatest ? kGreatest : sum;
}

// Takes the step of a weight by a rule, on the path of its rounding.
template <template <StepPath> class Rule>
NUMSIM_INLINE float NextOnPath(
    const WeightStep& step, size_t i, float w, float u, ElementState state, bool& beyond) {
  if (step.rule.path == StepPath::kGrid) {
    return Rule<StepPath::kGrid>{}.Next(step, i, w, u, state, 0, beyond);
  }
  return Rule<StepPath::kNearest>{}.Next(step, i, w, u, state, 0, beyond);
}

NUMSIM_INLINE float NextWeight(UpdateKind kind,
                               const WeightStep& step,
                               size_t i,
                               float w,
                               float u,
                               ElementState state,
                               uint32_t draw,
                               bool& beyond) {
  switch (kind) {
    case UpdateKind::kStochastic:
      return StochasticRule{}.Next(step, i, w, u, state, draw, beyond);
    case UpdateKind::kMasterFp32:
      return NextOnPath<MasterFp32Rule>(step, i, w, u, state, beyond);
    case UpdateKind::kSplitMaster:
      return SplitMasterRule{}.Next(step, i, w, u, state, draw, beyond);
    case UpdateKind::kKahan:
      return KahanRule{}.Next(step, i, w, u, state, draw, beyond);
    default:
      return NextOnPath<NaiveRule>(step, i, w, u, state, beyond);
  }
}

}  // namespace numsim
