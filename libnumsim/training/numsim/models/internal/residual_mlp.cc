#include "numsim/models/internal/residual_mlp.h"

#include <cmath>
#include <optional>
#include <utility>

#include "numsim/ops/elementwise.h"

namespace numsim {
namespace {

// Returns the distribution for a linear layer with this number of inputs. Its variance is that of
// the uniform distribution on +-1/sqrt(inputs), which [MXInstability] uses.
Initial WeightOf(size_t inputs) {
  return {.deviation = static_cast<float>(1 / std::sqrt(3 * static_cast<double>(inputs)))};
}

MlpOptions MlpOf(const ResidualMlpOptions& options) {
  return {.kind = MlpKind::kGelu,
          .width = options.width,
          .hidden = options.hidden,
          .rows = 1,
          .biases = options.biases,
          .up = WeightOf(options.width),
          .down = WeightOf(options.hidden)};
}

}  // namespace

template <typename T>
struct ResidualMlp<T>::Block {
  Block(LinearFactory<T>& linears, const std::string& point, const ResidualMlpOptions& options)
      : name(point),
        norm(options.norms ? std::optional<NormLayer<T>>(
                                 std::in_place,
                                 linears.parameters(),
                                 point + ".norm",
                                 NormOptions{NormKind::kLayer, options.width, options.norm_epsilon})
                           : std::nullopt),
        mlp(linears, point + ".mlp", MlpOf(options)),
        stream(linears.parameters().place()) {}

  std::string name;
  std::optional<NormLayer<T>> norm;
  MlpLayer<T> mlp;
  Buffer<T> stream;  // the residual stream after the block
};

template <typename T>
ResidualMlp<T>::ResidualMlp(LinearFactory<T>& linears,
                            const std::string& prefix,
                            const ResidualMlpOptions& options)
    : options_(options),
      input_(MakeEdge(linears, prefix + "input", options.inputs, options.width)),
      head_(nullptr),
      embedded_(linears.parameters().place()),
      results_(linears.parameters().place()),
      branch_gradient_(linears.parameters().place()),
      normed_gradient_(linears.parameters().place()),
      stream_gradient_(linears.parameters().place()),
      mlp_gradients_(linears.parameters().place()) {
  for (size_t i = 0; i < options.layers; ++i) {
    blocks_.emplace_back(linears, fmt::format("{}blocks.{}", prefix, i), options);
  }
  head_ = MakeEdge(linears, prefix + "head", options.width, options.inputs);
}

template <typename T>
ResidualMlp<T>::~ResidualMlp() = default;

template <typename T>
LinearLayer<T>* ResidualMlp<T>::MakeEdge(LinearFactory<T>& linears,
                                         const std::string& name,
                                         size_t in,
                                         size_t out) {
  if (options_.inputs == options_.width) return nullptr;
  return &linears.Make(name,
                       {.in = in,
                        .out = out,
                        .bias = options_.biases,
                        .weight = WeightOf(in),
                        .rows = 1,
                        .edge = true});
}

template <typename T>
MatrixSpan<T> ResidualMlp<T>::BlockForward(const Pass<T>& pass, Block& block, MatrixSpan<T> x) {
  const MatrixSpan<T> stream = block.stream.Resize(x.rows, x.cols);
  const MatrixSpan<T> normed = block.norm ? block.norm->Forward(pass, x) : x;
  block.mlp.Forward(pass, normed, stream);
  {
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    Add<T>(x, stream, stream);
  }
  pass.Observe(block.name, TensorRole::kActivation, stream);
  return stream;
}

template <typename T>
MatrixSpan<T> ResidualMlp<T>::Forward(const Pass<T>& pass, MatrixSpan<T> x) {
  NUMSIM_CHECK(x.cols == options_.inputs, "{} features", x.cols);
  if (input_ != nullptr) {
    const MatrixSpan<T> embedded = embedded_.Resize(x.rows, options_.width);
    input_->Forward(pass, x, embedded);
    x = embedded;
  }
  for (Block& block : blocks_) x = BlockForward(pass, block, x);
  if (head_ == nullptr) return x;
  const MatrixSpan<T> results = results_.Resize(x.rows, options_.inputs);
  head_->Forward(pass, x, results);
  return results;
}

template <typename T>
void ResidualMlp<T>::BlockBackward(const Pass<T>& pass, Block& block, MatrixSpan<T> g) {
  const MatrixSpan<T> branch = branch_gradient_.Resize(g.rows, g.cols);
  const MatrixSpan<T> normed = normed_gradient_.Resize(g.rows, g.cols);
  pass.Observe(block.name, TensorRole::kGradient, g);
  {
    // A copy, because observers of the branch may change its gradient.
    const TimedPart timed(pass.profile, StepPhase::kResidual);
    Copy<T>(g, branch);
  }
  block.mlp.Backward(pass, branch, normed, mlp_gradients_);
  if (block.norm) block.norm->Backward(pass, normed, branch);
  const TimedPart timed(pass.profile, StepPhase::kResidual);
  Add<T>(g, block.norm ? branch : normed, g);
}

template <typename T>
void ResidualMlp<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g) {
  if (head_ != nullptr) {
    const MatrixSpan<T> stream = stream_gradient_.Resize(g.rows, options_.width);
    head_->Backward(pass, g, stream);
    g = stream;
  }
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    BlockBackward(pass, *block, g);
  }
  if (input_ != nullptr) input_->Backward(pass, g, {});
}

template class ResidualMlp<float>;
template class ResidualMlp<double>;

}  // namespace numsim
