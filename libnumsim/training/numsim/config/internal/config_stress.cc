#include "numsim/base/error.h"
#include "numsim/config/config.h"
#include "numsim/config/config_value.h"

namespace numsim {
namespace {

constexpr RealRange kValues{-kLargestPlanted, false, kLargestPlanted, false};
constexpr RealRange kTails{0, false, kLargestInputTail, false};
constexpr RealRange kJumps{0, true, kLargestJump, false};

void CheckRange(std::string_view key, double x, const RealRange& range) {
  if (!range.Holds(x)) throw KeyError::Format(key, "{} is out of range: {}", x, range.Text());
}

}  // namespace

void CheckStressConfig(const StressConfig& stress) {
  CheckRange("stress.value", stress.value, kValues);
  CheckRange("stress.input_tail", stress.input_tail, kTails);
  CheckRange("stress.jump_loss", stress.jump_loss, kJumps);
  CheckRange("stress.jump_contrast", stress.jump_contrast, kJumps);
  if (stress.point.empty() && stress.value != 0) {
    throw KeyError::Format("stress.value", "{} is set without stress.point", stress.value);
  }
  if (stress.burst_tensor.empty() && (stress.burst_step != 0 || stress.burst_steps != 1)) {
    throw KeyError("stress.burst_tensor", "a burst is set without the parameter that it is in");
  }
  if (stress.nudge_draw == 0 && stress.nudge_step != 0) {
    throw KeyError::Format(
        "stress.nudge_step", "{} is set without stress.nudge_draw", stress.nudge_step);
  }
  if (stress.old_steps == 0 && stress.old_batches != 1) {
    throw KeyError::Format(
        "stress.old_batches", "{} is set without stress.old_steps", stress.old_batches);
  }
  if (stress.jump_step != 0 && stress.jump_loss == 1 && stress.jump_contrast == 1) {
    throw KeyError::Format("stress.jump_step",
                           "{} is set without stress.jump_loss or stress.jump_contrast",
                           stress.jump_step);
  }
}

}  // namespace numsim
