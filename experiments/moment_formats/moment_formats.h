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

// The storage of both moments, as texts of moments/moment_format.h.
struct MomentPair {
  std::string m, v;

  std::string Text() const { return m + " / " + v; }
  friend bool operator==(const MomentPair&, const MomentPair&) = default;
};
inline const MomentPair kBaseline{"fp32", "fp32"};

// Returns every pair of the settings once: the baseline, the grid of --m, --v and --scalings, then
// --pairs. Throws Error naming a bad option.
std::vector<MomentPair> PairsOf(const Settings& settings);

// Returns the training configuration of a pair; `seed` is the seed of weights and batches.
TrainConfig ConfigOf(const Settings& settings, const MomentPair& pair, uint64_t seed);

Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
std::string Notes(const Settings& settings, const Tables& tables);

// Returns the final losses of all pairs, named "M / V". A training that diverged counts as no
// better than at its start.
OutcomeTable Losses(const Tables& tables);

// Returns the format "A" of the storage "A@SCALING+sr".
std::string FormatPart(std::string_view storage);
// Returns the rest of the storage, "@SCALING+sr"; "" if there is none.
std::string StoragePart(std::string_view storage);

}  // namespace moment_formats
}  // namespace numsim::experiments
