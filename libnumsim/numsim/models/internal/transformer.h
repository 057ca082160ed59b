// Pre-norm transformer: a residual stream that passes through blocks of attention and MLP.
//
// Block N of a transformer with prefix P ("blocks", "image.blocks") computes
//   m = x + gain * attention(attention_norm(x))      gain: layer-scale [CaiT], or none
//   y = m + gain * mlp(mlp_norm(m))
// A norm behind the last block is the model's. Points that a pass shows, as activations in the
// order of this list and as gradients in the opposite one:
//   P.N.attention.norm         what enters attention
//   P.N.attention.qkv          queries, keys, values
//   P.N.attention.query_norm   with qk_norm: queries as normalised, before they are rotated
//   P.N.attention.key_norm     likewise keys
//   P.N.attention.core         the heads' weighted sums of values
//   P.N.attention.out          the branch, before layer-scale
//   P.N.middle                 the residual stream m
//   P.N.mlp.norm               what enters the MLP
//   P.N.mlp.gate_up            SwiGLU: gate and up; GELU has P.N.mlp.up
//   P.N.mlp.hidden             what the activation puts out
//   P.N.mlp.down               the branch, before layer-scale
//   P.N                        the residual stream y behind the block
// Linear layers are P.N.attention.{qkv,out} and P.N.mlp.{gate_up or up,down}; other parameters are
// those of the norms, NORM.gain and NORM.bias, and P.N.attention.scale, P.N.mlp.scale: layer-scale.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "numsim/models/internal/attention_layer.h"
#include "numsim/models/internal/linear_factory.h"
#include "numsim/models/internal/mlp_layer.h"
#include "numsim/models/internal/norm_layer.h"

namespace numsim {

struct TransformerConfig {
  size_t layers = 0, width = 0, heads = 0;  // heads divides width
  size_t hidden = 0;                        // of the MLP
  size_t length = 0;                        // longest sequence
  NormKind norm = NormKind::kRms;
  MlpKind mlp = MlpKind::kSwiglu;
  bool causal = true;
  bool rotary = false;                 // needs an even width / heads
  bool biases = false;                 // of linear layers
  bool qk_norm = false;                // norm of each head's queries and keys, of kind `norm`
  std::optional<float> layer_scale{};  // initial gain of every branch; none: no layer-scale
  double norm_epsilon = 1e-5;
  double rope_base = 10000;
  // Weights of linear layers; mlp_up: of the gate too. Biases start as zeros.
  Initial qkv{}, attention_out{}, mlp_up{}, mlp_down{};
};

template <typename T>
class Transformer {
 public:
  Transformer(LinearFactory<T>& linears,
              const std::string& prefix,
              const TransformerConfig& config);
  ~Transformer();

  // x: batch * length x width, contiguous, `length` rows a sequence. Returns the residual stream
  // behind the last block (x itself without blocks), in memory of this transformer that stays until
  // the next Forward. The caller keeps x and the result as they are until Backward. Requires
  // length <= config.length.
  MatrixSpan<T> Forward(const Pass<T>& pass, MatrixSpan<T> x, size_t batch, size_t length);
  // Turns g, the gradient of what the last Forward returned, into that of its x, in place, and
  // returns it. Writes the gradients of all parameters. Once a Forward.
  MatrixSpan<T> Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  struct Block;
  // They live within one Backward, so all blocks share them.
  struct Gradients {
    explicit Gradients(Place place);
    AttentionScratch<T> attention;
    MlpScratch<T> mlp;
    Buffer<T> branch, normed;
  };
  std::deque<Block> blocks_;
  Gradients gradients_;
};

}  // namespace numsim
