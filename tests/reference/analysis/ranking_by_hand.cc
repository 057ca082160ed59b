#include "tests/reference/analysis/ranking_by_hand.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/reference/analysis/hand_replay.h"

namespace numsim {
namespace {

// A part that a ranking switches: operands of a layer, or a tensor that is stored.
struct Part {
  std::string layer, tensor;
  OperandSet operands{};                            // of a layer
  std::optional<TensorRole> stored = std::nullopt;  // of a point
};

// The operands that a kind quantises: docs/linear.md.
std::vector<std::string> OperandsOf(const std::string& kind) {
  if (kind == "standard") return {};
  if (kind == "switchback-m" || kind == "te-hybrid") return {"x", "w", "g"};
  std::vector<std::string> names = {
      "forward.x", "forward.w", "input-gradient.g", "input-gradient.w"};
  if (kind == "switchback" || kind == "switchback-q" || kind == "row-wise-gw-hp") return names;
  names.insert(names.end(), {"weight-gradient.g", "weight-gradient.x"});
  return names;
}

std::vector<Part> PartsOfLayer(const std::string& layer, const LinearOptions& options, RankBy by) {
  std::vector<std::string> names;
  for (const std::string& name : OperandsOf(options.kind)) {
    if (!options.high_operands.Has(LinearOperand::kForwardX) || name.back() != 'x') {
      names.push_back(name);
    }
  }
  std::vector<Part> parts;
  if (names.empty()) return parts;
  if (by == RankBy::kLayer) {
    parts.push_back({.layer = layer, .tensor = "all", .operands = OperandSet::All()});
  } else if (by == RankBy::kTensor) {
    for (const std::string tensor : {"x", "w", "g"}) {
      if (std::any_of(names.begin(), names.end(), [&tensor](const std::string& name) {
            return name.back() == tensor[0];
          })) {
        parts.push_back({.layer = layer, .tensor = tensor, .operands = ParseOperandSet(tensor)});
      }
    }
  } else {
    for (const std::string& name : names) {
      parts.push_back({.layer = layer, .tensor = name, .operands = ParseOperandSet(name)});
    }
  }
  return parts;
}

std::vector<Part> PartsOf(Trainer& trainer, const LinearPrecision& layers, RankBy by) {
  std::vector<Part> parts;
  for (const LinearOverride& one : layers.overrides) {
    const std::vector<Part> own = PartsOfLayer(one.layers, one.precision, by);
    parts.insert(parts.end(), own.begin(), own.end());
  }
  const TrainConfig& config = trainer.config();
  const HandStep step = StepByHand(trainer, Float32ByHand());
  for (const auto& point : step.points) {
    const bool activation = point.second == TensorRole::kActivation;
    const Format& format = activation ? config.storage.activations : config.storage.gradients;
    if (format.name == "fp32") continue;
    parts.push_back({.layer = point.first,
                     .tensor = activation ? "activation" : "gradient",
                     .stored = point.second});
  }
  return parts;
}

OperandSet Without(const OperandSet& set, const OperandSet& removed) {
  OperandSet result;
  for (int i = 0; i < kLinearOperands; ++i) {
    const auto operand = static_cast<LinearOperand>(i);
    if (set.Has(operand) && !removed.Has(operand)) result.Insert(operand);
  }
  return result;
}
OperandSet Union(OperandSet set, const OperandSet& added) {
  for (int i = 0; i < kLinearOperands; ++i) {
    const auto operand = static_cast<LinearOperand>(i);
    if (added.Has(operand)) set.Insert(operand);
  }
  return set;
}

// All but `part` as configured.
HandPrecision WithoutPart(Trainer& trainer, const LinearPrecision& layers, const Part& part) {
  HandPrecision precision{.linear = layers, .storage = trainer.config().storage};
  if (part.stored.has_value()) {
    precision.rounds = [part](std::string_view point, TensorRole role) {
      return point != part.layer || role != *part.stored;
    };
    return precision;
  }
  for (LinearOverride& one : precision.linear.overrides) {
    OperandSet& high = one.precision.high_operands;
    if (one.layers == part.layer) high = Union(high, part.operands);
  }
  return precision;
}

// All but `part` in high precision; nullptr: all.
HandPrecision PartAlone(Trainer& trainer, const LinearPrecision& layers, const Part* part) {
  HandPrecision precision{.linear = layers, .storage = trainer.config().storage};
  precision.rounds = [part](std::string_view point, TensorRole role) {
    return part != nullptr && part->stored == role && point == part->layer;
  };
  for (LinearOverride& one : precision.linear.overrides) {
    if (one.precision.kind == "standard") continue;
    OperandSet& high = one.precision.high_operands;
    const bool own = part != nullptr && !part->stored.has_value() && one.layers == part->layer;
    const OperandSet saved = own ? Without(part->operands, high) : OperandSet();
    high = Without(OperandSet::All(), saved);
  }
  return precision;
}

}  // namespace

double EffectByHand(double error, double without) {
  if (error == 0) return 0;
  if (std::isinf(error)) return std::isinf(without) ? 0 : 1;
  return 1 - (without / error) * (without / error);
}

RankingByHand RankByHand(Trainer& trainer, RankBy by) {
  const LinearPrecision layers = LayerByLayer(trainer, trainer.config().linear);
  const HandStep configured = StepByHand(trainer, PrecisionByHand(trainer.config()));
  const HandStep reference = StepByHand(trainer, Float32ByHand());
  const HandStep high = StepByHand(trainer, PartAlone(trainer, layers, nullptr));
  RankingByHand ranking;
  ranking.loss = configured.loss.Mean();
  ranking.float32_loss = reference.loss.Mean();
  ranking.error = ErrorByHand(configured, reference);
  ranking.error_high = ErrorByHand(high, reference);
  ranking.worst_error = -1;
  for (size_t i = 0; i < reference.gradients.size(); ++i) {
    const double error = ErrorByHand(configured.gradients[i].second, reference.gradients[i].second);
    if (error > ranking.worst_error) {
      ranking.worst_error = error;
      ranking.worst_parameter = reference.gradients[i].first;
    }
  }
  for (const Part& part : PartsOf(trainer, layers, by)) {
    const HandStep without = StepByHand(trainer, WithoutPart(trainer, layers, part));
    const HandStep alone = StepByHand(trainer, PartAlone(trainer, layers, &part));
    ranking.rows.push_back({.layer = part.layer,
                            .tensor = part.tensor,
                            .error_without = ErrorByHand(without, reference),
                            .error_alone = ErrorByHand(alone, reference)});
  }
  return ranking;
}

}  // namespace numsim
