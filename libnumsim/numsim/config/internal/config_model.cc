// Keys of [model].
#include "numsim/base/error.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/models/model_config.h"

namespace numsim {
namespace {

// "none" or a number.
ConfigRow<ModelConfig> LayerScaleRow() {
  return {
      "layer_scale",
      "initial gain of each branch; none: no layer-scale; 0: every block starts as the identity",
      "none, " + kAtLeastZero.Text(),
      [](ModelConfig& model, const ConfigValue& value) {
        if (value.kind == ConfigValue::Kind::kText) {
          if (value.text != "none") throw Error::Format("wants none or a number");
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

// Vocabulary, image, channels, classes and inputs have no key: they follow from the data.
ConfigRows<ModelConfig> ModelRows() {
  using M = ModelConfig;
  // clang-format off
  return {
      ChoiceRow("kind",            &M::kind,              ParseModelKind, ModelKind::kMlp, "the model"),
      WholeRow("layers",           &M::layers,            1, "blocks; clip: of the image transformer, as the next three"),
      WholeRow("width",            &M::width,             1, "width of the residual stream"),
      WholeRow("heads",            &M::heads,             1, "heads of attention; they divide the width"),
      WholeRow("hidden",           &M::hidden,            0, "width of an MLP's hidden layer; 0: 4 width, of llama 8/3 width rounded up to a multiple of 32"),
      WholeRow("context",          &M::context,           1, "llama, gpt: tokens of a sequence; clip takes that of the captions"),
      WholeRow("patch",            &M::patch,             1, "vit, clip: side of a patch in pixels; it divides the image's"),
      WholeRow("text_layers",      &M::text_layers,       0, "clip: blocks of the text transformer; 0: layers"),
      WholeRow("text_width",       &M::text_width,        0, "clip: its width; 0: width"),
      WholeRow("text_heads",       &M::text_heads,        0, "clip: its heads; 0: heads"),
      WholeRow("embedding",        &M::embedding,         0, "clip: width of both embeddings; 0: width"),
      FlagRow("qk_norm",           &M::qk_norm,           "norm of each head's queries and keys"),
      LayerScaleRow(),
      RealRow("norm_epsilon",      &M::norm_epsilon,      kAboveZero, "added to the mean square in a norm"),
      RealRow("rope_base",         &M::rope_base,         {1, true, kNoLimit, false}, "llama: base of the rotary positions"),
      RealRow("initial_deviation", &M::initial_deviation, kAtLeastZero, "llama, gpt: standard deviation of initial weights; 0: 0.02"),
      FlagRow("scaled_branches",   &M::scaled_branches,   "whether initial weights of branch outputs are divided by sqrt(2 layers)"),
  };
  // clang-format on
}

}  // namespace numsim
