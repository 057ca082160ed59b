// Outcomes and evidence of the claims of Appendix D of [SwitchBack], and the notes below them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/quantization_variance/input.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/log_slope.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::quantization_variance {
namespace {

// ---- the paper's own model, by exact arithmetic

// The model of D.1 with two values for each variable: elements +-2 of u and +-3 of v, errors +-1,
// all independent and equally likely. So all means are 0 and sums of squares are variances.
constexpr int64_t kU = 2, kV = 3, kError = 1;
constexpr int kMostLength = 4;

// Sums over all outcomes at one length: squares of <u, v> and of <u^, v^>.
struct Squares {
  int64_t outcomes = 0, exact = 0, quantized = 0;
  int64_t Added() const { return quantized - exact; }
};

void Enumerate(int length, int64_t exact, int64_t quantized, Squares& sums) {
  if (length == 0) {
    ++sums.outcomes;
    sums.exact += exact * exact;
    sums.quantized += quantized * quantized;
    return;
  }
  for (const int64_t u : {-kU, kU}) {
    for (const int64_t v : {-kV, kV}) {
      for (const int64_t du : {-kError, kError}) {
        for (const int64_t dv : {-kError, kError}) {
          Enumerate(length - 1, exact + u * v, quantized + (u + du) * (v + dv), sums);
        }
      }
    }
  }
}

Squares SquaresAt(int length) {
  Squares sums;
  Enumerate(length, 0, 0, sums);
  return sums;
}

Evidence VarianceEvidence(const study::Results&) {
  constexpr int64_t kTerm = kError * kError * (kU * kU + kV * kV + kError * kError);
  Evidence evidence{.exact = true, .measured = "added variance:"};
  for (int k = 1; k <= kMostLength; ++k) {
    const Squares sums = SquaresAt(k);
    evidence.exact = *evidence.exact && sums.Added() == k * kTerm * sums.outcomes;
    evidence.measured +=
        fmt::format(" {} at k = {}{}", sums.Added() / sums.outcomes, k, k < kMostLength ? "," : "");
  }
  return evidence;
}

// The claim holds if the ratio of the variances is larger at a larger length.
Evidence DrownEvidence(const study::Results&) {
  Evidence evidence{.exact = true, .measured = "added variance / variance of <u, v>:"};
  Squares shorter = SquaresAt(1);
  for (int k = 1; k <= kMostLength; ++k) {
    const Squares sums = SquaresAt(k);
    if (k > 1) {
      evidence.exact =
          *evidence.exact && sums.Added() * shorter.exact > shorter.Added() * sums.exact;
    }
    evidence.measured += fmt::format(" {} / {} at k = {}{}",
                                     sums.Added() / sums.outcomes,
                                     sums.exact / sums.outcomes,
                                     k,
                                     k < kMostLength ? "," : "");
    shorter = sums;
  }
  return evidence;
}

// ---- the measured noise

// Returns why no slope of a curve is judged, and which --k-low would give five lengths.
std::string TooFewLengths(const study::Results& results, const Frame& curve) {
  const size_t lengths = curve.Distinct("k").size();
  if (lengths >= 3) return "";
  const auto low = static_cast<double>(results.settings.GetInteger("k-low", 2, 1 << 24));
  const double longest = std::ldexp(low, static_cast<int>(lengths) - 1);
  const double remedy = std::max(2.0, longest / 16);
  return fmt::format("{}, a slope needs three; {}",
                     lengths == 1 ? "one length" : "two lengths",
                     remedy < low ? fmt::format("try --k-low {:g}", remedy)
                                  : "use operands with longer rows or a larger --k-high");
}

// Returns the geometric mean of var_error / prediction over the lengths of a seed.
double MeanRatio(const Frame& seed) {
  double sum = 0;
  for (const double ratio : seed.Numbers("ratio")) sum += ratio > 0 ? Log(ratio) : kNaN;
  return Exp(sum / static_cast<double>(seed.Size()));
}

// Returns log2 of the noise per element of the inner product.
double NoisePerElement(const Frame& row) {
  const double variance = row.Number("var_error");
  return variance > 0 ? std::log2(variance / row.Number("k")) : kNaN;
}

// Returns the outcome of a seed that is the slope of a column against the length.
auto Growth(const char* column, const LogErrorOf& error) {
  return [=](const Frame& seed) { return LogSlope(seed, "k", column, error).value; };
}

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

void AddClaimFunctions(study::Functions& functions) {
  functions.outcomes = {{"growth", Growth("var_error", LogVarianceError)},
                        {"relative-growth", Growth("relative_error", LogRelativeError)},
                        {"sigma-growth", Growth("sigma_q2", {})},
                        {"over-eq12", MeanRatio},
                        {"noise-per-element", NoisePerElement}};
  functions.evidence = {{"added-variance", VarianceEvidence}, {"noise-over-signal", DrownEvidence}};
  functions.obstacles["input"] = [](const study::Results& results) {
    return HasInput(results.settings) ? "--input has other lengths" : "";
  };
  functions.unfit["few-lengths"] = TooFewLengths;
}

std::string Notes(const study::Results& results) {
  const Frame variance = results.Of("variance");
  return fmt::format(
             "Where the assumptions of Eq. 12 fail: it assumes errors that are independent of the "
             "signal, but the largest correlation of a nearest-even error with its own element is "
             "{}. The largest share of nonzero elements that became zero is {}. Under Student's t, "
             "whose fourth moment is infinite, single elements dominate the mean squares, so Eq. "
             "12 can exceed the measured variance several times. slopes.csv has all sources, "
             "formats and granularities; dimension_ratios.csv has D.3 with the relative errors and "
             "with LLaMA's own width of 22016 beside the paper's 32768.",
             LargestOf(variance.Where("rounding", "rne"), "correlation_element"),
             LargestOf(variance, "underflow_share")) +
         EqualPanelsNote(results);
}

}  // namespace numsim::experiments::quantization_variance
