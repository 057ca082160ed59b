#include "numsim/optim/internal/optimizer_tensor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/shared/decay_update.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

bool IsSelected(const OptimizerConfig& config, ParameterRole role) {
  return config.decay_filter == DecayFilter::kAll ||
         (config.decay_filter == DecayFilter::kMatrices && IsMatrix(role));
}

}  // namespace

bool Decays(const OptimizerConfig& config, ParameterRole role) {
  return IsSelected(config, role) && config.weight_decay != 0;
}

double Known(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

OptimizerTensor::OptimizerTensor(const OptimizerConfig& config,
                                 Parameter<float>& parameter,
                                 size_t number)
    : config_(&config),
      parameter_(&parameter),
      number_(number),
      decays_(Decays(config, parameter.role)),
      beta1_(static_cast<float>(config.beta1)),
      beta2_(static_cast<float>(config.beta2)),
      rule_(config.kind.row->make(config, parameter)),
      states_(config, parameter, rule_->States()) {
  NUMSIM_CHECK(number < kMaxTensors, "tensor {}", number);
  const MatrixSpan<float> value = parameter.value.View();
  update_ = StartUpdates(config.update, config.weights.spec, value, value);
}

double OptimizerTensor::MakeDirection(const OptimizerInputs& inputs,
                                      OptimizerScratch& scratch,
                                      std::span<float> direction,
                                      TensorStep& report) {
  const size_t n = Elements();
  NUMSIM_CHECK(direction.size() == n, "{} of {}", direction.size(), n);
  const StepCount before = count_;
  ++count_.steps;
  count_.power1 *= static_cast<double>(beta1_);
  count_.power2 *= static_cast<double>(beta2_);
  const bool from_stored = config_->update_from_stored && !states_.AreExact();
  bool stored = false;
  const auto store = [&] {
    states_.Store(inputs.moment_seed, StreamOf(inputs.step));
    if (from_stored) states_.Load();
    stored = true;
  };
  const DirectionSums sums =
      rule_->Step({.before = before,
                   .now = count_,
                   .gradient = parameter_->gradient.View(),
                   .weights = parameter_->value.View(),
                   .factor = inputs.factor,
                   .weight_decay = decays_ ? static_cast<float>(config_->weight_decay) : 0,
                   .states = states_.Open(scratch.states, inputs.measure),
                   .direction = direction,
                   .scratch = scratch.rule,
                   .from_stored = from_stored,
                   .store = store});
  if (!stored) states_.Store(inputs.moment_seed, StreamOf(inputs.step));
  report.m = states_.Loss(StateRole::kFirstMoment);
  report.v = states_.Loss(StateRole::kSecondMoment);
  report.update_rms = n == 0 ? 0 : Known(std::sqrt(sums.update_square / static_cast<double>(n)));
  report.max_update = Known(static_cast<double>(std::bit_cast<float>(sums.max_update)));
  return sums.ratio_square;
}

void OptimizerTensor::TakeStep(const OptimizerInputs& inputs,
                               double rms,
                               std::span<const float> direction,
                               TensorStep& report) {
  const StableOptions& stable = config_->stable;
  double ratio = 1;
  if (config_->kind.row->clips_by_rms && rms > stable.threshold) {
    // The bound keeps learning rate and decay representable; no useful step reaches it.
    ratio = std::min(rms / stable.threshold, 0x1p100);
  }
  report.rms = Known(rms);
  const MatrixSpan<float> value = parameter_->value.View();
  const double decay = config_->weight_decay * (stable.clipped_decay ? 1 : ratio);
  WeightUpdate step;
  step.format = config_->weights.spec;
  step.weights = value;
  step.update = HostMatrix(direction, value.Shape());
  step.learning_rate = static_cast<float>(inputs.learning_rate / ratio);
  step.weight_decay = decays_ ? static_cast<float>(decay) : 0;
  const RandomStream random = {inputs.update_seed, StreamOf(inputs.step)};
  report.weights = ApplyUpdate(config_->update, step, random, update_, value);
}

}  // namespace numsim
