// Comparison of trainings, read from the directories that RunTraining wrote.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "numsim/models/model_config.h"
#include "numsim/plot/figure.h"

namespace numsim {

struct ComparedTraining {
  std::filesystem::path directory = {};
  // The values of the keys that differ, as in "optimizer.m=e5m2, train.seed=1"; the directory if no
  // key differs or the text would be too long for a legend. Distinct within a comparison.
  std::string label = {};
  std::vector<std::string> values = {};  // of TrainComparison::keys; "-" for a key that is not set
  uint64_t steps = 0, planned = 0;       // steps taken, and train.steps
  // The rows of train.csv (steps taken before the row's step) and of valid.csv (steps taken).
  std::vector<double> train_steps = {}, train_losses = {};
  std::vector<double> valid_steps = {}, valid_losses = {};
  double train_loss = 0;    // mean of the rows of the last 10 steps
  double valid_loss = 0;    // of the last validation; NaN if there is none
  uint64_t rows_every = 1;  // telemetry.every: steps between the rows of train.csv
};

struct TrainComparison {
  ModelKind kind = ModelKind::kLlama;  // of the first; losses of all have the same unit
  std::vector<std::string> keys = {};  // that differ, in the order of ConfigKeys
  std::vector<ComparedTraining> trainings = {};
  uint64_t mean_steps = 0;  // in a figure, a training loss is the mean of so many last steps
};

// Reads config.toml, train.csv and valid.csv of each directory; the trainings need not have ended.
// Throws Error naming the directory or file: fewer than two directories, one given twice, one that
// does not exist or holds no training, a training without a step, losses of different units, a file that
// has been changed since the training ended (by the SHA-256 in manifest.json).
TrainComparison CompareTrainings(const std::vector<std::filesystem::path>& directories);

// Returns lines of text for a terminal: losses per training, and the keys that differ.
std::string ComparisonText(const TrainComparison& comparison);

// Draws the curves as OUT.gp, OUT.svg and OUT.pdf (see DrawFigure) and writes their data to
// OUT.csv: directory, label, curve (training or validation), step, loss, shown (the mean in the
// figure). Below the losses the figure shows their differences from those of the first training, at
// the steps that both have. An extension .svg, .pdf, .gp or .csv of `out` is ignored. Returns the
// paths written. Throws Error if one of these files exists, naming it; nothing is written then.
std::vector<std::filesystem::path> WriteComparison(const TrainComparison& comparison,
                                                   const std::filesystem::path& out,
                                                   const FigureStyle& style = {});

}  // namespace numsim
