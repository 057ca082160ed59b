#include "tests/analysis/ranking_by_hand.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "tests/analysis/hand_replay.h"
#include "tests/support/train_problem.h"

namespace numsim {
namespace {

// 1 - (without / error)^2, with the cases that have no number.
double EffectByHand(double error, double without) {
  if (error == 0) return 0;
  if (std::isinf(error)) return std::isinf(without) ? 0 : 1;
  return 1 - (without / error) * (without / error);
}

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

void ExpectSameNumber(double value, double expected) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << value;
  } else {
    EXPECT_EQ(value, expected);
  }
}

void ExpectWhole(const PrecisionRanking& ranking,
                 Trainer& trainer,
                 const HandStep& configured,
                 const HandStep& reference,
                 const HandStep& high) {
  EXPECT_EQ(ranking.step, trainer.steps_taken());
  ExpectSameNumber(ranking.loss, configured.loss.Mean());
  ExpectSameNumber(ranking.float32_loss, reference.loss.Mean());
  ExpectClose(ranking.error, ErrorByHand(configured, reference));
  ExpectClose(ranking.error_high, ErrorByHand(high, reference));
  double worst = -1;
  std::string name;
  for (size_t i = 0; i < reference.gradients.size(); ++i) {
    const double error = ErrorByHand(configured.gradients[i].second, reference.gradients[i].second);
    if (error > worst) {
      worst = error;
      name = reference.gradients[i].first;
    }
  }
  EXPECT_EQ(ranking.worst_parameter, name);
  ExpectClose(ranking.worst_error, worst);
}

}  // namespace

PrecisionRanking Rank(const Trainer& trainer, RankBy by) {
  return RankPrecision(trainer, by, [](size_t, size_t) {});
}

RowName First(const PrecisionRanking& ranking) {
  if (ranking.tensors.empty()) return {};
  return {ranking.tensors[0].layer, ranking.tensors[0].tensor};
}
const RankedTensor* Find(const PrecisionRanking& ranking, const RowName& name) {
  for (const RankedTensor& row : ranking.tensors) {
    if (row.layer == name.first && row.tensor == name.second) return &row;
  }
  return nullptr;
}

TrainConfig TwoBlocks() {
  TrainConfig config = TinyConfig();
  config.model.layers = 2;
  config.model.width = 32;
  config.model.context = 16;
  config.model.initial_deviation = 0.2;
  return config;
}

LinearOptions Quantised(std::string_view kind, std::string_view format) {
  LinearOptions options;
  options.kind = kind;
  options.format = format;
  options.high_precision = "fp32";
  return options;
}

void ExpectConsistent(const PrecisionRanking& ranking) {
  for (size_t i = 0; i < ranking.tensors.size(); ++i) {
    const RankedTensor& own = ranking.tensors[i];
    EXPECT_NEAR(own.effect,
                EffectByHand(ranking.error, own.error_without),
                1e-12 * std::max(1.0, std::abs(own.effect)));
    if (i == 0) continue;
    const RankedTensor& before = ranking.tensors[i - 1];
    EXPECT_TRUE(before.effect > own.effect ||
                (before.effect == own.effect && before.error_alone >= own.error_alone))
        << before.layer << ' ' << before.tensor << " before " << own.layer << ' ' << own.tensor;
  }
}

void ExpectClose(double value, double expected) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(value, expected, 1e-10 * std::max(1e-4, std::abs(expected)));
  } else {
    EXPECT_EQ(value, expected);
  }
}

void ExpectRankingByHand(Trainer& trainer, RankBy by) {
  SCOPED_TRACE(ToString(by));
  const PrecisionRanking ranking = Rank(trainer, by);
  EXPECT_EQ(ranking.by, by);
  ExpectConsistent(ranking);
  const LinearPrecision layers = LayerByLayer(trainer, trainer.config().linear);
  const std::vector<Part> parts = PartsOf(trainer, layers, by);
  ASSERT_FALSE(parts.empty());
  const HandStep reference = StepByHand(trainer, Float32ByHand());
  ExpectWhole(ranking,
              trainer,
              StepByHand(trainer, PrecisionByHand(trainer.config())),
              reference,
              StepByHand(trainer, PartAlone(trainer, layers, nullptr)));
  EXPECT_EQ(ranking.tensors.size(), parts.size());
  for (const Part& part : parts) {
    const RankedTensor* const row = Find(ranking, {part.layer, part.tensor});
    SCOPED_TRACE(part.layer + ' ' + part.tensor);
    ASSERT_NE(row, nullptr);
    ExpectClose(row->error_without,
                ErrorByHand(StepByHand(trainer, WithoutPart(trainer, layers, part)), reference));
    ExpectClose(row->error_alone,
                ErrorByHand(StepByHand(trainer, PartAlone(trainer, layers, &part)), reference));
  }
}

}  // namespace numsim
