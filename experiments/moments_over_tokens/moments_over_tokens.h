// The experiment `moments-over-tokens`: FP8 moments of Adam, followed over the tokens of a training.
// study.toml says what it varies, measures and claims.
#pragma once

#include <string>

#include "experiments/study/study.h"

namespace numsim::experiments {

study::Study MomentsOverTokensStudy();
Experiment MomentsOverTokens();

namespace moments_over_tokens {

// Returns the choice of M/V[-blocks][-stored]. Throws Error for any other text.
study::Choice StorageChoice(const std::string& text);

}  // namespace moments_over_tokens
}  // namespace numsim::experiments
