#include "numsim/updates/internal/update_on_device.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "numsim/backend/device_context.h"
#include "numsim/backend/shared/offload.h"
#include "numsim/base/shared/float_environment.h"
#include "numsim/formats/decode.h"
#include "numsim/updates/internal/matched_search_device.h"
#include "numsim/updates/internal/update_method.h"
#include "numsim/updates/internal/update_passes_device.h"
#include "numsim/updates/internal/update_step_kernel.h"

namespace numsim {
namespace {

// Maxima of a scan, at the beginning of its memory; its sums per block follow.
struct ScanRecord {
  DeviceMaxima maxima;
  uint32_t padding = 0;
};
static_assert(sizeof(ScanRecord) % sizeof(double) == 0);

// The working memory of a context's steps: about 4 bytes per weight for matched steps; for others
// the numbers that they keep (KeptNumbers): 4 bytes per weight in place, and the state. 4 more with
// weight decay. `fetched` is the host's copy of a record and the sums of a scan.
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
  ScanRecord* record = nullptr;
  double* squares = nullptr;  // of a scan, after the record
  StepTotalsAt totals;
  size_t blocks = 0;
  float* decayed = nullptr;
  KeptNumbers kept;
  MatchedMemory matched;
  std::vector<double>* fetched = nullptr;
};

DeviceElements ListAt(uint8_t* base, size_t weights, size_t update, size_t index, size_t room) {
  return {reinterpret_cast<float*>(base + weights),
          reinterpret_cast<float*>(base + update),
          reinterpret_cast<uint64_t*>(base + index),
          room};
}

// The sizes that working memory depends on.
struct StepShape {
  UpdateTraits traits;
  size_t n = 0;
  bool decays = false, in_place = false;
  bool halves = false;  // the upper halves of float32 hold the values of the state

  bool Matched() const { return traits.searches; }
  bool HasValues() const { return traits.state == RuleState::kValues; }
  bool HasMasters() const { return HasValues() && !traits.compensates; }
  bool HasWords() const { return traits.state == RuleState::kWords; }
  bool KeepsFew() const { return HasMasters() || halves; }
};

StepMemory Arrange(const StepShape& shape, UpdateScratch& scratch) {
  constexpr size_t kRecord = sizeof(ScanRecord) / sizeof(double);
  const size_t n = shape.n;
  const bool matched = shape.Matched();
  StepMemory memory;
  memory.blocks = (n + kSumBlock - 1) / kSumBlock;
  Pieces pieces;
  const auto piece = [&]<typename T>(bool wanted, size_t count) {
    return pieces.Add<T>(wanted ? count : 0);
  };
  const size_t record = piece.operator()<double>(matched, kRecord + memory.blocks);
  const size_t words = pieces.Add<uint64_t>(StepTotalsAt::kBlockWords * memory.blocks);
  const size_t totals = pieces.Add<StepTotals>(1);
  const size_t decayed = piece.operator()<float>(shape.decays, n);
  const bool keeps_weights = shape.in_place && !matched;
  const size_t kept_weights = piece.operator()<float>(keeps_weights, n);
  const size_t kept_values = piece.operator()<float>(shape.HasValues(), n);
  const size_t kept_words = piece.operator()<uint16_t>(shape.HasWords(), n);
  const size_t lost = piece.operator()<uint32_t>(shape.KeepsFew(), kStepThreads * memory.blocks);
  const size_t halves = piece.operator()<uint16_t>(shape.halves, n);
  const size_t room = matched ? MatchedMemory::RoomForSurvivors(n) : 0;
  const size_t partial = pieces.Add<DeviceSum>(matched ? MatchedPasses::kPartials : 0);
  const size_t results = pieces.Add<uint8_t>(matched ? MatchedPasses::kResults : 0);
  size_t lists[6];
  for (int k = 0; k < 6; ++k) {
    lists[k] = k % 3 == 2 ? pieces.Add<uint64_t>(room) : pieces.Add<float>(room);
  }
  uint8_t* const base = scratch.bytes.Renew(pieces.bytes()).data;
  const auto at = [&]<typename T>(T*& pointer, bool wanted, size_t offset) {
    pointer = wanted ? reinterpret_cast<T*>(base + offset) : nullptr;
  };
  at(memory.record, matched, record);
  at(memory.squares, matched, record + sizeof(ScanRecord));
  at(memory.totals.blocks, true, words);
  at(memory.totals.totals, true, totals);
  at(memory.decayed, shape.decays, decayed);
  at(memory.kept.weights, keeps_weights, kept_weights);
  at(memory.kept.values, shape.HasValues(), kept_values);
  at(memory.kept.words, shape.HasWords(), kept_words);
  at(memory.kept.lost, shape.KeepsFew(), lost);
  at(memory.kept.halves, shape.halves, halves);
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

struct ScanResult {
  DeviceMaxima maxima;
  double update_square = 0;

  bool Finite() const {
    return std::max({maxima.weights, maxima.update, maxima.state}) < 0x7F800000u;
  }
};

// Scans the arrays, and waits.
ScanResult ScanArrays(const DeviceScan& arrays, const StepMemory& memory, DeviceStream& stream) {
  constexpr size_t kRecord = sizeof(ScanRecord) / sizeof(double);
  device_memory::FillBytes(memory.record, 0, sizeof(ScanRecord), stream);
  ScanPass(arrays, memory.squares, &memory.record->maxima, stream);
  std::vector<double>& fetched = *memory.fetched;
  fetched.resize(kRecord + memory.blocks);
  device_memory::CopyOut(memory.record, fetched.data(), fetched.size() * sizeof(double), stream);
  stream.Wait();
  ScanRecord record;
  std::memcpy(static_cast<void*>(&record), fetched.data(), sizeof(record));
  return {record.maxima, Total(std::span<const double>(fetched).subspan(kRecord))};
}

// Waits, and returns the totals of a step.
StepTotals FetchTotals(const StepMemory& memory, DeviceStream& stream) {
  StepTotals totals;
  device_memory::CopyOut(memory.totals.totals, &totals, sizeof(totals), stream);
  stream.Wait();
  return totals;
}

StepSums SumsOf(const StepTotals& totals) {
  StepSums sums;
  sums.square = totals.sums[1];
  sums.projection = totals.sums[2];
  sums.moved = totals.moved;
  sums.saturated = totals.saturated;
  return sums;
}

void KeepWeights(const DeviceStep& step, DeviceStream& stream) {
  if (step.new_weights == step.weights) return;
  device_memory::CopyWithin(step.weights, step.new_weights, step.n * sizeof(float), stream);
}

// Takes the matched step of all weights and fetches its sums into `sums`, which stay zero if
// nothing moved.
UpdateOutcome TakeMatched(const ScanResult& scan,
                          UpdateJob& job,
                          DeviceStep& step,
                          const StepMemory& memory,
                          StepSums& sums,
                          DeviceStream& stream) {
  const MatchedProblem problem = MatchedProblemOf(job, scan.update_square);
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
  MatchedPass(step, low, outcome.alpha, decision, memory.totals, stream);
  sums = SumsOf(FetchTotals(memory, stream));
  return outcome;
}

DeviceStep StepOf(const UpdateJob& job,
                  const WeightUpdate& update,
                  UpdateState& state,
                  MatrixSpan<float> new_weights) {
  DeviceStep step;
  step.kind = job.rule->kind;
  const UpdateTraits& traits = job.method->traits;
  step.rule = MakeStepRule(traits.draws ? job.own_plan : job.plan);
  if (traits.compensates) step.own = MakeStepRule(job.own_plan);
  step.largest = job.largest;
  step.limit = static_cast<double>(job.largest);
  step.weights = update.weights.data;
  step.update = update.update.data;
  step.new_weights = new_weights.data;
  step.values = state.values.View().data;
  step.words = state.words.View().data;
  step.n = new_weights.Elements();
  step.learning_rate = update.learning_rate;
  step.random = job.random;
  return step;
}

// The result of a step that is not taken.
UpdateOutcome Refused(bool finite, float idle_alpha) {
  if (!finite) return {.status = UpdateStatus::kNonfinite};
  return {.status = UpdateStatus::kZeroUpdate, .alpha = idle_alpha};
}

// Takes the step of a rule that searches, once a scan has told that there is one.
UpdateOutcome SearchAndTake(UpdateJob& job,
                            DeviceStep& step,
                            const StepMemory& memory,
                            DeviceStream& stream) {
  const DeviceScan arrays{step.weights, step.update, step.values, step.words, step.n};
  const ScanResult scan = ScanArrays(arrays, memory, stream);
  if (!scan.Finite() || scan.maxima.update == 0 || step.learning_rate == 0) {
    KeepWeights(step, stream);
    stream.Wait();
    return Refused(scan.Finite(), 0);
  }
  job.absmax_weight = std::bit_cast<float>(scan.maxima.weights);
  job.absmax_update = std::bit_cast<float>(scan.maxima.update);
  StepSums sums;
  const UpdateOutcome found = TakeMatched(scan, job, step, memory, sums, stream);
  return CompleteOutcome(step.kind, step.learning_rate, sums, scan.update_square, found);
}

// Takes the step of a rule that treats each weight by itself, and takes it back if there should have
// been none: that way the weights are read only once.
UpdateOutcome TakeOrRestore(DeviceStep& step, const StepMemory& memory, DeviceStream& stream) {
  step.kept = memory.kept;
  ElementwisePass(step, memory.totals, stream);
  const StepTotals totals = FetchTotals(memory, stream);
  const double update_square = totals.sums[0];
  const bool finite = totals.not_finite == 0 && std::isfinite(update_square);
  if (!finite || update_square == 0 || step.learning_rate == 0) {
    RestorePass(step, stream);
    stream.Wait();
    return Refused(finite, step.learning_rate);
  }
  UpdateOutcome outcome;
  outcome.alpha = step.learning_rate;
  return CompleteOutcome(step.kind, step.learning_rate, SumsOf(totals), update_square, outcome);
}

}  // namespace

UpdateOutcome ApplyUpdateOnDevice(const UpdateRule& rule,
                                  const WeightUpdate& update,
                                  RandomStream random,
                                  UpdateState& state,
                                  MatrixSpan<float> new_weights) {
  const DefaultFloatEnvironment environment;
  UpdateJob job = MakeUpdateJob(rule, update, random);
  const UpdateTraits& traits = job.method->traits;
  const float idle_alpha = traits.searches ? 0 : update.learning_rate;
  const size_t n = new_weights.Elements();
  if (n == 0) return {.status = UpdateStatus::kZeroUpdate, .alpha = idle_alpha};
  DeviceContext& context = new_weights.place.Context();
  DeviceStream& stream = context.stream();
  DeviceStep step = StepOf(job, update, state, new_weights);
  const bool decays = update.weight_decay != 0;
  const bool in_place = step.new_weights == step.weights;
  const bool halves = traits.compensates && job.own_plan.format.mantissa_bits <= 7;
  const StepShape shape{traits, n, decays, in_place, halves};
  const StepMemory memory = Arrange(shape, context.Get<UpdateScratch>());
  if (decays) {  // a number that is not finite makes the update so, too
    const DeviceScan arrays{step.weights, step.update, step.values, step.words, n};
    DecayPass(arrays, traits.compensates, update.weight_decay, memory.decayed, stream);
    step.update = memory.decayed;
  }
  return shape.Matched() ? SearchAndTake(job, step, memory, stream)
                         : TakeOrRestore(step, memory, stream);
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
