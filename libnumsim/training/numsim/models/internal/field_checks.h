// Checks of fields that several kinds of models have. Throw Error naming the field, for example
// "model.heads". See CheckModelConfig.
#pragma once

#include <string_view>

#include "numsim/data/source.h"
#include "numsim/models/model_config.h"

namespace numsim {

void CheckSize(std::string_view field, size_t size);
// As CheckSize, but 0 is allowed and stands for a default.
void CheckOptionalSize(std::string_view field, size_t size);
void CheckBlocks(std::string_view field, size_t blocks);
void CheckHeads(const ModelConfig& config);
void CheckImage(const ModelConfig& config);
void CheckTokens(const ModelConfig& config);

// Sets image and channels. Throws Error if the images are not square.
void FitImage(ModelConfig& config, const DataShape& data);

}  // namespace numsim
