// The claims of Appendix D of [SwitchBack] about its own model, decided by exact arithmetic.
#include <fmt/format.h>

#include "experiments/quantization_variance/quantization_variance.h"

namespace numsim::experiments::quantization_variance {
namespace {

// The model of D.1 with two values for each variable: elements +-2 of u and +-3 of v, errors +-1,
// all independent and equally likely. So all means are 0 and sums of squares are variances.
constexpr int64_t kU = 2, kV = 3, kError = 1;
constexpr int kMostLength = 4;
constexpr const char* kModel =
    "elements +-2 of u and +-3 of v, errors +-1, all independent and equally likely; every outcome "
    "at k = 1 to 4 is enumerated in integers, and variances of longer products are sums of such "
    "terms";

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

Evidence VarianceEvidence(const Settings& /*settings*/, const Tables& /*tables*/) {
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
Evidence DrownEvidence(const Settings& /*settings*/, const Tables& /*tables*/) {
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

}  // namespace

std::vector<ClaimSpec> ModelClaims() {
  ClaimSpec variance;
  variance.id = "quantization-variance/eq12-in-its-model";
  variance.items = {"switchback/equation-12"};
  variance.statement =
      "Under the assumptions of D.1, Var(<u^, v^>) = Var(<u, v>) + k sigma_q^2 (sigma_u^2 + "
      "sigma_v^2 + sigma_q^2).";
  variance.kind = ClaimKind::kExact;
  variance.contrast = fmt::format("both sides of Eq. 12 for {}", kModel);
  variance.scale = "Exact, at any scale.";
  variance.evidence = VarianceEvidence;

  ClaimSpec drowns = variance;
  drowns.id = "quantization-variance/drowns-in-its-model";
  drowns.items = {"switchback/appendix-d.2"};
  drowns.statement =
      "Under the assumptions of D.1, noise \"will eventually drown out useful signal\" as k grows.";
  drowns.contrast = fmt::format(
      "the added variance over the variance of <u, v> for {}. It holds if the ratio grows with k",
      kModel);
  drowns.evidence = DrownEvidence;
  return {variance, drowns};
}

}  // namespace numsim::experiments::quantization_variance
