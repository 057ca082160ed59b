// Optimisers that are compared between the host and kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer.h"
#include "numsim/optim/optimizer_config.h"

namespace numsim::optimizer_cases {

// A configuration with a name for messages.
struct OptimizerCase {
  std::string name;
  OptimizerConfig config;
  LossScalerConfig scaler = {};
  bool measure = false;
};

// Every kind with every storage of moments, with stochastic rounding where there is one; every update
// rule with formats of weights; clipping, scaling, filters and the switches of StableAdamW.
std::vector<OptimizerCase> MomentCases();
std::vector<OptimizerCase> WeightCases();
std::vector<OptimizerCase> DecisionCases();

// Those of the cases that a step without its report may treat differently.
std::vector<OptimizerCase> WithoutReports(const std::vector<OptimizerCase>& cases);

// Adds tensors of 1 to 10,000 elements and of all roles.
void AddTensors(ParameterList<float>& parameters);
// Gradients of a step: normal draws of different sizes; in some steps a tensor is zero, or has
// infinities, NaN or huge numbers if `hard`.
std::vector<float> GradientOf(uint64_t step, size_t tensor, size_t n, bool hard);

// Expect equal bits; every NaN is a NaN.
void ExpectSameFloats(const std::vector<float>& actual, const std::vector<float>& expected);
// Without `reports`, of optimisers that do not report (Optimizer::SetReports).
void ExpectSameStep(const OptimizerStep& actual,
                    const OptimizerStep& expected,
                    bool reports = true);
void ExpectSameState(const std::vector<NamedBytes>& actual,
                     const std::vector<NamedBytes>& expected);

}  // namespace numsim::optimizer_cases
