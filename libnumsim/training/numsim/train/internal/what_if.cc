#include "numsim/train/internal/what_if.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/printable.h"
#include "numsim/models/model_config.h"
#include "numsim/quantize/quantize.h"
#include "numsim/random/streams.h"
#include "numsim/train/internal/tensor_spread.h"
#include "numsim/train/internal/what_if_rows.h"

namespace numsim {
namespace {

enum : size_t { kX, kW, kG };
constexpr uint64_t kMostLayers = 4096;  // of a model

// Throws KeyError for a pattern that matches no layer.
void CheckPatterns(const std::vector<std::string>& patterns,
                   const std::vector<std::string>& layers) {
  for (const std::string& pattern : patterns) {
    const bool matches = std::any_of(layers.begin(), layers.end(), [&](const std::string& layer) {
      return MatchesPattern(pattern, layer);
    });
    if (matches) continue;
    const std::string list = fmt::format("{}", fmt::join(layers, ", "));
    throw KeyError::Format("what_if.layers",
                           "'{}' names no layer; there are: {}{}",
                           pattern,
                           list,
                           DidYouMean(pattern, list));
  }
}

bool MatchesAny(const std::vector<std::string>& patterns, std::string_view layer) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return MatchesPattern(pattern, layer);
  });
}

}  // namespace

WhatIfObserver::WhatIfObserver(const WhatIfConfig& config,
                               uint64_t seed,
                               Model<float>& model,
                               PassObserver<float>& next)
    : config_(config), seed_(DeriveSeed(seed, RandomPurpose::kWhatIf)), next_(next) {
  if (config_.recipes.empty()) return;
  const std::vector<std::string> layers = model.LinearLayers();
  CheckPatterns(config_.layers, layers);
  for (size_t i = 0; i < config_.recipes.size(); ++i) {
    names_.push_back(ToString(config_.recipes[i]));
    if (config_.recipes[i].delayed.has_value()) delayed_recipes_.push_back(i);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    if (MatchesAny(config_.layers, layers[i])) Watch(layers[i], i, model);
  }
}

void WhatIfObserver::Watch(const std::string& name, uint64_t number, Model<float>& model) {
  Layer layer{number, model.parameters().Find(name + ".weight"), {}};
  NUMSIM_CHECK(layer.weight != nullptr, "{} has no weight", name);
  for (std::vector<DelayedScale>& scales : layer.delayed) {
    for (const size_t recipe : delayed_recipes_) {
      scales.emplace_back(config_.recipes[recipe].format.spec, *config_.recipes[recipe].delayed);
    }
  }
  layers_.emplace(name, std::move(layer));
}

void WhatIfObserver::Begin(
    uint64_t step, uint64_t pass, Telemetry* telemetry, StepProfile* profile, bool updates_scales) {
  step_ = step;
  pass_ = pass;
  telemetry_ = telemetry;
  profile_ = profile;
  updates_scales_ = updates_scales;
}

void WhatIfObserver::Tensor(std::string_view point, TensorRole role, MatrixSpan<float> values) {
  next_.Tensor(point, role, values);
  if (role != TensorRole::kGradient) return;
  const auto found = layers_.find(point);
  if (found != layers_.end()) See(found->first, found->second, kG, values);
}

void WhatIfObserver::Input(std::string_view layer, MatrixSpan<const float> x) {
  next_.Input(layer, x);
  const auto found = layers_.find(layer);
  if (found == layers_.end()) return;
  See(found->first, found->second, kX, x);
  See(found->first, found->second, kW, found->second.weight->value.View());
}

void WhatIfObserver::Quantized(std::string_view layer,
                               LinearOperand operand,
                               In<float> original,
                               const QuantizedMatrix& quantized) {
  next_.Quantized(layer, operand, original, quantized);
}

void WhatIfObserver::Multiplied(std::string_view layer, LinearGemm product) {
  next_.Multiplied(layer, product);
}

void WhatIfObserver::See(const std::string& name,
                         Layer& layer,
                         size_t tensor,
                         MatrixSpan<const float> values) {
  RequireHost("what-if telemetry", {values.place});
  const TimedPart timed(profile_, StepPhase::kTelemetry);
  if (telemetry_ != nullptr) Record(name, layer, tensor, values);
  if (!delayed_recipes_.empty()) Update(layer, tensor, values);
}

void WhatIfObserver::Record(const std::string& name,
                            const Layer& layer,
                            size_t tensor,
                            MatrixSpan<const float> values) {
  const TensorSpread spread = MeasureSpread(values.Span());
  // Recipes share their random bits, so that they differ by themselves alone.
  const RandomStream random{seed_, (pass_ * kMostLayers + layer.number) * kTensors + tensor};
  size_t delayed = 0;
  for (size_t i = 0; i < config_.recipes.size(); ++i) {
    const WhatIfRecipe& recipe = config_.recipes[i];
    const Scale scale =
        recipe.delayed.has_value() ? layer.delayed[tensor][delayed++].Current() : Scale();
    const WhatIfError error =
        MeasureWhatIf(values.Span(), {values.rows, values.cols}, recipe, scale, random, scratch_);
    telemetry_->Add(
        kWhatIfTable,
        {step_,
         name,
         kWhatIfTensors[tensor],
         names_[i],
         error.overflow,
         error.underflow,
         error.sqnr_db,
         error.mse,
         error.scale_min,
         error.scale_max,
         spread.absmax,
         static_cast<uint64_t>(spread.nonfinite),
         spread.kurtosis,
         tensor == kG ? error.signal_to_noise : std::numeric_limits<double>::quiet_NaN()});
  }
}

void WhatIfObserver::Update(Layer& layer, size_t tensor, MatrixSpan<const float> values) const {
  const float absmax = AbsmaxOfAll(values.Span());
  for (DelayedScale& scale : layer.delayed[tensor]) {
    scale.Record(absmax);
    if (updates_scales_) scale.Update();
  }
}

template <typename Self, typename Visit>
void WhatIfObserver::ForEachState(Self& self, Visit visit) {
  for (auto& [name, layer] : self.layers_) {
    for (size_t tensor = 0; tensor < kTensors; ++tensor) {
      for (size_t i = 0; i < self.delayed_recipes_.size(); ++i) {
        const std::string& recipe = self.names_[self.delayed_recipes_[i]];
        visit(fmt::format("{}.{}/{}", name, kWhatIfTensors[tensor], recipe),
              layer.delayed[tensor][i]);
      }
    }
  }
}

std::vector<NamedState> WhatIfObserver::Save() const {
  std::vector<NamedState> states;
  ForEachState(*this, [&](const std::string& name, const DelayedScale& scale) {
    states.push_back({name, scale.Save()});
  });
  return states;
}

void WhatIfObserver::Restore(const std::vector<NamedState>& states) {
  std::map<std::string, const NamedState*> by_name;
  for (const NamedState& state : states) by_name[state.name] = &state;
  ForEachState(*this, [&](const std::string& name, DelayedScale& scale) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw Error::Format("what-if state '{}' is missing", name);
    scale.Restore(found->second->values);
    by_name.erase(found);
  });
  if (by_name.empty()) return;
  throw Error::Format("what-if state '{}' is of no tensor that is measured",
                      Printable(by_name.begin()->first));
}

}  // namespace numsim
