#include "experiments/runner/seeds.h"

#include "experiments/runner/settings.h"
#include "numsim/base/error.h"

namespace numsim::experiments {

void CheckJudgingSeeds(const Settings& settings) {
  const auto count = static_cast<uint64_t>(WithAllSeeds(settings).seeds);
  if (settings.seed < kFirstPilotSeed && settings.seed + count <= kFirstPilotSeed) return;
  throw Error::Format(
      "--seed {}: with {} seeds the last is {}; expected one below {}, since those from there on are of "
      "pilots and of tuning, which do not judge",
      settings.seed,
      count,
      settings.seed + count - 1,
      kFirstPilotSeed);
}

}  // namespace numsim::experiments
