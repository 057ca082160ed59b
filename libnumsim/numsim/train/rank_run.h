// A ranking of what precision does, in the directory of a training.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "numsim/train/config.h"
#include "numsim/train/precision_ranking.h"

namespace numsim {

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
