// Rankings of tensors by precision: each number from steps done by hand (hand_replay.h). Of
// numsim/analysis only the enum of rankings.
#pragma once

#include <string>
#include <vector>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/train/trainer.h"

namespace numsim {

// The numbers of numsim/analysis/precision_ranking.h.
struct RowByHand {
  std::string layer, tensor;
  double error_without = 0, error_alone = 0;
};
struct RankingByHand {
  double loss = 0, float32_loss = 0, error = 0, error_high = 0;
  std::string worst_parameter;
  double worst_error = 0;
  std::vector<RowByHand> rows;  // in the order of the model
};

// 1 - (without / error)^2, with the cases that have no number.
double EffectByHand(double error, double without);
// Ranks all that is quantised in the step that the trainer would take next. Requires that no layer
// is high for being the first or last.
RankingByHand RankByHand(Trainer& trainer, RankBy by);

}  // namespace numsim
