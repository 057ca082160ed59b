#include "numsim/updates/update_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "numsim/base/require.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/formats/decode.h"
#include "numsim/updates/internal/matched_search_device.h"
#include "numsim/updates/internal/update_kinds.h"
#include "numsim/updates/internal/update_offload.h"
#include "numsim/updates/internal/update_passes_device.h"

namespace numsim {
namespace {

bool IsMatched(UpdateKind kind) {
  return kind == UpdateKind::kNormMatched || kind == UpdateKind::kProjectionMatched;
}

// Divides the scratch memory into pieces, each aligned to 256 bytes.
class Pieces {
 public:
  // Adds a piece of `count` elements of type T and returns its offset.
  template <typename T>
  size_t Add(size_t count) {
    const size_t at = bytes_;
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// The working memory of a step.
struct StepMemory {
  DeviceMaxima* maxima = nullptr;
  DeviceBlockSums sums;
  float* decayed = nullptr;
  MatchedMemory matched;
};

DeviceElements ListAt(uint8_t* base, size_t weights, size_t update, size_t index, size_t room) {
  return {reinterpret_cast<float*>(base + weights),
          reinterpret_cast<float*>(base + update),
          reinterpret_cast<uint64_t*>(base + index),
          room};
}

StepMemory Arrange(size_t n, bool decays, bool matched, DeviceUpdateScratch& scratch) {
  const size_t blocks = (n + kSumBlock - 1) / kSumBlock;
  Pieces pieces;
  const size_t maxima = pieces.Add<DeviceMaxima>(1);
  const size_t counts = pieces.Add<uint64_t>(2);
  const size_t squares = pieces.Add<double>(2 * blocks);  // squares, then projections
  const size_t decayed = decays ? pieces.Add<float>(n) : 0;
  const size_t room = matched ? MatchedMemory::RoomForSurvivors(n) : 0;
  const size_t partial = pieces.Add<DeviceSum>(matched ? MatchedPasses::kPartials : 0);
  const size_t results = pieces.Add<uint8_t>(matched ? MatchedPasses::kResults : 0);
  size_t lists[6];
  for (int k = 0; k < 6; ++k) {
    lists[k] = k % 3 == 2 ? pieces.Add<uint64_t>(room) : pieces.Add<float>(room);
  }
  scratch.bytes.Reserve(pieces.bytes());
  uint8_t* const base = scratch.bytes.data();
  StepMemory memory;
  memory.maxima = reinterpret_cast<DeviceMaxima*>(base + maxima);
  memory.sums.counts = reinterpret_cast<uint64_t*>(base + counts);
  memory.sums.squares = reinterpret_cast<double*>(base + squares);
  memory.sums.projections = memory.sums.squares + blocks;
  memory.decayed = decays ? reinterpret_cast<float*>(base + decayed) : nullptr;
  memory.matched.partial = reinterpret_cast<DeviceSum*>(base + partial);
  memory.matched.results = base + results;
  memory.matched.lists[0] = ListAt(base, lists[0], lists[1], lists[2], room);
  memory.matched.lists[1] = ListAt(base, lists[3], lists[4], lists[5], room);
  return memory;
}

// Adds in order.
double Total(std::span<const double> blocks) {
  double total = 0;
  for (const double block : blocks) total += block;
  return total;
}

struct ScanResult {
  DeviceMaxima maxima;
  double update_square = 0;

  bool Finite() const {
    return std::max({maxima.weights, maxima.update, maxima.state}) < 0x7F800000u;
  }
};

ScanResult ScanArrays(const DeviceScan& arrays, const StepMemory& memory, DeviceStream& stream) {
  const size_t blocks = (arrays.n + kSumBlock - 1) / kSumBlock;
  device_memory::FillBytes(memory.maxima, 0, sizeof(DeviceMaxima), stream);
  ScanPass(arrays, memory.sums.squares, memory.maxima, stream);
  ScanResult result;
  const auto squares = OnHost(DeviceSpan<const double>(memory.sums.squares, blocks), stream);
  result.maxima = OnHost(DeviceSpan<const DeviceMaxima>(memory.maxima, 1), stream)[0];
  result.update_square = Total(squares);
  return result;
}

StepSums FetchSums(size_t n, const StepMemory& memory, DeviceStream& stream) {
  const size_t blocks = (n + kSumBlock - 1) / kSumBlock;
  const auto sums = OnHost(DeviceSpan<const double>(memory.sums.squares, 2 * blocks), stream);
  const auto counts = OnHost(DeviceSpan<const uint64_t>(memory.sums.counts, 2), stream);
  StepSums all;
  all.square = Total(std::span(sums).first(blocks));
  all.projection = Total(std::span(sums).subspan(blocks));
  all.moved = counts[0];
  all.saturated = counts[1];
  return all;
}

void KeepWeights(const DeviceStep& step, DeviceStream& stream) {
  if (step.new_weights == step.weights) return;
  device_memory::CopyWithin(step.weights, step.new_weights, step.n * sizeof(float), stream);
}

// Takes the matched step of all weights and fetches its sums into `sums`, which stay zero if
// nothing moved.
UpdateOutcome TakeMatched(const UpdateRule& rule,
                          const ScanResult& scan,
                          UpdateJob& job,
                          DeviceStep& step,
                          const StepMemory& memory,
                          StepSums& sums,
                          DeviceStream& stream) {
  MatchedProblem problem;
  problem.plan = &job.plan;
  problem.learning_rate = step.learning_rate;
  problem.update_square = scan.update_square;
  problem.quantity =
      rule.kind == UpdateKind::kNormMatched ? MatchedQuantity::kNorm : MatchedQuantity::kProjection;
  problem.small_step = rule.small_step;
  problem.random = step.random;
  const MatchedTerms terms(problem);
  MatchedPasses passes(step.rule, terms, memory.matched.partial, memory.matched.results, stream);
  // DeviceElements is not const because lists are written; the arrays of all weights never are.
  const DeviceElements all{
      const_cast<float*>(step.weights), const_cast<float*>(step.update), nullptr, step.n};
  const DeviceSearchResult result =
      SearchOnDevice(problem, terms, all, memory.matched, passes, stream);
  UpdateOutcome outcome;
  outcome.passes = result.passes;
  outcome.matched_target = terms.Size(terms.target);
  if (!result.found) {
    outcome.status = UpdateStatus::kSaturated;
    KeepWeights(step, stream);
    stream.Wait();
    return outcome;
  }
  const TieDecision& decision = result.found->decision;
  outcome.alpha = AlphaOf(result.found->key);
  outcome.matched = terms.Size(decision.choice.sum);
  if (decision.choice.below_min_step) outcome.status = UpdateStatus::kBelowMinStep;
  ++outcome.passes;
  step.limit = job.LimitAt(outcome.alpha);
  const float low = AlphaOf(result.found->key - 1);
  MatchedPass(step, low, outcome.alpha, decision, memory.sums, stream);
  sums = FetchSums(step.n, memory, stream);
  return outcome;
}

void CheckShapes(const UpdateRule& rule,
                 const DeviceWeightUpdate& step,
                 const DeviceUpdateState& state,
                 size_t new_weights) {
  const size_t n = step.weights.size();
  const MatrixShape shape{step.rows, step.cols};
  RequireSize(n, shape, "ApplyUpdate", "weights");
  RequireSize(step.update.size(), shape, "ApplyUpdate", "update");
  RequireSize(new_weights, shape, "ApplyUpdate", "new_weights");
  const bool values = rule.kind == UpdateKind::kMasterFp32 || rule.kind == UpdateKind::kKahan;
  const bool words = rule.kind == UpdateKind::kSplitMaster;
  NUMSIM_REQUIRE(state.values.size() == (values ? n : 0) && state.words.size() == (words ? n : 0),
                 "ApplyUpdate: {} of {} weights does not have a state of {} values and {} words",
                 ToString(rule.kind),
                 n,
                 state.values.size(),
                 state.words.size());
  NUMSIM_REQUIRE(std::isfinite(step.learning_rate) && step.learning_rate >= 0 &&
                     std::isfinite(step.weight_decay),
                 "ApplyUpdate: learning_rate is {} and weight_decay is {}, expected finite and "
                 "learning_rate >= 0",
                 step.learning_rate,
                 step.weight_decay);
}

UpdateJob JobOf(const UpdateRule& rule, const DeviceWeightUpdate& step) {
  UpdateJob job;
  job.rule = &rule;
  job.plan = WeightPlan(step.format);
  job.own_plan = OwnPlan(rule, step.format);
  job.largest = MaxFinite(step.format);
  job.learning_rate = step.learning_rate;
  return job;
}

DeviceStep StepOf(const UpdateJob& job,
                  const DeviceWeightUpdate& update,
                  RandomStream random,
                  DeviceUpdateState& state,
                  DeviceSpan<float> new_weights) {
  DeviceStep step;
  step.kind = job.rule->kind;
  step.rule = MakeStepRule(step.kind == UpdateKind::kStochastic ? job.own_plan : job.plan);
  step.own = job.own_plan;
  step.largest = job.largest;
  step.weights = update.weights.data();
  step.update = update.update.data();
  step.new_weights = new_weights.data();
  step.values = state.values.data();
  step.words = state.words.data();
  step.n = new_weights.size();
  step.learning_rate = update.learning_rate;
  step.random = random;
  return step;
}

// Takes the step itself. All numbers are finite.
UpdateOutcome Take(const ScanResult& scan,
                   UpdateJob& job,
                   DeviceStep& step,
                   const StepMemory& memory,
                   DeviceStream& stream) {
  job.absmax_weight = std::bit_cast<float>(scan.maxima.weights);
  job.absmax_update = std::bit_cast<float>(scan.maxima.update);
  device_memory::FillBytes(memory.sums.counts, 0, 2 * sizeof(uint64_t), stream);
  StepSums sums;
  UpdateOutcome outcome;
  if (IsMatched(step.kind)) {
    outcome = TakeMatched(*job.rule, scan, job, step, memory, sums, stream);
  } else {
    outcome.alpha = step.learning_rate;
    step.limit = job.LimitAt(step.learning_rate);
    ElementwisePass(step, memory.sums, stream);
    sums = FetchSums(step.n, memory, stream);
  }
  return CompleteOutcome(step.kind, step.learning_rate, sums, scan.update_square, outcome);
}

}  // namespace

bool ServesOnDevice(const UpdateRule& rule, const FormatSpec& format) {
  switch (rule.kind) {
    case UpdateKind::kNaive:
    case UpdateKind::kStochastic:
    case UpdateKind::kMasterFp32:
    case UpdateKind::kSplitMaster:
    case UpdateKind::kKahan:
      break;
    case UpdateKind::kNormMatched:
    case UpdateKind::kProjectionMatched:
      if (rule.scope.granularity != Granularity::kTensor) return false;
      break;
    default:
      return false;
  }
  return HasStepRule(WeightPlan(format)) && HasStepRule(OwnPlan(rule, format));
}

void CheckOnDevice(const UpdateRule& rule, const FormatSpec& format) {
  if (ServesOnDevice(rule, format)) return;
  throw Error::Format(
      "the device has no rule {} for weights of that format: "
      "it has naive, stochastic, "
      "master-fp32, split-master, kahan, norm-matched and "
      "projection-matched, one alpha a tensor, "
      "for signed formats with a zero whose values float32 "
      "holds as normal numbers",
      ToString(rule));
}

UpdateOutcome ApplyUpdate(const UpdateRule& rule,
                          const DeviceWeightUpdate& update,
                          RandomStream random,
                          DeviceUpdateState& state,
                          DeviceSpan<float> new_weights,
                          DeviceUpdateScratch& scratch,
                          DeviceStream& stream) {
  const DefaultFloatEnvironment environment;
  CheckOnDevice(rule, update.format);
  CheckRule(rule, update.format);
  CheckShapes(rule, update, state, new_weights.size());
  const float idle_alpha = Searches(rule.kind) ? 0 : update.learning_rate;
  if (new_weights.empty()) return {.status = UpdateStatus::kZeroUpdate, .alpha = idle_alpha};
  UpdateJob job = JobOf(rule, update);
  const bool decays = update.weight_decay != 0;
  const StepMemory memory = Arrange(new_weights.size(), decays, IsMatched(rule.kind), scratch);
  DeviceStep step = StepOf(job, update, random, state, new_weights);
  DeviceScan arrays{step.weights, step.update, step.values, step.words, step.n};
  ScanResult scan = ScanArrays(arrays, memory, stream);
  bool finite = scan.Finite();
  if (finite && decays) {
    DecayPass(arrays, rule.kind == UpdateKind::kKahan, update.weight_decay, memory.decayed, stream);
    step.update = arrays.update = memory.decayed;
    scan = ScanArrays(arrays, memory, stream);
    finite = scan.Finite();
  }
  if (!finite || scan.maxima.update == 0 || step.learning_rate == 0) {
    KeepWeights(step, stream);
    stream.Wait();
    if (!finite) return {.status = UpdateStatus::kNonfinite};
    return {.status = UpdateStatus::kZeroUpdate, .alpha = idle_alpha};
  }
  return Take(scan, job, step, memory, stream);
}

}  // namespace numsim
