// A vision transformer without its head [ViT]: from images to one vector each.
//
// Linear layer P.patches; parameters P.class_token, P.positions, of the norms and of P.blocks
// (transformer.h), with P the prefix and its dot, or nothing. Points, as activations in this order:
//   P.patches      the patches, projected
//   P.embedding    class token and patches, with positions
//   P.pre_norm     where there is one: what enters the first block
//   P.blocks.N...  of the transformer
//   P.final_norm   the class token's row behind the last block, normalised
#pragma once

#include <optional>
#include <span>
#include <string>

#include "numsim/models/internal/transformer.h"

namespace numsim {

struct ImageTowerOptions {
  size_t image = 0, channels = 0, patch = 0;  // images are image x image; patch divides image
  bool patch_bias = false;
  bool pre_norm = false;     // a LayerNorm before the first block [OpenCLIP]
  TransformerConfig blocks;  // its length is taken from the images
  Initial patches, class_token, positions;

  // Patches of an image, and the class token.
  size_t Rows() const { return (image / patch) * (image / patch) + 1; }
};

template <typename T>
class ImageTower {
 public:
  // `prefix`: "" or "image.". The projection of patches is an edge layer of `linears`.
  ImageTower(LinearFactory<T>& linears,
             const std::string& prefix,
             const ImageTowerOptions& options);

  // images: image x image x channels values for each of `count` images, channels last. Returns
  // count x width, in memory of this tower that stays until the next Forward.
  MatrixSpan<T> Forward(const Pass<T>& pass, std::span<const float> images, size_t count);
  // Writes the gradients of all parameters from g, that of what the last Forward returned; once. g
  // may be changed by an observer.
  void Backward(const Pass<T>& pass, MatrixSpan<T> g);

 private:
  // Images to rows of patches, those to what enters the first block, and its gradient.
  MatrixSpan<T> Cut(const Pass<T>& pass, std::span<const float> images, size_t count);
  MatrixSpan<T> Embed(const Pass<T>& pass, In<T> projected);
  void EmbedBackward(const Pass<T>& pass, MatrixSpan<T> g);

  struct Activations {
    explicit Activations(Place place);
    Buffer<T> images, patches, projected, embedded, taken;
  };
  struct Gradients {  // they live within one Backward
    explicit Gradients(Place place);
    Buffer<T> taken, stream, embedded, projected;
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
};

}  // namespace numsim
