#include "numsim/analysis/internal/ranking_candidates.h"

#include <fmt/format.h>

#include <algorithm>

#include "numsim/config/shared/config_table.h"
#include "numsim/formats/named_formats.h"

namespace numsim {
namespace {

constexpr LinearOperand kOperands[] = {LinearOperand::kForwardX,
                                       LinearOperand::kForwardW,
                                       LinearOperand::kInputGradientG,
                                       LinearOperand::kInputGradientW,
                                       LinearOperand::kWeightGradientG,
                                       LinearOperand::kWeightGradientX};

const OperandRecipe& RecipeOf(const LinearRecipe& recipe, LinearOperand operand) {
  const auto index = static_cast<size_t>(operand);
  const GemmRecipe& product = recipe.products[index / 2];
  return index % 2 == 0 ? product.a : product.b;
}

OperandSet Union(const OperandSet& a, const OperandSet& b) {
  OperandSet result = a;
  for (const LinearOperand operand : kOperands) {
    if (b.Has(operand)) result.Insert(operand);
  }
  return result;
}

OperandSet Without(const OperandSet& a, const OperandSet& b) {
  OperandSet result = a;
  for (const LinearOperand operand : kOperands) {
    if (b.Has(operand)) result.Remove(operand);
  }
  return result;
}

bool Meet(const OperandSet& a, const OperandSet& b) { return Without(a, b) != a; }

// A linear layer of the model that quantises at least one operand.
struct QuantizedLayer {
  std::string name;
  LinearOptions options;
  LinearRecipe recipe;
  OperandSet quantized;  // the operands that are both quantised and used
};

// Returns the layer with its quantised operands: those in `used` that `high_operands` would change.
QuantizedLayer MakeLayer(const std::string& name,
                         const LinearOptions& options,
                         const OperandSet& used) {
  QuantizedLayer layer{name, options, MakeLinearRecipe(options), {}};
  if (options.kind == LinearOptions().kind) return layer;  // standard has no high_operands
  LinearOptions high = options;
  high.high_operands = OperandSet::All();
  const LinearRecipe high_recipe = MakeLinearRecipe(high);
  for (const LinearOperand operand : kOperands) {
    const bool changes = !(RecipeOf(layer.recipe, operand) == RecipeOf(high_recipe, operand));
    if (changes && used.Has(operand)) layer.quantized.Insert(operand);
  }
  return layer;
}

std::vector<QuantizedLayer> QuantizedLayers(const Model<float>& model, const PassRecord& record) {
  const std::vector<std::string> names = model.LinearLayers();
  const std::vector<LinearOptions> precisions = model.LinearLayerPrecisions();
  std::vector<QuantizedLayer> layers;
  for (size_t i = 0; i < names.size(); ++i) {
    QuantizedLayer layer = MakeLayer(names[i], precisions[i], record.Used(names[i]));
    if (!layer.quantized.Empty()) layers.push_back(std::move(layer));
  }
  return layers;
}

// Returns the override for this layer only that adds `high` to its operands in high precision. The
// layer's name serves as the pattern, because names have no '*'.
LinearOverride HighOverride(const QuantizedLayer& layer, const OperandSet& high) {
  LinearOverride result{layer.name, layer.options};
  result.precision.high_operands = Union(layer.options.high_operands, high);
  return result;
}

// Returns the override as a TOML table with the keys that differ from the defaults.
std::string OverrideToml(const LinearOverride& over) {
  std::string toml = fmt::format("[[{}]]\n", kOverrideSection);
  for (const ConfigRow<LinearOverride>& row : LinearOverrideRows()) {
    const std::string value = row.write(over);
    if (value != row.write(LinearOverride())) toml += fmt::format("{} = {}\n", row.name, value);
  }
  return toml;
}

// A candidate within a layer.
struct Part {
  std::string name, format;
  OperandSet operands;  // the operands that the candidate keeps in high precision
};

std::string FormatOf(const QuantizedLayer& layer, const OperandSet& operands) {
  for (const LinearOperand operand : kOperands) {
    if (operands.Has(operand) && layer.quantized.Has(operand)) {
      return RecipeOf(layer.recipe, operand).format.name;
    }
  }
  return layer.recipe.high_precision.name;
}

std::vector<Part> TensorParts(const QuantizedLayer& layer) {
  std::vector<Part> parts;
  for (const char* const name : {"x", "w", "g"}) {
    const OperandSet operands = ParseOperandSet(name);
    parts.push_back({name, FormatOf(layer, operands), operands});
  }
  return parts;
}

std::vector<Part> PartsOf(const QuantizedLayer& layer, RankBy by) {
  std::vector<Part> parts = TensorParts(layer);
  if (by == RankBy::kLayer) {
    return {{"all",
             fmt::format("{} {} {}", parts[0].format, parts[1].format, parts[2].format),
             OperandSet::All()}};
  }
  if (by == RankBy::kOperand && layer.recipe.saves == LinearSaves::kInputs) {
    parts.clear();
    for (const LinearOperand operand : kOperands) {
      OperandSet one;
      one.Insert(operand);
      parts.push_back({Text(one), FormatOf(layer, one), one});
    }
  }
  std::erase_if(parts, [&](const Part& part) { return !Meet(part.operands, layer.quantized); });
  return parts;
}

RankedTensor Named(std::string layer, std::string tensor, std::string format) {
  RankedTensor result;
  result.layer = std::move(layer);
  result.tensor = std::move(tensor);
  result.format = std::move(format);
  return result;
}

RankingCandidate LinearCandidate(const QuantizedLayer& layer,
                                 const Part& part,
                                 const ReplayPrecision& configured,
                                 const ReplayPrecision& high) {
  RankingCandidate result{Named(layer.name, part.name, part.format), configured, high};
  const LinearOverride without = HighOverride(layer, part.operands);
  result.tensor.linear_override = OverrideToml(without);
  result.without.linear.overrides.push_back(without);
  result.alone.linear.overrides.push_back(
      HighOverride(layer, Without(OperandSet::All(), part.operands)));
  return result;
}

RankingCandidate StoredCandidate(const StoredTensor& stored,
                                 const Format& format,
                                 const ReplayPrecision& configured,
                                 const ReplayPrecision& high) {
  const char* const role = stored.role == TensorRole::kActivation ? "activation" : "gradient";
  RankingCandidate result{Named(stored.point, role, format.name), configured, high};
  result.without.unrounded = stored;
  result.alone.storage = configured.storage;
  result.alone.only_rounded = stored;
  return result;
}

}  // namespace

void PassRecord::Tensor(std::string_view point, TensorRole role, MatrixSpan<float>) {
  StoredTensor tensor{std::string(point), role};
  if (std::find(tensors_.begin(), tensors_.end(), tensor) != tensors_.end()) return;
  tensors_.push_back(std::move(tensor));
}

void PassRecord::Multiplied(std::string_view layer, LinearGemm product) {
  OperandSet& used = used_[std::string(layer)];
  const auto first = 2 * static_cast<size_t>(product);
  used.Insert(kOperands[first]);
  used.Insert(kOperands[first + 1]);
}

OperandSet PassRecord::Used(const std::string& layer) const {
  const auto found = used_.find(layer);
  return found == used_.end() ? OperandSet() : found->second;
}

RankingCandidates MakeRankingCandidates(const TrainConfig& config,
                                        const Model<float>& model,
                                        const PassRecord& record,
                                        RankBy by) {
  const std::vector<QuantizedLayer> layers = QuantizedLayers(model, record);
  const ReplayPrecision configured = PrecisionOf(config);
  RankingCandidates result;
  result.high.linear = configured.linear;
  for (const QuantizedLayer& layer : layers) {
    result.high.linear.overrides.push_back(HighOverride(layer, OperandSet::All()));
  }
  for (const QuantizedLayer& layer : layers) {
    for (const Part& part : PartsOf(layer, by)) {
      result.candidates.push_back(LinearCandidate(layer, part, configured, result.high));
    }
  }
  for (const StoredTensor& stored : record.tensors()) {
    const bool activation = stored.role == TensorRole::kActivation;
    const StorageConfig& storage = config.storage;
    const Format& format = activation ? storage.activations : storage.gradients;
    if (format.spec == kFp32) continue;
    result.candidates.push_back(StoredCandidate(stored, format, configured, result.high));
  }
  return result;
}

}  // namespace numsim
