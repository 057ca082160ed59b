// Learning rate schedules.
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim {
namespace {

constexpr Keyword<ScheduleKind> kKinds[] = {
    {"constant", ScheduleKind::kConstant},
    {"cosine", ScheduleKind::kCosine},
    {"linear", ScheduleKind::kLinear},
};

void CheckShare(const char* field, double value, double largest) {
  if (value >= 0 && value <= largest) return;
  throw KeyError::Format(field, "{} is not in [0, {:g}]", value, largest);
}

}  // namespace

ScheduleKind ParseScheduleKind(std::string_view text) {
  return ParseKeyword(kKinds, "schedule", text);
}

std::string_view ToString(ScheduleKind kind) { return KeywordToString(kKinds, kind); }

std::string ScheduleKindNames() { return KeywordNames(kKinds); }

double Schedule::At(uint64_t step) const {
  if (step < warmup) return peak * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == ScheduleKind::kConstant) return peak;
  if (step >= steps) return peak * final;
  const double progress = static_cast<double>(step - warmup) / static_cast<double>(steps - warmup);
  const double fallen =
      kind == ScheduleKind::kLinear ? progress : (1 - SinCos2Pi(progress / 2).cos) / 2;
  return peak * (1 - (1 - final) * fallen);
}

void CheckSchedule(const Schedule& schedule) {
  CheckShare("schedule.peak", schedule.peak, 1e38);
  CheckShare("schedule.final", schedule.final, 1);
}

}  // namespace numsim
