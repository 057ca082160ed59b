// Models: from a batch to a loss, and back to gradients of all parameters.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "numsim/data/source.h"
#include "numsim/models/model_config.h"
#include "numsim/models/parameter.h"
#include "numsim/models/pass.h"
#include "numsim/ops/loss.h"

namespace numsim {

// One state of delayed scaling, by the name of its layer.
struct NamedState {
  std::string name;
  std::vector<float> values;
};

// What a contrastive model makes of a batch: a vector of norm 1 in the common space for each image
// and for each caption, one row an example.
template <typename T>
struct Embeddings {
  In<T> images, captions;
};

template <typename T>
class Model {
 public:
  virtual ~Model() = default;

  // The loss over the batch, its mean over `counted`: tokens of a language model; images of a
  // classifier; for CLIP twice the pairs, images and captions each once (the loss of [CLIP] is
  // their mean); rows of the student. `correct` counts accordingly; a student has none. Keeps what
  // Backward needs until the next Forward. Requires a batch of the model's kind and sizes
  // (batch.h).
  virtual LossSum Forward(const Pass<T>& pass, const Batch& batch) = 0;
  // Gradients of pass.loss_scale * the mean loss of the last Forward.
  virtual void Backward(const Pass<T>& pass) = 0;

  // Of the last Forward, valid until the next one. None: a model that is not contrastive.
  virtual std::optional<Embeddings<T>> LastEmbeddings() const { return std::nullopt; }

  ParameterList<T>& parameters() { return *parameters_; }
  const ParameterList<T>& parameters() const { return *parameters_; }

  // State of delayed scaling of layers that have one.
  virtual std::vector<NamedState> SaveState() const = 0;
  // Throws Error for a name that is no such layer or a state that does not fit.
  virtual void RestoreState(const std::vector<NamedState>& states) = 0;

  // The names of all linear layers, in order.
  virtual std::vector<std::string> LinearLayers() const = 0;
  // What each of them was made with, in the same order.
  virtual std::vector<LinearOptions> LinearLayerPrecisions() const = 0;
  // Multiplications and additions of the linear layers' products of a forward pass, for a batch of
  // `examples` examples. A training step does three times as many.
  virtual double ForwardFlops(size_t examples) const = 0;

 protected:
  std::unique_ptr<ParameterList<T>> parameters_;
};

// A model with the parameters that `seed` decides; what it holds beside them, a student its
// teacher, `seed` decides in any case. Throws Error as CheckModelConfig and MakeLinearRecipe do,
// and for an override that names no layer.
template <typename T>
std::unique_ptr<Model<T>> MakeModel(const ModelConfig& config,
                                    const LinearPrecision& precision,
                                    uint64_t seed,
                                    InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
