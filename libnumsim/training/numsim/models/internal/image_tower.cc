#include "numsim/models/internal/image_tower.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "numsim/ops/elementwise.h"
#include "numsim/ops/shared/sequence.h"
#include "numsim/random/streams.h"

namespace numsim {
namespace {

TransformerConfig BlocksOf(const ImageTowerOptions& options) {
  TransformerConfig blocks = options.blocks;
  blocks.length = options.Rows();
  return blocks;
}

NormOptions NormOf(const ImageTowerOptions& options) {
  return {NormKind::kLayer, options.blocks.width, options.blocks.norm_epsilon};
}

LinearPlan PatchesOf(const ImageTowerOptions& options) {
  return {.in = options.patch * options.patch * options.channels,
          .out = options.blocks.width,
          .bias = options.patch_bias,
          .weight = options.patches,
          .rows = options.Rows() - 1,
          .edge = true};
}

}  // namespace

size_t ImageTowerOptions::KeptRows() const {
  const auto count = static_cast<double>(Rows() - 1);
  return 1 + std::max<size_t>(1, static_cast<size_t>(std::lround((1 - patch_dropout) * count)));
}

std::vector<int32_t> DrawKeptRows(
    uint64_t seed, uint64_t step, size_t images, size_t all, size_t kept) {
  const RandomStream stream{DeriveSeed(seed, RandomPurpose::kPatches), step};
  std::vector<int32_t> rows;
  std::vector<std::pair<uint32_t, size_t>> order(all - 1);  // a random word and the patch
  for (size_t image = 0; image < images; ++image) {
    for (size_t i = 0; i < order.size(); ++i) {
      order[i] = {RandomWord(stream, image * order.size() + i), i};
    }
    std::sort(order.begin(), order.end());
    const size_t first = image * all;
    rows.push_back(static_cast<int32_t>(first));
    for (size_t i = 0; i + 1 < kept; ++i) {
      rows.push_back(static_cast<int32_t>(first + 1 + order[i].second));
    }
    std::sort(rows.end() - static_cast<ptrdiff_t>(kept), rows.end());
  }
  return rows;
}

template <typename T>
ImageTower<T>::Activations::Activations(Place place)
    : images(place),
      patches(place),
      projected(place),
      embedded(place),
      kept(place),
      taken(place),
      kept_rows(place) {}

template <typename T>
ImageTower<T>::Gradients::Gradients(Place place)
    : taken(place), stream(place), kept(place), embedded(place), projected(place) {}

template <typename T>
ImageTower<T>::ImageTower(LinearFactory<T>& linears,
                          const std::string& prefix,
                          const ImageTowerOptions& options)
    : options_(options),
      embedding_name_(prefix + "embedding"),
      patches_linear_(linears.Make(prefix + "patches", PatchesOf(options))),
      class_token_(linears.parameters().Add(prefix + "class_token",
                                            ParameterRole::kEmbedding,
                                            1,
                                            options.blocks.width,
                                            options.class_token)),
      positions_(linears.parameters().Add(prefix + "positions",
                                          ParameterRole::kEmbedding,
                                          options.Rows(),
                                          options.blocks.width,
                                          options.positions)),
      pre_norm_(options.pre_norm
                    ? std::optional<NormLayer<T>>(
                          std::in_place, linears.parameters(), prefix + "pre_norm", NormOf(options))
                    : std::nullopt),
      blocks_(linears, prefix + "blocks", BlocksOf(options)),
      final_norm_(linears.parameters(), prefix + "final_norm", NormOf(options)),
      activations_(linears.parameters().place()),
      gradients_(linears.parameters().place()) {}

template <typename T>
MatrixSpan<T> ImageTower<T>::Cut(const Pass<T>& pass, std::span<const float> images, size_t count) {
  const TimedPart timed(pass.profile, StepPhase::kEmbedding);
  const size_t side = options_.image, channels = options_.channels, patch = options_.patch;
  const MatrixSpan<T> whole = activations_.images.Resize(count, side * side * channels);
  const MatrixSpan<T> cut =
      activations_.patches.Resize(count * (options_.Rows() - 1), patch * patch * channels);
  Upload<T>(images, whole);
  CutPatches<T>(whole, side, side, channels, patch, cut);
  return cut;
}

template <typename T>
MatrixSpan<T> ImageTower<T>::Embed(const Pass<T>& pass, In<T> projected) {
  const size_t patches = options_.Rows() - 1;
  const MatrixSpan<T> embedded = activations_.embedded.Resize(
      projected.rows / patches * options_.Rows(), options_.blocks.width);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    PrependToken<T>(projected, patches, class_token_.value.View(), embedded);
    AddPositions<T>(positions_.value.View(), embedded);
  }
  pass.Observe(embedding_name_, TensorRole::kActivation, embedded);
  const MatrixSpan<T> kept = Keep(pass, embedded);
  return pre_norm_ ? pre_norm_->Forward(pass, kept) : kept;
}

template <typename T>
MatrixSpan<T> ImageTower<T>::Keep(const Pass<T>& pass, MatrixSpan<T> embedded) {
  const size_t all = options_.Rows(), count = embedded.rows / all;
  rows_ = pass.training ? options_.KeptRows() : all;
  if (rows_ == all) return embedded;
  activations_.kept_rows.Upload(DrawKeptRows(pass.seed, pass.step, count, all, rows_));
  const MatrixSpan<T> kept = activations_.kept.Resize(count * rows_, embedded.cols);
  GatherRows<T>(embedded, activations_.kept_rows.View(), kept);
  return kept;
}

template <typename T>
MatrixSpan<T> ImageTower<T>::Forward(const Pass<T>& pass,
                                     std::span<const float> images,
                                     size_t count) {
  const MatrixSpan<T> patches = Cut(pass, images, count);
  const MatrixSpan<T> projected =
      activations_.projected.Resize(patches.rows, options_.blocks.width);
  patches_linear_.Forward(pass, patches, projected);
  const MatrixSpan<T> embedded = Embed(pass, projected);  // sets rows_
  const MatrixSpan<T> stream = blocks_.Forward(pass, embedded, count, rows_);
  // The norm works row by row, so only the class token's row is normalised.
  const MatrixSpan<T> taken = activations_.taken.Resize(count, options_.blocks.width);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    TakeRows<T>(stream, rows_, {}, taken);
  }
  return final_norm_.Forward(pass, taken);
}

template <typename T>
void ImageTower<T>::EmbedBackward(const Pass<T>& pass, MatrixSpan<T> g) {
  if (pre_norm_) {
    const MatrixSpan<T> kept = gradients_.kept.Resize(g.rows, g.cols);
    pre_norm_->Backward(pass, g, kept);
    g = kept;
  }
  if (rows_ != options_.Rows()) {
    const size_t all = g.rows / rows_ * options_.Rows();
    const MatrixSpan<T> embedded = gradients_.embedded.Resize(all, g.cols);
    GatherRowsGradient<T>(g, activations_.kept_rows.View(), embedded);
    g = embedded;
  }
  pass.Observe(embedding_name_, TensorRole::kGradient, g);
  const size_t patches = options_.Rows() - 1;
  const MatrixSpan<T> projected =
      gradients_.projected.Resize(g.rows / options_.Rows() * patches, g.cols);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    AddPositionsGradient<T>(g, positions_.gradient.View());
    PrependTokenGradient<T>(g, patches, class_token_.gradient.View(), projected);
  }
  patches_linear_.Backward(pass, projected, {});
}

template <typename T>
void ImageTower<T>::Backward(const Pass<T>& pass, MatrixSpan<T> g) {
  const MatrixSpan<T> taken = gradients_.taken.Resize(g.rows, g.cols);
  const MatrixSpan<T> stream = gradients_.stream.Resize(g.rows * rows_, g.cols);
  final_norm_.Backward(pass, g, taken);
  {
    const TimedPart timed(pass.profile, StepPhase::kEmbedding);
    TakeRowsGradient<T>(taken, rows_, {}, stream);
  }
  EmbedBackward(pass, blocks_.Backward(pass, stream));
}

template class ImageTower<float>;
template class ImageTower<double>;

}  // namespace numsim
