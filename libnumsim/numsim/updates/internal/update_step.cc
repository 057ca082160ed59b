// Takes a checked step, group by group and block by block, and computes its outcome.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/updates/internal/update_kinds.h"

namespace numsim {
namespace {

// The rule of a kind: exactly one of the two is set.
struct KindRules {
  BlockRule block = nullptr;
  GroupRule group = nullptr;
};

KindRules RulesOf(UpdateKind kind) {
  switch (kind) {
    case UpdateKind::kNaive:
      return {NaiveBlock, nullptr};
    case UpdateKind::kStochastic:
      return {StochasticBlock, nullptr};
    case UpdateKind::kMasterFp32:
      return {MasterFp32Block, nullptr};
    case UpdateKind::kMasterFp16Scaled:
      return {nullptr, MasterFp16Group};
    case UpdateKind::kSplitMaster:
      return {SplitMasterBlock, nullptr};
    case UpdateKind::kKahan:
      return {KahanBlock, nullptr};
    case UpdateKind::kNoteAsPrinted:
      return {nullptr, NoteGroup};
    case UpdateKind::kNormMatched:
    case UpdateKind::kProjectionMatched:
      return {nullptr, MatchedGroup};
  }
  NUMSIM_CHECK(false, "kind {}", static_cast<int>(kind));
  return {};
}

// Calls body(group) for every group, on all threads: many small groups in parallel; few large ones
// one after another, so that body can use all threads.
void ForEachGroup(const ElementGroups& groups, size_t n, FunctionRef<void(size_t)> body) {
  constexpr size_t kWorthThread = size_t{1} << 15;  // elements
  const size_t count = groups.Count();
  const size_t each = count == 0 ? 0 : n / count;
  if (each > 8 * kWorthThread && count < static_cast<size_t>(4 * ThreadCount())) {
    for (size_t g = 0; g < count; ++g) body(g);
    return;
  }
  ParallelFor(count, kWorthThread / (each + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t g = begin; g < end; ++g) body(g);
  });
}

// Takes the step of one block. `apart` is job.WritesApart(). Requires the default floating-point
// environment, which ApplyUpdate and ParallelFor set.
StepSums ApplyBlock(const UpdateJob& job, BlockRule rule, ElementRange block, bool apart) {
  alignas(64) std::array<float, kSumBlock> buffer;  // the sums still read what it replaces
  float* const new_weights = job.new_weights.data() + block.begin;
  float* const after = apart ? new_weights : buffer.data();
  const uint64_t saturated = rule(job, block, after);
  StepSums sums = StepSumsOfBlock(
      job.weights.data() + block.begin, after, job.update.data() + block.begin, block.count);
  sums.saturated = saturated;
  if (!apart) std::copy_n(after, block.count, new_weights);
  return sums;
}

StepSums ApplyBlocks(const UpdateJob& job, BlockRule rule) {
  const bool apart = job.WritesApart();
  return SumOverBlocks<StepSums>(job.weights.size(), [&](size_t begin, size_t count) {
    return ApplyBlock(job, rule, {begin, count}, apart);
  });
}

// Sets the fields that follow from the sums.
void Complete(float learning_rate,
              const StepSums& sums,
              double update_square,
              UpdateOutcome& outcome) {
  const double lr = static_cast<double>(learning_rate);
  outcome.moved = sums.moved;
  outcome.saturated = sums.saturated;
  outcome.achieved_norm = std::sqrt(sums.square);
  outcome.target_norm = lr * std::sqrt(update_square);
  outcome.achieved_projection = sums.projection;
  outcome.target_projection = lr * update_square;
}

UpdateStatus StatusOf(UpdateKind kind, const StepSums& sums, UpdateStatus found) {
  const bool told = kind == UpdateKind::kNaive || kind == UpdateKind::kNoteAsPrinted;
  if (told && sums.moved == 0) found = std::max(found, UpdateStatus::kBelowMinStep);
  if (sums.saturated > 0) found = std::max(found, UpdateStatus::kSaturated);
  return found;
}

// The outcome of one group, with the sums from which Combine computes the overall outcome.
struct GroupOutcome {
  UpdateOutcome outcome;
  StepSums sums;
  double update_square = 0;
};

GroupOutcome TakeGroup(const UpdateJob& job,
                       const KindRules& rules,
                       size_t index,
                       ElementRange range,
                       double update_square) {
  GroupOutcome group;
  group.update_square = update_square;
  const float alpha = Searches(job.rule->kind) ? 0 : job.learning_rate;
  if (update_square == 0) {
    KeepWeights(job, range);
    group.outcome.status = UpdateStatus::kZeroUpdate;
    group.outcome.alpha = alpha;
    return group;
  }
  if (rules.block != nullptr) {
    group.outcome.alpha = alpha;
    group.sums = ApplyBlocks(job, rules.block);
  } else {
    const GroupResult result = rules.group(job, {index, range, update_square});
    group.outcome = result.outcome;
    group.sums = result.sums;
  }
  group.outcome =
      CompleteOutcome(job.rule->kind, job.learning_rate, group.sums, update_square, group.outcome);
  return group;
}

// Returns the overall outcome of all groups. At least one group has a nonzero update.
UpdateOutcome Combine(const UpdateJob& job, std::span<const GroupOutcome> groups) {
  if (groups.size() == 1) return groups[0].outcome;
  UpdateOutcome all;
  StepSums sums;
  double update_square = 0;
  bool first = true;
  for (const GroupOutcome& group : groups) {
    if (group.outcome.status == UpdateStatus::kZeroUpdate) continue;
    const float alpha = group.outcome.alpha;
    if (first) all.alpha = alpha;
    if (all.alpha != alpha) all.alpha = std::numeric_limits<float>::quiet_NaN();
    first = false;
    all.status = std::max(all.status, group.outcome.status);
    all.passes = std::max(all.passes, group.outcome.passes);
    sums += group.sums;
    update_square += group.update_square;
  }
  Complete(job.learning_rate, sums, update_square, all);
  if (Searches(job.rule->kind)) {
    all.matched = all.matched_target = std::numeric_limits<double>::quiet_NaN();
  }
  return all;
}

}  // namespace

ScannedStep ScanAndStep(const UpdateJob& job) {
  const BlockRule rule = RulesOf(job.rule->kind).block;
  const bool apart = job.WritesApart();
  return SumOverBlocks<ScannedStep>(job.weights.size(), [&](size_t begin, size_t count) {
    ScannedStep taken;
    taken.scan = ScanBlock(job.weights.data() + begin, job.update.data() + begin, count);
    if (!taken.scan.Finite()) return taken;
    UpdateJob of_block = job;
    of_block.SetAbsmax(taken.scan);
    taken.sums = ApplyBlock(of_block, rule, {begin, count}, apart);
    return taken;
  });
}

UpdateOutcome CompleteOutcome(UpdateKind kind,
                              float learning_rate,
                              const StepSums& sums,
                              double update_square,
                              UpdateOutcome found) {
  found.status = StatusOf(kind, sums, found.status);
  Complete(learning_rate, sums, update_square, found);
  return found;
}

void KeepWeights(const UpdateJob& job, ElementRange range) {
  if (job.InPlace()) return;
  std::copy_n(job.weights.data() + range.begin, range.count, job.new_weights.data() + range.begin);
}

UpdateOutcome TakeStep(const UpdateJob& job,
                       const ElementGroups& groups,
                       double update_square,
                       std::vector<UpdateOutcome>* group_outcomes) {
  const KindRules rules = RulesOf(job.rule->kind);
  const size_t n = job.weights.size();
  std::vector<GroupOutcome> taken(groups.Count());
  ForEachGroup(groups, n, [&](size_t g) {
    const ElementRange range = groups.At(g);
    const double square = groups.Count() == 1 ? update_square : SquaredSum(range.Of(job.update));
    taken[g] = TakeGroup(job, rules, g, range, square);
  });
  if (group_outcomes != nullptr) {
    for (size_t g = 0; g < taken.size(); ++g) (*group_outcomes)[g] = taken[g].outcome;
  }
  return Combine(job, taken);
}

}  // namespace numsim
