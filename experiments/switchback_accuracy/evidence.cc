#include "experiments/switchback_accuracy/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "experiments/shared/special_values.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using Variants = std::vector<std::string>;  // their texts

constexpr const char* kUnlearned = "standard itself diverged or learned nothing";
// The least accuracy of `standard`, in percent, at which accuracies are compared: twice the 5.9
// points that LLM.int8() loses in the paper. From less, no layer can lose that much.
constexpr double kLeastAccuracy = 2 * 5.9;

Frame WithLargest(const Frame& frame, std::string_view column) {
  if (frame.Empty()) return frame;
  const std::vector<double> numbers = frame.Numbers(column);
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  return frame.Where([&](const Frame& row) { return row.Number(column) == largest; });
}

// Returns the trainings of the largest size of a model.
Frame LargestSize(const Tables& tables, const std::string& model) {
  const Frame rows = tables.at(std::string(kFinalTable));
  return WithLargest(rows.Where("model", model), "parameters");
}

bool HasAll(const Frame& rows, const Variants& variants) {
  return std::none_of(variants.begin(), variants.end(), [&](const std::string& variant) {
    return RowsOf(rows, variant).Empty();
  });
}

// Returns the largest group of the first model that was trained with all variants, or no rows.
Frame GroupWith(const Tables& tables, const Variants& variants) {
  for (const char* const model : {"clip", "llama"}) {
    Frame group = LargestGroup(tables, model);
    if (HasAll(group, variants)) return group;
  }
  return LargestGroup(tables, "");
}

// Returns the groups with the fewest and the most tokens of the first model that was trained with
// all variants at both, or nothing.
std::vector<Frame> LadderOf(const Tables& tables, const Variants& variants) {
  const auto fewer = [](const Frame& a, const Frame& b) {
    return a.Number("tokens") < b.Number("tokens");
  };
  for (const char* const model : {"clip", "llama"}) {
    const std::vector<Frame> groups = GroupsIn(LargestSize(tables, model));
    if (groups.size() < 2) continue;
    const auto [few, many] = std::minmax_element(groups.begin(), groups.end(), fewer);
    if (HasAll(*few, variants) && HasAll(*many, variants)) return {*few, *many};
  }
  return {};
}

Evidence Lacking(const Variants& variants, const char* where = "") {
  return NotTestedBecause(
      fmt::format("no model was trained with {}{}", fmt::join(variants, ", "), where));
}
Evidence LackingLadder(const Variants& variants) {
  return Lacking(variants, " at two numbers of tokens (--batches-clip, --batches-llama)");
}

std::string LadderText(const std::vector<Frame>& ladder) {
  return fmt::format("{} against {}", GroupText(ladder[1]), ladder[0].Text("tokens"));
}

bool Learned(const Frame& group) {
  const Frame standard = RowsOf(group, kStandard);
  return standard.Where("status", "finished").Size() == standard.Size() &&
         standard.Mean("valid_loss") < standard.Mean("start_loss");
}

// Tensor-wise trainings scatter several times as much as the others, so their residuals count only
// in contrasts with them.
Frame ArmsFor(const std::vector<Contrast>& contrasts, const Frame& group) {
  for (const Contrast& contrast : contrasts) {
    if (contrast.front().arm.starts_with("tensor-wise")) return group;
  }
  return group.Where([](const Frame& row) { return row.Text("kind") != "tensor-wise"; });
}

OutcomeTable OutcomesIn(const Frame& rows, Quantity quantity) {
  OutcomeTable table =
      OutcomesOf(rows, {"kind", "format", "gradient_format", "layers"}, [&](const Frame& row) {
        if (row.Text("status") != "finished") return kInfinity;
        return quantity == Quantity::kLoss ? row.Number("valid_loss")
                                           : 100 * row.Number("zero_shot");
      });
  table.arms.clear();
  for (const Frame& variant : VariantsIn(rows)) table.arms.push_back(VariantOf(variant).Text());
  return table;
}

Evidence Compare(const Frame& group, Quantity quantity, std::vector<Contrast> contrasts) {
  if (!Learned(group)) return NotTestedBecause(kUnlearned);
  Evidence evidence;
  evidence.outcomes = OutcomesIn(ArmsFor(contrasts, group), quantity);
  evidence.contrasts = std::move(contrasts);
  evidence.diverged_value = quantity == Quantity::kLoss ? group.Mean("start_loss") : 0;
  evidence.parameters = group.Number("parameters");
  evidence.measured = GroupText(group);
  return evidence;
}

// Returns f(a, b) for each seed that both have.
SeedValues PerSeed(const SeedValues& a,
                   const SeedValues& b,
                   const std::function<double(double, double)>& f) {
  SeedValues values;
  for (const auto& [seed, value] : a) {
    const auto other = b.find(seed);
    if (other != b.end()) values[seed] = f(value, other->second);
  }
  return values;
}

SeedValues LossGaps(const Frame& group, const std::string& variant) {
  return PerSeed(RowsOf(group, variant).OverSeeds("valid_loss"),
                 RowsOf(group, kStandard).OverSeeds("valid_loss"),
                 std::minus<>());
}

// Returns the mean error of a variant's weight gradients in a group, for each seed.
SeedValues ErrorsOf(const Tables& tables,
                    const Frame& group,
                    const std::string& variant,
                    const char* column) {
  Frame rows = RowsOf(UsableGradients(tables.at(std::string(kGradientsTable))), variant);
  for (const char* const key : {"model", "size", "tokens"}) {
    rows = rows.Where(key, group.Text(key));
  }
  SeedValues errors;
  for (const Frame& seed : rows.By({"seed"})) errors[seed.Text("seed")] = seed.Mean(column);
  return errors;
}

Evidence RatioOf(const std::string& name,
                 const SeedValues& errors,
                 const SeedValues& reference,
                 const std::string& where) {
  const SeedValues ratios = PerSeed(errors, reference, std::divides<>());
  if (ratios.empty()) return NotTestedBecause("no gradients were compared (--shadow-steps)");
  Evidence evidence = AgainstReference(name, ratios, 1);
  evidence.measured = fmt::format("{} {:.3g} and {:.3g} %{}",
                                  where,
                                  100 * MeanOf(errors).value,
                                  100 * MeanOf(reference).value,
                                  ratios.size() == 1 ? "; one seed is an illustration" : "");
  return evidence;
}

}  // namespace

Frame LargestGroup(const Tables& tables, const std::string& model) {
  return WithLargest(LargestSize(tables, model), "tokens");
}

Evidence AgainstStandard(const Tables& tables,
                         const std::string& model,
                         Quantity quantity,
                         const std::string& arm) {
  const Frame group = LargestGroup(tables, model);
  if (!HasAll(group, {arm})) return NotTestedBecause(model + " was not trained with " + arm);
  const double accuracy = 100 * RowsOf(group, kStandard).Mean("zero_shot");
  if (quantity == Quantity::kAccuracy && accuracy < kLeastAccuracy) {
    return NotTestedBecause(
        fmt::format("out of reach: the accuracy of standard is {:.3g} %, less than twice the 5.9 "
                    "points of the paper's failure; train longer",
                    accuracy));
  }
  return Compare(group, quantity, {Gap(arm, kStandard)});
}

Evidence ComparePairs(const Tables& tables, const std::vector<ArmPair>& pairs) {
  Variants variants;
  std::vector<Contrast> contrasts;
  for (const auto& [arm, reference] : pairs) {
    variants.insert(variants.end(), {arm, reference});
    contrasts.push_back(Gap(arm, reference));
  }
  const Frame group = GroupWith(tables, variants);
  return group.Empty() ? Lacking(variants) : Compare(group, Quantity::kLoss, contrasts);
}

Evidence CompareGrowth(const Tables& tables, const ArmPair& pair, const ArmPair& other) {
  const Variants variants = {pair.first, pair.second, other.first, other.second};
  const Frame group = LargestGroup(tables, "llama");
  if (!HasAll(group, variants)) {
    return NotTestedBecause(
        fmt::format("llama was not trained with {}", fmt::join(variants, ", ")));
  }
  return Compare(group,
                 Quantity::kLoss,
                 {{{pair.first, 1}, {pair.second, -1}, {other.first, -1}, {other.second, 1}}});
}

Evidence GapGrowth(const Tables& tables, const std::string& variant) {
  const std::vector<Frame> ladder = LadderOf(tables, {variant});
  if (ladder.empty()) return LackingLadder({variant});
  const Frame &few = ladder[0], &many = ladder[1];
  if (!Learned(few) || !Learned(many)) return NotTestedBecause(kUnlearned);
  const SeedValues growth =
      PerSeed(LossGaps(many, variant), LossGaps(few, variant), std::minus<>());
  Evidence evidence = AgainstReference("growth of the gap", growth, 0);
  evidence.parameters = many.Number("parameters");
  evidence.measured = LadderText(ladder);
  return evidence;
}

Evidence NoiseGrowth(const Tables& tables, const std::string& variant) {
  const std::vector<Frame> ladder = LadderOf(tables, {variant});
  if (ladder.empty()) return LackingLadder({variant});
  return RatioOf("growth of own_error",
                 ErrorsOf(tables, ladder[1], variant, "own_error"),
                 ErrorsOf(tables, ladder[0], variant, "own_error"),
                 LadderText(ladder) + ", own errors");
}

Evidence NoiseGrowthRatio(const Tables& tables, const ArmPair& pair) {
  const std::vector<Frame> ladder = LadderOf(tables, {pair.first, pair.second});
  if (ladder.empty()) return LackingLadder({pair.first, pair.second});
  for (const auto& [seed, error] : ErrorsOf(tables, ladder[0], pair.second, "own_error")) {
    if (error == 0) {
      return NotTestedBecause("the weight gradient of " + pair.second +
                              " has no error of its own with operands stored in 16 bits "
                              "(--storage)");
    }
  }
  const auto growth = [&](const std::string& variant) {
    return PerSeed(ErrorsOf(tables, ladder[1], variant, "own_error"),
                   ErrorsOf(tables, ladder[0], variant, "own_error"),
                   std::divides<>());
  };
  return RatioOf("ratio of growths",
                 growth(pair.first),
                 growth(pair.second),
                 LadderText(ladder) + ", growths to");
}

Evidence ErrorRatio(const Tables& tables, const ArmPair& pair) {
  const Frame group = GroupWith(tables, {pair.first, pair.second});
  if (group.Empty()) return Lacking({pair.first, pair.second});
  return RatioOf(pair.first + " over " + pair.second,
                 ErrorsOf(tables, group, pair.first, "error"),
                 ErrorsOf(tables, group, pair.second, "error"),
                 GroupText(group) + ", errors");
}

}  // namespace numsim::experiments::switchback_accuracy
