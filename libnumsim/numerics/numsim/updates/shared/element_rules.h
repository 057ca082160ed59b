// The update rules for one weight, on host and device. All numbers are finite.
//
// A rule takes its constants and arrays from a step, which has
//   rule (a StepRule), own (a StepRule or an EncodePlan), largest, limit, learning_rate, values, words
// as DeviceStep of update_passes_device.h.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "numsim/base/host_device.h"
#include "numsim/cast/shared/round_f64.h"
#include "numsim/cast/shared/round_step_rule.h"
#include "numsim/updates/internal/split_master.h"

namespace numsim {

// State that a rule reads for an element, beside weight and update.
struct ElementState {
  float value = 0;
  uint32_t word = 0;
};

// Returns fl32(fl64(u - decay W)). kahan: W is w + c, with c in state.value; with a master W is that.
NUMSIM_HOST_DEVICE inline float DecayedElement(double u, double decay, double weight) {
  return static_cast<float>(u - decay * weight);
}
// kahan's: u - decay w - decay c, rounded once, as in update_decay.cc.
NUMSIM_HOST_DEVICE inline float DecayedCompensated(double u,
                                                   double decay,
                                                   double weight,
                                                   double compensation) {
  const SumAndError small = SumExactly(-(decay * weight), -decay * compensation);
  const SumAndError all = SumExactly(u, small.sum);
  return static_cast<float>(all.sum + OddSum(all.error, small.error));
}

// Returns true if |w + alpha u|, in float64, exceeds the limit of the step.
template <class Step>
NUMSIM_INLINE bool WantedBeyond(const Step& step, float alpha, float w, float u) {
  // Few come near the limit, as float32 tells: its roundings lower the bound by less than 2^-22.
  const float bound = fabsf(w) + fabsf(alpha * u);
  if (bound < static_cast<float>(step.limit) * 0.9999f) return false;
  const double wanted =
      static_cast<double>(w) + static_cast<double>(alpha) * static_cast<double>(u);
  return fabs(wanted) > step.limit;
}

// The array of the step that holds a rule's state.
enum class RuleState : uint8_t { kNone, kValues, kWords };

// The rules. Load reads an element's state. Next returns the new weight, writes the new state, and
// sets `beyond` if the step goes beyond the largest finite value. kDraws is true for rules that use
// random bits.
template <StepPath kPath>
struct NaiveRule {
  static constexpr bool kDraws = false;
  static constexpr RuleState kState = RuleState::kNone;
  template <class Step>
  NUMSIM_INLINE ElementState Load(const Step&, size_t) const {
    return {};
  }
  template <class Step>
  NUMSIM_INLINE float Next(
      const Step& step, size_t, float w, float u, ElementState, uint32_t, bool& beyond) const {
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    return NearestValue<kPath>(step.rule, w + step.learning_rate * u);
  }
};

template <StepPath kPath>
struct StochasticRuleOn {
  static constexpr bool kDraws = true;
  static constexpr RuleState kState = RuleState::kNone;
  template <class Step>
  NUMSIM_INLINE ElementState Load(const Step&, size_t) const {
    return {};
  }
  template <class Step>
  NUMSIM_INLINE float Next(
      const Step& step, size_t, float w, float u, ElementState, uint32_t r, bool& beyond) const {
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    return StochasticStep<kPath>(step.rule, w, u, step.learning_rate, r);
  }
};

template <StepPath kPath>
struct MasterFp32Rule {
  static constexpr bool kDraws = false;
  static constexpr RuleState kState = RuleState::kValues;
  template <class Step>
  NUMSIM_INLINE ElementState Load(const Step& step, size_t i) const {
    return {step.values[i], 0};
  }
  template <class Step>
  NUMSIM_INLINE float Next(
      const Step& step, size_t i, float, float u, ElementState x, uint32_t, bool& beyond) const {
    constexpr float kGreatest = 0x1.fffffep127f;
    float master = x.value + step.learning_rate * u;
    master = master < -kGreatest ? -kGreatest : master > kGreatest ? kGreatest : master;
    beyond = fabsf(master) > step.largest;
    step.values[i] = master;
    return NearestValue<kPath>(step.rule, master);
  }
};

struct SplitMasterRule {
  static constexpr bool kDraws = false;
  static constexpr RuleState kState = RuleState::kWords;
  template <class Step>
  NUMSIM_INLINE ElementState Load(const Step& step, size_t i) const {
    return {0, step.words[i]};
  }
  template <class Step>
  NUMSIM_INLINE float Next(
      const Step& step, size_t i, float w, float u, ElementState x, uint32_t, bool& beyond) const {
    const float master = JoinMaster(w, static_cast<uint16_t>(x.word));
    const float wanted = master + step.learning_rate * u;
    beyond = fabsf(wanted) > step.largest;
    const SplitWeight split = SplitMaster(wanted);
    step.words[i] = split.remainder;
    return split.weight;
  }
};

// kPath, kOwnPath: those of the weights' and of the compensation's format.
template <StepPath kPath, StepPath kOwnPath>
struct KahanRuleOn {
  static constexpr bool kDraws = false;
  static constexpr RuleState kState = RuleState::kValues;
  template <class Step>
  NUMSIM_INLINE ElementState Load(const Step& step, size_t i) const {
    return {step.values[i], 0};
  }
  template <class Step>
  NUMSIM_INLINE float Next(
      const Step& step, size_t i, float w, float u, ElementState x, uint32_t, bool& beyond) const {
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    const double before = static_cast<double>(w);
    const double wanted = static_cast<double>(x.value) +
                          static_cast<double>(step.learning_rate) * static_cast<double>(u);
    const float after = NearestOfFloat64<kPath>(step.rule, OddSum(before, wanted));
    const double lost = wanted - (static_cast<double>(after) - before);
    step.values[i] = NearestOfFloat64<kOwnPath>(step.own, lost);
    return after;
  }
};

// The two rules on the paths that the step has.
struct StochasticRule {
  template <class Step>
  NUMSIM_INLINE float Next(const Step& step,
                           size_t i,
                           float w,
                           float u,
                           ElementState state,
                           uint32_t r,
                           bool& beyond) const {
    constexpr StepPath kGrid = StepPath::kStochasticGrid, kAny = StepPath::kStochastic;
    if (step.rule.path == kGrid) {
      return StochasticRuleOn<kGrid>{}.Next(step, i, w, u, state, r, beyond);
    }
    return StochasticRuleOn<kAny>{}.Next(step, i, w, u, state, r, beyond);
  }
};

struct KahanRule {
  template <class Step>
  NUMSIM_INLINE float Next(const Step& step,
                           size_t i,
                           float w,
                           float u,
                           ElementState state,
                           uint32_t r,
                           bool& beyond) const {
    constexpr StepPath kGrid = StepPath::kGrid, kAny = StepPath::kNearest;
    const bool on_grid = step.rule.path == kGrid;
    if (on_grid && step.own.path == kGrid) {
      return KahanRuleOn<kGrid, kGrid>{}.Next(step, i, w, u, state, r, beyond);
    }
    if (on_grid) return KahanRuleOn<kGrid, kAny>{}.Next(step, i, w, u, state, r, beyond);
    return KahanRuleOn<kAny, kAny>{}.Next(step, i, w, u, state, r, beyond);
  }
};

}  // namespace numsim
