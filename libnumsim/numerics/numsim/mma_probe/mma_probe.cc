#include "numsim/mma_probe/mma_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm.h"
#include "numsim/mma_probe/internal/unit_candidates.h"

namespace numsim {
namespace {

constexpr uint64_t kDotsOfBlock = kProbeRows * kProbeRows;
constexpr uint64_t kBlocksToFit = 2;  // per kind and inner dimension, tried on all candidates
constexpr size_t kFittedInner = 64;
constexpr size_t kMostModes = 4;  // largest number of modes in the final comparison

// Returns the inner dimensions to probe: one step, a few steps, and the maximum.
std::vector<size_t> InnerDimensions(const TensorCore& unit) {
  const size_t step = unit.inner_step;
  const size_t middle = std::min((kFittedInner + step - 1) / step * step, unit.inner_most);
  std::vector<size_t> all = {step, middle, unit.inner_most};
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<ProbeAnswer> AnswersToFit(const TensorCore& unit) {
  std::vector<ProbeAnswer> answers;
  for (const std::string& kind : ProbeKinds(unit.a, unit.b)) {
    for (const size_t inner : InnerDimensions(unit)) {
      for (uint64_t i = 0; i < kBlocksToFit; ++i) {
        answers.push_back(Ask(unit, RandomBlock(kind, unit.a, unit.b, inner, i)));
      }
    }
  }
  return answers;
}

// Returns the number of dot products of `answer` that the accumulation mode reproduces.
uint64_t SameUnder(const AccumulationMode& mode,
                   const TensorCore& unit,
                   const ProbeAnswer& answer) {
  const ProbeBlock& block = answer.block;
  if (block.paired) {
    uint64_t same = 0;
    for (size_t d = 0; d < block.Dots(); ++d) same += Agrees(mode, unit, answer, d) ? 1 : 0;
    return same;
  }
  std::vector<float> expected(kDotsOfBlock);
  Gemm({.format = unit.a, .values = block.a, .rows = kProbeRows, .inner = block.inner},
       {.format = unit.b, .values = block.b, .rows = kProbeRows, .inner = block.inner},
       mode,
       expected);
  uint64_t same = 0;
  for (size_t d = 0; d < block.Dots(); ++d) {
    const float got = answer.Out(d);
    const float right = expected[block.RowA(d) * kProbeRows + block.RowB(d)];
    const bool nan = std::isnan(got) && std::isnan(right);
    same += nan || std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(right) ? 1 : 0;
  }
  return same;
}

// Compares accumulation modes with one answer after the other. Modes that differ are removed, but
// the last one is kept as the closest. Counts the agreement of the first mode.
class Comparison {
 public:
  Comparison(const TensorCore& unit,
             std::vector<AccumulationMode> modes,
             const AccumulationMode& closest)
      : unit_(unit), modes_(std::move(modes)), closest_(closest) {
    if (modes_.size() > kMostModes) modes_.resize(kMostModes);
  }

  void Add(const ProbeAnswer& answer) {
    ProbeAgreement& count = counts_[answer.block.kind];
    count.kind = answer.block.kind;
    const uint64_t dots = answer.block.Dots();
    count.compared += dots;
    std::vector<AccumulationMode> left;
    for (const AccumulationMode& mode : modes_) {
      if (SameUnder(mode, unit_, answer) == dots) left.push_back(mode);
    }
    if (!modes_.empty() && left.empty()) closest_ = modes_[0];
    modes_ = std::move(left);
    count.same += modes_.empty() ? SameUnder(closest_, unit_, answer) : dots;
  }

  const std::vector<AccumulationMode>& modes() const { return modes_; }
  const AccumulationMode& Best() const { return modes_.empty() ? closest_ : modes_[0]; }
  std::vector<ProbeAgreement> Counts() const {
    std::vector<ProbeAgreement> all;
    for (const auto& [kind, count] : counts_) all.push_back(count);
    return all;
  }

 private:
  const TensorCore& unit_;
  std::vector<AccumulationMode> modes_;
  AccumulationMode closest_;
  std::map<std::string, ProbeAgreement> counts_;
};

}  // namespace

uint64_t MmaProbe::Same() const {
  uint64_t sum = 0;
  for (const ProbeAgreement& count : agreement) sum += count.same;
  return sum;
}

uint64_t MmaProbe::Compared() const {
  uint64_t sum = 0;
  for (const ProbeAgreement& count : agreement) sum += count.compared;
  return sum;
}

MmaProbe ProbeUnit(const TensorCore& unit, const ProbeOptions& options) {
  MmaProbe probe;
  probe.unit = unit.name;
  probe.a = unit.a;
  probe.b = unit.b;
  std::vector<ProbeAnswer> answers;
  probe.seen = Observe(unit, answers);
  for (ProbeAnswer& answer : AnswersToFit(unit)) answers.push_back(std::move(answer));
  std::vector<AccumulationMode> fits = FittingModes(unit, answers, &probe.closest);
  Comparison comparison(unit, std::move(fits), probe.closest);
  for (const ProbeAnswer& answer : answers) comparison.Add(answer);
  const std::vector<std::string> kinds = ProbeKinds(unit.a, unit.b);
  const std::vector<size_t> inners = InnerDimensions(unit);
  const uint64_t blocks = options.products / kDotsOfBlock;
  for (uint64_t i = 0; i < blocks; ++i) {
    const std::string& kind = kinds[i % kinds.size()];
    const size_t inner = inners[i / kinds.size() % inners.size()];
    comparison.Add(Ask(unit, RandomBlock(kind, unit.a, unit.b, inner, kBlocksToFit + i)));
  }
  probe.modes = comparison.modes();
  probe.closest = comparison.Best();
  probe.agreement = comparison.Counts();
  const uint32_t nan = NanResult(probe.closest);
  probe.nan_bits_as_mode = std::all_of(
      probe.seen.nans.begin(), probe.seen.nans.end(), [nan](uint32_t bits) { return bits == nan; });
  return probe;
}

std::string AgreementText(const MmaProbe& probe) {
  return fmt::format("{} of {}", probe.Same(), probe.Compared());
}

std::string FoundText(const MmaProbe& probe) {
  if (!probe.modes.empty()) return ModeWithNames(probe.modes[0]);
  return fmt::format("no rule; closest: {}", ModeWithNames(probe.closest));
}

std::vector<std::string> ProbeLines(const MmaProbe& probe) {
  std::vector<std::string> lines = ObservationLines(probe.seen);
  for (const ProbeAgreement& count : probe.agreement) {
    lines.push_back(
        fmt::format("{} operands: {} of {} products", count.kind, count.same, count.compared));
  }
  std::string others;
  for (size_t i = 1; i < probe.modes.size(); ++i) {
    others += fmt::format("{}{}", i == 1 ? "" : "; ", ModeWithNames(probe.modes[i]));
  }
  if (!others.empty()) {
    const char* more = probe.modes.size() == kMostModes ? " and perhaps more" : "";
    lines.push_back(fmt::format("not told apart on these operands: {}{}", others, more));
  }
  if (!probe.nan_bits_as_mode) {
    lines.push_back(
        fmt::format("NaN results of the rule would be {:08X}", NanResult(probe.closest)));
  }
  return lines;
}

}  // namespace numsim
