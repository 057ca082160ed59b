// Student of a fixed teacher: mlp.
#pragma once

#include <memory>

#include "numsim/nn/model.h"

namespace numsim {

// As MakeModel, of kind kMlp: the proxy on which [MXInstability] studies instabilities. The student
// is a residual MLP (residual_mlp.h) with norms; the teacher one of the same shape without norms,
// whose weights `seed` decides too (RandomPurpose::kTeacher) and that computes in float32, or
// float64, whatever the precision of the student. The loss is the squared error against the
// teacher's results, without noise. Points: those of the student with prefix "".
//
// As there, features are as many as the width and the stream is the result; only where they are not
// is there a linear layer before and one behind. Other than there, the MLPs have no biases and GELU
// its tanh form, and the teacher has residual sums too.
template <typename T>
std::unique_ptr<Model<T>> MakeStudentModel(const ModelConfig& config,
                                           const LinearPrecision& precision,
                                           uint64_t seed,
                                           InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
