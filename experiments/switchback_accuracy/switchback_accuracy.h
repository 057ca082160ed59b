// The experiment `switchback-accuracy`: trainings that differ only in their linear layers (Figures
// 1 and 9, sections 2.2.1 to 2.2.3, appendix D of [SwitchBack]).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

study::Study SwitchbackAccuracyStudy();
Experiment SwitchbackAccuracy();

namespace switchback_accuracy {

using study::Results;

// The places of the axes in an arm.
enum Place : size_t { kModel, kSize, kBatch, kVariant };

// The linear layers that a variant quantises.
inline constexpr const char* kBlockLayers = "blocks";  // those of transformer blocks, as the paper
inline constexpr const char* kAllLayers = "all";       // patches, projections and head as well

// The computation of linear layers: a kind of linear/linear_recipe.h and its formats. For a kind
// without formats of its own (standard), both are the format of high precision. Layers outside of
// `layers` are standard.
struct Variant {
  std::string kind, format, gradient_format, layers = kBlockLayers;

  LinearOptions Options() const;
  // Returns KIND for standard, otherwise KIND:FORMAT, followed by /GRADIENT_FORMAT unless it is the
  // default, and by +all if all layers are meant: "standard", "switchback:int8",
  // "tensor-wise:e4m3fn/e5m2", "llm-int8:int8+all".
  std::string Text() const;
  friend bool operator==(const Variant&, const Variant&) = default;
};
inline const Variant kBaseline{"standard", "bf16", "bf16"};

// Parses KIND[:FORMAT[/GRADIENT_FORMAT]][+all]. Throws Error that says what is wrong.
Variant ParseVariant(const std::string& text);
study::Choice VariantChoice(const std::string& text);
// Return the variant of a training, and that of the first row.
Variant VariantOf(const TrainConfig& config);
Variant VariantOf(const Frame& rows);

// Returns the precision within which variants are compared: "int8", "fp8" for 8-bit floating-point
// formats, otherwise the name of the format.
std::string Precision(const Variant& variant);

// Returns the inner dimension of the weight gradient of a linear layer, which is its number of rows
// in a step. Requires a configuration that fits its data.
size_t InnerDimension(const TrainConfig& config, std::string_view layer);
// Returns the inner dimension of the weight gradients in the blocks: for llama batch x context; for
// the image tower of CLIP, images x (patches + 1 class token).
size_t Tokens(const TrainConfig& config);

// Returns the precision with only the operands of the weight gradient changed to fp32. Forward and
// input gradient keep the bits that they have under `precision`, so a difference between the weight
// gradients of both is the error of the weight-gradient GEMM itself. Requires a `precision` of a
// training.
LinearPrecision WithExactWeightGradient(const LinearPrecision& precision);

// Returns true if gradients are compared with a float64 run before the step after `steps` steps: at
// --shadow-steps steps, which are spread evenly over the training after its warm-up.
bool IsShadowStep(const Settings& settings, uint64_t steps);

study::ProbeSpec Gradients();
// Return the rows of the derived tables.
std::vector<Row> Gaps(const Results& results);
std::vector<Row> GradientErrors(const Results& results);
study::Named<std::function<Figure(const Results&)>> Figures();

// Return the frames of the groups of a table (model, size and tokens), and of the variants of a
// group. Rows of a group differ only in variant and seed, so that they can be compared.
std::vector<Frame> GroupsIn(const Frame& frame);
std::vector<Frame> VariantsIn(const Frame& group);
// Returns the rows of a variant, which is given as text.
Frame RowsOf(const Frame& frame, const std::string& variant);
// Returns the group of the first row as text: "llama 2x64, 16384 tokens".
std::string GroupText(const Frame& group);
// Returns the rows of gradients.csv without gradients that are zero or not finite.
Frame UsableGradients(const Frame& gradients);

}  // namespace switchback_accuracy
}  // namespace numsim::experiments
