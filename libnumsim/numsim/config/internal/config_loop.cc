// Keys of [data] and [train].
#include "numsim/config/shared/config_table.h"

namespace numsim {

ConfigRows<DataConfig> DataRows() {
  using D = DataConfig;
  // clang-format off
  return {
      ChoiceRow("kind",            &D::kind,              ParseDataKind, DataKind::kGaussian, "where examples come from"),
      PathRow("path",              &D::path,              "text: a file; images, captions: a folder"),
      PathRow("valid_path",        &D::valid_path,        "a second one for validation; empty: a part of path"),
      RealRow("valid_share",       &D::valid_share,       {0, true, 1, true}, "share for validation, without valid_path"),
      WholeRow("size",             &D::size,              0,
               "generated: bytes of text, images or rows of features, for training and validation; 0: 2^20 bytes or rows, 16384 images"),
      WholeRow("seed",             &D::seed,              0, "of what is generated, and of the share of captions for validation"),
      WholeRow("classes",          &D::classes,           2, "generated-images: labels"),
      WholeRow("image",            &D::image,             1, "generated-images, generated-shapes: side in pixels; shapes: 16 to 64"),
      WholeRow("features",         &D::features,          1, "gaussian: numbers of an example"),
      FlagRow("distinct_concepts", &D::distinct_concepts, "captions, generated-shapes: no two examples of a batch have one caption"),
  };
  // clang-format on
}

ConfigRows<LoopConfig> LoopRows() {
  using L = LoopConfig;
  // clang-format off
  return {
      WholeRow("seed",          &L::seed,           0, "of initial weights, of the order of the data, of stochastic rounding"),
      WholeRow("steps",         &L::steps,          1, "steps of the optimiser"),
      WholeRow("batch",         &L::batch,          1, "examples of a step; text: sequences"),
      WholeRow("valid_every",   &L::valid_every,    0, "steps between validations; 0: only at the end"),
      WholeRow("valid_batches", &L::valid_batches,  0, "batches of a validation, at most; 0: all"),
      RealRow("diverged_above", &L::diverged_above, kAtLeastZero,
              "the run has diverged when the mean loss of 10 steps is above so many times the first loss, more than 1; 0: only when the loss is not finite"),
  };
  // clang-format on
}

}  // namespace numsim
