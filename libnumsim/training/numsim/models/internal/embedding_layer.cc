#include "numsim/models/internal/embedding_layer.h"

#include <utility>

#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/sequence.h"

namespace numsim {

template <typename T>
EmbeddingLayer<T>::EmbeddingLayer(ParameterList<T>& parameters,
                                  std::string name,
                                  const EmbeddingOptions& options)
    : name_(std::move(name)),
      tokens_(&parameters.Add(name_ + ".tokens",
                              ParameterRole::kEmbedding,
                              options.vocabulary,
                              options.width,
                              options.token)),
      positions_(nullptr),
      ids_(parameters.place()),
      y_(parameters.place()) {
  if (options.positions != 0) {
    positions_ = &parameters.Add(name_ + ".positions",
                                 ParameterRole::kEmbedding,
                                 options.positions,
                                 options.width,
                                 options.position);
  }
}

template <typename T>
MatrixSpan<T> EmbeddingLayer<T>::Forward(const Pass<T>& pass,
                                         std::span<const int32_t> tokens,
                                         size_t length) {
  ids_.Upload(tokens);
  length_ = length;
  const MatrixSpan<T> y = y_.Resize(tokens.size(), tokens_->value.View().cols);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    GatherRows<T>(tokens_->value.View(), ids_.View(), y);
    if (positions_ != nullptr) AddPositions<T>(positions_->value.View().Rows(0, length), y);
  }
  pass.Observe(name_, TensorRole::kActivation, y);
  return y;
}

template <typename T>
void EmbeddingLayer<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g) {
  pass.Observe(name_, TensorRole::kGradient, g);
  const TimedPart timed(pass.profile, StepPhase::kEmbedding);
  GatherRowsGradient<T>(g, ids_.View(), tokens_->gradient.View());
  if (positions_ == nullptr) return;
  const MatrixSpan<T> table = positions_->gradient.View();
  AddPositionsGradient<T>(g, table.Rows(0, length_));
  Fill<T>(0, table.Rows(length_, table.rows - length_));
}

template class EmbeddingLayer<float>;
template class EmbeddingLayer<double>;

}  // namespace numsim
