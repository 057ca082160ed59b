#include "numsim/train/internal/gradient_tree.h"

#include "numsim/base/error.h"
#include "numsim/ops/elementwise.h"

namespace numsim {

size_t NodesCompletedBy(size_t part, size_t parts) {
  size_t completed = 0;  // nodes that end with the current one
  while (parts > 1) {
    const size_t left = parts - parts / 2;
    if (part < left) {
      parts = left;
      completed = 0;
    } else {
      part -= left;
      parts -= left;
      ++completed;
    }
  }
  return completed;
}

void GradientTree::Add(size_t part, size_t parts, ParameterList<float>& parameters) {
  if (part == 0) waiting_ = 0;
  for (size_t nodes = NodesCompletedBy(part, parts); nodes > 0; --nodes) {
    NUMSIM_CHECK(waiting_ > 0, "part {} of {}: no sum waits for it", part, parts);
    const Sums& left = left_[--waiting_];
    size_t i = 0;
    for (Parameter<float>& parameter : parameters) {
      const MatrixSpan<float> gradient = parameter.gradient.View();
      numsim::Add<float>(left[i++].View(), gradient, gradient);
    }
  }
  if (part + 1 == parts) return;
  if (waiting_ == left_.size()) {
    Sums& sums = left_.emplace_back();
    for (size_t i = 0; i < parameters.size(); ++i) sums.emplace_back(parameters.place());
  }
  size_t i = 0;
  Sums& sums = left_[waiting_++];
  for (const Parameter<float>& parameter : parameters) {
    const In<float> gradient = parameter.gradient.View();
    CopyMatrix<float>(gradient, sums[i++].Resize(gradient.rows, gradient.cols));
  }
}

}  // namespace numsim
