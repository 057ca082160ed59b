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

using EvidenceOf = Evidence (*)(const Settings&, const Tables&);

ClaimSpec Exact(const char* name,
                const char* item,
                const char* statement,
                const char* contrast,
                EvidenceOf evidence) {
  ClaimSpec claim;
  claim.id = std::string("update-fidelity/") + name;
  claim.items = {std::string("seed003/") + item};
  claim.statement = statement;
  claim.kind = ClaimKind::kExact;
  claim.contrast = contrast;
  claim.scale = kPapersScale;
  claim.evidence = evidence;
  return claim;
}

// Returns the searches of the note, at rates at which lr and sqrt(lr) differ, that met their own
// target.
Frame MetTarget(const Settings& settings, const Tables& tables) {
  const double rtol = settings.GetDouble("rtol", 0, 1);
  return Frame(tables.at(std::string(kTable))).Where([&](const Frame& row) {
    return ParseUpdateRule(row.Text("rule")).kind == UpdateKind::kNoteAsPrinted &&
           row.Number("lr") <= 0.5 && std::abs(row.Number("own_target_ratio") - 1) < rtol;
  });
}

size_t CountOf(const Frame& frame, const IsGood& good) { return frame.Where(good).Size(); }

constexpr const char* kNoSearch = "no search of note-as-printed at lr <= 0.5 met its own target";

Evidence RootRate(const Settings& settings, const Tables& tables) {
  const Frame met = MetTarget(settings, tables);
  if (met.Empty()) return NotTestedBecause(kNoSearch);
  const double rtol = settings.GetDouble("rtol", 0, 1);
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

Evidence TargetNorm(const Settings& settings, const Tables& tables) {
  const Frame met = MetTarget(settings, tables);
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
Evidence SmallRates(const Tables& tables, UpdateKind kind) {
  size_t tried = 0, own = 0, close = 0;
  std::string text;
  const auto has_norm = [](const Frame& row) { return row.Number("norm_error") <= kClose; };
  const auto has_own = [](const Frame& row) {
    return std::abs(row.Number("own_target_ratio") - 1) <= 0.01;
  };
  for (const auto& [name, panel] : PanelsOf(tables, kind)) {
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

Evidence PrintedSmallRates(const Settings&, const Tables& tables) {
  return SmallRates(tables, UpdateKind::kNoteAsPrinted);
}
Evidence IntendedSmallRates(const Settings&, const Tables& tables) {
  return SmallRates(tables, UpdateKind::kNormMatched);
}

int MantissaBits(const Frame& limit) {
  return ParseFormat(limit.Text("format")).spec.mantissa_bits;
}
// The relative error of a threshold that roundings of naive's float32 sum cause.
double SumError(const Frame& limit) { return std::ldexp(1, MantissaBits(limit) - 21); }

// Applies `holds` to the rows of naive_limits with these keys (empty: all).
Evidence OfLimits(const Tables& tables, std::string_view keys, const IsGood& holds) {
  Frame limits = tables.at(std::string(kLimits));
  if (!keys.empty()) limits = limits.Where("keys", keys);
  if (limits.Empty()) return NotTestedBecause(NaiveWasNotRun(keys));
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

Evidence Threshold(const Settings&, const Tables& tables) {
  return OfLimits(tables, "", [](const Frame& row) {
    const double unmoved = row.Number("unmoved_lr"), least = row.Number("least_threshold");
    if (std::isnan(unmoved))
      return least > static_cast<double>(kGreatestRate);  // nothing moves at any rate
    return std::abs(unmoved / least - 1) <= SumError(row);
  });
}

Evidence SameKeyCliff(const Settings&, const Tables& tables) {
  const Frame without =
      Frame(tables.at(std::string(kLimits))).Where("keys", "same").Where([](const Frame& row) {
        return std::isnan(row.Number("half_norm_lr")) || std::isnan(row.Number("unmoved_lr"));
      });
  if (!without.Empty()) {
    return NotTestedBecause(fmt::format(
        "in {} no rate below 1 is the one at which half of the step's norm is gone, or none is so "
        "small that nothing moves",
        without.Text("format")));
  }
  return OfLimits(tables, "same", [](const Frame& row) {
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

Evidence NormOrProjection(const Settings&, const Tables& tables) {
  Bounded all;
  for (const Frame& at_rate :
       Frame(tables.at(std::string(kTable))).By({"format", "keys", "seed", "lr"})) {
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

Evidence WorkedExample(const Settings&, const Tables&) {
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

std::vector<ClaimSpec> ExactClaims() {
  // clang-format off
  return {
      Exact("root-learning-rate", "algorithm",
            "As printed, the search compares ||step||^2 with lr ||u||^2, so it runs at the learning rate sqrt(lr) (analysis of [Seed003]).",
            "norm of the step over lr ||u||, times sqrt(lr). It holds if this is 1 to within --rtol in each search of note-as-printed at lr <= 0.5 that met its own target", RootRate),
      Exact("target-norm", "algorithm",
            "The update is \"scaled to achieve target norm\": the observed step has the norm that the learning rate asks for.",
            "norm of the step over lr ||u||. It holds if this is 1 to within 10 % in each search of note-as-printed at lr <= 0.5 that met its own target", TargetNorm),
      Exact("small-rates-as-printed", "precision",
            "The search works for learning rates below 1e-9, much smaller than any other method, without increasing the per-parameter error.",
            "note-as-printed at lr <= 1e-9. It holds if each search has the norm lr ||u|| to within 10 % and |mean(step / u) / lr - 1| <= 1, the error of not moving at all", PrintedSmallRates),
      Exact("small-rates-as-intended", "precision",
            "The search works for learning rates below 1e-9, much smaller than any other method, without increasing the per-parameter error.",
            "norm-matched, the search with the target that the text describes, by the same criterion", IntendedSmallRates),
      Exact("norm-or-projection", "collective-precision",
            "No method without extra state can take steps of both the requested norm and the requested projection (analysis of [Seed003]).",
            "Stored parameters step D from value to value, so ||D - lr u|| is at least that of rounding to nearest, e lr ||u||: norm ratio a and projection ratio b have a^2 - 2b + 1 >= e^2, and both within 10 % of 1 need e <= 0.64. It holds if each step obeys the bound", NormOrProjection),
      Exact("naive-threshold", "precision",
            "Naive addition moves no parameter of given arrays if and only if lr < min h/|u|, where h is the distance to the rounding boundary (analysis of [Seed003]).",
            "greatest float32 rate at which the rule naive moves nothing over min h/|u|. It holds if this is 1 to within 2^(m-21), with m mantissa bits: the rounding of the float32 sum", Threshold),
      Exact("same-key-cliff", "precision",
            "With the published key the update is the parameter before rounding; then every normal parameter stops moving between the rates 2/(2^(m+2) - 1) and 1/(2^(m+2) - 1), with m mantissa bits, whatever its size (analysis of [Seed003]).",
            "It holds if the rule naive moves nothing below the lower rate, up to the rounding of the float32 sum, and half of the norm is gone only below the upper one, with keys `same`", SameKeyCliff),
      Exact("worked-example", "quantization-barrier",
            "round(0.75 + 0.03) = 0.75 in E4M3, where the next value is 0.8125.",
            "It holds if both values are so", WorkedExample),
  };
  // clang-format on
}

std::string StateText(const Tables& tables) {
  const auto follows = [](const Frame& row) {
    return row.Number("effective_relative_error") <= 0.01;
  };
  std::string text;
  for (const UpdateKind kind : UpdateKinds()) {
    if (!HasState(kind)) continue;
    for (const auto& [name, panel] : PanelsOf(tables, kind)) {
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
