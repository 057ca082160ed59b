// Checks of rankings of tensors by precision.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "numsim/analysis/precision_ranking.h"

namespace numsim {

inline constexpr RankBy kAllRankings[] = {RankBy::kLayer, RankBy::kTensor, RankBy::kOperand};

// Without progress.
PrecisionRanking Rank(const Trainer& trainer, RankBy by);

using RowName = std::pair<std::string, std::string>;  // layer, tensor
// Of the first row; empty where there is none.
RowName First(const PrecisionRanking& ranking);
// nullptr when there is none.
const RankedTensor* Find(const PrecisionRanking& ranking, const RowName& name);

// A llama of two blocks of width 32 in float32, on 4 sequences of 16 tokens. Its weights are so
// large that every layer matters, not the head alone.
TrainConfig TwoBlocks();
// Layers of that kind whose high precision is float32. Format may be empty.
LinearOptions Quantized(std::string_view kind, std::string_view format);

// Expects what follows from the numbers of the ranking alone: effects and the order.
void ExpectConsistent(const PrecisionRanking& ranking);
// Relative error of 1e-10; the same where it is not finite.
void ExpectClose(double value, double expected);
// Ranks, and expects every number to be that of steps by hand (RankByHand), and rows for all that
// is quantised. Requires that no layer is high for being the first or last.
void ExpectRankingByHand(Trainer& trainer, RankBy by);

}  // namespace numsim
