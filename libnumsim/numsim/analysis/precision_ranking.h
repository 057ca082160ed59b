// Which quantised tensor is guilty: how much each one contributes to the error of a step's
// gradient.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "numsim/train/trainer.h"

namespace numsim {

enum class RankBy : uint8_t {
  kLayer,    // all operands of a linear layer together
  kTensor,   // its X, W and G, each in both of its products
  kOperand,  // the six operands of its products; X, W and G where the kind keeps codes
};
// layer tensor operand. Throws Error listing them.
RankBy ParseRankBy(std::string_view text);
std::string_view ToString(RankBy by);

// Errors are those of the gradient of all parameters together, ||g - r|| / ||r||, against the
// gradient r of the same step with every product and tensor in float32. Infinite where g is not
// finite.
struct RankedTensor {
  std::string layer;   // linear layer; of a stored tensor its point
  std::string tensor;  // all; x, w, g; forward.x, ...; activation, gradient: a stored tensor
  std::string format;  // that it is quantised to; of a layer those of x, w, g, with blanks between
  // With this one alone in high precision, and the rest as configured.
  double error_without = 0;
  // What of the squared error goes with it: 1 - (error_without / error)^2. Negative where errors
  // cancelled; 1 where an infinite error becomes finite; 0 where both are infinite or the error is
  // 0.
  double effect = 0;
  // With this one alone quantised, and the rest in high precision.
  double error_alone = 0;
  // TOML of the [[linear.override]] that leaves this one in high precision, behind those that there
  // are; empty: a stored tensor, for which there is none.
  std::string linear_override;
};

struct PrecisionRanking {
  RankBy by = RankBy::kTensor;
  uint64_t step = 0;  // steps taken before the one that was looked at
  double loss = 0;    // of its batch, as configured
  double float32_loss = 0;
  double error = 0;  // as configured
  // With all quantised tensors in high precision: what high precision itself costs.
  double error_high = 0;
  std::string worst_parameter;  // the one whose own gradient has the largest relative error
  double worst_error = 0;
  std::vector<RankedTensor> tensors;  // by falling effect; of equal ones by falling error_alone,
                                      // then as the model has them
};

// Ranks every operand that a linear layer quantises and every tensor that [storage] rounds, by the
// next step of `trainer`, which is not changed. High precision is `high_precision` of the layer's
// own options, and float32 for storage. Two passes a tensor, and three before them; `progress`, if
// it is one, is called after each of the two with how many of those are done and how many there
// are. Nothing quantised: an empty ranking. Under delayed scaling every replay starts from the
// trainer's scales. An operand that shares its codes with another and is tried alone gets codes of
// its own, which under stochastic rounding are other draws. Throws Error where the gradient in
// float32 is not finite, and as StepReplay does.
PrecisionRanking RankPrecision(const Trainer& trainer,
                               RankBy by,
                               const std::function<void(size_t, size_t)>& progress);

// rank, layer, tensor, format, effect, error_without, error_alone.
Table RankingTable(const PrecisionRanking& ranking);
// Bars of the `count` tensors with the largest effect, and their errors alone.
Figure RankingFigure(const PrecisionRanking& ranking, size_t count = 20);
// Lines of text for a terminal and for ranking.txt: what was looked at, the first `count`, and the
// [[linear.override]] that would leave the first one in high precision.
std::string Describe(const PrecisionRanking& ranking, size_t count = 10);

// A ranking of what precision does, in the directory of a training.

struct RankRunOptions {
  std::filesystem::path out;
  RankBy by = RankBy::kTensor;
  size_t lines = 10;                             // of the text
  size_t bars = 20;                              // of the figure
  std::function<void(size_t, size_t)> progress;  // as RankPrecision's
};

struct RankRunResult {
  PrecisionRanking ranking;
  bool from_checkpoint = false;    // else at the start
  std::string text;                // of ranking.txt
  std::vector<std::string> files;  // written, relative to out
};

// Trains nothing: ranks by the step that would come next, after the checkpoint in options.out where
// there is one, also of a training that has ended, else the first step. Writes ranking.csv,
// ranking.gp, .svg and .pdf (figures as DrawFigure) and ranking.txt, in place of those that are
// there; ranking.txt comes last, so where it is they are all of one ranking. Other files of the
// directory are not touched. Throws Error as RunTraining does with `resume`, and as RankPrecision;
// then the files are as they were, but for errors of writing.
RankRunResult RunRanking(const TrainConfig& config, const RankRunOptions& options);

}  // namespace numsim
