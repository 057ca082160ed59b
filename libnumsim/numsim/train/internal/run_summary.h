// The results of a training that has ended: summary, figures, speed and manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "numsim/train/run.h"

namespace numsim {

// Returns the text of summary.txt, which has reproducible content only.
std::string SummaryText(Trainer& trainer);

// Returns lines for summary.txt about the spikes in train.csv after the warm-up; "" if train.csv does
// not have a row for every step.
std::string SpikesText(const Trainer& trainer, const std::filesystem::path& directory);

// Draws figures from the CSVs in `directory`: "loss" and, if optimizer.csv has rows, "optimizer".
// Returns the files written, relative to `directory`. Throws Error as DrawFigure and ReadCsv do.
std::vector<std::string> DrawCurves(const Trainer& trainer, const std::filesystem::path& directory);

// Returns the speed computed from the trainer's timings. If `rates` is true, also measures the
// float32 GEMM rates, which takes a tenth of a second.
TrainSpeed MeasureSpeed(Trainer& trainer, bool rates);

// Writes manifest.json, which lists `result.files`. `started` has the form of UtcNow().
void WriteRunManifest(const Trainer& trainer,
                      const TrainRunOptions& options,
                      const TrainRunResult& result,
                      const std::string& started);

}  // namespace numsim
