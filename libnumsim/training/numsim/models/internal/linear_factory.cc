#include "numsim/models/internal/linear_factory.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace numsim {

template <typename T>
LinearFactory<T>::LinearFactory(ParameterList<T>& parameters, const LinearPrecision& precision)
    : parameters_(parameters), precision_(precision) {}

template <typename T>
LinearLayer<T>& LinearFactory<T>::Make(const std::string& name, const LinearPlan& plan) {
  LinearOptions storage;
  const LinearLayerOptions options{.in = plan.in,
                                   .out = plan.out,
                                   .bias = plan.bias,
                                   .weight = plan.weight,
                                   .precision = PrecisionOf(precision_, name, plan.edge, storage)};
  flops_ += 2.0 * static_cast<double>(plan.rows) * static_cast<double>(plan.in) *
            static_cast<double>(plan.out);
  precisions_.push_back(options.precision);
  rows_.push_back(plan.rows);
  return layers_.emplace_back(parameters_, name, options, layers_.size());
}

template <typename T>
void LinearFactory<T>::CheckOverrides() const {
  for (const LinearOverride& one : precision_.overrides) {
    const std::string& pattern = one.layers;
    if (std::any_of(layers_.begin(), layers_.end(), [&pattern](const LinearLayer<T>& layer) {
          return MatchesPattern(pattern, layer.name());
        })) {
      continue;
    }
    throw Error::Format(
        "linear.override '{}' names no layer; there are: {}", pattern, fmt::join(Names(), ", "));
  }
}

template <typename T>
std::vector<std::string> LinearFactory<T>::Names() const {
  std::vector<std::string> names;
  for (const LinearLayer<T>& layer : layers_) names.push_back(layer.name());
  return names;
}

template <typename T>
void LinearFactory<T>::CheckBatch(size_t examples) const {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i].CheckShape(examples * rows_[i]);
}

template <typename T>
std::vector<NamedState> LinearFactory<T>::SaveState() const {
  std::vector<NamedState> states;
  for (const LinearLayer<T>& layer : layers_) {
    std::vector<float> values = layer.SaveState();
    if (!values.empty()) states.push_back({layer.name(), std::move(values)});
  }
  return states;
}

template <typename T>
void LinearFactory<T>::RestoreState(const std::vector<NamedState>& states) {
  for (const NamedState& state : states) {
    const auto layer =
        std::find_if(layers_.begin(), layers_.end(), [&state](const LinearLayer<T>& candidate) {
          return candidate.name() == state.name;
        });
    if (layer == layers_.end()) {
      throw Error::Format("state of '{}', which is no linear layer of the model", state.name);
    }
    layer->RestoreState(state.values);
  }
}

template <typename T>
double LinearFactory<T>::ForwardFlops(size_t examples) const {
  return flops_ * static_cast<double>(examples);
}

template class LinearFactory<float>;
template class LinearFactory<double>;

}  // namespace numsim
