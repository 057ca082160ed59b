#include "numsim/updates/internal/require_state.h"

#include "numsim/base/require.h"

namespace numsim {

void RequireState(const UpdateRule& rule,
                  const UpdateState& state,
                  size_t weights,
                  size_t groups,
                  const char* function) {
  const UpdateKind kind = rule.kind;
  const bool scaled = kind == UpdateKind::kMasterFp16Scaled;
  const bool has_values = kind == UpdateKind::kMasterFp32 || kind == UpdateKind::kKahan;
  const bool has_words = scaled || kind == UpdateKind::kSplitMaster;
  RequireSize(state.values.size(), has_values ? weights : 0, function, "state.values");
  RequireSize(state.words.size(), has_words ? weights : 0, function, "state.words");
  RequireSize(state.scales.size(), scaled ? groups : 0, function, "state.scales");
}

}  // namespace numsim
