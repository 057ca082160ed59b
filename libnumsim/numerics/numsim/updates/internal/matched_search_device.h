// The search for alpha* and its tie set (matched_step.h) on the device.
#pragma once

#include <optional>

#include "numsim/updates/internal/matched_passes_device.h"
#include "numsim/updates/internal/tie_set.h"

namespace numsim {

// Device memory of the search.
struct MatchedMemory {
  DeviceSum* partial = nullptr;  // MatchedPasses::kPartials sums
  void* results = nullptr;       // MatchedPasses::kResults bytes
  DeviceElements lists[2];       // room for RoomForSurvivors(n) elements in each

  // Returns the room for elements per list. This depends only on n, so that the number of passes of
  // a step, which depends on the room, is reproducible.
  static size_t RoomForSurvivors(size_t n);
};

struct DeviceSearchResult {
  // alpha*, and the decision about which members of its tie set move. `found` is empty if no alpha
  // reaches the target.
  struct Found {
    AlphaKey key = 0;
    TieDecision decision;
  };
  std::optional<Found> found;
  int passes = 0;  // over all weights
};

// Finds alpha* and decides which members of its tie set move. A sample gives a bracket, a pass over
// all weights verifies it and keeps the weights that change within it, and passes over these
// evaluate 32 candidates at a time. The arrays are `all`, not those of `problem`. Except for
// `passes`, the result is that of SearchBySelection and MoveMembers.
DeviceSearchResult SearchOnDevice(const MatchedProblem& problem,
                                  const MatchedTerms& terms,
                                  const DeviceElements& all,
                                  const MatchedMemory& memory,
                                  MatchedPasses& passes,
                                  DeviceStream& stream);

}  // namespace numsim
