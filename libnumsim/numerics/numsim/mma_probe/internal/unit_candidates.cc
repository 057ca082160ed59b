#include "numsim/mma_probe/internal/unit_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>

#include "numsim/base/parallel.h"
#include "numsim/formats/named_formats.h"
#include "numsim/random/streams.h"
#include "numsim/rounding/unrounded.h"

namespace numsim {
namespace {

using Modes = std::vector<AccumulationMode>;

constexpr int kFirstInner = 64;     // maximum of the first round; wider steps are tried afterwards
constexpr int kPairGroup = 32;      // group size of ProductOrder::kBytePairs
constexpr int kWideStep = 16;       // steps beyond kFirstInner are multiples of this
constexpr size_t kTrials = 1500;    // dot products that every survivor of a round must match
constexpr size_t kSampleDots = 24;  // dot products to search for the closest mode: the first pass
constexpr size_t kFinalDots = 1000;
constexpr size_t kFinalModes = 20;  // best modes of the first pass, compared on kFinalDots
constexpr uint64_t kOrderSeed = 0x4F52444552;

uint32_t SumBits(const AccumulationMode& mode, const DotOperand& a, const DotOperand& b) {
  static const EncodePlan plan = MakeEncodePlan(kFp32);
  const Unrounded sum = Accumulate(mode, a, b);
  if (sum.kind == NumberKind::kNan) return NanResult(mode);
  return EncodeUnrounded(plan, sum).code;
}

// One dot product of an answer.
struct Trial {
  const ProbeAnswer* answer;
  size_t dot;
};

// Returns dot products in an order that mixes all kinds, so that a wrong mode fails early.
std::vector<Trial> Mixed(const std::vector<ProbeAnswer>& answers, size_t most_inner) {
  std::vector<std::pair<uint32_t, Trial>> keyed;
  for (const ProbeAnswer& answer : answers) {
    if (answer.block.inner > most_inner) continue;
    for (size_t d = 0; d < answer.block.Dots(); ++d) {
      // Crafted dot products come early.
      const uint32_t word = RandomWord({kOrderSeed, 0}, keyed.size());
      keyed.push_back({answer.block.paired ? word / 16 : word, {&answer, d}});
    }
  }
  std::stable_sort(
      keyed.begin(), keyed.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  keyed.resize(std::min(keyed.size(), kTrials));
  std::vector<Trial> trials;
  trials.reserve(keyed.size());
  for (const auto& [key, trial] : keyed) trials.push_back(trial);
  return trials;
}

bool AgreesOnAll(const AccumulationMode& mode,
                 const TensorCore& unit,
                 std::span<const Trial> trials) {
  return std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return Agrees(mode, unit, *trial.answer, trial.dot);
  });
}

Modes Survivors(const Modes& modes, const TensorCore& unit, std::span<const Trial> trials) {
  std::vector<uint8_t> fits(modes.size(), 0);
  ParallelTasks(modes.size(), [&](size_t i) { fits[i] = AgreesOnAll(modes[i], unit, trials); });
  Modes left;
  for (size_t i = 0; i < modes.size(); ++i) {
    if (fits[i] != 0) left.push_back(modes[i]);
  }
  return left;
}

// Returns the modes without parameters and those of AccumulationModeTable().
Modes NamedModes() {
  Modes modes;
  for (const char* text : {"exact", "fp32", "fp64"}) modes.push_back(ParseAccumulationMode(text));
  for (const FormatSpec& format : {kFp32, kTf32, kBf16, kFp16}) {
    modes.push_back({.kind = AccumulationKind::kFormat, .format = format});
    modes.push_back({.kind = AccumulationKind::kFormatUnfused, .format = format});
  }
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (!IsBlockScaled(row.mode)) modes.push_back(row.mode);  // a probe has no scales
  }
  return modes;
}

// Adds `mode` with every promotion interval in [from, to) that is a multiple of its chunk.
void AddPromoted(const AccumulationMode& mode, int from, int to, Modes& modes) {
  const int chunk = mode.chunk;
  for (int promote = (from + chunk - 1) / chunk * chunk; promote < to; promote += chunk) {
    modes.push_back(mode);
    modes.back().promote = promote;
  }
}

// Returns the modes with parameters that differ within `inner` products. A step or interval of
// `inner` represents all longer ones.
Modes Families(int inner) {
  Modes modes;
  for (int chunk = 1; chunk <= inner; ++chunk) {
    modes.push_back({.kind = AccumulationKind::kChunked, .chunk = chunk});
    modes.push_back({.kind = AccumulationKind::kExactChunks, .chunk = chunk});
    if (std::has_single_bit(static_cast<unsigned>(chunk))) {
      modes.push_back({.kind = AccumulationKind::kFlushedPairs, .chunk = chunk});
    }
    for (int f = 1; f <= AccumulationMode::kMaxFractionBits; ++f) {
      AccumulationMode mode{.kind = AccumulationKind::kAligned, .chunk = chunk, .fraction_bits = f};
      for (const ProductOrder order : {ProductOrder::kAscending, ProductOrder::kBytePairs}) {
        if (order == ProductOrder::kBytePairs && (kPairGroup % chunk != 0 || chunk == kPairGroup)) {
          continue;
        }
        mode.order = order;
        modes.push_back(mode);
        AddPromoted(mode, chunk, inner, modes);
      }
      mode = {.kind = AccumulationKind::kAlignedDown, .chunk = chunk, .fraction_bits = f};
      modes.push_back(mode);
      mode.order = ProductOrder::kEvenOdd;
      if (chunk % 2 == 0) modes.push_back(mode);
    }
  }
  return modes;
}

// Adds the modes for up to `most` products that `mode`, a survivor at `inner` products, represents.
void Expand(const AccumulationMode& mode, int inner, int most, Modes& modes) {
  modes.push_back(mode);
  if (mode.kind == AccumulationKind::kAligned && mode.promote == 0) {
    AddPromoted(mode, std::max(mode.chunk, inner), most, modes);
  }
  const bool steps = mode.chunk == inner && mode.kind != AccumulationKind::kFlushedPairs;
  if (!steps) return;
  const int step = mode.kind == AccumulationKind::kChunked ? 1 : kWideStep;
  for (int chunk = (inner / step + 1) * step; chunk <= most; chunk += step) {
    AccumulationMode wider = mode;
    wider.chunk = chunk;
    modes.push_back(wider);
    if (mode.kind == AccumulationKind::kAligned) AddPromoted(wider, chunk, most, modes);
  }
}

// Returns true if AccumulationModeTable() lists the mode for the operands of `unit`.
bool IsListed(const AccumulationMode& mode, const TensorCore& unit) {
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (row.mode == mode && IsFor(row, unit.a)) return true;
  }
  return false;
}

// Returns the sort key of a mode; smaller keys are reported first.
auto Rank(const AccumulationMode& mode, const TensorCore& unit) {
  const bool parameters = mode.chunk != 0;
  return std::tuple(!IsListed(mode, unit),
                    parameters,
                    mode.kind,
                    mode.fraction_bits,
                    mode.promote,
                    mode.order,
                    -mode.chunk);
}

size_t Count(const AccumulationMode& mode, const TensorCore& unit, std::span<const Trial> trials) {
  return static_cast<size_t>(std::count_if(trials.begin(), trials.end(), [&](const Trial& trial) {
    return Agrees(mode, unit, *trial.answer, trial.dot);
  }));
}

// Returns the `keep` modes that agree most often, the best one first.
Modes MostAgreeing(const Modes& modes,
                   const TensorCore& unit,
                   std::span<const Trial> trials,
                   size_t keep) {
  std::vector<size_t> counts(modes.size());
  ParallelTasks(modes.size(), [&](size_t i) { counts[i] = Count(modes[i], unit, trials); });
  std::vector<size_t> order(modes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(
      order.begin(), order.end(), [&](size_t x, size_t y) { return counts[x] > counts[y]; });
  Modes best;
  for (size_t i = 0; i < std::min(keep, order.size()); ++i) best.push_back(modes[order[i]]);
  return best;
}

// Returns the mode that agrees most often, ignoring modes of `families` with promotion.
AccumulationMode ClosestMode(Modes named,
                             const Modes& families,
                             const TensorCore& unit,
                             std::span<const Trial> trials) {
  for (const AccumulationMode& mode : families) {
    if (mode.promote == 0) named.push_back(mode);
  }
  const auto first = [trials](size_t n) { return trials.first(std::min(n, trials.size())); };
  const Modes best = MostAgreeing(named, unit, first(kSampleDots), kFinalModes);
  return MostAgreeing(best, unit, first(kFinalDots), 1)[0];
}

}  // namespace

bool Agrees(const AccumulationMode& mode,
            const TensorCore& unit,
            const ProbeAnswer& answer,
            size_t d) {
  const float got = answer.Out(d);
  const float expected =
      std::bit_cast<float>(SumBits(mode, {unit.a, answer.block.A(d)}, {unit.b, answer.block.B(d)}));
  if (std::isnan(got) || std::isnan(expected)) return std::isnan(got) && std::isnan(expected);
  return std::bit_cast<uint32_t>(got) == std::bit_cast<uint32_t>(expected);
}

std::vector<AccumulationMode> FittingModes(const TensorCore& unit,
                                           const std::vector<ProbeAnswer>& answers,
                                           AccumulationMode* closest) {
  const int most = static_cast<int>(unit.inner_most);
  const int inner = std::min(kFirstInner, most);
  const std::vector<Trial> narrow = Mixed(answers, static_cast<size_t>(inner));
  const std::vector<Trial> wide = Mixed(answers, unit.inner_most);
  Modes named = NamedModes();
  Modes fits = Survivors(named, unit, wide);
  // If nothing was ever rounded, as with integers, thousands of modes fit; the named ones suffice.
  const auto has = [&fits](const char* text) {
    return std::find(fits.begin(), fits.end(), ParseAccumulationMode(text)) != fits.end();
  };
  const bool enough = has("exact") && has("fp32");
  if (!enough) {
    Modes wider, families = Families(inner);
    for (const AccumulationMode& mode : Survivors(families, unit, narrow)) {
      Expand(mode, inner, most, wider);
    }
    for (const AccumulationMode& mode : Survivors(wider, unit, wide)) fits.push_back(mode);
    if (fits.empty() && closest != nullptr) {
      *closest = ClosestMode(std::move(named), families, unit, narrow);
    }
  }
  std::stable_sort(
      fits.begin(), fits.end(), [&](const AccumulationMode& x, const AccumulationMode& y) {
        return Rank(x, unit) < Rank(y, unit);
      });
  fits.erase(std::unique(fits.begin(), fits.end()), fits.end());
  return fits;
}

std::string ModeWithNames(const AccumulationMode& mode) {
  std::string names;
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    if (row.mode == mode) names += fmt::format("{}{}", names.empty() ? "" : ", ", row.name);
  }
  return names.empty() ? DefinitionText(mode) : fmt::format("{} ({})", DefinitionText(mode), names);
}

}  // namespace numsim
