// What is made of a training that has ended: summary, figures, manifest.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "numsim/train/run.h"

namespace numsim {

// The text of summary.txt: reproducible content alone.
std::string SummaryText(Trainer& trainer);

// Draws the curves of the CSVs in `directory`: "loss" and, where optimizer.csv has rows,
// "optimizer". Returns the files written, relative to it. Throws Error as DrawFigure and ReadCsv
// do.
std::vector<std::string> DrawCurves(const Trainer& trainer, const std::filesystem::path& directory);

// What the trainer has timed. `rates`: measures the rates of float32 products too, which takes a
// tenth of a second.
TrainSpeed MeasureSpeed(Trainer& trainer, bool rates);

// Writes manifest.json about `result.files`. `started`: as UtcNow.
void WriteRunManifest(const Trainer& trainer,
                      const TrainRunOptions& options,
                      const TrainRunResult& result,
                      const std::string& started);

}  // namespace numsim
