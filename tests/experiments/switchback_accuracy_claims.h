// The claims of `switchback-accuracy`, from hand-made trainings.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

#include "tests/experiments/switchback_accuracy_fixture.h"

namespace numsim::experiments::switchback_accuracy {

// In the order of the summary.
enum ClaimIndex : size_t {
  kMatchInt8,
  kLlmWorse,
  kGrowth,
  kMechanism,
  kVariants,
  kTensorWiseInt8,
  kMatchFp8,
  kTensorWiseFp8,
  kGrids,
  kClaims  // how many
};

class SwitchbackClaims : public SwitchbackTables {
 protected:
  Summary Summarised() {
    Finish();
    return Summarise(SettingsOfTest(), tables_);
  }
  Claim ClaimOf(size_t claim) { return Summarised().claims.at(claim); }
  std::string VerdictOf(size_t claim) { return ClaimOf(claim).verdict; }
  std::string MeasuredOf(size_t claim) { return ClaimOf(claim).measured; }

  // A baseline, switchback:int8 with gaps that differ by seed, and a variant that is that much
  // worse than switchback.
  void AddAgainstSwitchback(const Group& group,
                            const std::string& variant,
                            const std::vector<double>& differences) {
    const std::vector<double> switchback = {1, -1, 0.5};
    AddBaseline(group);
    AddGaps(group, "switchback:int8", switchback);
    std::vector<double> gaps = switchback;
    for (size_t i = 0; i < gaps.size(); ++i) gaps[i] += differences[i];
    AddGaps(group, variant, gaps);
  }
  // The errors of the weight gradients' own products; `error` says something else.
  void AddOwnErrors(const Group& group, double llm, double switchback) {
    AddGradient(group, "llm-int8:int8", 0.5, llm);
    AddGradient(group, "switchback:int8", 0.5, switchback);
  }
};

}  // namespace numsim::experiments::switchback_accuracy
