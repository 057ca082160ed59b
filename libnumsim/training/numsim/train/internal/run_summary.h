// The results of a training that has ended: summary, figures, speed and manifest.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/csv.h"
#include "numsim/io/manifest.h"
#include "numsim/train/run.h"

namespace numsim {

// A training as its results describe it.
struct RunFacts {
  const TrainConfig& config;
  const DataSource& data;
  TrainStatus status = TrainStatus::kRunning;
  std::string reason = {};
  uint64_t steps = 0;
  double recent_loss = 0;
  std::optional<LossSum> validation = {};
  std::optional<ZeroShot> zero_shot = {};
  size_t parameters = 0;
  Optimizer::Bytes bytes = {};
};
RunFacts FactsOf(const Trainer& trainer);

// Where and how a training ran.
struct RunOrigin {
  std::filesystem::path out = {};
  bool figures = true;
  std::vector<std::string> command = {};  // argv
  NamedTexts versions = {};               // of other programs
  std::string started = {};               // has the form of UtcNow()
};

// Returns the result of a training. Without its files, speed and summary if it has not ended.
TrainRunResult ResultOf(const RunFacts& facts);
// Draws the figures and writes summary.txt and manifest.json of a training that has ended, from what
// its CSV files have. Adds the summary and the files to the result.
void WriteResults(const RunFacts& facts, const RunOrigin& origin, TrainRunResult& result);

// Returns the text of summary.txt, which has reproducible content only.
std::string SummaryText(const RunFacts& facts);

// Returns lines for summary.txt about the spikes after the warm-up in the rows of train.csv; "" if it
// does not have a row for every step.
std::string SpikesText(const TrainConfig& config, const Table& train);

// Draws figures from the rows of train.csv and the other CSVs in `directory`: "loss" and, if
// optimizer.csv and what_if.csv have rows, "optimizer" and "what_if".
// Returns the files written, relative to `directory`. Throws Error as DrawFigure and ReadCsv do.
std::vector<std::string> DrawCurves(const RunFacts& facts,
                                    const Table& train,
                                    const std::filesystem::path& directory);

// Returns the speed computed from the trainer's timings. If `rates` is true, also measures the
// float32 GEMM rates, which takes a tenth of a second.
TrainSpeed MeasureSpeed(Trainer& trainer, bool rates);

}  // namespace numsim
