// Takes a checked step, group by group and block by block, and computes its outcome.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "numsim/base/parallel.h"
#include "numsim/updates/internal/update_method.h"

namespace numsim {
namespace {

// Calls body(group) for every group, on all threads: many small groups in parallel; few large ones
// one after another, so that body can use all threads.
void ForEachGroup(const ElementGroups& groups, size_t n, FunctionRef<void(size_t)> body) {
  constexpr size_t kWorthThread = size_t{1} << 15;  // elements
  const size_t count = groups.Count();
  const size_t each = count == 0 ? 0 : n / count;
  if (each > 8 * kWorthThread && count < 4 * static_cast<size_t>(ThreadCount())) {
    for (size_t g = 0; g < count; ++g) body(g);
    return;
  }
  ParallelFor(count, kWorthThread / (each + 1) + 1, [&](size_t begin, size_t end) {
    for (size_t g = begin; g < end; ++g) body(g);
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
  const bool tells = MethodOf(kind).traits.tells_if_nothing_moved;
  if (tells && sums.moved == 0) found = std::max(found, UpdateStatus::kBelowMinStep);
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
                       size_t index,
                       ElementRange range,
                       double update_square) {
  GroupOutcome group;
  group.update_square = update_square;
  if (update_square == 0) {
    KeepWeights(job, range);
    group.outcome.status = UpdateStatus::kZeroUpdate;
    group.outcome.alpha = job.method->traits.searches ? 0 : job.learning_rate;
    return group;
  }
  const GroupResult result = job.method->StepGroup(job, {index, range, update_square});
  group.sums = result.sums;
  group.outcome = CompleteOutcome(
      job.rule->kind, job.learning_rate, result.sums, update_square, result.outcome);
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
  if (job.method->traits.searches) {
    all.matched = all.matched_target = std::numeric_limits<double>::quiet_NaN();
  }
  return all;
}

}  // namespace

// Takes the step of one block. `apart` is job.WritesApart(). Requires the default floating-point
// environment.
StepSums ElementwiseMethod::SumBlock(const UpdateJob& job, ElementRange block, bool apart) const {
  alignas(64) std::array<float, kSumBlock> buffer;  // the sums still read what it replaces
  float* const new_weights = job.new_weights.data() + block.begin;
  float* const after = apart ? new_weights : buffer.data();
  const uint64_t saturated = StepBlock(job, block, after);
  StepSums sums = StepSumsOfBlock(
      job.weights.data() + block.begin, after, job.update.data() + block.begin, block.count);
  sums.saturated = saturated;
  if (!apart) std::copy_n(after, block.count, new_weights);
  return sums;
}

GroupResult ElementwiseMethod::StepGroup(const UpdateJob& job, const UpdateGroup&) const {
  const bool apart = job.WritesApart();
  GroupResult result;
  result.outcome.alpha = job.learning_rate;
  result.sums = SumOverBlocks<StepSums>(job.weights.size(), [&](size_t begin, size_t count) {
    return SumBlock(job, {begin, count}, apart);
  });
  return result;
}

ScannedStep ElementwiseMethod::ScanAndStep(const UpdateJob& job) const {
  const bool apart = job.WritesApart();
  return SumOverBlocks<ScannedStep>(job.weights.size(), [&](size_t begin, size_t count) {
    ScannedStep taken;
    taken.scan = ScanBlock(job.weights.data() + begin, job.update.data() + begin, count);
    if (!taken.scan.Finite()) return taken;
    UpdateJob of_block = job;
    of_block.SetAbsmax(taken.scan);
    taken.sums = SumBlock(of_block, {begin, count}, apart);
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
  const size_t n = job.weights.size();
  std::vector<GroupOutcome> taken(groups.Count());
  ForEachGroup(groups, n, [&](size_t g) {
    const ElementRange range = groups.At(g);
    const double square = groups.Count() == 1 ? update_square : SquaredSum(range.Of(job.update));
    taken[g] = TakeGroup(job, g, range, square);
  });
  if (group_outcomes != nullptr) {
    for (size_t g = 0; g < taken.size(); ++g) (*group_outcomes)[g] = taken[g].outcome;
  }
  return Combine(job, taken);
}

}  // namespace numsim
