// The search of matched_step.h on the device.
#pragma once

#include <optional>

#include "numsim/updates/internal/matched_passes_device.h"
#include "numsim/updates/internal/tie_set.h"

namespace numsim {

// Room on the device.
struct MatchedMemory {
  DeviceSum* partial = nullptr;  // MatchedPasses::kPartials of them
  void* results = nullptr;       // MatchedPasses::kResults bytes
  DeviceElements lists[2];       // RoomForSurvivors(n) in each

  // A size that follows from n alone: how many passes a step takes depends on it.
  static size_t RoomForSurvivors(size_t n);
};

struct DeviceSearchResult {
  // Where alpha* is, and which members of its tie set move; empty where no alpha reaches the
  // target.
  struct Found {
    AlphaKey key = 0;
    TieDecision decision;
  };
  std::optional<Found> found;
  int passes = 0;  // over all weights
};

// A sample gives a bracket, a pass over all weights makes it certain and keeps the weights that
// change within it, and passes over these look at 32 candidates at a time. `problem` without its
// arrays: these are `all`. The result is that of SearchBySelection and MoveMembers but for passes.
DeviceSearchResult SearchOnDevice(const MatchedProblem& problem,
                                  const MatchedTerms& terms,
                                  const DeviceElements& all,
                                  const MatchedMemory& memory,
                                  MatchedPasses& passes,
                                  DeviceStream& stream);

}  // namespace numsim
