#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "numsim/base/elementary.h"
#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/models/internal/field_checks.h"
#include "numsim/models/internal/image_tower.h"
#include "numsim/models/internal/model_kinds.h"
#include "numsim/models/internal/text_tower.h"
#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/index_column.h"
#include "numsim/ops/shared/norm.h"
#include "numsim/ops/shared/product.h"
#include "numsim/ops/shared/temperature.h"

namespace numsim {
namespace {

// Initial temperature and maximum of e^t, as in [OpenCLIP].
constexpr double kFirstTemperature = 0.07;
constexpr double kLargestFactor = 100;

// Accumulation mode of the matmuls of embeddings: sequential float32 fused multiply-adds.
constexpr AccumulationMode kFloat32Sums{.kind = AccumulationKind::kFormat, .format = kFp32};

// Returns standard deviation 1 / sqrt(of).
Initial RootOf(size_t of) {
  return {.deviation = static_cast<float>(1 / std::sqrt(static_cast<double>(of)))};
}

// Returns the settings that both towers share.
TransformerConfig TransformerOf(const ModelConfig& config) {
  return {.norm = NormKind::kLayer,
          .mlp = MlpKind::kGelu,
          .biases = true,
          .qk_norm = config.qk_norm,
          .attention = config.attention,
          .layer_scale = config.layer_scale,
          .norm_epsilon = config.norm_epsilon};
}

size_t HiddenOf(const ModelConfig& config) {
  return config.hidden != 0 ? config.hidden : 4 * config.width;
}

size_t EmbeddingOf(const ModelConfig& config) {
  return config.embedding != 0 ? config.embedding : config.width;
}

ImageTowerOptions ImageOf(const ModelConfig& config) {
  const size_t width = config.width, hidden = HiddenOf(config);
  ImageTowerOptions options{.image = config.image,
                            .channels = config.channels,
                            .patch = config.patch,
                            .patch_dropout = config.patch_dropout,
                            .patch_bias = false,
                            .pre_norm = true,
                            .blocks = TransformerOf(config),
                            .patches = RootOf(3 * config.patch * config.patch * config.channels),
                            .class_token = RootOf(width),
                            .positions = RootOf(width)};
  options.blocks.layers = config.layers;
  options.blocks.width = width;
  options.blocks.heads = config.heads;
  options.blocks.hidden = hidden;
  options.blocks.causal = false;
  options.blocks.qkv = RootOf(2 * width);
  options.blocks.attention_out = options.blocks.mlp_up = RootOf(3 * width);
  options.blocks.mlp_down = RootOf(3 * hidden);
  return options;
}

size_t TextWidthOf(const ModelConfig& config) {
  return config.text_width != 0 ? config.text_width : config.width;
}

EmbeddingOptions TokensOf(const ModelConfig& config) {
  return {.vocabulary = config.vocabulary,
          .width = TextWidthOf(config),
          .positions = config.context,
          .token = {.deviation = 0.02f},
          .position = {.deviation = 0.01f}};
}

TransformerConfig TextOf(const ModelConfig& config) {
  const size_t width = TextWidthOf(config);
  TransformerConfig blocks = TransformerOf(config);
  blocks.layers = config.text_layers != 0 ? config.text_layers : config.layers;
  blocks.width = width;
  blocks.heads = config.text_heads != 0 ? config.text_heads : config.heads;
  blocks.hidden = std::max<size_t>(1, HiddenOf(config) * width / config.width);
  blocks.causal = true;
  blocks.qkv = RootOf(width);
  blocks.mlp_up = RootOf(2 * width);
  blocks.attention_out = blocks.mlp_down =
      RootOf(config.scaled_branches ? 2 * blocks.layers * width : width);
  return blocks;
}

// Projects a tower's rows to vectors of norm 1 in the common space, and back-propagates through it.
template <typename T>
class Projection {
 public:
  Projection(LinearFactory<T>& linears, const std::string& name, size_t width, size_t embedding)
      : linear_(linears.Make(
            name,
            {.in = width, .out = embedding, .weight = RootOf(width), .rows = 1, .edge = true})),
        width_(width),
        embedding_(embedding),
        projected_(linears.parameters().place()),
        inverse_(linears.parameters().place()),
        unit_(linears.parameters().place()),
        unit_gradient_(linears.parameters().place()),
        gradient_(linears.parameters().place()),
        row_gradient_(linears.parameters().place()) {}

  In<T> Unit() const { return unit_.View(); }
  void Forward(const Pass<T>& pass, In<T> rows) {
    const MatrixSpan<T> projected = projected_.Resize(rows.rows, embedding_);
    const MatrixSpan<T> unit = unit_.Resize(rows.rows, embedding_);
    linear_.Forward(pass, rows, projected);
    const TimedPart timed(pass.profile, StepPhase::kNorm);
    UnitNorm<T>(projected, inverse_.Resize(rows.rows, 1), unit);
  }

  // Returns the gradient of the tower's rows. `of_own` is the gradient of the logits whose rows are
  // this tower's examples, `of_other` that of the logits whose rows are the other tower's examples;
  // both are N x N. `other` holds the unit vectors of the other tower.
  MatrixSpan<T> Backward(const Pass<T>& pass, In<T> of_own, In<T> of_other, In<T> other) {
    const size_t rows = other.rows;
    const MatrixSpan<T> unit = unit_gradient_.Resize(rows, embedding_);
    const MatrixSpan<T> gradient = gradient_.Resize(rows, embedding_);
    {
      const TimedPart timed(pass.profile, StepPhase::kLoss);
      Multiply<T>(of_own, false, other, false, kFloat32Sums, unit);
      Multiply<T>(of_other, true, other, false, kFloat32Sums, gradient);
      Add<T>(unit, gradient, unit);
    }
    {
      const TimedPart timed(pass.profile, StepPhase::kNorm);
      UnitNormGradient<T>(unit, unit_.View(), inverse_.View(), gradient);
    }
    const MatrixSpan<T> row_gradient = row_gradient_.Resize(rows, width_);
    linear_.Backward(pass, gradient, row_gradient);
    return row_gradient;
  }

 private:
  LinearLayer<T>& linear_;
  size_t width_, embedding_;
  Buffer<T> projected_, inverse_, unit_, unit_gradient_, gradient_, row_gradient_;
};

// Model of kind clip [CLIP]. It has an image tower (image_tower.h)
// with prefix "image." and a norm before its first block, a text tower (text_tower.h) with prefix
// "text.", and linear layers "image.projection" and "text.projection" to the common space. The
// projected rows are normalised to norm 1 and give u and v. With N pairs,
//   logits = e^t (u v^T; v u^T), 2N x N    images against captions, then captions against images
// and the loss is the mean over all rows of the cross entropy with the matching column; t is the
// parameter "logit_scale". `correct` counts the rows whose largest logit belongs to their own
// concept. The tensor names are those of the towers, "image.projection", "text.projection" and
// "logits".
//
// t is initially ln(1 / 0.07) and is clamped to [0, ln 100] where it is used
// (ops/shared/temperature.h).
//
// The initial values are those of [OpenCLIP], with normal distributions of the same variance in
// place of uniform ones, and biases of 0. Deviations in the image tower: class token, positions and
// projection 1/sqrt(width); queries, keys and values 1/sqrt(2 width); other linear layers 1/sqrt(3
// inputs). In the text tower: tokens 0.02; positions 0.01; queries, keys, values and projection
// 1/sqrt(width); the MLP's first layer 1/sqrt(2 width); layers that end a branch 1/sqrt(2 layers
// width), or 1/sqrt(width) without `scaled_branches`.
//
// The text MLP has the same ratio of hidden size to width as the image MLP.
template <typename T>
class ClipModel final : public LayeredModel<T> {
 public:
  ClipModel(const ModelConfig& config,
            const LinearPrecision& precision,
            uint64_t seed,
            InitialValues initial)
      : LayeredModel<T>(precision, seed, initial),
        limits_{0, Log(kLargestFactor)},
        image_(this->linears_, "image.", ImageOf(config)),
        image_projection_(this->linears_, "image.projection", config.width, EmbeddingOf(config)),
        text_(this->linears_, "text.", TokensOf(config), TextOf(config)),
        text_projection_(
            this->linears_, "text.projection", TextWidthOf(config), EmbeddingOf(config)),
        logit_scale_(this->parameters_->Add("logit_scale",
                                            ParameterRole::kScalar,
                                            1,
                                            1,
                                            {.mean = static_cast<float>(-Log(kFirstTemperature))})),
        targets_(this->parameters_->place()),
        concepts_(this->parameters_->place()),
        logits_(this->parameters_->place()),
        gradient_(this->parameters_->place()) {
    this->linears_.CheckOverrides();
  }

  LossSum Forward(const Pass<T>& pass, const Batch& batch) override;
  void Backward(const Pass<T>& pass) override;
  std::optional<Embeddings<T>> LastEmbeddings() const override {
    return Embeddings<T>{image_projection_.Unit(), text_projection_.Unit()};
  }

 private:
  void KeepTargets(const Batch& batch);
  LossSum Contrast(const Pass<T>& pass, size_t pairs);

  ExponentLimits limits_;
  ImageTower<T> image_;
  Projection<T> image_projection_;
  TextTower<T> text_;
  Projection<T> text_projection_;
  Parameter<T>& logit_scale_;
  std::vector<int32_t> own_pairs_;  // index of the matching column per row, on the host
  IndexColumn targets_, concepts_;
  Buffer<T> logits_, gradient_;
};

// Sets the matching column of row i to i, in both halves of the logits.
template <typename T>
void ClipModel<T>::KeepTargets(const Batch& batch) {
  const size_t pairs = batch.examples;
  RequireSize(batch.ends.size(), pairs, "Model::Forward", "batch.ends");
  RequireSize(batch.concepts.size(), pairs, "Model::Forward", "batch.concepts");
  concepts_.Upload(batch.concepts);
  own_pairs_.resize(2 * pairs);
  const auto middle = own_pairs_.begin() + static_cast<std::ptrdiff_t>(pairs);
  std::iota(own_pairs_.begin(), middle, 0);
  std::iota(middle, own_pairs_.end(), 0);
  targets_.Upload(own_pairs_);
}

template <typename T>
LossSum ClipModel<T>::Contrast(const Pass<T>& pass, size_t pairs) {
  const MatrixSpan<T> logits = logits_.Resize(2 * pairs, pairs);
  const In<T> u = image_projection_.Unit(), v = text_projection_.Unit();
  {
    const TimedPart timed(pass.profile, StepPhase::kLoss);
    const MatrixSpan<T> of_images = logits.Rows(0, pairs);
    Multiply<T>(u, false, v, true, kFloat32Sums, of_images);
    // V U^T, bit for bit: the products are added in the same order.
    CopyTransposed<T>(of_images, logits.Rows(pairs, pairs));
    ScaleByExponential<T>(logit_scale_.value.View(), limits_, logits);
  }
  pass.Observe("logits", TensorRole::kActivation, logits);
  const TimedPart timed(pass.profile, StepPhase::kLoss);
  const IndexRef concepts = concepts_.View();
  MatrixSpan<T> gradient;
  if (pass.gradients) gradient = gradient_.Resize(logits.rows, logits.cols);
  LossSum loss = CrossEntropy<T>(logits, targets_.View(), pass.loss_scale, gradient);
  loss.correct = CountBestOfClass<T>(logits.Rows(0, pairs), concepts) +
                 CountBestOfClass<T>(logits.Rows(pairs, pairs), concepts);
  return loss;
}

template <typename T>
LossSum ClipModel<T>::Forward(const Pass<T>& pass, const Batch& batch) {
  KeepTargets(batch);
  image_projection_.Forward(pass, image_.Forward(pass, batch.values, batch.examples));
  text_projection_.Forward(pass, text_.Forward(pass, batch.tokens, batch.ends, batch.length));
  return Contrast(pass, batch.examples);
}

template <typename T>
void ClipModel<T>::Backward(const Pass<T>& pass) {
  const MatrixSpan<T> logits = logits_.View();
  const MatrixSpan<T> gradient = gradient_.View();
  pass.Observe("logits", TensorRole::kGradient, gradient);
  {
    const TimedPart timed(pass.profile, StepPhase::kLoss);
    ScaleByExponentialGradient<T>(
        logit_scale_.value.View(), limits_, logits, logit_scale_.gradient.View(), gradient);
  }
  const In<T> of_images = gradient.Rows(0, logits.cols);
  const In<T> of_captions = gradient.Rows(logits.cols, logits.cols);
  const In<T> u = image_projection_.Unit(), v = text_projection_.Unit();
  text_.Backward(pass, text_projection_.Backward(pass, of_captions, of_images, u));
  image_.Backward(pass, image_projection_.Backward(pass, of_images, of_captions, v));
}

void CheckText(const ModelConfig& config) {
  CheckOptionalSize("text_layers", config.text_layers);
  const size_t text_layers = config.text_layers != 0 ? config.text_layers : config.layers;
  CheckBlocks(config.text_layers != 0 ? "text_layers" : "layers", config.layers + text_layers);
  CheckOptionalSize("text_width", config.text_width);
  CheckOptionalSize("text_heads", config.text_heads);
  CheckOptionalSize("embedding", config.embedding);
  const size_t width = config.text_width != 0 ? config.text_width : config.width;
  const size_t heads = config.text_heads != 0 ? config.text_heads : config.heads;
  if (width % heads != 0) {
    throw KeyError::Format(
        "model.text_heads", "{} heads do not divide a text width of {}", heads, width);
  }
}

void CheckClip(const ModelConfig& config) {
  CheckHeads(config);
  CheckImage(config);
  CheckTokens(config);
  CheckText(config);
}

bool FitCaptions(ModelConfig& config, const DataShape& data) {
  if (!data.HasImages() || data.vocabulary == 0) return false;
  FitImage(config, data);
  config.vocabulary = data.vocabulary;
  config.context = data.length;
  return true;
}

}  // namespace

const ModelKindRow& ClipRow() {
  static constexpr ModelKindRow kRow =
      MakeRow<ClipModel>({}, "captions or generated-shapes", CheckClip, FitCaptions);
  return kRow;
}

}  // namespace numsim
