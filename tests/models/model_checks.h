// The properties that every model has, whatever its kind.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/model.h"
#include "tests/models/allocation_count.h"
#include "tests/models/language_model_problem.h"
#include "tests/support/every_backend.h"

namespace numsim {

// Loss and gradients in float32 are those in float64 within `tolerance` of each tensor's root mean
// square.
inline void ExpectFloatToBeCloseToDouble(Model<float>& model,
                                         Model<double>& exact,
                                         const Batch& batch,
                                         double tolerance) {
  const double loss = exact.Forward({}, batch).Mean();
  EXPECT_NEAR(model.Forward({}, batch).Mean(), loss, tolerance * std::max(1.0, loss));
  exact.Backward({});
  model.Backward({});
  ASSERT_EQ(model.parameters().size(), exact.parameters().size());
  for (size_t p = 0; p < model.parameters().size(); ++p) {
    const std::span<float> a = model.parameters()[p].gradient.View().Span();
    const std::span<double> b = exact.parameters()[p].gradient.View().Span();
    double error = 0, square = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      error += (a[i] - b[i]) * (a[i] - b[i]);
      square += b[i] * b[i];
    }
    // Gradients that algebra makes 0 are rounding errors on both sides.
    EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(std::max(square, 1e-4)))
        << model.parameters()[p].name;
  }
}

inline void ExpectBits(Model<float>& model,
                       const Batch& batch,
                       const std::vector<float>& expected) {
  const std::vector<float> result = LossAndGradients<float>(model, {}, batch);
  ASSERT_EQ(result.size(), expected.size());
  EXPECT_EQ(std::memcmp(result.data(), expected.data(), result.size() * sizeof(float)), 0);
}

// `large` is a batch that keeps threads busy; backends, one of which is slow, take `small`.
inline void ExpectSameBitsEverywhere(Model<float>& model, const Batch& large, const Batch& small) {
  const ExecutionState state;
  SetThreadCount(1);
  const std::vector<float> expected = LossAndGradients<float>(model, {}, large);
  for (const int threads : {2, 3}) {
    SCOPED_TRACE(threads);
    SetThreadCount(threads);
    ExpectBits(model, large, expected);
  }
  const std::vector<float> of_small = LossAndGradients<float>(model, {}, small);
  WithEachBackend([&] { ExpectBits(model, small, of_small); });
}

// Fewer checks than the default: models have dozens of tensors.
inline DifferenceOptions FewDifferences() {
  DifferenceOptions options;
  options.entries = 2;
  options.directions = 1;
  return options;
}

// A power of two, so that every rounding is the same.
inline void ExpectLossScaleToBeAFactor(Model<float>& model, const Batch& batch) {
  const std::vector<float> plain = LossAndGradients<float>(model, {}, batch);
  Pass<float> pass;
  pass.loss_scale = 1024;
  const std::vector<float> scaled = LossAndGradients<float>(model, pass, batch);
  EXPECT_EQ(scaled[0], plain[0]);
  for (size_t i = 1; i < plain.size(); ++i) ASSERT_EQ(scaled[i], 1024 * plain[i]) << i;
}

// One pass more takes no memory of the size of a tensor.
template <typename T>
void ExpectNoTensorsTaken(Model<T>& model, const Batch& batch) {
  LossAndGradients<T>(model, {}, batch);
  model.Forward({}, batch);
  model.Backward({});
  const size_t before = LargeAllocations();
  model.Forward({}, batch);
  model.Backward({});
  EXPECT_EQ(LargeAllocations(), before);
}

// `values` normal draws.
inline std::vector<float> NormalDraws(size_t values, uint64_t seed) {
  std::vector<float> draws(values);
  FillNormal({seed, 99}, 0, draws);
  return draws;
}

inline double RootMeanSquare(std::span<const float> values) {
  double sum = 0;
  for (const float x : values) sum += double{x} * x;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

// The parameter starts with that deviation, as far as its number of elements tells.
inline void ExpectDeviation(Model<float>& model, const std::string& name, double deviation) {
  const Parameter<float>* const parameter = model.parameters().Find(name);
  ASSERT_NE(parameter, nullptr) << name;
  const std::span<const float> values = parameter->value.View().Span();
  const double error = 4 / std::sqrt(2 * static_cast<double>(values.size()));
  EXPECT_NEAR(RootMeanSquare(values), deviation, error * deviation) << name;
}

}  // namespace numsim
