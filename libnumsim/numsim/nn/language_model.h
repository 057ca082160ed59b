// Language models: llama and gpt.
#pragma once

#include <memory>

#include "numsim/nn/model.h"

namespace numsim {

// As MakeModel, of kinds kLlama and kGpt. Points: "embedding", those of a transformer with prefix
// "blocks" (transformer.h), "final_norm", "head". Parameters beside those of the transformer:
// embedding.tokens, gpt: embedding.positions, final_norm.gain and .bias, head.weight.
//
// Weights start as normal draws of deviation 0.02, positions of 0.01, biases as 0, gains as 1, and
// those of the linear layers that end a branch are divided by sqrt(2 layers) [GPT2]. The papers on
// Llama do not state how it starts; it takes the same.
template <typename T>
std::unique_ptr<Model<T>> MakeLanguageModel(const ModelConfig& config,
                                            const LinearPrecision& precision,
                                            uint64_t seed,
                                            InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
