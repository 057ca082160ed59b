// A factory that constructs the linear layers of a model, each in its precision, and owns them.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "numsim/models/internal/linear_layer.h"
#include "numsim/models/model.h"
#include "numsim/models/model_config.h"

namespace numsim {

// A model's specification of a linear layer, except its precision, which LinearPrecision decides.
struct LinearPlan {
  size_t in = 0, out = 0;
  bool bias = false;
  Initial weight{};
  size_t rows = 1;    // maximum number of rows of x per example, for ForwardFlops
  bool edge = false;  // a first or last layer (LinearPrecision::first_last_high)
};

template <typename T>
class LinearFactory {
 public:
  // `parameters` must outlive the factory.
  LinearFactory(ParameterList<T>& parameters, const LinearPrecision& precision);
  LinearFactory(const LinearFactory&) = delete;
  LinearFactory& operator=(const LinearFactory&) = delete;

  ParameterList<T>& parameters() { return parameters_; }

  // Returns a new layer, numbered in the order of these calls. Its address does not change. Throws
  // Error as MakeLinearRecipe does.
  LinearLayer<T>& Make(const std::string& name, const LinearPlan& plan);

  // Throws Error "linear.override 'PATTERN' names no layer; there are: ..." if an override matches
  // no layer. To be called after the last Make.
  void CheckOverrides() const;

  // Returns the names of all layers, in order.
  std::vector<std::string> Names() const;
  // Returns the options of each layer, in the same order.
  const std::vector<LinearOptions>& Precisions() const { return precisions_; }
  // CheckBatch, SaveState, RestoreState and ForwardFlops implement the functions of Model with the same names.
  // If RestoreState throws, the states before the offending one have been restored.
  void CheckBatch(size_t examples) const;
  std::vector<NamedState> SaveState() const;
  void RestoreState(const std::vector<NamedState>& states);
  double ForwardFlops(size_t examples) const;

 private:
  ParameterList<T>& parameters_;
  LinearPrecision precision_;
  std::deque<LinearLayer<T>> layers_;
  std::vector<LinearOptions> precisions_;  // of layers_
  std::vector<size_t> rows_;               // of one example, for each of layers_
  double flops_ = 0;                       // of one example
};

// A model whose linear layers come from one factory, which implements Model's functions about
// linear layers.
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
  void CheckBatch(size_t examples) const override { linears_.CheckBatch(examples); }
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
