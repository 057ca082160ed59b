// A linear layer with its parameters: y = x W^T + bias.
#pragma once

#include <optional>
#include <string>

#include "numsim/linear/linear.h"
#include "numsim/models/parameter.h"
#include "numsim/models/pass.h"

namespace numsim {

struct LinearLayerOptions {
  size_t in = 0, out = 0;
  bool bias = false;
  Initial weight;
  // The recipe of the products (linear/linear_recipe.h). float64 layers take no notice of it: all their
  // products are float64, which makes a model of double the shadow of the same model of float.
  LinearOptions precision;
};

template <typename T>
class LinearLayer {
 public:
  // Adds NAME.weight (out x in) and NAME.bias to the list. `number` tells layers of a model apart
  // in their random draws. Throws Error as MakeLinearRecipe does.
  LinearLayer(ParameterList<T>& parameters,
              std::string name,
              const LinearLayerOptions& options,
              size_t number);

  const std::string& name() const { return name_; }
  const LinearRecipe& recipe() const { return linear_.recipe(); }

  // x: tokens x in, y: tokens x out, contiguous. x has to stay as it is until Backward. Shows y at
  // point name().
  void Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y);
  // Shows g (and lets it be changed) at point name(), then writes the gradients of the parameters
  // and dx, without data: not wanted. g is contiguous.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx);

  // State of delayed scaling; empty without. As Linear's.
  std::vector<float> SaveState() const { return linear_.SaveState(); }
  void RestoreState(std::span<const float> state) { linear_.RestoreState(state); }

 private:
  RandomStream Draws(const Pass<T>& pass) const;

  std::string name_;
  size_t number_;
  Parameter<T>* weight_;
  Parameter<T>* bias_;  // nullptr: none
  Linear linear_;       // float
  LinearSaved saved_;
  MatrixSpan<const T> x_;  // double
};

}  // namespace numsim
