// The summary of `quantization-variance`: verdicts on the paper's claims, from the tables.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/core/verdict.h"
#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/distinct.h"

namespace numsim::experiments::quantization_variance {
namespace {

struct SlopeRange {
  double low = INFINITY, high = -INFINITY;
  std::string text;
};

// Returns the range of a column of slopes.csv over the rows that `include` accepts.
SlopeRange RangeOf(const Table& slopes,
                   std::string_view column,
                   const std::function<bool(size_t)>& include) {
  SlopeRange range;
  for (size_t r = 0; r < slopes.rows.size(); ++r) {
    if (!include(r)) continue;
    const double value = slopes.Number(r, column);
    if (std::isnan(value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  range.text = range.low > range.high ? "not measured"
                                      : fmt::format("{:.3f} to {:.3f}", range.low, range.high);
  return range;
}

// Returns true except for Student's t, whose fourth moment is infinite: its slopes and ratios are
// reported separately.
bool Light(const std::string& source) { return source != "student-t3"; }

std::string LightSources(const Table& table) {
  std::string text;
  for (const std::string& source : Distinct(table, "source")) {
    if (Light(source)) text += (text.empty() ? "" : ", ") + source;
  }
  return text;
}

std::string SlopeOf(const Table& slopes, size_t r) {
  return fmt::format("{} {} {:.3f} [{:.3f}, {:.3f}]",
                     slopes.Text(r, "source"),
                     slopes.Text(r, "format"),
                     slopes.Number(r, "slope"),
                     slopes.Number(r, "slope_low"),
                     slopes.Number(r, "slope_high"));
}

Estimate EstimateAt(const Table& table, size_t r, const std::string& column) {
  return {
      table.Number(r, column), table.Number(r, column + "_low"), table.Number(r, column + "_high")};
}

// A slope needs this many lengths: two cannot show whether the growth is linear.
constexpr double kLeastLengths = 3;

// Returns the answer, undecided if the slope in row `r` of slopes.csv is from too few lengths.
Answer IfEnoughLengths(const Table& slopes, size_t r, Answer answer) {
  return slopes.Number(r, "lengths") < kLeastLengths ? Answer::kUndecided : answer;
}

// Returns the rows of slopes.csv that the claims about slopes are judged by.
std::vector<size_t> JudgedRows(const Table& slopes, const std::string& granularity) {
  std::vector<size_t> rows;
  for (size_t r = 0; r < slopes.rows.size(); ++r) {
    if (slopes.Text(r, "granularity") == granularity && slopes.Text(r, "rounding") == "rne") {
      rows.push_back(r);
    }
  }
  return rows;
}

// Returns why slopes are undecided and what remedies that; "" if none is.
std::string SlopeBasis(const Settings& settings, const Table& slopes, const Tally& tally) {
  if (tally.Undecided() == 0) return "";
  double lengths = 0;
  for (size_t r = 0; r < slopes.rows.size(); ++r) {
    lengths = std::max(lengths, slopes.Number(r, "lengths"));
  }
  const auto low = static_cast<double>(settings.GetInteger("k-low", 2, 1 << 24));
  const double longest = low * std::ldexp(1.0, static_cast<int>(lengths) - 1);
  const double remedy = std::max(2.0, longest / 16);  // five lengths
  const std::string few = lengths < 2 ? "one length" : "two lengths";
  std::string text = tally.UndecidedText() + ": ";
  text += lengths < kLeastLengths ? few + ", a slope needs three" : "the interval decides nothing";
  if (remedy < low) return text + fmt::format("; try --k-low {:g}", remedy);
  return text + "; use more --pairs or --seeds";
}

Claim GrowthClaim(const Settings& settings, const Table& slopes, const std::string& granularity) {
  constexpr double kNoGrowth = 0.5, kTooFast = 1.5;  // slopes that contradict linear growth
  std::string list;
  Tally tally;
  for (const size_t r : JudgedRows(slopes, granularity)) {
    list += (list.empty() ? "" : "; ") + SlopeOf(slopes, r);
    const Estimate slope = EstimateAt(slopes, r, "slope");
    Answer answer = IsEqual(slope, 1, kNoGrowth, kTooFast);
    if (answer != Answer::kYes) {
      const Answer grows = IsAbove(slope, kNoGrowth);
      answer = grows == Answer::kYes ? Answer::kPartly : grows;
    }
    tally.Add(IfEnoughLengths(slopes, r, answer));
  }
  return {
      "The variance due to quantisation increases with the inner dimension k, linearly for a "
      "constant sigma_q (Eq. 12, D.2).",
      fmt::format("Log-log slope of Var(error) with its 95 % interval, {}-wise, nearest-even: {}. "
                  "Criterion: the interval contains 1 and excludes {} and {}; an interval above {} "
                  "alone holds in part.",
                  granularity,
                  list,
                  kNoGrowth,
                  kTooFast,
                  kNoGrowth),
      tally.Verdict(),
      SlopeBasis(settings, slopes, tally)};
}

// Judges Eq. 12 for one curve by the intervals of Var(error) over Eq. 12.
Answer ValueAnswer(const Table& variance, const Curve& curve) {
  constexpr double kLow = 0.5, kHigh = 2;  // ratios that contradict Eq. 12
  size_t wide = 0, close = 0, covered = 0;
  for (const size_t r : curve.rows) {
    const Answer equal = IsEqual(EstimateAt(variance, r, "ratio"), 1, kLow, kHigh);
    const double ratio = variance.Number(r, "ratio");
    wide += equal == Answer::kUndecided;
    covered += equal == Answer::kYes;
    close += ratio > kLow && ratio < kHigh;
  }
  const size_t decided = curve.rows.size() - wide;
  if (2 * decided < curve.rows.size() || decided == 0) return Answer::kUndecided;
  if (close < curve.rows.size()) return Answer::kNo;
  return 10 * covered >= 9 * decided ? Answer::kYes : Answer::kPartly;  // should cover 95 %
}

Claim ValueClaim(const Table& variance, const Table& slopes, const std::string& granularity) {
  const auto rows_of = [&](const char* rounding) {
    return [&slopes, granularity, rounding](size_t r) {
      return slopes.Text(r, "granularity") == granularity &&
             slopes.Text(r, "rounding") == rounding && Light(slopes.Text(r, "source"));
    };
  };
  const SlopeRange low = RangeOf(slopes, "ratio_min", rows_of("rne"));
  const SlopeRange high = RangeOf(slopes, "ratio_max", rows_of("rne"));
  const SlopeRange covered = RangeOf(slopes, "covered_share", rows_of("rne"));
  const SlopeRange sr_covered = RangeOf(slopes, "covered_share", rows_of("sr"));
  Tally tally;
  for (const Curve& curve : Curves(variance)) {
    const bool judged =
        curve.granularity == granularity && curve.rounding == "rne" && Light(curve.source);
    if (judged) tally.Add(ValueAnswer(variance, curve));
  }
  const std::string stochastic =
      sr_covered.low <= sr_covered.high
          ? fmt::format(", and at {:.0f} % under stochastic rounding", 100 * sr_covered.low)
          : "";
  return {"The added variance is k sigma_q^2 (sigma_u^2 + sigma_v^2 + sigma_q^2) (Eq. 12).",
          tally.Cases() == 0
              ? "There are no operands except those of Student's t."
              : fmt::format("With the measured sigma_q^2, Var(error) over Eq. 12 lies between "
                            "{:.3f} and {:.3f} over all k ({}; {}-wise, nearest-even); the 95 % "
                            "interval contains 1 at {:.0f} % of the lengths for the worst format "
                            "and source{}.",
                            low.low,
                            high.high,
                            LightSources(variance),
                            granularity,
                            100 * covered.low,
                            stochastic),
          tally.Verdict(),
          tally.Undecided() == 0
              ? ""
              : tally.UndecidedText() + ": intervals that contain 0.5 or 2; use more --pairs"};
}

Claim SigmaClaim(const Settings& settings, const Tables& tables, const std::string& granularity) {
  constexpr double kGrows = 0.05;
  const Table& slopes = tables.at(std::string(kSlopesTable));
  const Table& variance = tables.at(std::string(kVarianceTable));
  const auto of = [&](bool integer) {
    return RangeOf(slopes, "sigma_q2_slope", [&slopes, granularity, integer](size_t r) {
      return slopes.Text(r, "granularity") == granularity && slopes.Text(r, "rounding") == "rne" &&
             (slopes.Text(r, "format") == "int8") == integer;
    });
  };
  Tally tally;
  const std::vector<Curve> curves = Curves(variance);  // in the order of slopes.csv
  for (const size_t r : JudgedRows(slopes, granularity)) {
    tally.Add(IfEnoughLengths(slopes, r, IsAbove(SigmaSlope(variance, curves.at(r)), kGrows)));
  }
  return {
      "The analysis is conservative: in practice sigma_q^2 would grow with k, as the absmax of "
      "u and v does (D.1).",
      fmt::format("Log-log slope of sigma_q^2 against k, {}-wise: int8 {}; floating-point "
                  "formats {}, whose steps scale with the element and not with absmax. Criterion: "
                  "the 95 % interval of a format and source is above {}.",
                  granularity,
                  of(true).text,
                  of(false).text,
                  kGrows),
      tally.Verdict(),
      SlopeBasis(settings, slopes, tally)};
}

// The slope of the relative error against k from which noise counts as overtaking the signal: half
// the slope of a noise variance that grows linearly against a fixed signal.
constexpr double kGrowth = 0.25;

Claim RelativeClaim(const Settings& settings, const Table& slopes, const std::string& granularity) {
  const auto range_of = [&](bool light) {
    return RangeOf(slopes,
                   "relative_slope",
                   [&slopes, granularity, light](size_t r) {
                     return slopes.Text(r, "granularity") == granularity &&
                            slopes.Text(r, "rounding") == "rne" &&
                            Light(slopes.Text(r, "source")) == light;
                   })
        .text;
  };
  Tally tally;
  std::string growing;
  for (const size_t r : JudgedRows(slopes, granularity)) {
    const Estimate slope = EstimateAt(slopes, r, "relative_slope");
    const Answer answer = IfEnoughLengths(slopes, r, IsAbove(slope, kGrowth));
    tally.Add(answer);
    if (answer != Answer::kYes) continue;
    growing += fmt::format("{}{} {} {:.3f} [{:.3f}, {:.3f}]",
                           growing.empty() ? "" : "; ",
                           slopes.Text(r, "source"),
                           slopes.Text(r, "format"),
                           slope.value,
                           slope.low,
                           slope.high);
  }
  const std::string sources = LightSources(slopes);
  return {
      "For large k the noise drowns the signal: features or gradients no longer lead to "
      "effective learning (D.2).",
      fmt::format(
          "For independent operands of mean zero the variance of the product also grows with k: "
          "the log-log slope of the relative error against k is {} ({}), and {} for Student's t. "
          "A noise variance that grows linearly against a fixed signal has slope 0.5; a 95 % "
          "interval above {} counts as growth here. It grows for: {}. A growing variance alone "
          "does not drown the signal; what grows is absmax, with int8 and heavy tails.",
          range_of(true),
          sources.empty() ? "no other operands" : sources,
          range_of(false),
          kGrowth,
          growing.empty() ? "none" : growing),
      tally.Verdict(),
      SlopeBasis(settings, slopes, tally)};
}

// Judges one ratio of D.3: kPartly if the noise is greater by another factor than the claimed one.
Answer RatioAnswer(const Estimate& ratio, double claimed) {
  const Answer equal = IsEqual(ratio, claimed, 1, INFINITY);
  if (equal != Answer::kNo) return equal;
  const Answer greater = IsAbove(ratio, 1);
  return greater == Answer::kYes ? Answer::kPartly : greater;
}

Claim RatioClaim(const Table& ratios, std::string_view model, const std::string& text) {
  std::string list;
  Tally tally;
  for (size_t r = 0; r < ratios.rows.size(); ++r) {
    if (ratios.Text(r, "model") != model || ratios.Number(r, "claimed") <= 2) continue;
    const Estimate measured = EstimateAt(ratios, r, "measured");
    list += fmt::format("{}{} {} against {}: claimed {:g}, measured {:.1f} [{:.1f}, {:.1f}]",
                        list.empty() ? "" : "; ",
                        ratios.Text(r, "format"),
                        ratios.Text(r, "noisy_k"),
                        ratios.Text(r, "quiet_k"),
                        ratios.Number(r, "claimed"),
                        measured.value,
                        measured.low,
                        measured.high);
    tally.Add(RatioAnswer(measured, ratios.Number(r, "claimed")));
  }
  return {text,
          list.empty() ? "The lengths are beyond --k-high, or there are no normal operands."
                       : list +
                             ". Criterion: the interval contains the claimed ratio and excludes "
                             "1; one above 1 that does not contain it holds in part.",
          tally.Verdict(),
          tally.Undecided() == 0
              ? ""
              : tally.UndecidedText() + ": intervals that contain 1; use more --pairs"};
}

std::string AssumptionNotes(const Table& variance) {
  double correlation = 0, underflow = 0;
  std::string correlation_at = "none", underflow_at = "none";
  for (size_t r = 0; r < variance.rows.size(); ++r) {
    const auto at = [&] {
      return fmt::format("{}, {}, {}, {}, k = {}",
                         variance.Text(r, "source"),
                         variance.Text(r, "format"),
                         variance.Text(r, "granularity"),
                         variance.Text(r, "rounding"),
                         variance.Text(r, "k"));
    };
    const double c = variance.Number(r, "correlation_element");
    if (variance.Text(r, "rounding") == "rne" && std::abs(c) > std::abs(correlation)) {
      correlation = c;
      correlation_at = at();
    }
    if (variance.Number(r, "underflow_share") > underflow) {
      underflow = variance.Number(r, "underflow_share");
      underflow_at = at();
    }
  }
  return fmt::format(
      "Where the assumptions of Eq. 12 fail: it assumes errors that are independent of the signal, "
      "but the largest correlation of a nearest-even error with its own element is {:.3f} ({}). "
      "The largest share of nonzero elements that became zero is {:.2f} % ({}). Slopes, ratios and "
      "intervals for every source, format and granularity are in slopes.csv; D.3's table, with the "
      "model's own 22016 beside the paper's 32768 and the relative errors, is in "
      "dimension_ratios.csv. Under Student's t, whose fourth moment is infinite, single elements "
      "dominate the pooled mean squares, so Eq. 12 can exceed the measured variance several times. "
      "By Eq. 12 the factors of D.3 depend on the lengths alone, so the claim that CLIP's weight "
      "gradient is twice as noisy as LLaMA's noisiest matmul is the row 65536 against 32768.",
      correlation,
      correlation_at,
      100 * underflow,
      underflow_at);
}

}  // namespace

Summary Summarise(const Settings& settings, const Tables& tables) {
  const Table& slopes = tables.at(std::string(kSlopesTable));
  const Table& ratios = tables.at(std::string(kRatiosTable));
  const std::string granularity =
      ToString(ParseScaleLayout(settings.GetList("granularities").front()));
  Summary summary;
  summary.claims = {
      GrowthClaim(settings, slopes, granularity),
      ValueClaim(tables.at(std::string(kVarianceTable)), slopes, granularity),
      SigmaClaim(settings, tables, granularity),
      RelativeClaim(settings, slopes, granularity),
      RatioClaim(ratios,
                 "CLIP ViT-Huge",
                 "CLIP ViT-Huge's weight gradient is 12.8 to 51.2 times as noisy as its other "
                 "matmuls (D.3)."),
      RatioClaim(ratios,
                 "LLaMA 65B",
                 "LLaMA 65B's weight gradient is 4 to 16 times less noisy than its other matmuls "
                 "(D.3).")};
  summary.notes = AssumptionNotes(tables.at(std::string(kVarianceTable)));
  summary.notes += EqualPanelsNote(settings, tables.at(std::string(kVarianceTable)));
  summary.unused_options = UnusedOptions(settings);
  return summary;
}

}  // namespace numsim::experiments::quantization_variance
