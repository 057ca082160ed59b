#include "experiments/switchback_accuracy/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace numsim::experiments::switchback_accuracy {
namespace {

constexpr const char* kLoss = "valid_loss";

const Table& FinalOf(const Tables& tables) { return tables.at(std::string(kFinalTable)); }

std::optional<Variant> FindInt8(const Table& table, const Group& group, std::string_view kind) {
  for (const Variant& variant : VariantsIn(table, group)) {
    if (variant.kind == kind && variant.format == "int8") return variant;
  }
  return std::nullopt;
}

std::string DivergedText(const Variant& a, bool a_diverged, const Variant& b, bool b_diverged) {
  if (a_diverged && b_diverged) return "(both diverged)";
  return fmt::format("({} diverged)", (a_diverged ? a : b).Text());
}

// Returns the loss of llm-int8 minus that of switchback, both in int8, for each seed.
std::optional<SeedValues> DifferencesOf(const Table& table, const Group& group) {
  const auto a = FindInt8(table, group, "llm-int8"), b = FindInt8(table, group, "switchback");
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  SeedValues values = ValuesOf(table, group, *a, kLoss);
  const SeedValues others = ValuesOf(table, group, *b, kLoss);
  for (auto& [seed, value] : values) value -= others.at(seed);
  return values;
}

unsigned long long TokensOf(const Group& group) { return std::stoull(group.tokens); }

// Returns whether the difference is above 0; undecided if a seed diverged.
Answer IsMore(const Estimate& difference) {
  return std::isfinite(difference.value) ? IsAbove(difference, 0) : Answer::kUndecided;
}

}  // namespace

std::string IntervalText(const Estimate& estimate) {
  if (!std::isfinite(estimate.value)) return "unknown, a seed diverged";
  if (std::isnan(estimate.low)) return fmt::format("{:.4f} (one seed)", estimate.value);
  return fmt::format("{:.4f} [{:.4f}, {:.4f}]", estimate.value, estimate.low, estimate.high);
}

void Comparisons::Add(const Comparison& one) {
  list += "\n  " + one.text;
  if (!one.judged) return;
  more.Add(one.more);
  same.Add(one.same);
}

Answer IsSame(const Estimate& difference, double gained) {
  const double least = kContradicts * gained;
  return std::isfinite(least) ? IsEqual(difference, 0, -least, least) : Answer::kUndecided;
}

double GainedBy(const Tables& tables, const Group& group) {
  const Table& table = FinalOf(tables);
  SeedValues gained = ValuesOf(table, group, kBaseline, "start_loss");
  const SeedValues losses = ValuesOf(table, group, kBaseline, kLoss);
  for (auto& [seed, value] : gained) value -= losses.at(seed);
  return gained.empty() ? std::nan("") : OverSeeds(gained).value;
}

bool BaselineLearned(const Table& gaps, const Group& group) {
  for (size_t r = 0; r < gaps.rows.size(); ++r) {
    if (GroupOf(gaps, r) != group || VariantOf(gaps, r) != kBaseline) continue;
    return gaps.Text(r, "verdict") != kNoVerdict;
  }
  return false;
}

Comparison Compare(const Tables& tables, const Group& group, const Variant& a, const Variant& b) {
  const Table& table = FinalOf(tables);
  Comparison result;
  result.text = fmt::format("{}: {} minus {} ", group.Text(), a.Text(), b.Text());
  const bool a_diverged = Diverged(table, group, a), b_diverged = Diverged(table, group, b);
  if (a_diverged || b_diverged) {
    result.text += DivergedText(a, a_diverged, b, b_diverged);
    if (a_diverged != b_diverged) result.more = AnswerOf(a_diverged);
    result.same = AnswerOf(a_diverged && b_diverged);
  } else {
    const Estimate difference =
        GapOverSeeds(ValuesOf(table, group, a, kLoss), ValuesOf(table, group, b, kLoss));
    result.text += IntervalText(difference);
    result.more = IsMore(difference);
    result.same = IsSame(difference, GainedBy(tables, group));
  }
  result.judged = BaselineLearned(tables.at(std::string(kGapsTable)), group);
  return result;
}

std::optional<Comparison> AgainstSwitchback(const Tables& tables,
                                            const Group& group,
                                            std::string_view kind) {
  const Table& table = FinalOf(tables);
  const auto a = FindInt8(table, group, kind), b = FindInt8(table, group, "switchback");
  if (!a.has_value() || !b.has_value()) return std::nullopt;
  return Compare(tables, group, *a, *b);
}

std::optional<Comparison> GrowthOf(const Tables& tables, const Group& few, const Group& many) {
  const auto before = DifferencesOf(FinalOf(tables), few);
  const auto after = DifferencesOf(FinalOf(tables), many);
  if (!before.has_value() || !after.has_value()) return std::nullopt;
  const Estimate growth = GapOverSeeds(*after, *before);
  Comparison result;
  result.text = fmt::format("{} {}, {} tokens minus {}: {}",
                            few.model,
                            few.size,
                            many.tokens,
                            few.tokens,
                            IntervalText(growth));
  const Table& gaps = tables.at(std::string(kGapsTable));
  result.judged = BaselineLearned(gaps, few) && BaselineLearned(gaps, many);
  result.more = IsMore(growth);
  return result;
}

std::vector<std::vector<Group>> LaddersIn(const Table& table) {
  std::vector<std::vector<Group>> ladders;
  for (const Group& group : GroupsIn(table)) {
    const auto same = [&](const std::vector<Group>& ladder) {
      return ladder.front().model == group.model && ladder.front().size == group.size;
    };
    const auto found = std::find_if(ladders.begin(), ladders.end(), same);
    if (found == ladders.end()) {
      ladders.push_back({group});
    } else {
      found->push_back(group);
    }
  }
  for (std::vector<Group>& ladder : ladders) {
    std::stable_sort(ladder.begin(), ladder.end(), [](const Group& a, const Group& b) {
      return TokensOf(a) < TokensOf(b);
    });
  }
  return ladders;
}

}  // namespace numsim::experiments::switchback_accuracy
