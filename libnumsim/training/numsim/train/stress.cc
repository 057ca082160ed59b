#include "numsim/train/stress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/config/config_value.h"
#include "numsim/ops/elementwise.h"
#include "numsim/random/streams.h"

namespace numsim {
namespace {

// Tensors that a backward pass reads as results of their own layer: for attention's product of
// output and output gradient, and for the gradient of CLIP's temperature.
constexpr std::string_view kReadAgain[] = {"*attention.core", "logits"};

bool Covers(const StressConfig& stress, std::string_view point) {
  return !stress.point.empty() && MatchesPattern(stress.point, point);
}

// Checks the tensors that the pattern matches, and records the names of all tensors.
class PointCheck final : public PassObserver<float> {
 public:
  explicit PointCheck(const StressConfig& stress) : stress_(stress) {}

  void Tensor(std::string_view point, TensorRole, MatrixSpan<float> values) override {
    points_.emplace_back(point);
    if (!Covers(stress_, point)) return;
    covers_any_ = true;
    for (const std::string_view pattern : kReadAgain) {
      if (!MatchesPattern(pattern, point)) continue;
      throw KeyError::Format(
          "stress.point",
          "'{}' matches '{}', where gradients are not those of an added constant",
          stress_.point,
          point);
    }
    if (stress_.channel >= values.cols) {
      throw KeyError::Format("stress.channel",
                             "{}, but the channels of '{}' are 0 to {}",
                             stress_.channel,
                             point,
                             values.cols - 1);
    }
  }

  void RequireCovered() const {
    if (covers_any_) return;
    throw KeyError::Format("stress.point",
                           "'{}' matches no tensor; the tensors are: {}",
                           stress_.point,
                           fmt::join(points_, ", "));
  }

 private:
  const StressConfig& stress_;
  std::vector<std::string> points_;
  bool covers_any_ = false;
};

// Below this |y|, e^y - e^-y cancels too many digits, and the series 1 + y^2 / 6 has an error of
// less than 2^-46.
constexpr double kSeriesBelow = 1e-3;

// Returns sinh(y) / y.
double SinhQuotient(double y) {
  if (std::fabs(y) < kSeriesBelow) return 1 + y * y / 6;
  return (Exp(y) - Exp(-y)) / (2 * y);
}

}  // namespace

void CheckStressPoint(const StressConfig& stress, Model<float>& model, const Batch& batch) {
  if (stress.point.empty()) return;
  PointCheck check(stress);
  Pass<float> pass;
  pass.gradients = false;
  pass.observer = &check;
  const std::vector<NamedState> scaling = model.SaveState();
  model.Forward(pass, batch);
  model.RestoreState(scaling);
  check.RequireCovered();
}

template <typename T>
void PlantActivation(const StressConfig& stress,
                     std::string_view point,
                     MatrixSpan<T> activations) {
  // Adding 0 would turn -0 into 0.
  if (stress.value == 0 || !Covers(stress, point)) return;
  NUMSIM_REQUIRE(stress.channel < activations.cols,
                 "PlantActivation: {} has {} columns, and stress.channel is {}",
                 point,
                 activations.cols,
                 stress.channel);
  const auto value = static_cast<float>(stress.value);
  Buffer<T> planted(activations.place);
  Upload<T>(std::span(&value, 1), planted.Resize(1, 1));
  AddBias<T>(planted.View(), activations.Columns(stress.channel, 1));
}

template void PlantActivation<float>(const StressConfig&, std::string_view, MatrixSpan<float>);
template void PlantActivation<double>(const StressConfig&, std::string_view, MatrixSpan<double>);

void StretchInputs(double tail, Batch& batch) {
  if (tail == 0) return;
  std::vector<float>& values = batch.values;
  float largest = 0;
  for (const float x : values) largest = std::max(largest, std::fabs(x));
  const double reach = tail * static_cast<double>(largest);
  // The first condition keeps the arguments of Exp in the second within its bounds.
  if (reach > 100 || static_cast<double>(largest) * SinhQuotient(reach) >
                         static_cast<double>(std::numeric_limits<float>::max())) {
    throw KeyError::Format(
        "stress.input_tail", "{} makes the input {} exceed float32", tail, largest);
  }
  ParallelFor(values.size(), 4096, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const double x = static_cast<double>(values[i]);
      values[i] = static_cast<float>(x * SinhQuotient(tail * x));
    }
  });
}

Parameter<float>* BurstParameter(const StressConfig& stress, ParameterList<float>& parameters) {
  if (stress.burst_tensor.empty()) return nullptr;
  Parameter<float>* const parameter = parameters.Find(stress.burst_tensor);
  if (parameter != nullptr) return parameter;
  std::vector<std::string> names;
  for (const Parameter<float>& one : parameters) names.push_back(one.name);
  throw KeyError::Format(
      "stress.burst_tensor",
      "there is no parameter '{}'{}",
      stress.burst_tensor,
      DidYouMean(stress.burst_tensor, fmt::format("{}", fmt::join(names, ", "))));
}

void NudgeWeight(const StressConfig& stress, uint64_t seed, ParameterList<float>& parameters) {
  NUMSIM_REQUIRE(stress.nudge_draw != 0, "NudgeWeight: stress.nudge_draw is 0");
  const PhiloxCounter words =
      RandomBlock({DeriveSeed(seed, RandomPurpose::kNudge), stress.nudge_draw}, 0);
  const uint64_t word = uint64_t{words[1]} << 32 | words[0];
  // The number of weights is far below 2^64, so that the remainder favours none.
  uint64_t index = word % parameters.Elements();
  for (Parameter<float>& parameter : parameters) {
    if (index < parameter.Elements()) {
      float& weight = parameter.value.View().Span()[index];
      weight = std::bit_cast<float>(std::bit_cast<uint32_t>(weight) + 1);
      return;
    }
    index -= parameter.Elements();
  }
}

void ScaleInputs(double factor, Batch& batch) {
  if (factor == 1) return;
  for (float& x : batch.values) {
    x *= static_cast<float>(factor);
    if (std::isinf(x)) throw KeyError::Format("stress.jump_contrast", "{} exceeds float32", factor);
  }
}

}  // namespace numsim
