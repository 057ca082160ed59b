// The stress that a configuration asks for (config.h), put on batches and on tensors of a pass.
#pragma once

#include <string_view>

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"

namespace numsim {

// Whether stress.point can be planted at, as a forward pass over `batch` shows. Throws Error naming
// the key: for a pattern that covers no point, with all points that there are; for a point without
// that channel; and for one of which the backward pass reads the values again and would not give
// the gradients of an added constant: attention.core, and CLIP's logits. Delayed scales are as
// before; what the model kept of its last pass is lost. Without a point nothing is done.
void CheckStressPoint(const StressConfig& stress, Model<float>& model, const Batch& batch);

// Adds stress.value, rounded to float32, to the channel of `activations`, all rows, where
// stress.point covers `point`. Requires that channel.
template <typename T>
void PlantActivation(const StressConfig& stress, std::string_view point, MatrixSpan<T> activations);

// Values x of the batch become sinh(tail x) / tail, computed in float64 and rounded to float32;
// tail 0: as they are. Throws Error naming the key where a value would be beyond float32.
// Requires 0 <= tail <= kLargestInputTail.
void StretchInputs(double tail, Batch& batch);

}  // namespace numsim
