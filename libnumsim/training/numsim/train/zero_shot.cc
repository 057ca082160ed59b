#include "numsim/train/zero_shot.h"

#include <algorithm>
#include <limits>
#include <unordered_set>

#include "numsim/base/parallel.h"
#include "numsim/base/require.h"
#include "numsim/formats/named_formats.h"
#include "numsim/ops/shared/product.h"

namespace numsim {
namespace {

// The accumulation mode with which the model multiplies its embeddings: sequential fused
// multiply-adds, so that equal captions have equal dot products.
constexpr AccumulationMode kFloat32Sums{.kind = AccumulationKind::kFormat, .format = kFp32};

// Number of images whose dot products with all captions are held at a time.
constexpr size_t kBlock = 256;

void Append(In<float> rows, std::vector<float>& values) {
  for (size_t i = 0; i < rows.rows; ++i) {
    values.insert(values.end(), rows.Row(i), rows.Row(i) + rows.cols);
  }
}

// Returns the index of the first largest product that is not NaN; `count` if all are NaN.
size_t Nearest(const float* products, size_t count) {
  // Comparisons with NaN are false, which skips NaN.
  float largest = -std::numeric_limits<float>::infinity();
  for (size_t j = 0; j < count; ++j) largest = products[j] > largest ? products[j] : largest;
  return static_cast<size_t>(std::find(products, products + count, largest) - products);
}

}  // namespace

double ZeroShot::Accuracy() const {
  if (images == 0) return std::numeric_limits<double>::quiet_NaN();
  return static_cast<double>(correct) / static_cast<double>(images);
}

void ZeroShotRetrieval::Add(const Embeddings<float>& embeddings,
                            std::span<const int32_t> concepts) {
  const In<float>&images = embeddings.images, &captions = embeddings.captions;
  RequireHost("zero-shot retrieval", {images.place, captions.place});
  if (concepts_.empty()) width_ = images.cols;
  NUMSIM_REQUIRE(
      images.cols == width_ && captions.cols == width_ && images.rows == concepts.size() &&
          captions.rows == concepts.size(),
      "ZeroShotRetrieval::Add: images {} x {}, captions {} x {}, {} concepts, expected one "
      "row per concept and width {}",
      images.rows,
      images.cols,
      captions.rows,
      captions.cols,
      concepts.size(),
      width_);
  Append(images, images_);
  Append(captions, captions_);
  concepts_.insert(concepts_.end(), concepts.begin(), concepts.end());
}

ZeroShot ZeroShotRetrieval::Judge() const {
  const size_t count = concepts_.size();
  ZeroShot result;
  result.images = count;
  if (count == 0) return result;
  result.concepts = std::unordered_set<int32_t>(concepts_.begin(), concepts_.end()).size();
  const MatrixSpan<const float> images(images_.data(), count, width_);
  const MatrixSpan<const float> captions(captions_.data(), count, width_);
  std::vector<float> memory(std::min(kBlock, count) * count);
  std::vector<uint8_t> right(count);
  for (size_t first = 0; first < count; first += kBlock) {
    const size_t rows = std::min(kBlock, count - first);
    const MatrixSpan<float> products(memory.data(), rows, count);
    Multiply<float>(images.Rows(first, rows), false, captions, true, kFloat32Sums, products);
    ParallelFor(rows, 1 + 32768 / count, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t best = Nearest(products.Row(i), count);
        right[first + i] = best < count && concepts_[best] == concepts_[first + i];
      }
    });
  }
  result.correct = static_cast<size_t>(std::count(right.begin(), right.end(), 1));
  return result;
}

void ZeroShotRetrieval::Clear() {
  images_.clear();
  captions_.clear();
  concepts_.clear();
}

}  // namespace numsim
