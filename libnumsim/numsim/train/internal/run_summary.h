// The results of a training that has ended: summary, figures, speed and manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "numsim/config/config.h"
#include "numsim/io/csv.h"
#include "numsim/train/run.h"

namespace numsim {

// Returns the text of summary.txt, which has reproducible content only.
std::string SummaryText(Trainer& trainer);

// Returns lines for summary.txt about the spikes after the warm-up in the rows of train.csv; "" if it
// does not have a row for every step.
std::string SpikesText(const TrainConfig& config, const Table& train);

// Draws figures from the rows of train.csv and the other CSVs in `directory`: "loss" and, if
// optimizer.csv and what_if.csv have rows, "optimizer" and "what_if".
// Returns the files written, relative to `directory`. Throws Error as DrawFigure and ReadCsv do.
std::vector<std::string> DrawCurves(const Trainer& trainer,
                                    const Table& train,
                                    const std::filesystem::path& directory);

// Returns the speed computed from the trainer's timings. If `rates` is true, also measures the
// float32 GEMM rates, which takes a tenth of a second.
TrainSpeed MeasureSpeed(Trainer& trainer, bool rates);

// Writes manifest.json, which lists `result.files`. `started` has the form of UtcNow().
void WriteRunManifest(const Trainer& trainer,
                      const TrainRunOptions& options,
                      const TrainRunResult& result,
                      const std::string& started);

}  // namespace numsim
