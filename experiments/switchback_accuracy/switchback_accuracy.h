// The experiment `switchback-accuracy`: trainings that differ in their linear layers alone (Figures
// 1 and 9, sections 2.2.1 to 2.2.3, appendix D of [SwitchBack]).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
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

// What all linear layers compute: a kind of linear/linear_recipe.h with its formats. Without formats of
// its own (standard) both are those of high precision.
struct Variant {
  std::string kind, format, gradient_format;

  LinearOptions Options() const;
  // KIND[:FORMAT[/GRADIENT_FORMAT]], formats as far as they are not the kind's defaults:
  // "standard", "switchback:int8", "tensor-wise:e4m3fn/e5m2".
  std::string Text() const;
  friend bool operator==(const Variant&, const Variant&) = default;
};
inline const Variant kBaseline{"standard", "bf16", "bf16"};

// Throws Error naming --variants.
Variant ParseVariant(const std::string& text);
// Those of --variants, each once, with the baseline first. Throws Error naming the option.
std::vector<Variant> VariantsOf(const Settings& settings);

// What a variant is compared within. "int8"; "fp8": floats of 8 bits; else the name of the format.
std::string Precision(const Variant& variant);

// One training, but for its seed.
struct Training {
  ModelKind model = ModelKind::kLlama;
  ModelSize size;
  size_t batch = 0;  // images, sequences
  Variant variant;
};
// `seed`: of weights and batches.
TrainConfig ConfigOf(const Settings& settings, const Training& training, uint64_t seed);

// The inner dimension of the weight gradient of a linear layer: its rows in a step. Requires a
// configuration that fits its data.
size_t InnerDimension(const TrainConfig& config, std::string_view layer);
// That of the blocks: of llama batch x context; of CLIP, in its tower of images, images x (patches
// and class token).
size_t Tokens(const TrainConfig& config);

// The same layers with the weight gradient's operands, and it alone, in fp32: forward and input
// gradient have the bits that they have in `precision`. What else the gradients of weights differ
// by is the error of that product. Requires `precision` of ConfigOf.
LinearPrecision WithExactWeightGradient(const LinearPrecision& precision);

// Models, sizes, batches, variants, seeds, the last ones fastest. Throws Error naming the option.
std::vector<Trial> Trials(const Settings& settings);
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// Verdicts of gaps.csv.
inline constexpr std::string_view kWithinNoise = "within noise";
inline constexpr std::string_view kBehind = "behind";
inline constexpr std::string_view kDiverged = "diverged";
// The baseline did not learn, or one seed says nothing.
inline constexpr std::string_view kNoVerdict = "none";

// Rows of any table that are compared with each other: their trainings differ in variant and seed.
struct Group {
  std::string model, size, tokens;

  std::string Text() const { return model + " " + size + ", " + tokens + " tokens"; }
  friend bool operator==(const Group&, const Group&) = default;
};
Group GroupOf(const Table& table, size_t row);
Variant VariantOf(const Table& table, size_t row);
// In the order of the table, each once.
std::vector<Group> GroupsIn(const Table& table);
std::vector<Variant> VariantsIn(const Table& table, const Group& group);
// A column of final.csv for each seed of that group and variant.
SeedValues ValuesOf(const Table& final_table,
                    const Group& group,
                    const Variant& variant,
                    const char* column);
// Whether a seed of it diverged.
bool Diverged(const Table& final_table, const Group& group, const Variant& variant);

}  // namespace switchback_accuracy
}  // namespace numsim::experiments
