// Models compute a loss from a batch, and then the gradients of all parameters.
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

// The delayed-scaling state of one layer, with the layer's name.
struct NamedState {
  std::string name;
  std::vector<float> values;
};

// A contrastive model's representation of a batch: for each image and each caption, a vector of
// norm 1 in the common space. One row per example.
template <typename T>
struct Embeddings {
  In<T> images, captions;
};

// A model with its parameters. Forward and Backward alternate.
template <typename T>
class Model {
 public:
  virtual ~Model() = default;

  // Returns the loss of the batch. Its mean is over `counted`: the tokens of a language model, the
  // images of a classifier, the rows of a student; for CLIP, twice the number of pairs, because
  // images and captions count once each (the loss in [CLIP] is the mean of the two). `correct`
  // counts the same items; a student has none. Keeps the tensors saved for backward until the next
  // Forward. Requires a batch of the model's kind and sizes (Batch in data/source.h).
  virtual LossSum Forward(const Pass<T>& pass, const Batch& batch) = 0;
  // Writes the gradients of pass.loss_scale * the mean loss of the last Forward. Requires that its
  // pass had `gradients` and the same loss_scale: Forward computes the gradient of the logits along
  // with the loss.
  virtual void Backward(const Pass<T>& pass) = 0;

  // Returns the embeddings of the last Forward, valid until the next one. Empty for models that are
  // not contrastive.
  virtual std::optional<Embeddings<T>> LastEmbeddings() const { return std::nullopt; }

  // Returns the parameters, in the order in which the layers were constructed.
  ParameterList<T>& parameters() { return *parameters_; }
  const ParameterList<T>& parameters() const { return *parameters_; }

  // Returns the delayed-scaling state of each layer that has one.
  virtual std::vector<NamedState> SaveState() const = 0;
  // Restores what SaveState returned. Throws Error if a name is not that of a linear layer or a
  // state does not fit its layer.
  virtual void RestoreState(const std::vector<NamedState>& states) = 0;

  // Returns the names of all linear layers, in order.
  virtual std::vector<std::string> LinearLayers() const = 0;
  // Returns the options that each linear layer was constructed with, in the same order.
  virtual std::vector<LinearOptions> LinearLayerPrecisions() const = 0;
  // Throws Error if a linear layer cannot be computed at its place for batches of `examples` examples
  // (Linear::CheckShape). To be asked before the first batch.
  virtual void CheckBatch(size_t examples) const = 0;
  // Returns the number of multiplications and additions in the linear layers' GEMMs of one forward
  // pass over `examples` examples, as if no patch were dropped. A training step performs three times
  // as many.
  virtual double ForwardFlops(size_t examples) const = 0;

 protected:
  std::unique_ptr<ParameterList<T>> parameters_;
};

// Sets what follows from the data: vocabulary, context of captions, image, channels, classes, inputs.
// Throws Error if a model of that kind cannot be trained with such data.
void FitModelToData(ModelConfig& config, const DataShape& data);

// Returns a new model. `seed` decides the initial values of its parameters (for kDrawn) and always
// decides everything else, such as a student's teacher. Throws Error as CheckModelConfig and
// MakeLinearRecipe do, and if an override matches no layer.
template <typename T>
std::unique_ptr<Model<T>> MakeModel(const ModelConfig& config,
                                    const LinearPrecision& precision,
                                    uint64_t seed,
                                    InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
