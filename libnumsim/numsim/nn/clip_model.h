// Contrastive model of images and captions: clip.
#pragma once

#include <memory>

#include "numsim/nn/model.h"

namespace numsim {

// As MakeModel, of kind kClip [CLIP]. An image tower (image_tower.h) with prefix "image." and a
// norm before its first block, a text tower (text_tower.h) with prefix "text.", linear layers
// "image.projection" and "text.projection" to the common embedding, whose rows are brought to norm
// 1: u and v. With N pairs
//   logits = e^t (u v^T; v u^T), 2N x N    images against captions, then captions against images
// and the loss is the mean of all rows' cross entropies with their partner; t is parameter
// "logit_scale". `correct` counts the rows whose largest logit is one of their own concept. Points:
// those of the towers, "image.projection", "text.projection", "logits".
//
// t starts as ln(1 / 0.07) and counts as within [0, ln 100] (tensor/temperature.h).
//
// The start is that of [OpenCLIP], with normal draws of the same variance where it has uniform
// ones, and biases of 0. Images, with `width` inputs to a layer: class token, positions and
// projection 1/sqrt(width); queries, keys and values 1/sqrt(2 width), the other linear layers
// 1/sqrt(3 inputs). Text: tokens 0.02, positions 0.01; queries, keys, values and projection
// 1/sqrt(width), the MLP's first layer 1/sqrt(2 width), those that end a branch
// 1/sqrt(2 layers width), without `scaled_branches` 1/sqrt(width).
//
// The hidden layer of the text's MLP has to its width the proportion that that of images has.
template <typename T>
std::unique_ptr<Model<T>> MakeClipModel(const ModelConfig& config,
                                        const LinearPrecision& precision,
                                        uint64_t seed,
                                        InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
