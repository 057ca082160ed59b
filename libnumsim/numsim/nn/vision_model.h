// Image classifier: vit.
#pragma once

#include <memory>

#include "numsim/nn/model.h"

namespace numsim {

// As MakeModel, of kind kVit [ViT]: an image tower (image_tower.h) with prefix "" and a linear
// layer "head" with a bias from the class token to the classes. Points: those of the tower, "head".
//
// The start is that of the published code [ViT], with normal draws of the same variance where it
// has uniform ones: patches 1/sqrt(inputs), positions 0.02, class token, head and biases 0, the
// other linear layers sqrt(2 / (inputs + outputs)), queries, keys and values as three layers.
template <typename T>
std::unique_ptr<Model<T>> MakeVisionModel(const ModelConfig& config,
                                          const LinearPrecision& precision,
                                          uint64_t seed,
                                          InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
