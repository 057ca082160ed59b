// The update rules for one weight, for the kernel of update_passes_cuda.cu.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numsim/cast/shared/random_word_cuda.cuh"
#include "numsim/updates/internal/update_passes_device.h"
#include "numsim/updates/shared/element_rules.h"

namespace numsim::cuda {

// The rule of the last pass of a matched step, for the kernel that also runs element_rules.h.
template <StepPath kPath>
struct MatchedRule {
  static constexpr bool kDraws = false;
  static constexpr RuleState kState = RuleState::kNone;
  float low, high;
  TieDecision decision;

  __device__ ElementState Load(const DeviceStep&, size_t) const { return {}; }
  __device__ float Next(const DeviceStep& step,
                        size_t i,
                        float w,
                        float u,
                        ElementState,
                        uint32_t,
                        bool& beyond) const {
    beyond = WantedBeyond(step, high, w, u);
    const float at_low = NearestStep<kPath>(step.rule, w, u, low);
    const float at_high = NearestStep<kPath>(step.rule, w, u, high);
    if (at_low == at_high) return at_low;
    return decision.Moves(RandomWordAt(step.random, i), i) ? at_high : at_low;
  }
};

}  // namespace numsim::cuda
