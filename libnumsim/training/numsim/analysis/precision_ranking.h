// Ranks the quantised tensors of a model by their contribution to the error of a step's gradient.
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

// The unit that a ranking tries in high precision.
enum class RankBy : uint8_t {
  kLayer,    // all operands of a linear layer together
  kTensor,   // X, W and G of a layer, each in both of its GEMMs
  kOperand,  // the six operands of a layer's GEMMs; X, W and G if the kind saves codes for backward
};
// Names: layer, tensor, operand. ParseRankBy throws Error listing them.
RankBy ParseRankBy(std::string_view text);
std::string_view ToString(RankBy by);

// One row of a ranking. Errors are relative errors of the gradient g of all parameters together,
// ||g - r|| / ||r||, where r is the gradient of the same step with every GEMM and tensor in
// float32. An error is infinite if g is not finite.
struct RankedTensor {
  std::string layer;   // linear layer; for a stored tensor, the tensor's name
  std::string tensor;  // all; x, w, g; forward.x, ...; activation or gradient for a stored tensor
  std::string format;  // quantisation format; for a layer, those of x, w, g separated by blanks
  // Error with only this tensor in high precision and the rest as configured.
  double error_without = 0;
  // Fraction of the squared gradient error removed by keeping this tensor in high precision:
  // 1 - (error_without / error)^2. Negative if errors cancelled; 1 if an infinite error becomes
  // finite; 0 if both errors are infinite or the error is 0.
  double effect = 0;
  // Error with only this tensor quantised and the rest in high precision.
  double error_alone = 0;
  // TOML of the [[linear.override]] that keeps this tensor in high precision, to be placed after
  // the existing overrides. Empty for a stored tensor, for which there is no override.
  std::string linear_override;
};

// A ranking of the quantised tensors of one step by the gradient error that they cause.
struct PrecisionRanking {
  RankBy by = RankBy::kTensor;
  uint64_t step = 0;  // number of steps taken before the replayed step
  double loss = 0;    // loss of the step's batch, as configured
  double float32_loss = 0;
  double error = 0;  // as configured
  // Error with all quantised tensors in high precision: the error of high precision itself.
  double error_high = 0;
  std::string worst_parameter;  // parameter whose own gradient has the largest relative error
  double worst_error = 0;
  std::vector<RankedTensor> tensors;  // by descending effect, then by descending error_alone, then
                                      // in the order of the model
};

// Ranks every operand that a linear layer quantises and every tensor that [storage] rounds, using
// the next step of `trainer`, which is not changed. High precision means `high_precision` of the
// layer's own options, and float32 for storage. The ranking is empty if nothing is quantised. Under
// delayed scaling every replay starts from the trainer's scales. An operand that shares its codes
// with another gets codes of its own when it is tried alone; under stochastic rounding these use
// other random bits. Throws Error if the float32 gradient is not finite, and as StepReplay does.
// Costs three passes, then two passes per tensor. `progress`, unless empty, is called after each of
// the latter with the number of these passes that are done and their total number.
PrecisionRanking RankPrecision(const Trainer& trainer,
                               RankBy by,
                               const std::function<void(size_t, size_t)>& progress);

// Returns a table with columns rank, layer, tensor, format, effect, error_without, error_alone.
Table RankingTable(const PrecisionRanking& ranking);
// Returns a bar chart of effect and error_alone of the `count` tensors with the largest effect.
Figure RankingFigure(const PrecisionRanking& ranking, size_t count = 20);
// Returns lines of text for a terminal and for ranking.txt: the step and its errors, the first
// `count` tensors, and the [[linear.override]] that keeps the first one in high precision.
std::string Describe(const PrecisionRanking& ranking, size_t count = 10);

// A ranking whose results are written into the directory of a training.

// The directory of a ranking, and what it shows.
struct RankRunOptions {
  std::filesystem::path out = {};
  RankBy by = RankBy::kTensor;
  size_t lines = 10;                                  // tensors in the text
  size_t bars = 20;                                   // tensors in the figure
  std::function<void(size_t, size_t)> progress = {};  // see RankPrecision
};

// The ranking, and what was written.
struct RankRunResult {
  PrecisionRanking ranking;
  bool from_checkpoint = false;    // false: ranked by the first step of a training
  std::string text;                // the contents of ranking.txt
  std::vector<std::string> files;  // written, relative to out
};

// Ranks the tensors without training, using the step after the checkpoint in options.out, also if
// that training has ended, or the first step if there is no checkpoint. Replaces ranking.csv,
// ranking.gp, .svg and .pdf (see DrawFigure) and ranking.txt; other files of the directory are not
// touched. ranking.txt is written last: if it exists, all of these files are of one ranking. Throws
// Error as RunTraining does with `resume`, and as RankPrecision does; unless writing failed, the
// files are then unchanged.
RankRunResult RunRanking(const TrainConfig& config, const RankRunOptions& options);

}  // namespace numsim
