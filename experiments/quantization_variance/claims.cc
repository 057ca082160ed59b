// The claims of Appendix D of [SwitchBack], and the evidence of a run.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/log_slope.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::quantization_variance {
namespace {

// The operands of D.1, independent and of mean zero. With --input their claims are about its rows.
const std::string kNormal = "normal";

// A slope needs three lengths: two cannot show whether points lie on a line.
constexpr size_t kLeastLengths = 3;

constexpr const char* kHow = "; rounded to nearest even, scales of the first granularity";
constexpr const char* kScale =
    "The paper derives it for any k and format. A run states its own lengths and pairs.";

const Margin kSlopeMargin = {
    .value = 0.07,
    .unit = "slope",
    .justification =
        "Half of the slope that the growth of absmax adds under normal operands and int8: "
        "sigma_q^2 follows 2 ln k, a slope of 0.14 between k = 64 and 131072."};

using ValuesOf = std::function<SeedValues(const Frame& curve)>;

// Returns why no slope is judged, and which --k-low would give five lengths.
std::string TooFewLengths(const Settings& settings, size_t lengths) {
  const auto low = static_cast<double>(settings.GetInteger("k-low", 2, 1 << 24));
  const double longest = std::ldexp(low, static_cast<int>(lengths) - 1);
  const double remedy = std::max(2.0, longest / 16);
  return fmt::format("{}, a slope needs three; {}",
                     lengths == 1 ? "one length" : "two lengths",
                     remedy < low ? fmt::format("try --k-low {:g}", remedy)
                                  : "use operands with longer rows or a larger --k-high");
}

// Returns the rows of the sweep that a claim is about, rounded to nearest even.
Frame CurveOf(const Settings& settings,
              const Tables& tables,
              const std::string& source,
              const std::string& format) {
  const Frame rows = Frame(tables.at(std::string(kVarianceTable)))
                         .Where("sweep", "yes")
                         .Where("granularity", FirstGranularity(settings))
                         .Where("rounding", "rne")
                         .Where("format", format);
  return HasInput(settings) && source == kNormal ? rows : rows.Where("source", source);
}

// Compares a value of each seed with what the paper says.
Evidence AgainstPaper(const Settings& settings,
                      const Frame& curve,
                      size_t least_lengths,
                      const ValuesOf& values,
                      double paper) {
  if (curve.Empty()) {
    return NotTestedBecause(
        "--distributions, --formats or --roundings leaves the operands out, or --input replaces "
        "them");
  }
  const size_t lengths = curve.Distinct("k").size();
  if (lengths < least_lengths) return NotTestedBecause(TooFewLengths(settings, lengths));
  return AgainstReference(curve.Text("source") + " " + curve.Text("format"), values(curve), paper);
}

// A law of the paper that is judged by one number per seed.
struct Law {
  std::string name, item, statement, outcome;
  ClaimKind kind;
  Margin margin;
  double paper;          // the reference that the number is compared with
  double papers_effect;  // of a difference
  size_t least_lengths;
  ValuesOf values;
};

ClaimSpec LawClaim(const Law& law, const std::string& format, const std::string& source = kNormal) {
  const bool own = source == kNormal;
  ClaimSpec claim;
  claim.id =
      fmt::format("quantization-variance/{}-{}{}", law.name, format, own ? "" : "-" + source);
  claim.items = {law.item};
  claim.statement = fmt::format("{} Here: {}, {} operands{}.",
                                law.statement,
                                format,
                                source,
                                own ? " (with --input, its rows)" : "");
  claim.kind = law.kind;
  claim.contrast = law.outcome + kHow;
  claim.margin = law.margin;
  claim.papers_effect = law.papers_effect;
  claim.scale = kScale;
  claim.primary = own;  // the paper names no other distribution
  const auto evidence_of = [law](const Settings& settings, const Frame& curve) {
    return AgainstPaper(settings, curve, law.least_lengths, law.values, law.paper);
  };
  if (law.kind == ClaimKind::kEquivalence) claim.control = kControl;
  claim.evidence = [=, kind = law.kind](const Settings& settings, const Tables& tables) {
    Evidence evidence = evidence_of(settings, CurveOf(settings, tables, source, format));
    if (kind == ClaimKind::kEquivalence) {
      const Frame fails = CurveOf(settings, tables, kControlSource, kControlFormat);
      AddControl(evidence_of(settings, fails), evidence);
    }
    return evidence;
  };
  return claim;
}

const Law kGrows = {
    "grows",
    "switchback/appendix-d.2",
    "\"For inner products with length k vectors, variance due to quantization increases with k.\"",
    "d log var_error / d log k of each seed, minus 0",
    ClaimKind::kDifference,
    {.value = 0.5, .unit = "slope", .justification = "Half of the linear growth of Eq. 12."},
    0,
    1,
    kLeastLengths,
    [](const Frame& curve) { return LogSlopes(curve, "k", "var_error", LogVarianceError); }};

const Law kLinear = {
    "linear",
    "switchback/equation-12",
    "The added variance is k times a constant: it grows linearly with k.",
    "d log var_error / d log k of each seed, minus 1",
    ClaimKind::kEquivalence,
    kSlopeMargin,
    1,
    0,
    kLeastLengths,
    [](const Frame& curve) { return LogSlopes(curve, "k", "var_error", LogVarianceError); }};

const Law kValue = {
    "eq12-value",
    "switchback/equation-12",
    "The added variance is k sigma_q^2 (sigma_u^2 + sigma_v^2 + sigma_q^2), with the measured "
    "sigma_q.",
    "geometric mean of var_error / prediction of each seed, minus 1",
    ClaimKind::kEquivalence,
    {.value = 0.1,
     .unit = "of Eq. 12",
     .justification = "10 % of a variance is 5 % of the noise; a bit more or less is a factor 4."},
    1,
    0,
    1,
    [](const Frame& curve) {
      SeedValues ratios;
      for (const Frame& seed : curve.By({"seed"})) {
        double sum = 0;
        for (const double ratio : seed.Numbers("ratio")) sum += ratio > 0 ? Log(ratio) : kNaN;
        ratios[seed.Text("seed")] = Exp(sum / static_cast<double>(seed.Size()));
      }
      return ratios;
    }};

const Law kSigma = {
    "sigma-grows",
    "switchback/appendix-d.1",
    "The variance of a quantisation error would in practice increase with k, as the absmax of u "
    "and v does.",
    "d log sigma_q2 / d log k of each seed, minus 0",
    ClaimKind::kDifference,
    kSlopeMargin,
    0,
    0,
    kLeastLengths,
    [](const Frame& curve) { return LogSlopes(curve, "k", "sigma_q2"); }};

const Law kDrowns = {
    "drowns",
    "switchback/appendix-d.2",
    "Noise will eventually drown out the signal: for large k, features or gradients no longer "
    "lead to effective learning.",
    "d log relative_error / d log k of each seed, minus 0",
    ClaimKind::kDifference,
    {.value = 0.25,
     .unit = "slope",
     .justification = "Half of the slope of a noise variance that grows linearly against a fixed "
                      "signal."},
    0,
    0.5,
    kLeastLengths,
    [](const Frame& curve) { return LogSlopes(curve, "k", "relative_error", LogRelativeError); }};

// Returns the value of largest magnitude and where it was measured: "0.12 (normal, int8, ...)".
std::string LargestOf(const Frame& rows, const char* column) {
  double largest = 0;
  std::string at = "nowhere";
  rows.ForEach([&](const Frame& row) {
    const double value = row.Number(column);
    if (!(std::abs(value) > std::abs(largest))) return;
    largest = value;
    at = fmt::format("{}, {}, {}, {}, k = {}",
                     row.Text("source"),
                     row.Text("format"),
                     row.Text("granularity"),
                     row.Text("rounding"),
                     row.Text("k"));
  });
  return fmt::format("{:.3g} ({})", largest, at);
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  std::vector<ClaimSpec> claims = ModelClaims();
  for (const Law& law : {kGrows, kLinear, kValue, kSigma, kDrowns}) {
    for (const char* const format : {"int8", "e4m3fn"}) claims.push_back(LawClaim(law, format));
  }
  for (const char* const source : {"uniform", "laplace", "student-t3"}) {
    claims.push_back(LawClaim(kLinear, "int8", source));
  }
  claims.push_back(LawClaim(kDrowns, "int8", "student-t3"));
  claims.push_back(LawClaim(kDrowns, "e4m3fn", "student-t3"));
  for (ClaimSpec& claim : RatioClaims()) claims.push_back(std::move(claim));
  return claims;
}

std::string Notes(const Settings& settings, const Tables& tables) {
  const Table& variance = tables.at(std::string(kVarianceTable));
  return fmt::format(
             "Where the assumptions of Eq. 12 fail: it assumes errors that are independent of the "
             "signal, but the largest correlation of a nearest-even error with its own element is "
             "{}. The largest share of nonzero elements that became zero is {}. Under Student's t, "
             "whose fourth moment is infinite, single elements dominate the mean squares, so Eq. "
             "12 can exceed the measured variance several times. slopes.csv has all sources, "
             "formats and granularities; dimension_ratios.csv has D.3 with the relative errors and "
             "with LLaMA's own width of 22016 beside the paper's 32768.",
             LargestOf(Frame(variance).Where("rounding", "rne"), "correlation_element"),
             LargestOf(variance, "underflow_share")) +
         EqualPanelsNote(settings, variance);
}

}  // namespace numsim::experiments::quantization_variance
