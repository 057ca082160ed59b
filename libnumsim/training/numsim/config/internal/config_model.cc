// The keys of [model].
#include "numsim/base/error.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/models/model_config.h"

namespace numsim {
namespace {

// Returns the row whose value is "none" or a number.
ConfigRow<ModelConfig> LayerScaleRow() {
  return {
      "layer_scale",
      "layer-scale: initial gain of each branch; none: no layer-scale; 0: every block starts as the "
      "identity",
      "none, " + kAtLeastZero.Text(),
      [](ModelConfig& model, const ConfigValue& value) {
        if (value.kind == ConfigValue::Kind::kText) {
          if (value.text != "none") throw Error::Format("must be none or a number");
          model.layer_scale.reset();
        } else {
          model.layer_scale = static_cast<float>(ReadReal(value, kAtLeastZero));
        }
      },
      [](const ModelConfig& model) {
        return model.layer_scale.has_value() ? fmt::format("{}", *model.layer_scale)
                                             : QuotedText("none");
      }};
}

}  // namespace

// Vocabulary, image, channels, classes and inputs have no keys because they follow from the data.
ConfigRows<ModelConfig> ModelRows() {
  using M = ModelConfig;
  // clang-format off
  return {
      ChoiceRow("kind",            &M::kind,              ParseModelKind, ModelKindNames(), "model architecture"),
      WholeRow("layers",           &M::layers,            1, "number of blocks; clip: layers, width, heads and hidden are those of the image transformer"),
      WholeRow("width",            &M::width,             1, "width of the residual stream"),
      WholeRow("heads",            &M::heads,             1, "number of attention heads; must divide width"),
      WholeRow("hidden",           &M::hidden,            0, "width of an MLP's hidden layer; 0: 4 width, for llama 8/3 width rounded up to a multiple of 32"),
      ChoiceRow("mlp",             &M::mlp,               ParseMlpKind, MlpKindNames(), "llama: the MLP; the smooth kinds keep outliers from the quantiser of down"),
      WholeRow("context",          &M::context,           1, "llama, gpt: tokens per sequence; clip uses the length of the captions"),
      WholeRow("patch",            &M::patch,             1, "vit, clip: side of a patch in pixels; must divide the side of the image"),
      WholeRow("text_layers",      &M::text_layers,       0, "clip: number of blocks of the text transformer; 0: same as layers"),
      WholeRow("text_width",       &M::text_width,        0, "clip: width of the text transformer; 0: same as width"),
      WholeRow("text_heads",       &M::text_heads,        0, "clip: number of heads of the text transformer; 0: same as heads"),
      WholeRow("embedding",        &M::embedding,         0, "clip: width of the image and text embeddings; 0: same as width"),
      RealRow("patch_dropout",     &M::patch_dropout,     kZeroToBelowOne, "vit, clip: share of the patches that a training step leaves out"),
      FlagRow("qk_norm",           &M::qk_norm,           "normalise the queries and keys of each head"),
      LayerScaleRow(),
      RealRow("norm_epsilon",      &M::norm_epsilon,      kAboveZero, "added to the mean square in normalisation layers"),
      RealRow("rope_base",         &M::rope_base,         {1, true, kNoLimit, false}, "llama: base of the rotary position embedding"),
      RealRow("initial_deviation", &M::initial_deviation, kAtLeastZero, "llama, gpt: standard deviation of the initial weights; 0: 0.02"),
      FlagRow("scaled_branches",   &M::scaled_branches,   "llama, gpt, clip's text transformer: divide the initial weights of branch outputs by sqrt(2 layers)"),
  };
  // clang-format on
}

}  // namespace numsim
