// Configuration of a model's shape, and of the precision of its attention and its linear layers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/linear/linear_recipe.h"
#include "numsim/ops/attention_recipe.h"

namespace numsim {

// kLlama and so on: one enumerator per row of model_kinds.inc, which describes each model.
enum class ModelKind : uint8_t {
#define NUMSIM_MODEL_KIND(kind, name) k##kind,
#include "numsim/models/model_kinds.inc"
#undef NUMSIM_MODEL_KIND
};
// Convert between a ModelKind and its name: llama, gpt, vit, clip or mlp. ParseModelKind throws
// Error listing the names if `text` is none of them.
ModelKind ParseModelKind(std::string_view text);
std::string_view ToString(ModelKind kind);
// Returns the names, separated by ", ".
std::string ModelKindNames();

// Differences between kinds that training and reports depend on.
struct ModelTraits {
  bool has_tokens =
      false;  // an example is a sequence of ModelConfig::context tokens, each with a loss
  bool has_accuracy = true;  // the loss counts items as correct or not
  std::string_view loss_unit = "nats";
};
// Returns the traits of a kind.
const ModelTraits& TraitsOf(ModelKind kind);

// The MLP of a llama's blocks. The smooth kinds keep outliers from the quantiser of the layer
// `down` and compute the same function in exact arithmetic.
enum class MlpKind : uint8_t {
  kSwiglu,  // down(swish(gate) * linear) [SwiGLU]
  // Each channel of the product is multiplied by a power of two, so that its largest value over the
  // tokens of the pass lies in [1, 2), and divided by it once it is quantised: [Fishman] Equation 3,
  // which leaves the rounding of the scale open. Needs a host.
  kSmoothSwiglu,
  // The linear branch of each token is divided by its absolute maximum, and the token's row of
  // down's output multiplied by it: the reference code of [Fishman]. A token of zeros is divided by
  // 1, where that code has 0/0. Needs a host.
  kSmoothSwigluToken,
  // swish(min(gate, 7)) * clamp(linear, -7, 7), the limits of [gpt-oss] without its other changes:
  // another function. Needs a host.
  kClampedSwiglu,
  kGelu,  // down(gelu(up)) [GELU]: no gate
};
// Convert between an MlpKind and its name: swiglu, smooth-swiglu, smooth-swiglu-token,
// clamped-swiglu, gelu. ParseMlpKind throws Error listing the names.
MlpKind ParseMlpKind(std::string_view text);
std::string_view ToString(MlpKind kind);
std::string MlpKindNames();

// The shape of a model. Fields that do not apply to its kind are ignored.
struct ModelConfig {
  ModelKind kind = ModelKind::kLlama;
  // Blocks of the transformer; for CLIP, of the image tower.
  size_t layers = 4, width = 128, heads = 4;
  // Width of the hidden layer of an MLP. 0 selects 4 width; for SwiGLU 8/3 width, rounded up to a
  // multiple of 32.
  size_t hidden = 0;
  MlpKind mlp = MlpKind::kSwiglu;  // llama
  size_t vocabulary = 256;         // number of byte values plus any special tokens of the data
  size_t context = 128;            // longest sequence of tokens; for CLIP, of a caption
  size_t image = 32, channels = 3, patch = 4;
  size_t classes = 10;  // vit
  // vit, clip: share of the patches of each image that a training pass leaves out, after positions
  // are added [PatchDropout]. Which ones is drawn per image and step.
  double patch_dropout = 0;
  // CLIP's text transformer; 0 takes the value of the image tower.
  size_t text_layers = 0, text_width = 0, text_heads = 0;
  size_t embedding = 0;  // CLIP: size of the common space; 0: width
  size_t inputs = 64;    // mlp: number of features
  bool qk_norm = false;  // normalise each head's queries and keys [QKNorm]
  // Of the products of attention; models of double compute them in double.
  AttentionPrecision attention = {};
  // Initial gain of each branch in layer-scale [CaiT]; none: no layer-scale. With 0, every block is
  // initially the identity.
  std::optional<float> layer_scale = {};
  double norm_epsilon = 1e-5;
  double rope_base = 10000;
  // Standard deviation of the initial weights of llama and gpt; 0 selects 0.02, as in the paper.
  // Unless `scaled_branches` is false, the initial weights of the layers that end a branch are
  // divided by sqrt(2 layers), also in CLIP's text transformer.
  double initial_deviation = 0;
  bool scaled_branches = true;
};
// Throws Error naming the field (for example "model.heads") if heads does not divide width, the
// head dimension of a llama is odd, patch does not divide image, a size is zero or above 2^30, or a
// number is not finite or out of range, and as MakeAttentionRecipe does ("attention.format"). Fields that do not apply to the kind are not checked.
void CheckModelConfig(const ModelConfig& config);

// The precision of the linear layers that a pattern matches.
struct LinearOverride {
  std::string layers = {};  // '*' matches any run of characters: "*.mlp.down", "head"
  LinearOptions precision = {};
};
// The precision of a model's linear layers: `all` for every layer, except where first_last_high or
// an override applies. Later overrides win.
struct LinearPrecision {
  LinearOptions all = {};
  // If true, the first and last linear layers use the recipe kind `standard` with the
  // high_precision settings of `all`. These are the patch projections, the layers that produce
  // logits or embeddings, and a student's input and output projections; in a language model, only
  // the head.
  bool first_last_high = false;
  // Share of the blocks of each tower, the last ones, rounded up, whose layers use the same options
  // as under first_last_high: 0 to 1. MakeModel puts them before the overrides.
  double high_last = 0;
  std::vector<LinearOverride> overrides = {};
};
// Returns the options of the layer with this name: those of the last override whose pattern matches
// it, otherwise those of first_last_high if it applies, otherwise `all`. `edge` says that the layer
// is a first or last one. The result may refer to `storage`.
const LinearOptions& PrecisionOf(const LinearPrecision& precision,
                                 std::string_view layer,
                                 bool edge,
                                 LinearOptions& storage);
// Returns the options of a layer in high precision under `precision`.
LinearOptions HighPrecisionOf(const LinearPrecision& precision);
// Returns the precision with overrides in the place of high_last, for a model of that shape. Throws
// Error "linear.high_last: ..." for a share that is not 0 to 1.
LinearPrecision WithoutHighLast(LinearPrecision precision, const ModelConfig& config);
// Returns true if `pattern` matches all of `text`. '*' matches any run of characters.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace numsim
