#include "numsim/updates/update_rule.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "numsim/backend/backend.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/cast/cast.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/quantize.h"
#include "numsim/quantize/shared/quantize_simd.h"
#include "numsim/updates/internal/naive_step.h"
#include "numsim/updates/internal/require_state.h"
#include "numsim/updates/internal/split_master.h"
#include "numsim/updates/internal/update_kinds.h"
#include "numsim/updates/internal/update_on_device.h"

namespace numsim {
namespace {

ScaleLayout ScopeOf(const UpdateRule& rule) {
  return HasScope(rule.kind) ? rule.scope : ScaleLayout{};
}

EncodePlan SaturatingPlan(const FormatSpec& format, const Rounding& rounding = {}) {
  return MakeEncodePlan(format, rounding, Overflow::kSaturate);
}

void CheckStep(const WeightUpdate& step, MatrixSpan<const float> new_weights) {
  RequireLikeWeights(step.weights, step.weights, "ApplyUpdate", "weights");
  RequireLikeWeights(step.update, step.weights, "ApplyUpdate", "update");
  RequireLikeWeights(new_weights, step.weights, "ApplyUpdate", "new_weights");
  NUMSIM_REQUIRE(std::isfinite(step.learning_rate) && step.learning_rate >= 0,
                 "ApplyUpdate: learning_rate is {}, expected finite and >= 0",
                 step.learning_rate);
  NUMSIM_REQUIRE(std::isfinite(step.weight_decay),
                 "ApplyUpdate: weight_decay is {}, expected finite",
                 step.weight_decay);
}

// True if `value` holds for every block.
struct All {
  bool value = true;

  All& operator+=(const All& other) {
    value = value && other.value;
    return *this;
  }
};

bool IsFiniteState(const UpdateRule& rule, const WeightUpdate& step, const UpdateState& state) {
  const bool split = rule.kind == UpdateKind::kSplitMaster;
  if (!std::isfinite(AbsmaxOfAll(state.values.Span())) ||
      !std::isfinite(AbsmaxOfAll(state.scales.Span()))) {
    return false;
  }
  const std::span<const uint16_t> words = state.words.Span();
  return SumOverBlocks<All>(words.size(),
                            [&](size_t begin, size_t count) {
                              bool finite = true;
                              for (size_t i = begin; i < begin + count; ++i) {
                                const uint16_t word = words[i];
                                const bool good =
                                    split ? std::isfinite(JoinMaster(step.weights.data[i], word))
                                          : (word & 0x7C00) != 0x7C00;
                                finite = finite && good;
                              }
                              return All{finite};
                            })
      .value;
}

// Takes the most common step: a naive step of float32 weights in place. Returns no outcome for any
// other step.
std::optional<UpdateOutcome> TakeNaiveInPlace(const UpdateRule& rule,
                                              const WeightUpdate& step,
                                              MatrixSpan<float> new_weights) {
  if (rule.kind != UpdateKind::kNaive || step.format != kFp32 ||
      new_weights.data != step.weights.data) {
    return std::nullopt;
  }
  return TakeNaiveStep(
      step.update.Span(), step.learning_rate, step.weight_decay, new_weights.Span());
}

// Returns `outcome` for a step in which nothing moves.
UpdateOutcome Refuse(const UpdateJob& job,
                     UpdateOutcome outcome,
                     std::vector<UpdateOutcome>* groups) {
  KeepWeights(job, {0, job.weights.size()});
  if (groups != nullptr) std::fill(groups->begin(), groups->end(), outcome);
  return outcome;
}

// Returns the outcome of a step that the scan does not allow to take, or nothing.
std::optional<UpdateOutcome> RefuseScanned(const UpdateJob& job,
                                           const Scan& scan,
                                           std::vector<UpdateOutcome>* groups) {
  if (!scan.Finite()) return Refuse(job, {.status = UpdateStatus::kNonfinite}, groups);
  if (scan.update != 0 && job.learning_rate != 0) return std::nullopt;
  const float alpha = Searches(job.rule->kind) ? 0 : job.learning_rate;
  return Refuse(job, {.status = UpdateStatus::kZeroUpdate, .alpha = alpha}, groups);
}

// True if nothing but the new weights would have to be undone if the step were refused after it was
// taken.
bool MayStepFirst(const UpdateJob& job, float weight_decay) {
  const UpdateKind kind = job.rule->kind;
  return (kind == UpdateKind::kNaive || kind == UpdateKind::kStochastic) && weight_decay == 0 &&
         job.learning_rate > 0 && job.WritesApart();
}

// Reads the arrays once: takes the step while it scans them. Requires MayStepFirst.
UpdateOutcome StepFirst(const UpdateJob& job, std::vector<UpdateOutcome>* groups) {
  const ScannedStep taken = ScanAndStep(job);
  if (const auto outcome = RefuseScanned(job, taken.scan, groups)) return *outcome;
  const UpdateOutcome outcome = CompleteOutcome(job.rule->kind,
                                                job.learning_rate,
                                                taken.sums,
                                                taken.scan.update_square,
                                                {.alpha = job.learning_rate});
  if (groups != nullptr) groups->assign(1, outcome);
  return outcome;
}

// Takes a step on the host. `groups`, if not null, has one element per group.
UpdateOutcome ApplyOnHost(const UpdateRule& rule,
                          const WeightUpdate& step,
                          const ElementGroups& all,
                          RandomStream random,
                          UpdateState& state,
                          std::span<float> new_weights,
                          std::vector<UpdateOutcome>* groups) {
  UpdateJob job;
  job.rule = &rule;
  job.plan = WeightPlan(step.format);
  job.own_plan = OwnPlan(rule, step.format);
  job.largest = MaxFinite(step.format);
  job.weights = step.weights.Span();
  job.update = step.update.Span();
  job.learning_rate = step.learning_rate;
  job.random = random;
  job.state = &state;
  job.new_weights = new_weights;
  if (MayStepFirst(job, step.weight_decay)) return StepFirst(job, groups);
  Scan scan = ScanArrays(job.weights, job.update);
  if (scan.Finite() && !IsFiniteState(rule, step, state)) {
    return Refuse(job, {.status = UpdateStatus::kNonfinite}, groups);
  }
  if (scan.Finite() && step.weight_decay != 0) {
    thread_local std::vector<float> scratch;  // kept, because later steps have similar lengths
    if (scratch.size() < job.update.size()) scratch.resize(job.update.size());
    const std::span<float> decayed = std::span(scratch).first(job.update.size());
    DecayedUpdate(rule, step, state, decayed);
    job.update = decayed;
    scan = ScanArrays(job.weights, job.update);
  }
  if (const auto outcome = RefuseScanned(job, scan, groups)) return *outcome;
  job.SetAbsmax(scan);
  return TakeStep(job, all, scan.update_square, groups);
}

// Takes the step by a rule that does not need `groups`: on a device, or as TakeNaiveInPlace. Returns
// no outcome if the step is one for ApplyOnHost.
std::optional<UpdateOutcome> TakeWhole(const UpdateRule& rule,
                                       const WeightUpdate& step,
                                       RandomStream random,
                                       UpdateState& state,
                                       MatrixSpan<float> new_weights) {
  const bool on_host = step.weights.place.IsHost();
  if (on_host) {
    if (const auto outcome = TakeNaiveInPlace(rule, step, new_weights)) return outcome;
  }
  if constexpr (NUMSIM_HAVE_CUDA) {
    if (!on_host) {
      CheckOnDevice(rule, step.format);
      return ApplyUpdateOnDevice(rule, step, random, state, new_weights);
    }
    if (UsesDevice() && step.weights.Elements() > 0 && ServesOnDevice(rule, step.format)) {
      return ApplyUpdateOffloaded(rule, step, random, state, new_weights);
    }
  }
  return std::nullopt;
}

}  // namespace

void CheckRule(const UpdateRule& rule, const FormatSpec& format) {
  const ScaleLayout& scope = rule.scope;
  NUMSIM_REQUIRE(!HasScope(rule.kind) || scope.granularity == Granularity::kTensor ||
                     scope.granularity == Granularity::kRow ||
                     (scope.granularity == Granularity::kBlock && scope.block >= 1),
                 "update rule {}: scope {}, expected tensor, row or block:N",
                 ToString(rule.kind),
                 ToString(scope));
  NUMSIM_REQUIRE(rule.kind != UpdateKind::kSplitMaster || format == kBf16,
                 "update rule {}: weights of {}, expected bf16",
                 ToString(rule.kind),
                 ToString(format));
  NUMSIM_REQUIRE(rule.kind != UpdateKind::kNoteAsPrinted || rule.iterations >= 1,
                 "update rule {}: {} iterations, expected at least 1",
                 ToString(rule.kind),
                 rule.iterations);
}

EncodePlan WeightPlan(const FormatSpec& format) { return SaturatingPlan(format); }

EncodePlan OwnPlan(const UpdateRule& rule, const FormatSpec& format) {
  switch (rule.kind) {
    case UpdateKind::kStochastic:
      return SaturatingPlan(format,
                            {RoundingMode::kStochastic, StochasticVariant::kA, rule.random_bits});
    case UpdateKind::kMasterFp16Scaled:
      return SaturatingPlan(kFp16);
    case UpdateKind::kKahan:
      return SaturatingPlan(rule.compensation ? rule.compensation->spec : format);
    case UpdateKind::kNoteAsPrinted:
      return MakeEncodePlan(format);
    default:
      return SaturatingPlan(format);
  }
}

double StateBytesPerWeight(const UpdateRule& rule, const FormatSpec& format) {
  switch (rule.kind) {
    case UpdateKind::kMasterFp32:
      return 4;
    case UpdateKind::kMasterFp16Scaled:
    case UpdateKind::kSplitMaster:
      return 2;
    case UpdateKind::kKahan:
      return OwnPlan(rule, format).format.Bits() / 8.0;
    default:
      return 0;
  }
}

UpdateState UpdateState::CopiedTo(Place place) const {
  return {CopyAt(values.View(), place), CopyAt(words.View(), place), CopyAt(scales.View(), place)};
}

UpdateState StartUpdates(const UpdateRule& rule,
                         const FormatSpec& format,
                         In<float> initial,
                         MatrixSpan<float> weights) {
  const DefaultFloatEnvironment environment;
  CheckRule(rule, format);
  RequireHost("StartUpdates", {initial.place, weights.place});
  RequireLikeWeights(weights, weights, "StartUpdates", "weights");
  RequireLikeWeights(initial, weights, "StartUpdates", "initial");
  const size_t rows = weights.rows, cols = weights.cols;
  const std::span<const float> from = initial.Span();
  UpdateState state;
  switch (rule.kind) {
    case UpdateKind::kSplitMaster:
      StartSplitMaster(from, state.words.Resize(rows, cols).Span(), weights.Span());
      return state;
    case UpdateKind::kMasterFp32:
      FakeQuantize(SaturatingPlan(kFp32), from, state.values.Resize(rows, cols).Span());
      break;
    case UpdateKind::kMasterFp16Scaled: {
      const ElementGroups groups(rule.scope, rows, cols);
      StartMasterFp16(SaturatingPlan(format),
                      groups,
                      from,
                      state.words.Resize(rows, cols).Span(),
                      state.scales.Resize(1, groups.Count()).Span(),
                      weights.Span());
      return state;
    }
    case UpdateKind::kKahan:
      std::ranges::fill(state.values.Resize(rows, cols).Span(), 0.0f);
      break;
    default:
      break;
  }
  FakeQuantize(SaturatingPlan(format), from, weights.Span());
  return state;
}

UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const WeightUpdate& step,
                          RandomStream random,
                          UpdateState& state,
                          MatrixSpan<float> new_weights,
                          std::vector<UpdateOutcome>* groups) {
  const DefaultFloatEnvironment environment;
  CheckRule(rule, step.format);
  CheckStep(step, new_weights);
  const ElementGroups all(ScopeOf(rule), step.weights.rows, step.weights.cols);
  RequireState(rule, state, step.weights, all.Count(), "ApplyUpdate");
  if (const auto outcome = TakeWhole(rule, step, random, state, new_weights)) {
    if (groups != nullptr) groups->assign(1, *outcome);
    return *outcome;
  }
  if (groups != nullptr) groups->assign(all.Count(), {});
  return ApplyOnHost(rule, step, all, random, state, new_weights.Span(), groups);
}

}  // namespace numsim
