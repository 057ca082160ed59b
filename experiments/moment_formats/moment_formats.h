// The experiment `moment-formats`: Adam's moments in small formats (Figure 5, Tables 1 and 4 of
// [Fishman]).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment MomentFormats();

namespace moment_formats {

inline constexpr std::string_view kCurvesTable = "curves";
inline constexpr std::string_view kFlushedTable = "flushed";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kPairsTable = "pairs";
inline constexpr std::string_view kMemoryTable = "memory";

// How both moments are stored, as texts of moments/moment_format.h.
struct MomentPair {
  std::string m, v;

  std::string Text() const { return m + " / " + v; }
  friend bool operator==(const MomentPair&, const MomentPair&) = default;
};
inline const MomentPair kBaseline{"fp32", "fp32"};

// Every pair of the settings once: the baseline, the grid of --m, --v and --scalings, then --pairs.
// Throws Error naming the option.
std::vector<MomentPair> PairsOf(const Settings& settings);

// The training of a pair; `seed` is that of weights and batches.
TrainConfig ConfigOf(const Settings& settings, const MomentPair& pair, uint64_t seed);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// A pair matches fp32 when its validation loss is above that of fp32 by at most this share of what
// fp32 gained since the start, and fails when it is above by more than kFails of that, or diverged.
inline constexpr double kMatches = 0.01;
inline constexpr double kFails = 0.05;
// The verdict where fp32 gained nothing or diverged: there is nothing to compare with.
inline constexpr std::string_view kNoVerdict = "none";

// "A" of "A@SCALING+sr"; "@SCALING+sr", "" without.
std::string FormatPart(std::string_view storage);
std::string StoragePart(std::string_view storage);

}  // namespace moment_formats
}  // namespace numsim::experiments
