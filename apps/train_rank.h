// `numsim train --rank`: ranks layers, tensors or operands by the effect of their precision on the
// next step, without training.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "numsim/config/config.h"

namespace numsim::apps {

struct RankArguments {
  std::string by;    // layer, tensor or operand; empty: no ranking
  size_t count = 0;  // number of lines and bars; 0: the defaults of RankRunOptions
};

// Computes and prints the ranking. Returns the exit code 0. Throws Error like RunRanking(), and if
// `by` is not a valid choice.
int RankTraining(const TrainConfig& config,
                 const std::filesystem::path& out,
                 const RankArguments& arguments);

}  // namespace numsim::apps
