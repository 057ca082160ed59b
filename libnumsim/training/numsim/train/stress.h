// Fault injection: applies the perturbations of StressConfig (config.h) to batches and to the
// tensors of a pass.
#pragma once

#include <string_view>

#include "numsim/config/config.h"
#include "numsim/data/source.h"
#include "numsim/models/model.h"

namespace numsim {

// Checks with a forward pass over `batch` that the perturbation can be injected into every tensor
// that the pattern stress.point matches. Throws Error naming the key if the pattern matches no
// tensor name (listing all names), if a tensor lacks the channel stress.channel, or if the backward
// pass reads the tensor's values again and would therefore not give the gradients of an added
// constant: attention.core, and CLIP's logits. Preserves delayed scales, but discards what the
// model saved for backward. Does nothing if stress.point is empty.
void CheckStressPoint(const StressConfig& stress, Model<float>& model, const Batch& batch);

// If stress.point matches the tensor name `point`, adds stress.value, rounded to float32, to column
// stress.channel of `activations` in every row. Requires that the column exists.
template <typename T>
void PlantActivation(const StressConfig& stress, std::string_view point, MatrixSpan<T> activations);

// Replaces each value x of the batch by sinh(tail x) / tail, computed in float64 and rounded to
// float32; tail 0 leaves the values unchanged. Requires 0 <= tail <= kLargestInputTail. Throws
// Error naming the key if a result would exceed float32.
void StretchInputs(double tail, Batch& batch);

// Returns the parameter stress.burst_tensor; nullptr if there is no burst. Throws Error naming the key,
// and the nearest name, if there is no such parameter.
Parameter<float>* BurstParameter(const StressConfig& stress, ParameterList<float>& parameters);

// Replaces the weight that stress.nudge_draw draws by the next float32 away from zero. Requires a draw.
void NudgeWeight(const StressConfig& stress, uint64_t seed, ParameterList<float>& parameters);

// Multiplies the values of the batch by `factor`, rounded to float32. Throws Error naming the key if a
// result would exceed float32.
void ScaleInputs(double factor, Batch& batch);

}  // namespace numsim
