// The claims of `linear-error` about power laws: how noise and relative error grow with the inner
// dimension.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/linear_error/claim_parts.h"
#include "experiments/shared/log_slope.h"

namespace numsim::experiments::linear_error {
namespace {

// Returns why no slope is judged, and which option gives enough lengths.
std::string TooFewLengths(const Settings& settings, std::string_view sweep, size_t lengths) {
  const auto low = static_cast<double>(settings.GetInteger("tokens-low", 1, 1 << 20));
  const double remedy = std::max(1.0, std::ldexp(low, static_cast<int>(lengths) - 5));
  std::string option = "use more tokens";
  if (sweep == kWidthSweep) {
    option = "use more --dims";
  } else if (remedy < low) {
    option = fmt::format("try --tokens-low {:g}", remedy);
  }
  return fmt::format(
      "{}, a slope needs three; {}", lengths == 1 ? "one length" : "two lengths", option);
}

// A power law of the paper: a column of errors.csv against the inner dimension of a GEMM.
struct Law {
  std::string name, item, statement, column;
  ClaimKind kind;
  Margin margin;
  double exponent;       // that the slope is compared with
  double papers_effect;  // of a difference
};

Evidence SlopeEvidence(const Settings& settings,
                       const Frame& rows,
                       const std::string& product,
                       const Law& law) {
  const std::string_view sweep = product == kWeightGradient ? kTokenSweep : kWidthSweep;
  const Frame curve =
      rows.Where("kind", kAllQuantized).Where("product", product).Where("sweep", sweep);
  if (curve.Empty()) return LeftOut();
  const std::string_view length = LengthOf(curve);
  const size_t lengths = curve.Distinct(length).size();
  if (lengths < 3) return NotTestedBecause(TooFewLengths(settings, sweep, lengths));
  const std::string arm =
      fmt::format("{} {} {}", Symbol(product), curve.Text("operands"), curve.Text("format"));
  return AgainstReference(arm, LogSlopes(curve, length, law.column), law.exponent);
}

ClaimSpec LawClaim(const Law& law,
                   const std::string& product,
                   const std::string& format,
                   const std::string& operands = kOwnOperands) {
  std::string symbol = Symbol(product);
  std::transform(symbol.begin(), symbol.end(), symbol.begin(), ::tolower);
  ClaimSpec claim = ClaimAbout(law.name + "-" + symbol, operands, format);
  claim.items = {law.item};
  claim.statement = law.statement + Here(operands, format);
  claim.kind = law.kind;
  claim.contrast = fmt::format(
      "d log {} of {} / d log of its inner dimension of each seed, minus "
      "{:g}; {}",
      law.column,
      Symbol(product),
      law.exponent,
      kAllQuantized);
  claim.margin = law.margin;
  claim.papers_effect = law.papers_effect;
  if (law.kind == ClaimKind::kEquivalence) claim.control = kControl;
  claim.evidence = [law, product, format, operands](const Settings& settings,
                                                    const Tables& tables) {
    const auto slope = [&](const std::string& of, const std::string& in) {
      return SlopeEvidence(settings, RowsOf(tables, of, in), product, law);
    };
    Evidence evidence = slope(operands, format);
    if (law.kind == ClaimKind::kEquivalence) {
      AddControl(slope(kControlOperands, kControlFormat), evidence);
    }
    return evidence;
  };
  return claim;
}

const Law kGrows = {
    "grows",
    "switchback/appendix-d.2",
    "Variance due to quantisation increases with the inner dimension.",
    "error_variance",
    ClaimKind::kDifference,
    {.value = 0.5, .unit = "slope", .justification = "Half of the linear growth of Eq. 12."},
    0,
    1};
const Law kLinear = {
    "linear",
    "switchback/equation-12",
    "The added variance grows linearly with the inner dimension.",
    "error_variance",
    ClaimKind::kEquivalence,
    {.value = 0.07,
     .unit = "slope",
     .justification = "Half of the slope that the growth of absmax adds under normal operands and "
                      "int8: sigma_q^2 follows 2 ln k, a slope of 0.14."},
    1,
    0};
const Law kDrowns = {
    "drowns",
    "switchback/appendix-d.2",
    "Noise will eventually drown out the signal: for large k, gradients no longer lead to "
    "effective learning.",
    "relative_error",
    ClaimKind::kDifference,
    {.value = 0.25,
     .unit = "slope",
     .justification = "Half of the slope of a noise variance that grows linearly against a fixed "
                      "signal."},
    0,
    0.5};

}  // namespace

std::vector<ClaimSpec> LawClaims() {
  std::vector<ClaimSpec> claims;
  for (const char* const format : {"int8", "e4m3fn"}) {
    claims.push_back(LawClaim(kGrows, kWeightGradient, format));
    claims.push_back(LawClaim(kLinear, kWeightGradient, format));
    claims.push_back(LawClaim(kLinear, kForward, format));
    claims.push_back(LawClaim(kDrowns, kWeightGradient, format));
  }
  for (const std::string& operands : kOtherOperands) {
    claims.push_back(LawClaim(kDrowns, kWeightGradient, "int8", operands));
  }
  for (const std::string& operands :
       {std::string("student-t3"), std::string("outlier-tokens"), kTensors}) {
    claims.push_back(LawClaim(kDrowns, kWeightGradient, "e4m3fn", operands));
  }
  return claims;
}

}  // namespace numsim::experiments::linear_error
