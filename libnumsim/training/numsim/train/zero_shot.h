// Zero-shot retrieval with a contrastive model: finds the caption that belongs to an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/models/model.h"

namespace numsim {

// The outcome of zero-shot classification: images whose nearest caption is of their concept.
struct ZeroShot {
  size_t images = 0;
  size_t correct = 0;
  size_t concepts = 0;  // number of distinct concepts to choose from

  // Returns correct / images; NaN if there are no images.
  double Accuracy() const;
};

// Collects the embeddings of a validation batch by batch, then compares all images with all
// captions. An image is correct if its nearest caption belongs to the image's concept, whichever
// example the caption came from. The nearest caption has the largest dot product; ties go to the
// one added first. An image with a NaN is never correct, and a caption with a NaN is never nearest.
class ZeroShotRetrieval {
 public:
  // Copies the embeddings. Requires host tensors of the same width and one concept per row.
  void Add(const Embeddings<float>& embeddings, std::span<const int32_t> concepts);
  ZeroShot Judge() const;
  // Removes all embeddings but keeps the allocated memory.
  void Clear();

 private:
  size_t width_ = 0;
  std::vector<float> images_, captions_;
  std::vector<int32_t> concepts_;
};

}  // namespace numsim
