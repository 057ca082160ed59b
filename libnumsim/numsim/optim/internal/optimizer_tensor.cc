#include "numsim/optim/internal/optimizer_tensor.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/shared/decay_update.h"
#include "numsim/updates/shared/naive_step.h"
#include "numsim/updates/step_sums.h"

namespace numsim {
namespace {

using Block = std::array<float, kSumBlock>;

bool IsMatrix(ParameterRole role) {
  return role == ParameterRole::kMatrix || role == ParameterRole::kEmbedding;
}

bool Decays(const OptimizerConfig& config, ParameterRole role) {
  return config.decay_filter == DecayFilter::kAll ||
         (config.decay_filter == DecayFilter::kMatrices && IsMatrix(role));
}

MomentStore MakeStore(const OptimizerConfig& config,
                      const Parameter<float>& parameter,
                      const MomentFormat& asked,
                      bool is_signed) {
  const bool takes = (config.moment_filter == MomentFilter::kAll || IsMatrix(parameter.role)) &&
                     parameter.Elements() >= config.moment_minimum;
  MomentFormat plain;
  plain.format = {"fp32", kFp32};
  return {takes ? asked : plain, parameter.Elements(), is_signed};
}

AverageRates Keeping(float keep) { return {keep, 1.0f - keep}; }

// Infinity where a value is not finite: no two machines print another NaN.
double Known(double value) {
  return std::isfinite(value) ? value : std::numeric_limits<double>::infinity();
}

}  // namespace

// The numbers of step t.
struct OptimizerTensor::Rates {
  AverageRates m, v;
  AverageRates direction;  // Lion
  float m_correction = 1;
  AdamDenominator denominator,
      previous;  // with this step's v, with that of the step before
};

// A step on its way through the blocks.
struct OptimizerTensor::Work {
  Rates rates;
  float factor = 1;
  const float* gradient = nullptr;
  float *m = nullptr, *v = nullptr, *direction = nullptr;
  bool directs = true;  // AdvanceBlock goes on to the direction
};

struct OptimizerTensor::Sums {
  double ratio_square = 0, update_square = 0;
  uint32_t max_update = 0;  // bits, so that NaN is greatest

  Sums& operator+=(const Sums& other) {
    ratio_square += other.ratio_square;
    update_square += other.update_square;
    max_update = std::max(max_update, other.max_update);
    return *this;
  }
};

OptimizerTensor::OptimizerTensor(const OptimizerConfig& config,
                                 Parameter<float>& parameter,
                                 size_t number)
    : config_(&config),
      parameter_(&parameter),
      number_(number),
      decays_(Decays(config, parameter.role) && config.weight_decay != 0),
      beta1_(static_cast<float>(config.beta1)),
      beta2_(static_cast<float>(config.beta2)) {
  NUMSIM_CHECK(number < kMaxTensors, "tensor {}", number);
  m_.emplace(MakeStore(config, parameter, config.m, true));
  if (IsAdam()) v_.emplace(MakeStore(config, parameter, config.v, false));
  const MatrixRef<float> value = parameter.value.View();
  update_ = StartUpdates(
      config.update, config.weights.spec, value.rows, value.cols, value.Span(), value.Span());
}

bool OptimizerTensor::IsAdam() const {
  return config_->kind == OptimizerKind::kAdamW || config_->kind == OptimizerKind::kStableAdamW;
}

bool OptimizerTensor::RereadsMoments() const {
  const bool exact = m_->format().IsExact() && (!v_ || v_->format().IsExact());
  return config_->update_from_stored && !exact && config_->kind != OptimizerKind::kLion;
}

// Counts the step.
OptimizerTensor::Rates OptimizerTensor::Advance() {
  const double before1 = 1 - power1_, before2 = 1 - power2_;
  power1_ *= static_cast<double>(beta1_);
  power2_ *= static_cast<double>(beta2_);
  const double after1 = 1 - power1_, after2 = 1 - power2_;
  ++steps_;
  Rates rates;
  const auto epsilon = static_cast<float>(config_->epsilon);
  rates.denominator.epsilon = rates.previous.epsilon = epsilon;
  switch (config_->kind) {
    case OptimizerKind::kAdamW:
      rates.m = Keeping(beta1_);
      rates.v = Keeping(beta2_);
      rates.m_correction = static_cast<float>(after1);
      rates.denominator.correction = static_cast<float>(after2);
      // Before the first step v is zero, and so is v / 1.
      rates.previous.correction = steps_ == 1 ? 1 : static_cast<float>(before2);
      break;
    case OptimizerKind::kStableAdamW:
      rates.m = Keeping(static_cast<float>(static_cast<double>(beta1_) * before1 / after1));
      rates.v = Keeping(static_cast<float>(static_cast<double>(beta2_) * before2 / after2));
      break;
    case OptimizerKind::kSgd:
      rates.m = {beta1_, 1};
      break;
    case OptimizerKind::kLion:
      rates.direction = Keeping(beta1_);
      rates.m = Keeping(beta2_);
      break;
  }
  if (IsAdam() && config_->beta2_decay > 0) {
    // t^-lambda, whose rounding error matters more than that of 1 - t^-lambda.
    const double share = Exp(-config_->beta2_decay * Log(static_cast<double>(steps_)));
    rates.v = {static_cast<float>(1 - share), static_cast<float>(share)};
    rates.denominator.correction = rates.previous.correction = 1;
  }
  return rates;
}

// The moments to work on, in place where they are float32.
std::span<float> OptimizerTensor::Open(std::optional<MomentStore>& store,
                                       std::span<float> scratch,
                                       bool measure) {
  if (!store) return {};
  if (store->format().IsExact() && !measure) return store->Values();
  const std::span<float> values = scratch.first(Elements());
  store->Load(values);
  return values;
}

MomentLoss OptimizerTensor::Close(std::optional<MomentStore>& store,
                                  std::span<float> values,
                                  const OptimizerInputs& inputs,
                                  uint64_t which) {
  if (!store || (store->format().IsExact() && !inputs.measure)) return {};
  const uint64_t stream = (inputs.step * kMaxTensors + number_) * 2 + which;
  const MomentLoss loss = store->Store(values, {inputs.moment_seed, stream}, inputs.measure);
  if (RereadsMoments()) store->Load(values);
  return loss;
}

// New moments of a block and, with work.directs, its direction.
OptimizerTensor::Sums OptimizerTensor::AdvanceBlock(const Work& work,
                                                    size_t begin,
                                                    size_t count) const {
  alignas(64) Block x;
  Multiply(work.gradient + begin, count, work.factor, x.data());
  Sums sums;
  if (IsAdam()) {
    if (config_->stable.previous_u && !config_->stable.of_update) {
      alignas(64) Block ratios;
      const bool added = config_->stable.epsilon_added;
      GradientRatios(x.data(), work.v + begin, count, work.rates.previous, added, ratios.data());
      sums.ratio_square = SquaredSumOfBlock(ratios.data(), count);
    }
    UpdateSquareAverage(x.data(), count, work.rates.v, work.v + begin);
  }
  if (config_->kind == OptimizerKind::kLion) {
    LionDirection(x.data(), work.m + begin, count, work.rates.direction, work.direction + begin);
  }
  UpdateAverage(x.data(), count, work.rates.m, work.m + begin);
  if (work.directs) sums += DirectBlock(work, x.data(), begin, count);
  return sums;
}

// The direction of a block, made from its moments and the gradient x; Lion's is there already.
OptimizerTensor::Sums OptimizerTensor::DirectBlock(const Work& work,
                                                   const float* x,
                                                   size_t begin,
                                                   size_t count) const {
  const StableOptions& stable = config_->stable;
  float* const direction = work.direction + begin;
  alignas(64) Block ratios;
  Sums sums;
  if (IsAdam()) {
    const AdamDenominator& denominator = work.rates.denominator;
    const float *const m = work.m + begin, *const v = work.v + begin;
    AdamDirection(m, v, count, work.rates.m_correction, denominator, direction);
    if (stable.of_update) {
      const float decay = decays_ ? static_cast<float>(config_->weight_decay) : 0.0f;
      const float* const weights = parameter_->value.View().data + begin;
      DecayUpdate(direction, weights, count, decay, ratios.data());
      sums.ratio_square = SquaredSumOfBlock(ratios.data(), count);
    } else if (!stable.previous_u) {
      GradientRatios(x, v, count, denominator, stable.epsilon_added, ratios.data());
      sums.ratio_square = SquaredSumOfBlock(ratios.data(), count);
    }
  } else if (config_->kind == OptimizerKind::kSgd) {
    Multiply(work.m + begin, count, -1, direction);
  }
  sums.update_square = SquaredSumOfBlock(direction, count);
  sums.max_update = std::bit_cast<uint32_t>(AbsmaxOfAll(direction, count)) & 0x7FFFFFFF;
  return sums;
}

double OptimizerTensor::MakeDirection(const OptimizerInputs& inputs,
                                      const Scratch& scratch,
                                      std::span<float> direction,
                                      TensorStep& report) {
  const size_t n = Elements();
  NUMSIM_CHECK(direction.size() == n, "{} of {}", direction.size(), n);
  Work work;
  work.rates = Advance();
  work.factor = inputs.factor;
  work.gradient = Gradient().data();
  const std::span<float> m = Open(m_, scratch.m, inputs.measure);
  const std::span<float> v = Open(v_, scratch.v, inputs.measure);
  work.m = m.data();
  work.v = v.data();
  work.direction = direction.data();
  work.directs = !RereadsMoments();
  Sums sums = SumOverBlocks<Sums>(
      n, [&](size_t begin, size_t count) { return AdvanceBlock(work, begin, count); });
  report.m = Close(m_, m, inputs, 0);
  report.v = Close(v_, v, inputs, 1);
  if (!work.directs) {
    sums += SumOverBlocks<Sums>(n, [&](size_t begin, size_t count) {
      alignas(64) Block x;
      Multiply(work.gradient + begin, count, work.factor, x.data());
      return DirectBlock(work, x.data(), begin, count);
    });
  }
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
  if (config_->kind == OptimizerKind::kStableAdamW && rms > stable.threshold) {
    // The bound keeps learning rate and decay representable; no step is that wrong.
    ratio = std::min(rms / stable.threshold, 0x1p100);
  }
  report.rms = IsAdam() ? Known(rms) : 0;
  const MatrixRef<float> value = parameter_->value.View();
  const double decay = config_->weight_decay * (stable.clipped_decay ? 1 : ratio);
  WeightUpdate step;
  step.format = config_->weights.spec;
  step.rows = value.rows;
  step.cols = value.cols;
  step.weights = value.Span();
  step.update = direction;
  step.learning_rate = static_cast<float>(inputs.learning_rate / ratio);
  step.weight_decay = decays_ ? static_cast<float>(decay) : 0;
  if (config_->update.kind == UpdateKind::kNaive && step.format == kFp32) {
    const std::optional<UpdateOutcome> outcome =
        TakeNaiveStep(direction, step.learning_rate, step.weight_decay, value.Span());
    if (outcome) {
      report.weights = *outcome;
      return;
    }
  }
  const RandomStream random = {inputs.update_seed, inputs.step * kMaxTensors + number_};
  report.weights = ApplyUpdate(config_->update, step, random, update_, value.Span());
}

}  // namespace numsim
