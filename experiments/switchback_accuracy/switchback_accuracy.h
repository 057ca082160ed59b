// The experiment `switchback-accuracy`: trainings that differ only in their linear layers (Figures
// 1 and 9, sections 2.2.1 to 2.2.3, appendix D of [SwitchBack]).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/shared/training.h"
#include "numsim/config/config.h"

namespace numsim::experiments {

Experiment SwitchbackAccuracy();

namespace switchback_accuracy {

inline constexpr std::string_view kCurvesTable = "curves";
inline constexpr std::string_view kGradientsTable = "gradients";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kGapsTable = "gaps";
inline constexpr std::string_view kErrorsTable = "gradient_errors";

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

// Parses KIND[:FORMAT[/GRADIENT_FORMAT]][+all]. Throws Error naming --variants.
Variant ParseVariant(const std::string& text);
// Returns the variants of --variants, each once, baseline first. Throws Error naming the option.
std::vector<Variant> VariantsOf(const Settings& settings);

// Returns the precision within which variants are compared: "int8", "fp8" for 8-bit floating-point
// formats, otherwise the name of the format.
std::string Precision(const Variant& variant);

// A training without its seed.
struct Training {
  ModelKind model = ModelKind::kLlama;
  ModelSize size;
  size_t batch = 0;  // number of images or sequences
  Variant variant;
};
// Returns the training of a trial.
Training TrainingOf(const Trial& trial);
// Returns the configuration of a training; `seed` is the seed of weights and batches.
TrainConfig ConfigOf(const Settings& settings, const Training& training, uint64_t seed);

// Returns the inner dimension of the weight gradient of a linear layer, which is its number of rows
// in a step. Requires a configuration that fits its data.
size_t InnerDimension(const TrainConfig& config, std::string_view layer);
// Returns the inner dimension of the weight gradients in the blocks: for llama batch x context; for
// the image tower of CLIP, images x (patches + 1 class token).
size_t Tokens(const TrainConfig& config);

// Returns the precision with only the operands of the weight gradient changed to fp32. Forward and
// input gradient keep the bits that they have under `precision`, so a difference between the weight
// gradients of both is the error of the weight-gradient GEMM itself. Requires a `precision` from
// ConfigOf.
LinearPrecision WithExactWeightGradient(const LinearPrecision& precision);

// Returns true if gradients are compared with a float64 run before the step after `steps` steps: at
// --shadow-steps steps, which are spread evenly over the training after its warm-up.
bool IsShadowStep(const Settings& settings, uint64_t steps);

// Returns the trials over models, sizes, batches, variants and seeds, where seeds vary fastest.
// Throws Error naming a bad option.
std::vector<Trial> Trials(const Settings& settings);
// Returns the training of a trial as RowsOfTrainings::trainings.
std::vector<TrainingOfRow> TrainingsOf(const Settings& settings, const Trial& trial);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
std::vector<ClaimSpec> Claims();
std::string Notes(const Settings& settings, const Tables& tables);

// Return the frames of the groups of a table (model, size and tokens), and of the variants of a
// group. Rows of a group differ only in variant and seed, so that they can be compared.
std::vector<Frame> GroupsIn(const Frame& frame);
std::vector<Frame> VariantsIn(const Frame& group);
// Returns the variant of the first row.
Variant VariantOf(const Frame& rows);
// Returns the rows of a variant, which is given as text.
Frame RowsOf(const Frame& frame, const std::string& variant);
// Returns the group of the first row as text: "llama 2x64, 16384 tokens".
std::string GroupText(const Frame& group);
// Returns the rows of gradients.csv without gradients that are zero or not finite.
Frame UsableGradients(const Frame& gradients);

}  // namespace switchback_accuracy
}  // namespace numsim::experiments
