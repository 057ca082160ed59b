// The keys of [data], [train] and [fork].
#include "numsim/config/shared/config_table.h"

namespace numsim {

ConfigRows<DataConfig> DataRows() {
  using D = DataConfig;
  // clang-format off
  return {
      ChoiceRow("kind",            &D::kind,              ParseDataKind, DataKindNames(), "source of the examples"),
      PathRow("path",              &D::path,              "text: a file; images, captions: a folder"),
      PathRow("valid_path",        &D::valid_path,        "second file or folder, for validation; empty: a part of path"),
      RealRow("valid_share",       &D::valid_share,       {0, true, 1, true}, "fraction of the data for validation if valid_path is empty"),
      WholeRow("size",             &D::size,              0,
               "generated data: bytes of text, number of tokens, images or rows of features, for training and validation together; 0: 2^20 bytes, tokens or rows, 16384 images"),
      WholeRow("seed",             &D::seed,              0, "seed of generated data and of the choice of captions for validation"),
      WholeRow("classes",          &D::classes,           2, "generated-images: number of classes"),
      WholeRow("image",            &D::image,             1, "generated-images, generated-shapes: side of an image in pixels; generated-shapes: 16 to 64"),
      WholeRow("features",         &D::features,          1, "gaussian: number of features per example"),
      WholeRow("vocabulary",       &D::vocabulary,        2, "zipf: number of different tokens; tokenizer bpe: its number of entries; at most 65536"),
      ChoiceRow("tokenizer",       &D::tokenizer,         ParseTokenizerKind, TokenizerKindNames(), "text, generated-text: the tokens"),
      PathRow("tokenizer_path",    &D::tokenizer_path,    "tokenizer bpe: the file of a trained tokenizer; empty: it is trained on the text for training"),
      FlagRow("distinct_concepts", &D::distinct_concepts, "captions, generated-shapes: no two examples of a batch have the same caption"),
  };
  // clang-format on
}

ConfigRows<LoopConfig> LoopRows() {
  using L = LoopConfig;
  // clang-format off
  return {
      WholeRow("seed",          &L::seed,           0, "seed of the initial weights, the order of the data and stochastic rounding"),
      WholeRow("steps",         &L::steps,          1, "number of optimiser steps"),
      WholeRow("batch",         &L::batch,          1, "examples per step; text: sequences per step"),
      WholeRow("accumulate",    &L::accumulate,     1, "parts of a batch, computed one after the other, whose gradients are added as a balanced tree; must divide batch; validation batches have the size of a part"),
      WholeRow("valid_every",   &L::valid_every,    0, "steps between validations; 0: only at the end"),
      WholeRow("valid_batches", &L::valid_batches,  0, "largest number of batches per validation; 0: all"),
      RealRow("diverged_above", &L::diverged_above, kAtLeastZero,
              "the run has diverged if the mean loss of 10 steps exceeds this multiple (above 1) of the first loss; 0: only if loss or gradients are not finite"),
  };
  // clang-format on
}

ConfigRows<ForkConfig> ForkRows() {
  using F = ForkConfig;
  const auto same = [](const std::string& text) { return text; };
  return {
      WholeRow(
          "steps",
          &F::steps,
          0,
          "steps that the baseline takes before this training goes on from its state; 0: no fork; "
          "otherwise below train.steps"),
      TextsRow("before",
               &F::before,
               same,
               same,
               "keys in which the baseline differs from this training",
               "array of KEY=VALUE"),
  };
}

}  // namespace numsim
