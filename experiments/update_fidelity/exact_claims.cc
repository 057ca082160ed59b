// The claims of [Seed003] about single steps that exact arithmetic decides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/shared/special_values.h"
#include "experiments/update_fidelity/cliff.h"
#include "experiments/update_fidelity/panels.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/format_table.h"
#include "numsim/rounding/encode.h"

namespace numsim::experiments::update_fidelity {
namespace {

constexpr double kClose = 0.1;  // a norm or projection ratio within 10 % of 1 is as requested

// Returns the searches of the note, at rates at which lr and sqrt(lr) differ, that met their own
// target.
Frame MetTarget(const study::Results& results) {
  const double rtol = results.settings.GetDouble("rtol", 0, 1);
  return results.Of("fidelity").Where([&](const Frame& row) {
    return ParseUpdateRule(row.Text("rule")).kind == UpdateKind::kNoteAsPrinted &&
           row.Number("lr") <= 0.5 && std::abs(row.Number("own_target_ratio") - 1) < rtol;
  });
}

size_t CountOf(const Frame& frame, const IsGood& good) { return frame.Where(good).Size(); }

constexpr const char* kNoSearch = "no search of note-as-printed at lr <= 0.5 met its own target";

Evidence RootRate(const study::Results& results) {
  const Frame met = MetTarget(results);
  if (met.Empty()) return NotTestedBecause(kNoSearch);
  const double rtol = results.settings.GetDouble("rtol", 0, 1);
  std::vector<double> ratios;
  met.ForEach([&](const Frame& row) {
    ratios.push_back(row.Number("norm_ratio") * std::sqrt(row.Number("lr")));
  });
  Evidence evidence;
  evidence.exact = std::all_of(
      ratios.begin(), ratios.end(), [&](double ratio) { return std::abs(ratio - 1) <= rtol; });
  evidence.measured = fmt::format(
      "{} searches at lr <= 0.5 met their own target; sqrt(lr) ||step|| / (lr ||u||) is {}.",
      met.Size(),
      RangeText(ratios));
  return evidence;
}

Evidence TargetNorm(const study::Results& results) {
  const Frame met = MetTarget(results);
  if (met.Empty()) return NotTestedBecause(kNoSearch);
  const size_t right =
      CountOf(met, [](const Frame& row) { return row.Number("norm_error") <= kClose; });
  Evidence evidence;
  evidence.exact = right == met.Size();
  evidence.measured =
      fmt::format("{} of {} searches that met their own target.", right, met.Size());
  return evidence;
}

// For searches of `kind` at lr <= 1e-9.
Evidence SmallRates(const study::Results& results, UpdateKind kind) {
  size_t tried = 0, own = 0, close = 0;
  std::string text;
  const auto has_norm = [](const Frame& row) { return row.Number("norm_error") <= kClose; };
  const auto has_own = [](const Frame& row) {
    return std::abs(row.Number("own_target_ratio") - 1) <= 0.01;
  };
  for (const auto& [name, panel] : PanelsOf(results, kind)) {
    const Frame small = panel.Where([](const Frame& row) { return row.Number("lr") <= 1e-9; });
    tried += small.Size();
    own += CountOf(small, has_own);
    close += CountOf(
        small, [&](const Frame& row) { return has_norm(row) && row.Number("mean_error") <= 1; });
    text += fmt::format("\n  {:<20}  own target to 1 % from lr {:<9}  norm to 10 % from {}",
                        name,
                        RangeText({LeastRate(panel, has_own)}),
                        RangeText({LeastRate(panel, has_norm)}));
  }
  if (tried == 0) return NotTestedBecause("no search at lr <= 1e-9");
  Evidence evidence;
  evidence.exact = close == tried;
  evidence.measured = fmt::format(
      "{} of {} searches at lr <= 1e-9; {} met their own target to 1 %. Smallest rates of the grid "
      "down to which every search does:{}",
      close,
      tried,
      own,
      text);
  return evidence;
}

Evidence PrintedSmallRates(const study::Results& results) {
  return SmallRates(results, UpdateKind::kNoteAsPrinted);
}
Evidence IntendedSmallRates(const study::Results& results) {
  return SmallRates(results, UpdateKind::kNormMatched);
}

int MantissaBits(const Frame& limit) {
  return ParseFormat(limit.Text("format")).spec.mantissa_bits;
}
// The relative error of a threshold that roundings of naive's float32 sum cause.
double SumError(const Frame& limit) { return std::ldexp(1, MantissaBits(limit) - 21); }

// Applies `holds` to rows of naive_limits.
Evidence OfLimits(const Frame& limits, const IsGood& holds) {
  const size_t right = CountOf(limits, holds);
  Evidence evidence;
  evidence.exact = right == limits.Size();
  evidence.measured = fmt::format(
      "{} of {} pairs of arrays. Greatest rate at which nothing moves, min h/|u|, and rate at which "
      "half of the norm is gone:",
      right,
      limits.Size());
  for (const auto& [name, panel] : PanelsOf(limits)) {
    evidence.measured += fmt::format("\n  {:<20}  {:<24}  {:<24}  {}",
                                     name,
                                     RangeText(panel.Numbers("unmoved_lr")),
                                     RangeText(panel.Numbers("least_threshold")),
                                     RangeText(panel.Numbers("half_norm_lr")));
  }
  return evidence;
}

Evidence Threshold(const study::Results&, const Frame& limits) {
  return OfLimits(limits, [](const Frame& row) {
    const double unmoved = row.Number("unmoved_lr"), least = row.Number("least_threshold");
    if (std::isnan(unmoved))
      return least > static_cast<double>(kGreatestRate);  // nothing moves at any rate
    return std::abs(unmoved / least - 1) <= SumError(row);
  });
}

Evidence SameKeyCliff(const study::Results&, const Frame& limits) {
  const Frame without = limits.Where([](const Frame& row) {
    return std::isnan(row.Number("half_norm_lr")) || std::isnan(row.Number("unmoved_lr"));
  });
  if (!without.Empty()) {
    return NotTestedBecause(fmt::format(
        "in {} no rate below 1 is the one at which half of the step's norm is gone, or none is so "
        "small that nothing moves",
        without.Text("format")));
  }
  return OfLimits(limits, [](const Frame& row) {
    const double low = 1 / (std::ldexp(1, MantissaBits(row) + 2) - 1);
    return row.Number("unmoved_lr") >= low * (1 - SumError(row)) &&
           row.Number("half_norm_lr") <= 2 * low;
  });
}

// The steps of all rules at one rate of one pair of arrays, against the bound that rounding to
// nearest sets.
struct Bounded {
  size_t steps = 0, above = 0, lossy = 0, both = 0;

  void Add(const Frame& at_rate) {
    const Frame naive = at_rate.Where("rule", ToString(UpdateKind::kNaive));
    if (naive.Empty()) return;
    const double nearest = std::pow(naive.Number("relative_error"), 2);
    at_rate.ForEach([&](const Frame& row) {
      const double norm = row.Number("norm_ratio"), along = row.Number("projection_ratio");
      if (!std::isfinite(norm) || !std::isfinite(along)) return;
      const double square = norm * norm - 2 * along + 1;
      ++steps;
      above += square >= nearest * (1 - 1e-4) - 1e-9;
      if (nearest <= 0.41) return;
      ++lossy;
      both += std::abs(norm - 1) <= kClose && std::abs(along - 1) <= kClose;
    });
  }
};

Evidence NormOrProjection(const study::Results& results) {
  Bounded all;
  for (const Frame& at_rate : results.Of("fidelity").By({"format", "keys", "seed", "lr"})) {
    all.Add(at_rate);
  }
  if (all.lossy == 0) return NotTestedBecause("naive was not run at rates where it loses the step");
  Evidence evidence;
  evidence.exact = all.above == all.steps;  // then none has both
  evidence.measured = fmt::format(
      "{} of {} steps, of all rules, obey the bound. In {} of them the error of rounding to nearest "
      "is above 0.64; {} of these have both. Where rounding to nearest moves nothing, a step of the "
      "requested norm has at most half of the projection, and a step of the requested projection "
      "at least 1.41 times the norm.",
      all.above,
      all.steps,
      all.lossy,
      all.both);
  return evidence;
}

Evidence WorkedExample(const study::Results&) {
  const FormatSpec format = FindFormat("e4m3fn")->spec;
  const float next = Decode(format, Encode(format, 0.75f) + 1);
  const float rounded = Decode(format, Encode(format, 0.75f + 0.03f));
  Evidence evidence;
  evidence.exact = rounded == 0.75f && next == 0.8125f;
  evidence.measured =
      fmt::format("0.75 + 0.03 rounds to {}; the next value is {}, the midpoint {}.",
                  rounded,
                  next,
                  (0.75f + next) / 2);
  return evidence;
}

}  // namespace

void AddExactEvidence(study::Functions& functions) {
  functions.evidence = {{"root-rate", RootRate},
                        {"target-norm", TargetNorm},
                        {"small-rates-as-printed", PrintedSmallRates},
                        {"small-rates-as-intended", IntendedSmallRates},
                        {"norm-or-projection", NormOrProjection},
                        {"worked-example", WorkedExample}};
  functions.judges = {{"threshold", Threshold}, {"same-key-cliff", SameKeyCliff}};
}

std::string StateText(const study::Results& results) {
  const auto follows = [](const Frame& row) {
    return row.Number("effective_relative_error") <= 0.01;
  };
  std::string text;
  for (const UpdateKind kind : UpdateKinds()) {
    if (!HasState(kind)) continue;
    for (const auto& [name, panel] : PanelsOf(results, kind)) {
      text += fmt::format("\n  {:<20} {:<18}  {} B  from lr {}",
                          name,
                          panel.Text("rule"),
                          StateBytesPerWeight(ParseUpdateRule(panel.Text("rule")),
                                              ParseFormat(panel.Text("format")).spec),
                          RangeText({LeastRate(panel, follows)}));
    }
  }
  if (text.empty()) return "";
  return "Rules with state: bytes of state per parameter, and the smallest rate of the grid down to "
         "which parameters and state together follow lr u to 1 %; the state has a limited "
         "resolution." +
         text + "\n";
}

}  // namespace numsim::experiments::update_fidelity
