#include "numsim/models/internal/text_tower.h"

#include "numsim/base/require.h"
#include "numsim/ops/shared/sequence.h"

namespace numsim {
namespace {

TransformerConfig BlocksOf(TransformerConfig blocks, const EmbeddingOptions& embedding) {
  blocks.length = embedding.positions;
  return blocks;
}

}  // namespace

template <typename T>
TextTower<T>::TextTower(LinearFactory<T>& linears,
                        const std::string& prefix,
                        const EmbeddingOptions& embedding,
                        const TransformerConfig& blocks)
    : width_(blocks.width),
      embedding_(linears.parameters(), prefix + "embedding", embedding),
      blocks_(linears, prefix + "blocks", BlocksOf(blocks, embedding)),
      final_norm_(linears.parameters(),
                  prefix + "final_norm",
                  {blocks.norm, blocks.width, blocks.norm_epsilon}),
      ends_(linears.parameters().place()),
      taken_(linears.parameters().place()),
      taken_gradient_(linears.parameters().place()),
      stream_gradient_(linears.parameters().place()) {}

template <typename T>
MatrixSpan<T> TextTower<T>::Forward(const Pass<T>& pass,
                                    std::span<const int32_t> tokens,
                                    std::span<const int32_t> ends,
                                    size_t length) {
  RequireSize(tokens.size(), MatrixShape{ends.size(), length}, "Model::Forward", "batch.tokens");
  ends_.Upload(ends);
  length_ = length;
  const MatrixSpan<T> embedded = embedding_.Forward(pass, tokens, length);
  const MatrixSpan<T> stream = blocks_.Forward(pass, embedded, ends.size(), length);
  // The norm works row by row, so only the end tokens' rows are normalised.
  const MatrixSpan<T> taken = taken_.Resize(ends.size(), width_);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    TakeRows<T>(stream, length, ends_.View(), taken);
  }
  return final_norm_.Forward(pass, taken);
}

template <typename T>
void TextTower<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g) {
  const MatrixSpan<T> taken = taken_gradient_.Resize(g.rows, g.cols);
  const MatrixSpan<T> stream = stream_gradient_.Resize(g.rows * length_, g.cols);
  final_norm_.Backward(pass, g, taken);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    TakeRowsGradient<T>(taken, length_, ends_.View(), stream);
  }
  embedding_.Backward(pass, blocks_.Backward(pass, stream));
}

template class TextTower<float>;
template class TextTower<double>;

}  // namespace numsim
