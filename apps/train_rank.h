// `numsim train --rank`: ranks by the next step, and trains nothing.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "numsim/config/config.h"

namespace numsim::apps {

struct RankArguments {
  std::string by;    // layer, tensor, operand; empty: no ranking
  size_t count = 0;  // lines and bars; 0: as RankRunOptions has them
};

// Prints the ranking. Throws Error as RunRanking, and for a `by` that is none.
int RankTraining(const TrainConfig& config,
                 const std::filesystem::path& out,
                 const RankArguments& arguments);

}  // namespace numsim::apps
