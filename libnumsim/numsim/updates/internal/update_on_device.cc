#include "numsim/updates/internal/update_on_device.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/formats/decode.h"
#include "numsim/updates/internal/matched_search_device.h"
#include "numsim/updates/internal/update_kinds.h"
#include "numsim/updates/internal/update_passes_device.h"

namespace numsim {
namespace {

bool IsMatched(UpdateKind kind) {
  return kind == UpdateKind::kNormMatched || kind == UpdateKind::kProjectionMatched;
}

// Maxima and counts of the passes of a step, at the beginning of its memory; sums per block follow.
struct StepRecord {
  DeviceMaxima maxima;
  uint64_t counts[2] = {};  // moved, saturated
};
static_assert(sizeof(StepRecord) % sizeof(double) == 0);

// The working memory of a context's steps: about 4 bytes per weight for matched steps, 4 more with
// weight decay, otherwise next to nothing. `fetched` is the host's copy of the record and the sums.
struct UpdateScratch {
  explicit UpdateScratch(Place place) : bytes(place) {}

  Buffer<uint8_t> bytes;
  std::vector<double> fetched;
};

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

// The working memory of one step.
struct StepMemory {
  StepRecord* record = nullptr;  // followed by the sums
  DeviceBlockSums sums;
  size_t blocks = 0;
  float* decayed = nullptr;
  MatchedMemory matched;
  std::vector<double>* fetched = nullptr;
};

DeviceElements ListAt(uint8_t* base, size_t weights, size_t update, size_t index, size_t room) {
  return {reinterpret_cast<float*>(base + weights),
          reinterpret_cast<float*>(base + update),
          reinterpret_cast<uint64_t*>(base + index),
          room};
}

StepMemory Arrange(size_t n, bool decays, bool matched, UpdateScratch& scratch) {
  constexpr size_t kRecord = sizeof(StepRecord) / sizeof(double);
  StepMemory memory;
  memory.blocks = (n + kSumBlock - 1) / kSumBlock;
  Pieces pieces;
  const size_t record = pieces.Add<double>(kRecord + 2 * memory.blocks);
  const size_t decayed = decays ? pieces.Add<float>(n) : 0;
  const size_t room = matched ? MatchedMemory::RoomForSurvivors(n) : 0;
  const size_t partial = pieces.Add<DeviceSum>(matched ? MatchedPasses::kPartials : 0);
  const size_t results = pieces.Add<uint8_t>(matched ? MatchedPasses::kResults : 0);
  size_t lists[6];
  for (int k = 0; k < 6; ++k) {
    lists[k] = k % 3 == 2 ? pieces.Add<uint64_t>(room) : pieces.Add<float>(room);
  }
  uint8_t* const base = scratch.bytes.Renew(pieces.bytes()).data;
  memory.record = reinterpret_cast<StepRecord*>(base + record);
  memory.sums.counts = memory.record->counts;
  memory.sums.squares = reinterpret_cast<double*>(base + record) + kRecord;
  memory.sums.projections = memory.sums.squares + memory.blocks;
  memory.decayed = decays ? reinterpret_cast<float*>(base + decayed) : nullptr;
  memory.matched.partial = reinterpret_cast<DeviceSum*>(base + partial);
  memory.matched.results = base + results;
  memory.matched.lists[0] = ListAt(base, lists[0], lists[1], lists[2], room);
  memory.matched.lists[1] = ListAt(base, lists[3], lists[4], lists[5], room);
  memory.fetched = &scratch.fetched;
  return memory;
}

// Adds in order.
double Total(std::span<const double> blocks) {
  double total = 0;
  for (const double block : blocks) total += block;
  return total;
}

// Waits, and returns the record with the first `count` sums that follow it.
std::pair<StepRecord, std::span<const double>> Fetch(const StepMemory& memory,
                                                     size_t count,
                                                     DeviceStream& stream) {
  constexpr size_t kRecord = sizeof(StepRecord) / sizeof(double);
  std::vector<double>& fetched = *memory.fetched;
  fetched.resize(kRecord + count);
  device_memory::CopyOut(memory.record, fetched.data(), fetched.size() * sizeof(double), stream);
  stream.Wait();
  StepRecord record;
  std::memcpy(static_cast<void*>(&record), fetched.data(), sizeof(record));
  return {record, std::span<const double>(fetched).subspan(kRecord)};
}

struct ScanResult {
  DeviceMaxima maxima;
  double update_square = 0;

  bool Finite() const {
    return std::max({maxima.weights, maxima.update, maxima.state}) < 0x7F800000u;
  }
};

// Scans the arrays. The counts of the record are zero afterwards.
ScanResult ScanArrays(const DeviceScan& arrays, const StepMemory& memory, DeviceStream& stream) {
  device_memory::FillBytes(memory.record, 0, sizeof(StepRecord), stream);
  ScanPass(arrays, memory.sums.squares, &memory.record->maxima, stream);
  const auto [record, squares] = Fetch(memory, memory.blocks, stream);
  return {record.maxima, Total(squares)};
}

StepSums FetchSums(const StepMemory& memory, DeviceStream& stream) {
  const auto [record, sums] = Fetch(memory, 2 * memory.blocks, stream);
  StepSums all;
  all.square = Total(sums.first(memory.blocks));
  all.projection = Total(sums.subspan(memory.blocks));
  all.moved = record.counts[0];
  all.saturated = record.counts[1];
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
  sums = FetchSums(memory, stream);
  return outcome;
}

UpdateJob JobOf(const UpdateRule& rule, const WeightUpdate& step) {
  UpdateJob job;
  job.rule = &rule;
  job.plan = WeightPlan(step.format);
  job.own_plan = OwnPlan(rule, step.format);
  job.largest = MaxFinite(step.format);
  job.learning_rate = step.learning_rate;
  return job;
}

DeviceStep StepOf(const UpdateJob& job,
                  const WeightUpdate& update,
                  RandomStream random,
                  UpdateState& state,
                  MatrixSpan<float> new_weights) {
  DeviceStep step;
  step.kind = job.rule->kind;
  step.rule = MakeStepRule(step.kind == UpdateKind::kStochastic ? job.own_plan : job.plan);
  if (step.kind == UpdateKind::kKahan) step.own = MakeStepRule(job.own_plan);
  step.largest = job.largest;
  step.weights = update.weights.data;
  step.update = update.update.data;
  step.new_weights = new_weights.data;
  step.values = state.values.View().data;
  step.words = state.words.View().data;
  step.n = new_weights.Elements();
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
  StepSums sums;
  UpdateOutcome outcome;
  if (IsMatched(step.kind)) {
    outcome = TakeMatched(*job.rule, scan, job, step, memory, sums, stream);
  } else {
    outcome.alpha = step.learning_rate;
    step.limit = job.LimitAt(step.learning_rate);
    ElementwisePass(step, memory.sums, stream);
    sums = FetchSums(memory, stream);
  }
  return CompleteOutcome(step.kind, step.learning_rate, sums, scan.update_square, outcome);
}

}  // namespace

UpdateOutcome ApplyUpdateOnDevice(const UpdateRule& rule,
                                  const WeightUpdate& update,
                                  RandomStream random,
                                  UpdateState& state,
                                  MatrixSpan<float> new_weights) {
  const DefaultFloatEnvironment environment;
  const float idle_alpha = Searches(rule.kind) ? 0 : update.learning_rate;
  const size_t n = new_weights.Elements();
  if (n == 0) return {.status = UpdateStatus::kZeroUpdate, .alpha = idle_alpha};
  DeviceContext& context = new_weights.place.Context();
  DeviceStream& stream = context.stream();
  UpdateJob job = JobOf(rule, update);
  const bool decays = update.weight_decay != 0;
  const StepMemory memory = Arrange(n, decays, IsMatched(rule.kind), context.Get<UpdateScratch>());
  DeviceStep step = StepOf(job, update, random, state, new_weights);
  DeviceScan arrays{step.weights, step.update, step.values, step.words, n};
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

UpdateOutcome ApplyUpdateOffloaded(const UpdateRule& rule,
                                   const WeightUpdate& step,
                                   RandomStream random,
                                   UpdateState& state,
                                   MatrixSpan<float> new_weights) {
  OffloadedCall call;
  WeightUpdate step_there = step;
  step_there.weights = call.In(step.weights);
  step_there.update = call.In(step.update);
  UpdateState state_there = state.CopiedTo(call.place());
  const MatrixSpan<float> there = call.Room<float>(new_weights.Shape());
  const UpdateOutcome outcome = ApplyUpdateOnDevice(rule, step_there, random, state_there, there);
  call.Out(there, new_weights);
  CopyMatrix<float>(state_there.values.View(), state.values.View());
  CopyMatrix<uint16_t>(state_there.words.View(), state.words.View());
  return outcome;
}

}  // namespace numsim
