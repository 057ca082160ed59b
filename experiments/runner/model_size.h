// The size of a training from its configuration, without building the model or opening the data.
#pragma once

#include "numsim/config/config.h"

namespace numsim::experiments {

struct ParameterCount {
  double all = 0;
  double blocks =
      0;  // without tables of tokens and positions, class tokens and the head of a language model
};

// Returns the number of parameters of the model. Bytes are 256 tokens, captions 259, and pieces and
// tokens of kind zipf data.vocabulary, also before FitToData. Of CLIP's table of positions of a caption it
// assumes model.context rows, which the data decide.
ParameterCount CountParameters(const TrainConfig& config);

// Returns the number of different tokens, as CountParameters assumes it.
size_t VocabularyOf(const TrainConfig& config);
// Returns the number of patches of an image.
size_t PatchesOf(const TrainConfig& config);
// Returns the tokens of a step: of a language model those of its sequences, of CLIP and ViT the patches of
// its images before any is dropped ([SwitchBack] Appendix D.3 counts so), of a student its examples.
double TokensOrPatchesPerStep(const TrainConfig& config);
// Returns the tokens of all steps.
double TokensOrPatches(const TrainConfig& config);

}  // namespace numsim::experiments
