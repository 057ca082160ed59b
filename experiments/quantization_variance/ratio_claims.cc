// The claims of Appendix D.3 of [SwitchBack]: which matmul of CLIP and of LLaMA is noisier.
#include <fmt/format.h>

#include <cmath>

#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/special_values.h"

namespace numsim::experiments::quantization_variance {
namespace {

// The lengths of two matmuls whose noise D.3 compares.
struct LengthPair {
  const char *noisy, *quiet;
};

// Compares the noise per element of the inner product, which is the same at every length if the
// ratio of variances is that of the lengths.
Evidence NoiseAt(const Settings& settings,
                 const Tables& tables,
                 const std::string& source,
                 const std::string& format,
                 const std::vector<LengthPair>& pairs) {
  if (HasInput(settings)) return NotTestedBecause("--input has other lengths");
  const Frame rows = Frame(tables.at(std::string(kVarianceTable)))
                         .Where("source", source)
                         .Where("format", format)
                         .Where("granularity", FirstGranularity(settings))
                         .Where("rounding", "rne");
  if (rows.Empty()) {
    return NotTestedBecause("--distributions, --formats or --roundings leaves the operands out");
  }
  Evidence evidence;
  evidence.outcomes = OutcomesOf(rows, {"k"}, [](const Frame& row) {
    const double variance = row.Number("var_error");
    return variance > 0 ? std::log2(variance / row.Number("k")) : kNaN;
  });
  for (const LengthPair& pair : pairs) {
    for (const char* const length : {pair.noisy, pair.quiet}) {
      if (!rows.Where("k", length).Empty()) continue;
      return NotTestedBecause(
          fmt::format("out of reach: k = {} is not from --k-low {} to --k-high {}",
                      length,
                      settings.Get("k-low"),
                      settings.Get("k-high")));
    }
    evidence.contrasts.push_back(Gap(pair.noisy, pair.quiet));
  }
  return evidence;
}

// The control has heavy-tailed operands in int8, whose noise per element grows with the length
// (kControl), at a pair of lengths of the sweep.
Evidence RatioEvidence(const Settings& settings,
                       const Tables& tables,
                       const std::string& format,
                       const std::vector<LengthPair>& pairs,
                       const LengthPair& swept) {
  Evidence evidence = NoiseAt(settings, tables, "normal", format, pairs);
  AddControl(NoiseAt(settings, tables, kControlSource, kControlFormat, {swept}), evidence);
  return evidence;
}

ClaimSpec RatioClaim(const std::string& name,
                     const std::string& format,
                     std::string statement,
                     std::vector<LengthPair> pairs,
                     const LengthPair& swept,
                     double margin) {
  ClaimSpec claim;
  claim.id = fmt::format("quantization-variance/{}-{}", name, format);
  claim.items = {"switchback/appendix-d.3"};
  claim.statement = fmt::format("{} Here: {}, normal operands.", std::move(statement), format);
  claim.kind = ClaimKind::kEquivalence;
  claim.contrast =
      "log2(var_error / k) at the lengths of both matmuls; 0 if the ratio of variances is that of "
      "the lengths; rounded to nearest even, scales of the first granularity";
  claim.control = fmt::format("{}, at k = {} and {}", kControl, swept.noisy, swept.quiet);
  claim.margin = {.value = margin,
                  .unit = "log2 of a variance ratio",
                  .justification =
                      "Half of the least distance between ratios that the paper tells "
                      "apart: 12.8 and 51.2, 4 and 16; 1 and 2."};
  claim.scale = "The paper: lengths of CLIP ViT-Huge and LLaMA 65B. A run tests those it reaches.";
  claim.evidence = [format, swept, pairs = std::move(pairs)](const Settings& settings,
                                                             const Tables& tables) {
    return RatioEvidence(settings, tables, format, pairs, swept);
  };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> RatioClaims() {
  constexpr double kFactor2 = 1, kRootOf2 = 0.5;  // log2
  std::vector<ClaimSpec> claims;
  for (const char* const format : {"int8", "e4m3fn"}) {
    claims.push_back(RatioClaim(
        "clip-gradient",
        format,
        "The weight gradient of CLIP ViT-Huge (k = 65536) is 12.8 to 51.2 times as noisy as its "
        "other matmuls (5120, 1280).",
        {{"65536", "1280"}, {"65536", "5120"}},
        {"65536", "1024"},
        kFactor2));
    claims.push_back(RatioClaim("llama-gradient",
                                format,
                                "The weight gradient of LLaMA 65B (k = 2048) is 4 to 16 times less "
                                "noisy than its other matmuls (8192, 32768).",
                                {{"8192", "2048"}, {"32768", "2048"}},
                                {"32768", "2048"},
                                kFactor2));
    claims.push_back(RatioClaim("clip-against-llama",
                                format,
                                "The weight gradient of CLIP is twice as noisy as the noisiest "
                                "matmul of LLaMA 65B (k = 32768).",
                                {{"65536", "32768"}},
                                {"65536", "32768"},
                                kRootOf2));
  }
  return claims;
}

}  // namespace numsim::experiments::quantization_variance
