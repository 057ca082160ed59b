// The linear layers of a model: made one after another, each in its precision, and owned.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "numsim/models/internal/linear_layer.h"
#include "numsim/models/model.h"
#include "numsim/models/model_config.h"

namespace numsim {

// A linear layer as its model asks for it; what it computes in is not the model's choice.
struct LinearPlan {
  size_t in = 0, out = 0;
  bool bias = false;
  Initial weight{};
  size_t rows = 1;    // rows of x that one example makes, at most: ForwardFlops counts by it
  bool edge = false;  // a first or last one (LinearPrecision::first_last_high)
};

template <typename T>
class LinearFactory {
 public:
  // `parameters` must live as long.
  LinearFactory(ParameterList<T>& parameters, const LinearPrecision& precision);
  LinearFactory(const LinearFactory&) = delete;
  LinearFactory& operator=(const LinearFactory&) = delete;

  ParameterList<T>& parameters() { return parameters_; }

  // The layer, numbered in the order of these calls, at an address that stays. Throws Error as
  // MakeLinearRecipe does.
  LinearLayer<T>& Make(const std::string& name, const LinearPlan& plan);

  // After the last Make: throws Error "linear.override 'PATTERN' names no layer; there are: ..."
  // when there is an override that names none.
  void CheckOverrides() const;

  // The names, in order.
  std::vector<std::string> Names() const;
  // The precision of each, in the same order.
  const std::vector<LinearOptions>& Precisions() const { return precisions_; }
  // As Model's: of the layers that have a state; by name. An Error leaves the states that came
  // before it restored.
  std::vector<NamedState> SaveState() const;
  void RestoreState(const std::vector<NamedState>& states);
  double ForwardFlops(size_t examples) const;

 private:
  ParameterList<T>& parameters_;
  LinearPrecision precision_;
  std::deque<LinearLayer<T>> layers_;
  std::vector<LinearOptions> precisions_;  // of layers_
  double flops_ = 0;                       // of one example
};

// A model whose linear layers one maker made: what Model asks of linear layers, answered by it.
template <typename T>
class LayeredModel : public Model<T> {
 public:
  std::vector<NamedState> SaveState() const override { return linears_.SaveState(); }
  void RestoreState(const std::vector<NamedState>& states) override {
    linears_.RestoreState(states);
  }
  std::vector<std::string> LinearLayers() const override { return linears_.Names(); }
  std::vector<LinearOptions> LinearLayerPrecisions() const override {
    return linears_.Precisions();
  }
  double ForwardFlops(size_t examples) const override { return linears_.ForwardFlops(examples); }

 protected:
  LayeredModel(const LinearPrecision& precision, uint64_t seed, InitialValues initial)
      : linears_(MakeParameters(seed, initial), precision) {}

 private:
  ParameterList<T>& MakeParameters(uint64_t seed, InitialValues initial) {
    this->parameters_ = std::make_unique<ParameterList<T>>(seed, initial);
    return *this->parameters_;
  }

 protected:
  LinearFactory<T> linears_;
};

}  // namespace numsim
