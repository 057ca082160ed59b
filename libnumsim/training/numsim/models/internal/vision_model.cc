#include <cmath>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/models/internal/field_checks.h"
#include "numsim/models/internal/image_tower.h"
#include "numsim/models/internal/model_kinds.h"
#include "numsim/ops/shared/index_column.h"

namespace numsim {
namespace {

// Returns the distribution of variance 2 / (in + out) of Glorot and Bengio.
Initial Glorot(size_t in, size_t out) {
  return {.deviation = static_cast<float>(std::sqrt(2 / static_cast<double>(in + out)))};
}

ImageTowerOptions TowerOf(const ModelConfig& config) {
  const size_t width = config.width, hidden = config.hidden != 0 ? config.hidden : 4 * width;
  const double patch = static_cast<double>(config.patch * config.patch * config.channels);
  ImageTowerOptions options{.image = config.image,
                            .channels = config.channels,
                            .patch = config.patch,
                            .patch_dropout = config.patch_dropout,
                            .patch_bias = true,
                            .pre_norm = false,
                            .blocks = {},
                            .patches = {.deviation = static_cast<float>(1 / std::sqrt(patch))},
                            .class_token = {},
                            .positions = {.deviation = 0.02f}};
  options.blocks = {.layers = config.layers,
                    .width = width,
                    .heads = config.heads,
                    .hidden = hidden,
                    .norm = NormKind::kLayer,
                    .mlp = MlpKind::kGelu,
                    .causal = false,
                    .biases = true,
                    .qk_norm = config.qk_norm,
                    .attention = config.attention,
                    .layer_scale = config.layer_scale,
                    .norm_epsilon = config.norm_epsilon,
                    .qkv = Glorot(width, width),
                    .attention_out = Glorot(width, width),
                    .mlp_up = Glorot(width, hidden),
                    .mlp_down = Glorot(hidden, width)};
  return options;
}

// Model of kind vit [ViT]: an image tower (image_tower.h) with
// prefix "" and a linear layer "head" with a bias, which maps the class token to the classes. The
// tensor names are those of the tower and "head".
//
// The initial values are those of the published code [ViT], with normal distributions of the same
// variance in place of uniform ones. Deviations: patches 1/sqrt(inputs); positions 0.02; class
// token, head and biases 0; other linear layers sqrt(2 / (inputs + outputs)), where queries, keys
// and values count as three layers.
template <typename T>
class VisionModel final : public LayeredModel<T> {
 public:
  VisionModel(const ModelConfig& config,
              const LinearPrecision& precision,
              uint64_t seed,
              InitialValues initial)
      : LayeredModel<T>(precision, seed, initial),
        config_(config),
        tower_(this->linears_, "", TowerOf(config)),
        head_(this->linears_.Make(
            "head",
            {.in = config.width, .out = config.classes, .bias = true, .rows = 1, .edge = true})),
        labels_(this->parameters_->place()),
        logits_(this->parameters_->place()),
        gradient_(this->parameters_->place()) {
    this->linears_.CheckOverrides();
  }

  LossSum Forward(const Pass<T>& pass, const Batch& batch) override;
  void Backward(const Pass<T>& pass) override;

 private:
  ModelConfig config_;
  ImageTower<T> tower_;
  LinearLayer<T>& head_;
  IndexColumn labels_;
  Buffer<T> logits_;    // after a Forward with gradients: their gradient
  Buffer<T> gradient_;  // of the tower's result
};

template <typename T>
LossSum VisionModel<T>::Forward(const Pass<T>& pass, const Batch& batch) {
  RequireSize(batch.targets.size(), batch.examples, "Model::Forward", "batch.targets");
  labels_.Upload(batch.targets);
  const MatrixSpan<T> logits = logits_.Resize(batch.examples, config_.classes);
  head_.Forward(pass, tower_.Forward(pass, batch.values, batch.examples), logits);
  const TimedPart timed(pass.profile, StepPhase::kLoss);
  return CrossEntropy<T>(
      logits, labels_.View(), pass.loss_scale, pass.gradients ? logits : MatrixSpan<T>());
}

template <typename T>
void VisionModel<T>::Backward(const Pass<T>& pass) {
  const MatrixSpan<T> of_logits = logits_.View();
  const MatrixSpan<T> gradient = gradient_.Resize(of_logits.rows, config_.width);
  head_.Backward(pass, of_logits, gradient);
  tower_.Backward(pass, gradient);
}

void CheckVit(const ModelConfig& config) {
  CheckHeads(config);
  CheckImage(config);
  CheckSize("classes", config.classes);
}

bool FitImages(ModelConfig& config, const DataShape& data) {
  if (!data.HasImages() || data.classes == 0) return false;
  FitImage(config, data);
  config.classes = data.classes;
  return true;
}

}  // namespace

const ModelKindRow& VitRow() {
  static constexpr ModelKindRow kRow =
      MakeRow<VisionModel>({}, "images or generated-images", CheckVit, FitImages);
  return kRow;
}

}  // namespace numsim
