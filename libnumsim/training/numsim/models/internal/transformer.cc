#include "numsim/models/internal/transformer.h"

#include "numsim/ops/elementwise.h"

namespace numsim {
namespace {

NormOptions BlockNorm(const TransformerConfig& config) {
  return {config.norm, config.width, config.norm_epsilon};
}

AttentionOptions BlockAttention(const TransformerConfig& config) {
  AttentionOptions options{.width = config.width,
                           .heads = config.heads,
                           .length = config.length,
                           .causal = config.causal,
                           .rotary = config.rotary,
                           .rope_base = config.rope_base,
                           .biases = config.biases,
                           .qk_norm = std::nullopt,
                           .precision = config.attention,
                           .qkv = config.qkv,
                           .out = config.attention_out};
  if (config.qk_norm) {
    options.qk_norm = NormOptions{config.norm, config.width / config.heads, config.norm_epsilon};
  }
  return options;
}

MlpOptions BlockMlp(const TransformerConfig& config) {
  return {.kind = config.mlp,
          .width = config.width,
          .hidden = config.hidden,
          .rows = config.length,
          .biases = config.biases,
          .up = config.mlp_up,
          .down = config.mlp_down};
}

// The end of a branch: stream = x + [gain *] output of the branch.
template <typename T>
class Join {
 public:
  Join(ParameterList<T>& parameters, const std::string& name, const TransformerConfig& config)
      : branch_(parameters.place()), stream_(parameters.place()) {
    if (config.layer_scale) {
      gain_ = &parameters.Add(
          name, ParameterRole::kGain, 1, config.width, Initial{*config.layer_scale, 0});
    }
  }

  // Returns the memory for the output of the branch. Without layer-scale this is the stream itself,
  // because nothing reads the branch after the sum.
  MatrixSpan<T> Branch(In<T> x) {
    stream_.Resize(x.rows, x.cols);
    return gain_ == nullptr ? stream_.View() : branch_.Resize(x.rows, x.cols);
  }

  MatrixSpan<T> Forward(const Pass<T>& pass, In<T> x) {
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    const MatrixSpan<T> stream = stream_.View();
    if (gain_ == nullptr) {
      Add<T>(x, stream, stream);
    } else {
      AddScaledBranch<T>(x, branch_.View(), gain_->value.View(), stream);
    }
    return stream;
  }

  // Writes the gradient of the branch from g, the gradient of the stream, which is also that of x.
  void Backward(const Pass<T>& pass, In<T> g, MatrixSpan<T> branch_gradient) {
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    if (gain_ == nullptr) {
      // A copy, because observers of the branch may change its gradient.
      Copy<T>(g, branch_gradient);
    } else {
      AddScaledBranchGradient<T>(
          g, branch_.View(), gain_->value.View(), branch_gradient, gain_->gradient.View());
    }
  }

 private:
  Parameter<T>* gain_ = nullptr;  // nullptr: no layer-scale
  Buffer<T> branch_, stream_;
};

template <typename T>
void AddTo(const Pass<T>& pass, In<T> x, MatrixSpan<T> y) {
  const TimedPart timed(pass.profile, StepPhase::kResidual);
  Add<T>(y, x, y);
}

}  // namespace

template <typename T>
struct Transformer<T>::Block {
  Block(LinearFactory<T>& linears, const std::string& point, const TransformerConfig& config)
      : name(point),
        middle_name(name + ".middle"),
        attention_norm(linears.parameters(), name + ".attention.norm", BlockNorm(config)),
        attention(linears, name + ".attention", BlockAttention(config)),
        attention_join(linears.parameters(), name + ".attention.scale", config),
        mlp_norm(linears.parameters(), name + ".mlp.norm", BlockNorm(config)),
        mlp(linears, name + ".mlp", BlockMlp(config)),
        mlp_join(linears.parameters(), name + ".mlp.scale", config) {}

  std::string name, middle_name;
  NormLayer<T> attention_norm;
  AttentionLayer<T> attention;
  Join<T> attention_join;
  NormLayer<T> mlp_norm;
  MlpLayer<T> mlp;
  Join<T> mlp_join;
};

template <typename T>
Transformer<T>::Gradients::Gradients(Place place)
    : attention(place), mlp(place), branch(place), normed(place) {}

template <typename T>
Transformer<T>::Transformer(LinearFactory<T>& linears,
                            const std::string& prefix,
                            const TransformerConfig& config)
    : gradients_(linears.parameters().place()) {
  NUMSIM_CHECK(config.heads > 0 && config.width % config.heads == 0,
               "width {}, heads {}",
               config.width,
               config.heads);
  for (size_t i = 0; i < config.layers; ++i) {
    blocks_.emplace_back(linears, fmt::format("{}.{}", prefix, i), config);
  }
}

template <typename T>
Transformer<T>::~Transformer() = default;

template <typename T>
MatrixSpan<T> Transformer<T>::Forward(const Pass<T>& pass,
                                      MatrixSpan<T> x,
                                      size_t batch,
                                      size_t length) {
  for (Block& block : blocks_) {
    block.attention.Forward(
        pass, block.attention_norm.Forward(pass, x), batch, length, block.attention_join.Branch(x));
    x = block.attention_join.Forward(pass, x);
    pass.Observe(block.middle_name, TensorRole::kActivation, x);
    block.mlp.Forward(pass, block.mlp_norm.Forward(pass, x), block.mlp_join.Branch(x));
    x = block.mlp_join.Forward(pass, x);
    pass.Observe(block.name, TensorRole::kActivation, x);
  }
  return x;
}

template <typename T>
MatrixSpan<T> Transformer<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g) {
  const MatrixSpan<T> branch = gradients_.branch.Resize(g.rows, g.cols);
  const MatrixSpan<T> normed = gradients_.normed.Resize(g.rows, g.cols);
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    pass.Observe(block->name, TensorRole::kGradient, g);
    block->mlp_join.Backward(pass, g, branch);
    block->mlp.Backward(pass, branch, normed, gradients_.mlp);
    block->mlp_norm.Backward(pass, normed, branch);
    AddTo(pass, In<T>(branch), g);

    pass.Observe(block->middle_name, TensorRole::kGradient, g);
    block->attention_join.Backward(pass, g, branch);
    block->attention.Backward(pass, branch, normed, gradients_.attention);
    block->attention_norm.Backward(pass, normed, branch);
    AddTo(pass, In<T>(branch), g);
  }
  return g;
}

template class Transformer<float>;
template class Transformer<double>;

}  // namespace numsim
