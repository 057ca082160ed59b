// Zero-shot retrieval with a contrastive model: which caption belongs to an image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numsim/models/model.h"

namespace numsim {

struct ZeroShot {
  size_t images = 0;
  size_t correct = 0;
  size_t concepts = 0;  // classes that there were to choose from

  // NaN without images.
  double Accuracy() const;
};

// Collects the embeddings of a validation, batch by batch, then judges all images against all
// captions: an image is right when the caption nearest to it (largest scalar product; the first one
// that was added of equals) is of the image's concept, whichever example it came from. An image
// with a NaN is not right, and a caption with a NaN is nearest to nothing.
class ZeroShotRetrieval {
 public:
  // Copies the embeddings. Requires host tensors of one width, and as many concepts as rows.
  void Add(const Embeddings<float>& embeddings, std::span<const int32_t> concepts);
  ZeroShot Judge() const;
  // Forgets all, and keeps the memory.
  void Clear();

 private:
  size_t width_ = 0;
  std::vector<float> images_, captions_;
  std::vector<int32_t> concepts_;
};

}  // namespace numsim
