// A vision transformer without its head [ViT]. It maps each image to one vector.
//
// With P the prefix including its dot (or empty), the linear layer is P.patches; the parameters are
// P.class_token, P.positions, and those of the norms and of P.blocks (transformer.h). The tensor
// names, for activations in this order:
//   P.patches      the projected patches
//   P.embedding    class token and patches, with positions added
//   P.pre_norm     if there is a pre-norm: the input of the first block
//   P.blocks.N...  tensors of the transformer
//   P.final_norm   the class token's row after the last block, normalised
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "numsim/models/internal/transformer.h"
#include "numsim/ops/shared/index_column.h"

namespace numsim {

struct ImageTowerOptions {
  size_t image = 0, channels = 0, patch = 0;  // images are image x image; patch divides image
  double patch_dropout = 0;                   // share of the patches that training leaves out
  bool patch_bias = false;
  bool pre_norm = false;     // a LayerNorm before the first block [OpenCLIP]
  TransformerConfig blocks;  // `length` is ignored; it follows from the image size
  Initial patches, class_token, positions;

  // Returns the number of patches of an image plus one for the class token.
  size_t Rows() const { return (image / patch) * (image / patch) + 1; }
  // Returns the number of those that a training pass keeps: the class token and at least one patch.
  size_t KeptRows() const;
};

// Returns, for each image, the row of the class token and the rows of the patches that are kept,
// ascending. An image has `all` rows, of which `kept` stay; each choice of patches is equally
// likely, and a function of (seed, step, image) alone. Requires 2 <= kept <= all.
std::vector<int32_t> DrawKeptRows(
    uint64_t seed, uint64_t step, size_t images, size_t all, size_t kept);

template <typename T>
class ImageTower {
 public:
  // `prefix` is "" or "image.". The patch projection is an edge layer of `linears`.
  ImageTower(LinearFactory<T>& linears,
             const std::string& prefix,
             const ImageTowerOptions& options);

  // Returns count x width. `images` holds image x image x channels values for each of `count`
  // images, channels last. The result lies in memory of this tower and is valid until the next
  // Forward.
  MatrixSpan<T> Forward(const Pass<T>& pass, std::span<const float> images, size_t count);
  // Writes the gradients of all parameters, given the gradient g of the last Forward's result. An
  // observer may change g. May be called once per Forward.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  // Cut converts images to rows of patches. Embed converts projected patches to the input of the
  // first block; EmbedBackward takes the gradient of that input.
  MatrixSpan<T> Cut(const Pass<T>& pass, std::span<const float> images, size_t count);
  MatrixSpan<T> Embed(const Pass<T>& pass, In<T> projected);
  // Returns the rows of the embedded images that the pass keeps.
  MatrixSpan<T> Keep(const Pass<T>& pass, MatrixSpan<T> embedded);
  void EmbedBackward(const Pass<T>& pass, MatrixSpan<T> g);

  struct Activations {
    explicit Activations(Place place);
    Buffer<T> images, patches, projected, embedded, kept, taken;
    IndexColumn kept_rows;
  };
  struct Gradients {  // used only within one Backward
    explicit Gradients(Place place);
    Buffer<T> taken, stream, kept, embedded, projected;
  };

  ImageTowerOptions options_;
  std::string embedding_name_;
  LinearLayer<T>& patches_linear_;
  Parameter<T>& class_token_;
  Parameter<T>& positions_;
  std::optional<NormLayer<T>> pre_norm_;
  Transformer<T> blocks_;
  NormLayer<T> final_norm_;
  Activations activations_;
  Gradients gradients_;
  size_t rows_ = 0;  // per image in the blocks, in the last Forward
};

}  // namespace numsim
