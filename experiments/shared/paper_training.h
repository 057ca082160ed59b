// The trainings of the papers: one list of settings, from which the summary of every study that trains
// lists its deviations. The values of a run are read from the configurations of its trainings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/claims/deviation.h"
#include "experiments/claims/scale.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

enum class Paper : uint8_t { kSwitchBack, kFishman, kNvfp4 };  // keys of docs/references.md
// Returns the key of a paper: "SwitchBack". ParsePaper throws Error that lists them for any other text.
std::string_view ToString(Paper paper);
Paper ParsePaper(std::string_view text);

// A training of a paper.
struct PaperTraining {
  Paper paper = Paper::kSwitchBack;
  std::string figure;  // one of FiguresOf; empty: that of the paper as a whole
};
// Returns the figures or sections whose trainings have settings of their own.
std::vector<std::string> FiguresOf(Paper paper);

// Returns the settings of the list of which the paper states a value.
std::vector<SharedSetting> SettingsOf(const PaperTraining& training);

// Returns the settings whose values differ: of several trainings all values count, so that a paper with
// one learning rate and a run with three differ. A setting that applies to none of the trainings, such as
// the patches of a language model, is left out. Requires trainings.
std::vector<Deviation> DeviationsOf(const PaperTraining& training,
                                    const std::vector<TrainConfig>& trainings);

// Returns the scale of the largest of the trainings, without a paper's.
TrainedScale TrainedScaleOf(const std::vector<TrainConfig>& trainings);
// Returns the same beside the paper's.
TrainedScale TrainedScaleOf(const PaperTraining& training,
                            const std::vector<TrainConfig>& trainings);

}  // namespace numsim::experiments
