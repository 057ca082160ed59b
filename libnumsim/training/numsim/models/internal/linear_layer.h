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
  // The recipe of the GEMMs (linear/linear_recipe.h). Layers of double ignore it and compute all
  // GEMMs in float64, which makes a model of double the float64 reference run of the same model of
  // float.
  LinearOptions precision;
};

template <typename T>
class LinearLayer {
 public:
  // Adds NAME.weight (out x in) and, with `bias`, NAME.bias to the list. `number` distinguishes the
  // random bits of the model's layers. Throws Error as MakeLinearRecipe does.
  LinearLayer(ParameterList<T>& parameters,
              std::string name,
              const LinearLayerOptions& options,
              size_t number);

  const std::string& name() const { return name_; }
  const LinearRecipe& recipe() const { return linear_.recipe(); }

  // Computes y. x is tokens x in, y is tokens x out, both contiguous. The caller must leave x
  // unchanged until Backward. The observer sees y as tensor name(). With `channels`, y and the
  // gradients are those of x diag(channels), as in Linear::Forward; layers of double have none.
  void Forward(const Pass<T>& pass, In<T> x, MatrixSpan<T> y, std::span<const float> channels = {});
  // Shows the contiguous g to the observer as tensor name(), which may change it, then writes dx
  // and the gradients of the parameters. A dx without data is not computed.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g, MatrixSpan<T> dx);

  // Throws Error as Linear::CheckShape does, for an x of so many rows.
  void CheckShape(size_t rows) const;

  // The delayed-scaling state, as for Linear; empty without delayed scaling.
  std::vector<float> SaveState() const { return linear_.SaveState(); }
  void RestoreState(std::span<const float> state) { linear_.RestoreState(state); }

 private:
  RandomStream Draws(const Pass<T>& pass) const;

  std::string name_;
  size_t number_;
  Parameter<T>* weight_;
  Parameter<T>* bias_;  // nullptr if there is no bias
  Linear linear_;       // for float
  LinearSaved saved_;
  MatrixSpan<const T> x_;  // for double
};

}  // namespace numsim
