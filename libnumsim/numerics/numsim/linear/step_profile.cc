#include "numsim/linear/step_profile.h"

#include <numeric>

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<StepPhase> kParts[] = {{"product", StepPhase::kProduct},
                                         {"quantise", StepPhase::kQuantize},
                                         {"attention", StepPhase::kAttention},
                                         {"norm", StepPhase::kNorm},
                                         {"activation", StepPhase::kActivation},
                                         {"embedding", StepPhase::kEmbedding},
                                         {"residual", StepPhase::kResidual},
                                         {"loss", StepPhase::kLoss},
                                         {"optimiser", StepPhase::kOptimiser},
                                         {"data", StepPhase::kData},
                                         {"telemetry", StepPhase::kTelemetry}};
static_assert(std::size(kParts) == kStepPhases);

}  // namespace

std::string_view ToString(StepPhase part) { return KeywordToString(kParts, part); }

double StepProfile::Sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

}  // namespace numsim
