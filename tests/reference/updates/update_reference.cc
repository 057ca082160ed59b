#include "tests/reference/updates/update_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "tests/reference/updates/update_exact.h"

namespace update_reference {
namespace {

using numsim::Granularity;
using numsim::UpdateKind;
using numsim::UpdateOutcome;
using numsim::UpdateRule;
using numsim::UpdateStatus;

constexpr float kSplitLimit = 0x1.fefffep127f;  // the last float32 below the overflow of bf16

// Consecutive elements that share a target, an alpha or a scale.
struct Group {
  const UpdateRule* rule = nullptr;
  const Storage* storage = nullptr;
  const Storage* compensation = nullptr;
  float learning_rate = 0, weight_decay = 0;
  std::vector<float> weights, update;
  // State, where the rule has it: read, then overwritten.
  std::vector<float> values;
  std::vector<uint16_t> words;
  float scale = 1;
  std::vector<uint32_t> random_words;
  std::vector<float> new_weights;

  size_t size() const { return weights.size(); }
};

const Storage& Fp16() { return StorageOf("fp16"); }

// The weight as well as the rule knows it.
ExactNumber Known(const Group& g, size_t i) {
  switch (g.rule->kind) {
    case UpdateKind::kMasterFp32:
      return Exact(g.values[i]);
    case UpdateKind::kMasterFp16Scaled:
      return Product(Exact(g.scale), Exact(Fp16().ValueOf(g.words[i])));
    case UpdateKind::kSplitMaster:
      return Exact(Join(g.weights[i], g.words[i]));
    case UpdateKind::kKahan:
      return Sum(Exact(g.weights[i]), Exact(g.values[i]));
    default:
      return Exact(g.weights[i]);
  }
}

void DecayUpdate(Group& g) {
  if (g.weight_decay == 0) return;
  for (size_t i = 0; i < g.size(); ++i) {
    const ExactNumber decay = Product(Exact(g.weight_decay), Known(g, i));
    g.update[i] = ToF32(Exact(ToF64(Difference(Exact(g.update[i]), decay))));
  }
}

ExactNumber ExactStep(const Group& g, size_t i) {
  return Product(Exact(g.learning_rate), Exact(g.update[i]));
}

// fl32(base + fl32(factor u)).
float FloatSum(float base, float factor, float update) {
  const float product = ToF32(Product(Exact(factor), Exact(update)));
  return ToF32(Sum(Exact(base), Exact(product)));
}

void MasterFp16Scaled(Group& g) {
  std::vector<double> wanted;
  float absmax = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    wanted.push_back(ToF64(Sum(Known(g, i), ExactStep(g, i))));
    absmax = std::max(absmax, ToF32(Exact(std::fabs(wanted[i]))));
  }
  g.scale = Fp16Scale(absmax);
  for (size_t i = 0; i < g.size(); ++i) {
    ExactNumber quotient = Exact(wanted[i]);
    quotient.exponent -= std::ilogb(g.scale);
    g.words[i] = static_cast<uint16_t>(Fp16().NearestCode(quotient, oracle::Policy::kSaturate));
    g.new_weights[i] = g.storage->Nearest(Known(g, i));
  }
}

void Kahan(Group& g, size_t i) {
  const double y = ToF64(Sum(Exact(g.values[i]), ExactStep(g, i)));
  g.new_weights[i] = g.storage->Nearest(Sum(Exact(g.weights[i]), Exact(y)));
  const double moved = ToF64(Difference(Exact(g.new_weights[i]), Exact(g.weights[i])));
  g.values[i] = g.compensation->Nearest(Exact(ToF64(Difference(Exact(y), Exact(moved)))));
}

void SplitMaster(Group& g, size_t i) {
  const float m = FloatSum(Join(g.weights[i], g.words[i]), g.learning_rate, g.update[i]);
  const Halves halves = Split(std::clamp(m, -kSplitLimit, kSplitLimit));
  g.new_weights[i] = halves.weight;
  g.words[i] = halves.remainder;
}

void ElementStep(Group& g, size_t i) {
  const float w = g.weights[i];
  switch (g.rule->kind) {
    case UpdateKind::kNaive:
      g.new_weights[i] = g.storage->Nearest(Exact(FloatSum(w, g.learning_rate, g.update[i])));
      return;
    case UpdateKind::kStochastic:
      g.new_weights[i] = g.storage->Stochastic(
          Sum(Exact(w), ExactStep(g, i)), g.rule->random_bits, g.random_words[i]);
      return;
    case UpdateKind::kMasterFp32:
      g.values[i] = std::clamp(FloatSum(g.values[i], g.learning_rate, g.update[i]),
                               -std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::max());
      g.new_weights[i] = g.storage->Nearest(Exact(g.values[i]));
      return;
    case UpdateKind::kSplitMaster:
      SplitMaster(g, i);
      return;
    case UpdateKind::kKahan:
      Kahan(g, i);
      return;
    default:
      return;
  }
}

// The sum of a_i b_i: exact, then rounded; NaN or infinity by IEEE 754.
template <typename A, typename B>
double SumOfProducts(size_t n, const A& a, const B& b) {
  ExactNumber sum;
  for (size_t i = 0; i < n; ++i) sum = Sum(sum, Product(Exact(a(i)), Exact(b(i))));
  return ToF64(sum);
}

double UpdateSquare(const Group& g) {
  const auto u = [&](size_t i) { return static_cast<double>(g.update[i]); };
  return SumOfProducts(g.size(), u, u);
}

// `actual` of the note.
double NoteActual(const Group& g) {
  const auto step = [&](size_t i) {
    const float difference = ToF32(Difference(Exact(g.new_weights[i]), Exact(g.weights[i])));
    return static_cast<double>(g.storage->NearestNonsaturating(Exact(difference)));
  };
  return SumOfProducts(g.size(), step, step);
}

void NoteSearch(Group& g, UpdateOutcome& outcome) {
  float low = 0, high = 1;
  outcome.matched_target = ToF64(Product(Exact(g.learning_rate), Exact(UpdateSquare(g))));
  outcome.status = UpdateStatus::kNotConverged;
  while (outcome.passes < g.rule->iterations) {
    ++outcome.passes;
    outcome.alpha = (low + high) / 2;
    for (size_t i = 0; i < g.size(); ++i) {
      g.new_weights[i] = g.storage->NearestNonsaturating(
          Exact(FloatSum(g.weights[i], outcome.alpha, g.update[i])));
    }
    outcome.matched = NoteActual(g);
    const double target = outcome.matched_target;
    if (std::fabs(outcome.matched - target) / target < g.rule->tolerance) {
      outcome.status = UpdateStatus::kOk;
      return;
    }
    (outcome.matched < target ? low : high) = outcome.alpha;
  }
}

bool IsZeroUpdate(const Group& g) {
  return g.learning_rate == 0 ||
         std::all_of(g.update.begin(), g.update.end(), [](float u) { return u == 0; });
}

bool AllFinite(const std::vector<float>& x) {
  return std::all_of(x.begin(), x.end(), [](float v) { return std::isfinite(v); });
}

bool IsNonfinite(const Group& g) {
  for (size_t i = 0; i < g.size(); ++i) {
    if (Known(g, i).kind != oracle::Real::Kind::kFinite) return true;
  }
  return !AllFinite(g.weights) || !AllFinite(g.update);
}

bool IsMaster(UpdateKind kind) {
  return kind == UpdateKind::kMasterFp32 || kind == UpdateKind::kMasterFp16Scaled ||
         kind == UpdateKind::kSplitMaster;
}

// The master after the step.
ExactNumber NewKnown(const Group& g, size_t i) {
  if (g.rule->kind == UpdateKind::kSplitMaster) return Exact(Join(g.new_weights[i], g.words[i]));
  return Known(g, i);
}

void Measure(const Group& g, UpdateOutcome& outcome) {
  const double lr = g.learning_rate;
  const auto u = [&](size_t i) { return static_cast<double>(g.update[i]); };
  const auto step = [&](size_t i) {
    return static_cast<double>(g.new_weights[i]) - static_cast<double>(g.weights[i]);
  };
  const double square = UpdateSquare(g);
  outcome.achieved_norm = std::sqrt(SumOfProducts(g.size(), step, step));
  outcome.target_norm = lr * std::sqrt(square);
  outcome.achieved_projection = SumOfProducts(g.size(), step, u);
  outcome.target_projection = lr * square;
  for (size_t i = 0; i < g.size(); ++i) {
    outcome.moved += g.new_weights[i] != g.weights[i];
    // A master after the step is what was wanted.
    const ExactNumber wanted =
        IsMaster(g.rule->kind)
            ? NewKnown(g, i)
            : Sum(Exact(g.weights[i]), Product(Exact(outcome.alpha), Exact(g.update[i])));
    outcome.saturated += std::fabs(ToF64(wanted)) > g.storage->MaxFinite();
  }
}

UpdateStatus Worse(UpdateStatus a, UpdateStatus b) { return std::max(a, b); }

UpdateOutcome TakeGroupStep(Group& g) {
  const UpdateKind kind = g.rule->kind;
  UpdateOutcome outcome;
  g.new_weights = g.weights;
  if (IsZeroUpdate(g)) {
    outcome.status = UpdateStatus::kZeroUpdate;
    return outcome;
  }
  outcome.alpha = g.learning_rate;
  if (kind == UpdateKind::kNoteAsPrinted) {
    NoteSearch(g, outcome);
  } else if (kind == UpdateKind::kMasterFp16Scaled) {
    MasterFp16Scaled(g);
  } else {
    for (size_t i = 0; i < g.size(); ++i) ElementStep(g, i);
  }
  Measure(g, outcome);
  const bool tells_below = kind == UpdateKind::kNaive || kind == UpdateKind::kNoteAsPrinted;
  if (tells_below && outcome.moved == 0) {
    outcome.status = Worse(outcome.status, UpdateStatus::kBelowMinStep);
  }
  if (outcome.saturated > 0) outcome.status = Worse(outcome.status, UpdateStatus::kSaturated);
  if (!AllFinite(g.new_weights)) outcome.status = Worse(outcome.status, UpdateStatus::kNonfinite);
  return outcome;
}

bool IsScoped(UpdateKind kind) {
  return kind == UpdateKind::kNoteAsPrinted || kind == UpdateKind::kMasterFp16Scaled;
}

// First elements of the groups, and the number of elements.
std::vector<size_t> Boundaries(const UpdateRule& rule, size_t rows, size_t cols) {
  std::vector<size_t> first = {0};
  const Granularity granularity =
      IsScoped(rule.kind) ? rule.scope.granularity : Granularity::kTensor;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t col = 0; col < cols; ++col) {
      const bool starts = (granularity == Granularity::kRow && col == 0) ||
                          (granularity == Granularity::kBlock && col % rule.scope.block == 0);
      if (starts && row + col > 0) first.push_back(row * cols + col);
    }
  }
  first.push_back(rows * cols);
  return first;
}

template <typename T>
std::vector<T> Part(const std::vector<T>& all, size_t begin, size_t end) {
  if (all.empty()) return {};
  return {all.begin() + static_cast<ptrdiff_t>(begin), all.begin() + static_cast<ptrdiff_t>(end)};
}

template <typename T>
void PutPart(const std::vector<T>& part, size_t begin, std::vector<T>& all) {
  if (part.empty()) return;
  std::copy(part.begin(), part.end(), all.begin() + static_cast<ptrdiff_t>(begin));
}

// The factor of all groups that were searched, NaN if they have several.
float CommonAlpha(const std::vector<UpdateOutcome>& groups) {
  std::optional<float> common;
  for (const UpdateOutcome& g : groups) {
    if (g.status == UpdateStatus::kZeroUpdate) continue;
    if (common && *common != g.alpha) return std::numeric_limits<float>::quiet_NaN();
    common = g.alpha;
  }
  return common.value_or(0);
}

// Combines the outcomes of several groups.
UpdateOutcome Total(const std::vector<UpdateOutcome>& groups, bool searches, float learning_rate) {
  if (groups.size() == 1) return groups[0];
  UpdateOutcome all;
  all.alpha = learning_rate;
  if (searches) {
    all.alpha = CommonAlpha(groups);
    all.matched = all.matched_target = std::numeric_limits<double>::quiet_NaN();
  }
  bool zero = true;
  double achieved_square = 0, target_square = 0;
  for (const UpdateOutcome& g : groups) {
    // A group of zeros among others does not count.
    zero = zero && g.status == UpdateStatus::kZeroUpdate;
    if (g.status != UpdateStatus::kZeroUpdate) all.status = Worse(all.status, g.status);
    all.moved += g.moved;
    all.saturated += g.saturated;
    achieved_square += g.achieved_norm * g.achieved_norm;
    target_square += g.target_norm * g.target_norm;
    all.achieved_projection += g.achieved_projection;
    all.target_projection += g.target_projection;
    all.passes = std::max(all.passes, g.passes);
  }
  if (zero) all.status = UpdateStatus::kZeroUpdate;
  all.achieved_norm = std::sqrt(achieved_square);
  all.target_norm = std::sqrt(target_square);
  return all;
}

std::vector<Group> MakeGroups(const UpdateRule& rule,
                              std::string_view format,
                              const numsim::WeightUpdate& step,
                              const State& state,
                              const std::vector<size_t>& bounds) {
  const std::string_view compensation = rule.compensation ? rule.compensation->name : format;
  std::vector<Group> groups;
  for (size_t k = 0; k + 1 < bounds.size(); ++k) {
    Group& g = groups.emplace_back();
    const size_t begin = bounds[k], end = bounds[k + 1];
    g.rule = &rule;
    g.storage = &StorageOf(format);
    g.compensation = &StorageOf(compensation);
    g.learning_rate = step.learning_rate;
    g.weight_decay = step.weight_decay;
    g.weights.assign(step.weights.data + begin, step.weights.data + end);
    g.update.assign(step.update.data + begin, step.update.data + end);
    g.values = Part(state.values, begin, end);
    g.words = Part(state.words, begin, end);
    if (!state.scales.empty()) g.scale = state.scales[k];
  }
  return groups;
}

}  // namespace

Result TakeStep(const UpdateRule& rule,
                std::string_view format,
                const numsim::WeightUpdate& step,
                numsim::RandomStream random,
                const State& state) {
  const std::span<const float> weights = step.weights.Span();
  Result result{{weights.begin(), weights.end()}, state, {}, {}};
  const std::vector<size_t> bounds = Boundaries(rule, step.weights.rows, step.weights.cols);
  std::vector<Group> groups = MakeGroups(rule, format, step, state, bounds);
  for (Group& g : groups) DecayUpdate(g);
  if (std::any_of(groups.begin(), groups.end(), IsNonfinite)) {
    result.outcome.status = UpdateStatus::kNonfinite;
    result.groups.assign(groups.size(), result.outcome);
    return result;
  }
  for (size_t k = 0; k < groups.size(); ++k) {
    Group& g = groups[k];
    for (size_t i = bounds[k]; i < bounds[k + 1]; ++i) {
      g.random_words.push_back(numsim::RandomBits(random, i, rule.random_bits));
    }
    result.groups.push_back(TakeGroupStep(g));
    PutPart(g.new_weights, bounds[k], result.weights);
    PutPart(g.values, bounds[k], result.state.values);
    PutPart(g.words, bounds[k], result.state.words);
    if (!state.scales.empty()) result.state.scales[k] = g.scale;
  }
  result.outcome =
      Total(result.groups, rule.kind == UpdateKind::kNoteAsPrinted, step.learning_rate);
  return result;
}

}  // namespace update_reference
