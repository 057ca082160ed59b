// The claims of `linear-error` that compare GEMMs of a layer and kinds of layers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/linear_error/claim_parts.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::linear_error {
namespace {

double Log2Of(const Frame& row, std::string_view column) {
  const double value = row.Number(column);
  return value > 0 ? std::log2(value) : kNaN;
}

// D.3 compares dW at b = 65536 with products of these widths.
Evidence ClipEvidence(const Frame& rows, const std::string& operands) {
  const Frame all = rows.Where("kind", kAllQuantized).Where("operands", operands);
  if (all.Empty()) return LeftOut();
  const Frame inner = all.Where([](const Frame& row) {
    return (row.Text("product") == kForward && row.Text("sweep") == kWidthSweep) ||
           (row.Text("product") == kWeightGradient && row.Text("sweep") == kTokenSweep);
  });
  Evidence evidence;
  evidence.outcomes = OutcomesOf(inner, {"product", "inner"}, [](const Frame& row) {
    return Log2Of(row, "error_variance") - std::log2(row.Number("inner"));
  });
  const std::string noisy = kWeightGradient + " / 65536";
  for (const char* const width : {"1280", "5120"}) {
    evidence.contrasts.push_back(Gap(noisy, kForward + " / " + width));
    for (const ContrastTerm& term : evidence.contrasts.back()) {
      const auto& arms = evidence.outcomes.arms;
      if (std::find(arms.begin(), arms.end(), term.arm) != arms.end()) continue;
      return NotTestedBecause(
          fmt::format("out of reach: no {}; see --tokens-high and --dims", term.arm));
    }
  }
  return evidence;
}

ClaimSpec ClipClaim(const std::string& format) {
  ClaimSpec claim = ClaimAbout("clip-gradient", kOwnOperands, format);
  claim.statement =
      "CLIP ViT-Huge's weight gradient (b = 65536) is 12.8 to 51.2 times as noisy as its other "
      "matmuls (5120, 1280)." +
      Here(kOwnOperands, format);
  claim.kind = ClaimKind::kEquivalence;
  claim.contrast = fmt::format(
      "log2(error_variance / inner dimension) of dW minus that of Y; 0 if "
      "the ratio of variances is that of the lengths; {}",
      kAllQuantized);
  claim.margin = {.value = 1,
                  .unit = "log2 of a variance ratio",
                  .justification = "Half of the distance between 12.8 and 51.2."};
  claim.control = kControl;
  claim.evidence = [format](const Settings&, const Tables& tables) {
    Evidence evidence = ClipEvidence(RowsOf(tables, kOwnOperands, format), kOwnOperands);
    AddControl(ClipEvidence(RowsOf(tables, kControlOperands, kControlFormat), kControlOperands),
               evidence);
    return evidence;
  };
  return claim;
}

// Returns the rows of the GEMMs of a layer kind, each at its longest inner dimension.
Frame LongestRows(const Frame& rows, const std::string& kind) {
  const Frame of_kind = rows.Where("kind", kind);
  const auto key = [](const Frame& row) {
    return fmt::format(
        "{} {} {} {}", row.Text("product"), row.Text("sweep"), row.Text("tokens"), row.Text("in"));
  };
  std::set<std::string> longest;
  for (const Frame& curve : of_kind.By({"operands", "format", "product"})) {
    const Frame last =
        LongestOf(rows, curve.Text("operands"), kind, curve.Text("format"), curve.Text("product"));
    if (!last.Empty()) longest.insert(key(last));
  }
  return of_kind.Where([&](const Frame& row) { return longest.contains(key(row)); });
}

// The smaller one of D.3's ratios of CLIP, of lengths and so of variances.
constexpr double kLeastRatio = 12.8;

Evidence NoisiestEvidence(const Frame& rows) {
  const Frame longest = LongestRows(rows, kAllQuantized);
  const Frame dw = longest.Where("product", kWeightGradient);
  if (dw.Empty()) return LeftOut();
  Evidence evidence;
  evidence.outcomes = OutcomesOf(
      longest, {"product"}, [](const Frame& row) { return Log2Of(row, "relative_error"); });
  for (const std::string& other : {kForward, kInputGradient}) {
    const double width = longest.Where("product", other).Number("inner");
    if (dw.Number("inner") < kLeastRatio * width) {
      return NotTestedBecause(
          fmt::format("out of reach: b = {} is less than {} times the inner "
                      "dimension {:g} of {}; see --tokens-high",
                      dw.Text("inner"),
                      kLeastRatio,
                      width,
                      Symbol(other)));
    }
    evidence.contrasts.push_back(Gap(kWeightGradient, other));
  }
  return evidence;
}

ClaimSpec NoisiestClaim(const std::string& format, const std::string& operands = kOwnOperands) {
  ClaimSpec claim = ClaimAbout("dw-noisiest", operands, format);
  claim.statement =
      "LLM.int8() fails since the weight gradient \"is a highly noisy operation which might not "
      "give enough signal\"." +
      Here(operands, format);
  claim.contrast = fmt::format(
      "log2(relative_error) of dW minus that of Y and of dX, each at its longest inner dimension, "
      "of which dW's is at least {} times as long; {}",
      kLeastRatio,
      kAllQuantized);
  claim.margin = {.value = 0.9,
                  .unit = "log2 of a ratio of relative errors",
                  .justification =
                      "Half of log2 of sqrt(12.8), which D.3 gives for a fixed "
                      "signal."};
  claim.papers_effect = 1.84;
  claim.evidence = [format, operands](const Settings&, const Tables& tables) {
    return NoisiestEvidence(RowsOf(tables, operands, format));
  };
  return claim;
}

// Compares dW of SwitchBack with that of the layer that quantises it.
Evidence RemedyEvidence(const Frame& rows) {
  const Frame both = rows.Where("product", kWeightGradient).Where([](const Frame& row) {
    return row.Text("kind") == kRemedy || row.Text("kind") == kAllQuantized;
  });
  double longest = 0;
  const Frame swept = both.Where("sweep", kTokenSweep);
  for (const double b : swept.Numbers("tokens")) longest = std::max(longest, b);
  Evidence evidence;
  evidence.outcomes = OutcomesOf(swept.Where("tokens", static_cast<uint64_t>(longest)),
                                 {"kind"},
                                 [](const Frame& row) { return Log2Of(row, "relative_error"); });
  evidence.contrasts = {Gap(kRemedy, kAllQuantized)};
  return evidence.outcomes.arms.size() == 2 ? evidence : LeftOut();
}

ClaimSpec RemedyClaim(const std::string& format) {
  ClaimSpec claim = ClaimAbout("switchback-spares-dw", kOwnOperands, format);
  claim.items = {"switchback/appendix-d"};
  claim.statement =
      "SwitchBack may achieve high accuracy, \"as we avoid quantizing matmuls for which k is very "
      "large\"." +
      Here(kOwnOperands, format);
  claim.contrast = fmt::format(
      "log2(relative_error) of dW at the most tokens, {} minus {}", kRemedy, kAllQuantized);
  claim.side = -1;
  claim.margin = {.value = 1,
                  .unit = "log2 of a ratio of relative errors",
                  .justification = "One bit of precision."};
  claim.evidence = [format](const Settings&, const Tables& tables) {
    return RemedyEvidence(RowsOf(tables, kOwnOperands, format));
  };
  return claim;
}

Evidence SufficesEvidence(const Settings& settings, const Frame& rows) {
  const Frame longest = LongestRows(rows, kRemedy);
  if (longest.Empty()) return LeftOut();
  SeedValues worst;
  longest.ForEach([&](const Frame& row) {
    double& percent = worst[row.Text("seed")];
    percent = std::max(percent, 100 * row.Number("relative_error"));
  });
  return AgainstReference(
      kRemedy + " " + longest.Text("operands"), worst, 100 * Thresholds(settings).front());
}

ClaimSpec SufficesClaim(const std::string& format, const std::string& operands = kOwnOperands) {
  ClaimSpec claim = ClaimAbout("switchback-suffices", operands, format);
  claim.items = {"switchback/appendix-d"};
  claim.statement =
      "With SwitchBack, no GEMM of the layer is too noisy to learn from." + Here(operands, format);
  claim.contrast = fmt::format(
      "largest relative error of Y, dX and dW of each seed, each at its longest inner dimension, "
      "minus the first --threshold; {}",
      kRemedy);
  claim.side = -1;
  claim.margin = {.value = 0.5, .unit = "%", .justification = "A tenth of the threshold of 5 %."};
  claim.evidence = [format, operands](const Settings& settings, const Tables& tables) {
    return SufficesEvidence(settings, RowsOf(tables, operands, format));
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> GemmClaims() {
  std::vector<ClaimSpec> claims;
  for (const char* const format : {"int8", "e4m3fn"}) {
    claims.push_back(ClipClaim(format));
    claims.push_back(NoisiestClaim(format));
    claims.push_back(RemedyClaim(format));
  }
  claims.push_back(SufficesClaim("int8"));
  for (const std::string& operands : kOtherOperands) {
    claims.push_back(NoisiestClaim("int8", operands));
    claims.push_back(SufficesClaim("int8", operands));
  }
  return claims;
}

}  // namespace numsim::experiments::linear_error
