// The models, one class per kind.
#pragma once

#include <memory>

#include "numsim/models/model.h"

namespace numsim {

// Language models: llama and gpt.

// Constructs a model of kind kLlama or kGpt, as MakeModel does. The tensor names are "embedding",
// those of a transformer with prefix "blocks" (transformer.h), "final_norm" and "head". Its
// parameters besides those of the transformer are embedding.tokens, embedding.positions (gpt),
// final_norm.gain, final_norm.bias (gpt) and head.weight.
//
// Initially, weights are normal with deviation 0.02 and positions with 0.01, biases are 0 and gains
// 1; the weights of the linear layers that end a branch are divided by sqrt(2 layers) [GPT2]. The
// papers on Llama do not state their initial values, so llama uses the same.
template <typename T>
std::unique_ptr<Model<T>> MakeLanguageModel(const ModelConfig& config,
                                            const LinearPrecision& precision,
                                            uint64_t seed,
                                            InitialValues initial = InitialValues::kDrawn);

// Image classifier: vit.

// Constructs a model of kind kVit [ViT], as MakeModel does: an image tower (image_tower.h) with
// prefix "" and a linear layer "head" with a bias, which maps the class token to the classes. The
// tensor names are those of the tower and "head".
//
// The initial values are those of the published code [ViT], with normal distributions of the same
// variance in place of uniform ones. Deviations: patches 1/sqrt(inputs); positions 0.02; class
// token, head and biases 0; other linear layers sqrt(2 / (inputs + outputs)), where queries, keys
// and values count as three layers.
template <typename T>
std::unique_ptr<Model<T>> MakeVisionModel(const ModelConfig& config,
                                          const LinearPrecision& precision,
                                          uint64_t seed,
                                          InitialValues initial = InitialValues::kDrawn);

// Contrastive model of images and captions: clip.

// Constructs a model of kind kClip [CLIP], as MakeModel does. It has an image tower (image_tower.h)
// with prefix "image." and a norm before its first block, a text tower (text_tower.h) with prefix
// "text.", and linear layers "image.projection" and "text.projection" to the common space. The
// projected rows are normalised to norm 1 and give u and v. With N pairs,
//   logits = e^t (u v^T; v u^T), 2N x N    images against captions, then captions against images
// and the loss is the mean over all rows of the cross entropy with the matching column; t is the
// parameter "logit_scale". `correct` counts the rows whose largest logit belongs to their own
// concept. The tensor names are those of the towers, "image.projection", "text.projection" and
// "logits".
//
// t is initially ln(1 / 0.07) and is clamped to [0, ln 100] where it is used
// (ops/shared/temperature.h).
//
// The initial values are those of [OpenCLIP], with normal distributions of the same variance in
// place of uniform ones, and biases of 0. Deviations in the image tower: class token, positions and
// projection 1/sqrt(width); queries, keys and values 1/sqrt(2 width); other linear layers 1/sqrt(3
// inputs). In the text tower: tokens 0.02; positions 0.01; queries, keys, values and projection
// 1/sqrt(width); the MLP's first layer 1/sqrt(2 width); layers that end a branch 1/sqrt(2 layers
// width), or 1/sqrt(width) without `scaled_branches`.
//
// The text MLP has the same ratio of hidden size to width as the image MLP.
template <typename T>
std::unique_ptr<Model<T>> MakeClipModel(const ModelConfig& config,
                                        const LinearPrecision& precision,
                                        uint64_t seed,
                                        InitialValues initial = InitialValues::kDrawn);

// Student of a fixed teacher: mlp.

// Constructs a model of kind kMlp, as MakeModel does: the proxy model on which [MXInstability]
// studies instabilities. The student is a residual MLP (residual_mlp.h) with norms. The teacher has
// the same shape without norms; `seed` also decides its weights (RandomPurpose::kTeacher), and it
// computes in float32 (float64 in a model of double) whatever the precision of the student. The
// loss is the squared error against the teacher's outputs, without noise. The tensor names are
// those of the student with prefix "".
//
// As in the paper, the input has `width` features and the output is the residual stream. If the
// number of features differs from `width`, an input and an output projection are added. Unlike the
// paper, the MLPs have no biases, GELU uses the tanh form, and the teacher has residual
// connections.
template <typename T>
std::unique_ptr<Model<T>> MakeStudentModel(const ModelConfig& config,
                                           const LinearPrecision& precision,
                                           uint64_t seed,
                                           InitialValues initial = InitialValues::kDrawn);

}  // namespace numsim
