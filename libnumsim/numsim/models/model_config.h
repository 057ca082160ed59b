// The shape of a model and the precision of its linear layers, as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "numsim/linear/linear_recipe.h"

namespace numsim {

enum class ModelKind : uint8_t {
  kLlama,  // RMSNorm, rotary positions, SwiGLU, no biases [Llama2]
  kGpt,    // LayerNorm, learned positions, GELU, biases [GPT2]; head not tied to the embedding
  kVit,    // classifier: patches, class token, learned positions, LayerNorm, GELU [ViT]
  kClip,   // a ViT and a causal text transformer, contrastive loss [CLIP]
  kMlp,    // student of a fixed teacher: residual blocks of LayerNorm, linear, GELU, linear; linear
           // layers before and behind them where inputs != width; squared error [MXInstability]
};
// llama gpt vit clip mlp. Throws Error listing them.
ModelKind ParseModelKind(std::string_view text);
std::string_view ToString(ModelKind kind);

struct ModelConfig {
  ModelKind kind = ModelKind::kLlama;
  // The transformer; CLIP: of images.
  size_t layers = 4, width = 128, heads = 4;
  // Width of the hidden layer of an MLP; 0: 4 width, for SwiGLU 8/3 width rounded up to a multiple
  // of 32.
  size_t hidden = 0;
  size_t vocabulary = 256;  // bytes, and what the data add
  size_t context = 128;     // llama, gpt: longest sequence. CLIP: of captions
  size_t image = 32, channels = 3, patch = 4;
  size_t classes = 10;  // vit
  // CLIP's text transformer; 0: as that of images.
  size_t text_layers = 0, text_width = 0, text_heads = 0;
  size_t embedding = 0;  // CLIP: of both; 0: width
  size_t inputs = 64;    // mlp: features
  bool qk_norm = false;  // norm of each head's queries and keys [QKNorm]
  // Layer-scale [CaiT]: initial gain of each branch; none: no layer-scale. 0 makes every block the
  // identity at first.
  std::optional<float> layer_scale;
  double norm_epsilon = 1e-5;
  double rope_base = 10000;
  // Standard deviation of initial weights of llama and gpt; 0: of the paper, 0.02. Their branch
  // outputs, and those of CLIP's text, are divided by sqrt(2 layers) unless `scaled_branches` is
  // false.
  double initial_deviation = 0;
  bool scaled_branches = true;
};
// Throws Error naming the field ("model.heads"): heads that do not divide width, odd head_dim for
// llama, patch that does not divide image, zeros, sizes above 2^30, numbers that are not finite.
// Fields that the kind does not have are not looked at.
void CheckModelConfig(const ModelConfig& config);

// The precision of linear layers: `standard` for all, then each override for the layers it names,
// in order.
struct LinearOverride {
  std::string layers;  // a pattern of names, '*' any run of characters: "*.mlp.down", "head"
  LinearOptions precision;
};
struct LinearPrecision {
  LinearOptions all;
  // The first and the last linear layer (patches and what makes logits or embeddings; of a language
  // model, the head) take kind standard with `all`'s high_precision.
  bool first_last_high = false;
  std::vector<LinearOverride> overrides;
};
// The options of the layer of that name: of the last override whose pattern covers the name, else
// by first_last_high, else `all`. `edge`: it is a first or last one. The result may lie in
// `storage`.
const LinearOptions& PrecisionOf(const LinearPrecision& precision,
                                 std::string_view layer,
                                 bool edge,
                                 LinearOptions& storage);
// Whether `pattern` covers all of `text`.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace numsim
