#include "numsim/linear/step_profile.h"

#include <numeric>

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<StepPart> kParts[] = {{"product", StepPart::kProduct},
                                        {"quantise", StepPart::kQuantise},
                                        {"attention", StepPart::kAttention},
                                        {"norm", StepPart::kNorm},
                                        {"activation", StepPart::kActivation},
                                        {"embedding", StepPart::kEmbedding},
                                        {"residual", StepPart::kResidual},
                                        {"loss", StepPart::kLoss},
                                        {"optimiser", StepPart::kOptimiser},
                                        {"data", StepPart::kData},
                                        {"telemetry", StepPart::kTelemetry}};
static_assert(std::size(kParts) == kStepParts);

}  // namespace

std::string_view Name(StepPart part) { return KeywordText(kParts, part); }

double StepProfile::Sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }

}  // namespace numsim
