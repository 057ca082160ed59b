#include "experiments/runner/approximate_parameters.h"

#include <cstddef>

namespace numsim::experiments {

double ApproximateParameters(const TrainConfig& config) {
  const ModelConfig& model = config.model;
  const auto tower = [](size_t layers, size_t width) {
    return 12.0 * static_cast<double>(layers) * static_cast<double>(width) *
           static_cast<double>(width);
  };
  const auto width = static_cast<double>(model.width);
  double count = tower(model.layers, model.width);
  if (model.kind == ModelKind::kClip) {
    count += tower(model.text_layers == 0 ? model.layers : model.text_layers,
                   model.text_width == 0 ? model.width : model.text_width);
  }
  const bool many =
      config.data.kind == DataKind::kZipf || config.data.tokenizer == TokenizerKind::kBpe;
  const size_t vocabulary = many ? config.data.vocabulary : model.vocabulary;
  return count + 2 * static_cast<double>(vocabulary) * width;
}

}  // namespace numsim::experiments
