// A pre-norm transformer: a residual stream that passes through blocks of attention and MLP.
//
// Block N of a transformer with prefix P ("blocks", "image.blocks") computes
//   m = x + gain * attention(attention_norm(x))      gain: layer-scale [CaiT], or none
//   y = m + gain * mlp(mlp_norm(m))
// The model itself adds any norm after the last block. The tensor names, for activations in this
// order and for gradients in reverse order:
//   P.N.attention.norm         the input of attention
//   P.N.attention.qkv          queries, keys, values
//   P.N.attention.query_norm   with qk_norm: the normalised queries, before rotation
//   P.N.attention.key_norm     with qk_norm: the normalised keys, before rotation
//   P.N.attention.core         the heads' weighted sums of values
//   P.N.attention.out          the branch, before layer-scale
//   P.N.middle                 the residual stream m
//   P.N.mlp.norm               the input of the MLP
//   P.N.mlp.gate_up            SwiGLU: gate and up (for GELU: P.N.mlp.up)
//   P.N.mlp.hidden             the output of the activation function
//   P.N.mlp.down               the branch, before layer-scale
//   P.N                        the residual stream y after the block
// The linear layers are P.N.attention.{qkv,out} and P.N.mlp.{gate_up or up,down}. Other parameters
// are NORM.gain and NORM.bias of each norm, and P.N.attention.scale and P.N.mlp.scale for
// layer-scale.
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
  size_t length = 0;                        // maximum sequence length
  NormKind norm = NormKind::kRms;
  MlpKind mlp = MlpKind::kSwiglu;
  bool causal = true;
  bool rotary = false;   // requires an even width / heads
  bool biases = false;   // linear layers have biases
  bool qk_norm = false;  // norm of each head's queries and keys, of kind `norm`
  AttentionPrecision attention{};
  std::optional<float> layer_scale{};  // initial gain of each branch; none: no layer-scale
  double norm_epsilon = 1e-5;
  double rope_base = 10000;
  // Initial weights of the linear layers; mlp_up also applies to the gate. Biases are initially
  // zero.
  Initial qkv{}, attention_out{}, mlp_up{}, mlp_down{};
};

template <typename T>
class Transformer {
 public:
  Transformer(LinearFactory<T>& linears,
              const std::string& prefix,
              const TransformerConfig& config);
  ~Transformer();

  // Returns the residual stream after the last block (x itself if there are no blocks). x is batch
  // * length x width, contiguous, with `length` rows per sequence. The result lies in memory of
  // this transformer and is valid until the next Forward. The caller must leave x and the result
  // unchanged until Backward. Requires length <= config.length.
  MatrixSpan<T> Forward(const Pass<T>& pass, MatrixSpan<T> x, size_t batch, size_t length);
  // Replaces g, the gradient of the last Forward's result, by the gradient of its x, in place, and
  // returns it. Writes the gradients of all parameters. May be called once per Forward.
  MatrixSpan<T> Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  struct Block;
  // Used only within one Backward, so all blocks share them.
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
