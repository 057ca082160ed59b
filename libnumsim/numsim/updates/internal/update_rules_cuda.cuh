// The update rules for one weight, for the kernel of update_passes_cuda.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/shared/random_word_cuda.cuh"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_passes_device.h"

namespace numsim::cuda {

// State that a rule reads for an element, beside weight and update.
struct Extra {
  float value = 0;
  uint32_t word = 0;
};

__device__ inline bool WantedBeyond(const DeviceStep& step, float alpha, float w, float u) {
  const double wanted =
      static_cast<double>(w) + static_cast<double>(alpha) * static_cast<double>(u);
  return fabs(wanted) > step.limit;
}

// The rules. Load reads an element's state. Next returns the new weight, writes the new state, and
// sets `beyond` if the step goes beyond the largest finite value. kDraws is true for rules that use
// random bits.
template <StepPath kPath>
struct NaiveRule {
  static constexpr bool kDraws = false;
  __device__ Extra Load(const DeviceStep&, size_t) const { return {}; }
  __device__ float Next(
      const DeviceStep& step, size_t, float w, float u, Extra, uint32_t, bool& beyond) const {
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    return NearestValue<kPath>(step.rule, w + step.learning_rate * u);
  }
};

struct StochasticRule {
  static constexpr bool kDraws = true;
  __device__ Extra Load(const DeviceStep&, size_t) const { return {}; }
  __device__ float Next(
      const DeviceStep& step, size_t, float w, float u, Extra, uint32_t r, bool& beyond) const {
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    const double sum = OddStepSum(w, u, step.learning_rate);
    return RoundFloat64<RuleMode::kStochastic>(step.rule.plan, sum, r);
  }
};

template <StepPath kPath>
struct MasterFp32Rule {
  static constexpr bool kDraws = false;
  __device__ Extra Load(const DeviceStep& step, size_t i) const { return {step.values[i], 0}; }
  __device__ float Next(
      const DeviceStep& step, size_t i, float, float u, Extra x, uint32_t, bool& beyond) const {
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
  __device__ Extra Load(const DeviceStep& step, size_t i) const { return {0, step.words[i]}; }
  __device__ float Next(
      const DeviceStep& step, size_t i, float w, float u, Extra x, uint32_t, bool& beyond) const {
    const float master = JoinMaster(w, static_cast<uint16_t>(x.word));
    const float wanted = master + step.learning_rate * u;
    beyond = fabsf(wanted) > step.largest;
    const SplitWeight split = SplitMaster(wanted);
    step.words[i] = split.remainder;
    return split.weight;
  }
};

struct KahanRule {
  static constexpr bool kDraws = false;
  __device__ Extra Load(const DeviceStep& step, size_t i) const { return {step.values[i], 0}; }
  __device__ float Next(
      const DeviceStep& step, size_t i, float w, float u, Extra x, uint32_t, bool& beyond) const {
    constexpr RuleMode kNearest = RuleMode::kNearestEven;
    beyond = WantedBeyond(step, step.learning_rate, w, u);
    const double before = static_cast<double>(w);
    const double wanted = static_cast<double>(x.value) +
                          static_cast<double>(step.learning_rate) * static_cast<double>(u);
    const float after = RoundFloat64<kNearest>(step.rule.plan, OddSum(before, wanted), 0);
    const double lost = wanted - (static_cast<double>(after) - before);
    step.values[i] = RoundFloat64<kNearest>(step.own, lost, 0);
    return after;
  }
};

template <StepPath kPath>
struct MatchedRule {
  static constexpr bool kDraws = false;
  float low, high;
  TieDecision decision;

  __device__ Extra Load(const DeviceStep&, size_t) const { return {}; }
  __device__ float Next(
      const DeviceStep& step, size_t i, float w, float u, Extra, uint32_t, bool& beyond) const {
    beyond = WantedBeyond(step, high, w, u);
    const float at_low = NearestStep<kPath>(step.rule, w, u, low);
    const float at_high = NearestStep<kPath>(step.rule, w, u, high);
    if (at_low == at_high) return at_low;
    return decision.Moves(RandomWordAt(step.random, i), i) ? at_high : at_low;
  }
};

}  // namespace numsim::cuda
