// The models, one class per kind.
#pragma once

#include <memory>

#include "numsim/models/model.h"

namespace numsim {

// Language models: llama and gpt.

// As MakeModel, of kinds kLlama and kGpt. Points: "embedding", those of a transformer with prefix
// "blocks" (transformer.h), "final_norm", "head". Parameters beside those of the transformer:
// embedding.tokens, gpt: embedding.positions, final_norm.gain and .bias, head.weight.
//
// Weights start as normal draws of deviation 0.02, positions of 0.01, biases as 0, gains as 1, and
// those of the linear layers that end a branch are divided by sqrt(2 layers) [GPT2]. The papers on
// Llama do not state how it starts; it takes the same.
template <typename T>
std::unique_ptr<Model<T>> MakeLanguageModel(const ModelConfig& config,
                                            const LinearPrecision& precision,
                                            uint64_t seed,
                                            InitialValues initial = InitialValues::kDrawn);

// Image classifier: vit.

// As MakeModel, of kind kVit [ViT]: an image tower (image_tower.h) with prefix "" and a linear
// layer "head" with a bias from the class token to the classes. Points: those of the tower, "head".
//
// The start is that of the published code [ViT], with normal draws of the same variance where it
// has uniform ones: patches 1/sqrt(inputs), positions 0.02, class token, head and biases 0, the
// other linear layers sqrt(2 / (inputs + outputs)), queries, keys and values as three layers.
template <typename T>
std::unique_ptr<Model<T>> MakeVisionModel(const ModelConfig& config,
                                          const LinearPrecision& precision,
                                          uint64_t seed,
                                          InitialValues initial = InitialValues::kDrawn);

// Contrastive model of images and captions: clip.

// As MakeModel, of kind kClip [CLIP]. An image tower (image_tower.h) with prefix "image." and a
// norm before its first block, a text tower (text_tower.h) with prefix "text.", linear layers
// "image.projection" and "text.projection" to the common embedding, whose rows are brought to norm
// 1: u and v. With N pairs
//   logits = e^t (u v^T; v u^T), 2N x N    images against captions, then captions against images
// and the loss is the mean of all rows' cross entropies with their partner; t is parameter
// "logit_scale". `correct` counts the rows whose largest logit is one of their own concept. Points:
// those of the towers, "image.projection", "text.projection", "logits".
//
// t starts as ln(1 / 0.07) and counts as within [0, ln 100] (ops/shared/temperature.h).
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

// Student of a fixed teacher: mlp.

// As MakeModel, of kind kMlp: the proxy on which [MXInstability] studies instabilities. The student
// is a residual MLP (residual_mlp.h) with norms; the teacher one of the same shape without norms,
// whose weights `seed` decides too (RandomPurpose::kTeacher) and that computes in float32, or
// float64, whatever the precision of the student. The loss is the squared error against the
// teacher's results, without noise. Points: those of the student with prefix "".
//
// As there, features are as many as the width and the stream is the result; only where they are not
// is there a linear layer before and one behind. Other than there, the MLPs have no biases and GELU
// its tanh form, and the teacher has residual sums too.
template <typename T>
std::unique_ptr<Model<T>> MakeStudentModel(const ModelConfig& config,
                                           const LinearPrecision& precision,
                                           uint64_t seed,
                                           InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
