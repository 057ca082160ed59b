// The claims of [Fishman], sections 4.1 and 4.2, that float64 arithmetic decides for a single neuron.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/shared/special_values.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"

namespace numsim::experiments::swiglu_alignment {
namespace {

constexpr double kAtRest = 1e-10;          // of the norm of the gradient
constexpr double kNegligibleSlope = 0.01;  // of sigma': its largest value is 0.25
constexpr double kAligned = 0.99;          // of |cos|
constexpr double kRounding = 1e-9;         // relative

using EvidenceOf = Evidence (*)(const Settings&, const Tables&);

ClaimSpec ExactClaim(const char* name,
                     const char* item,
                     const char* statement,
                     const char* contrast,
                     EvidenceOf evidence) {
  ClaimSpec claim;
  claim.id = std::string("swiglu-alignment/") + name;
  claim.items = {std::string("fishman/") + item};
  claim.statement = statement;
  claim.kind = ClaimKind::kExact;
  claim.contrast = contrast;
  claim.scale = "A single SwiGLU neuron with squared errors, in float64.";
  claim.evidence = evidence;
  return claim;
}

// Returns the stationary points with a saturated gate.
Frame PointsAtRest(const Tables& tables) {
  return Frame(tables.at(std::string(kStationaryTable))).Where([](const Frame& row) {
    return row.Number("gradient") < kAtRest && row.Number("slope") <= kNegligibleSlope;
  });
}

// Returns those whose sigma is 1.
Frame InTheLimit(const Tables& tables) {
  return PointsAtRest(tables).Where("gate", ToString(Gate::kSaturated));
}

double LargestOf(const Frame& rows, const char* column) {
  double largest = 0;
  for (const double value : rows.Numbers(column)) largest = std::max(largest, std::fabs(value));
  return largest;
}

using Holds = std::function<bool(const Frame& row)>;

// Returns the evidence of a claim that holds if all rows satisfy it.
Evidence OfAll(const Frame& rows, const Holds& holds, const char* none) {
  if (rows.Empty()) return NotTestedBecause(none);
  const size_t good = rows.Where(holds).Size();
  Evidence evidence;
  evidence.exact = good == rows.Size();
  evidence.measured = fmt::format("{} of {}.", good, rows.Size());
  return evidence;
}

constexpr const char* kNoPoint = "no stationary point with a saturated gate was found";

std::string PointText(const Frame& row) {
  return fmt::format(
      "\n  linear teacher, {}, {}, bias {}, mu {}: |gradient| {:.1e}, largest sigma' {:.1e}, cos {:.1e}, "
      "|w1| {:.9g}, |w2| {:.9g}, least curvature {:.2g}",
      row.Text("design"),
      row.Text("gate"),
      row.Text("bias"),
      row.Text("mu"),
      row.Number("gradient"),
      row.Number("slope"),
      row.Number("cos"),
      row.Number("w1"),
      row.Number("w2"),
      row.Number("least_curvature"));
}

Evidence Theorem(const Settings&, const Tables& tables) {
  const Frame rows = PointsAtRest(tables);
  Evidence evidence = OfAll(
      rows, [](const Frame& row) { return std::fabs(row.Number("cos")) >= kAligned; }, kNoPoint);
  if (!evidence.exact) return evidence;
  evidence.measured = fmt::format(
      "{} of {} points are aligned. Counterexamples:",
      rows.Where([](const Frame& row) { return std::fabs(row.Number("cos")) >= kAligned; }).Size(),
      rows.Size());
  rows.Where("teacher", "linear").ForEach([&](const Frame& row) {
    evidence.measured += PointText(row);
  });
  return evidence;
}

Evidence Squared(const Settings&, const Tables& tables) {
  const Frame rows = InTheLimit(tables);
  Evidence evidence = OfAll(
      rows, [](const Frame& row) { return row.Number("square_error") <= kRounding; }, kNoPoint);
  if (evidence.exact) {
    evidence.measured += fmt::format(" Largest relative error of A^2 w1 = w1: {:.1e}.",
                                     LargestOf(rows, "square_error"));
  }
  return evidence;
}

Evidence Eigenvectors(const Settings&, const Tables& tables) {
  const Frame rows = InTheLimit(tables);
  Evidence evidence = OfAll(
      rows, [](const Frame& row) { return row.Number("vector_error") <= kRounding; }, kNoPoint);
  if (evidence.exact) {
    evidence.measured +=
        fmt::format(" Largest relative error: {:.2g}.", LargestOf(rows, "vector_error"));
  }
  return evidence;
}

bool HasBothParts(const Frame& row) {
  return std::min(row.Number("p"), row.Number("q")) > 0.1 &&
         std::fabs(row.Number("eigenvalue_plus") - 1) <= kRounding &&
         std::fabs(row.Number("eigenvalue_minus") + 1) <= kRounding;
}

Evidence Split(const Settings&, const Tables& tables) {
  const Frame rows = InTheLimit(tables);
  Evidence evidence = OfAll(
      rows,
      [](const Frame& row) {
        return row.Number("split_error") <= kRounding &&
               (row.Text("teacher") != "linear" || HasBothParts(row));
      },
      kNoPoint);
  if (!evidence.exact) return evidence;
  rows.Where("teacher", "linear").ForEach([&](const Frame& row) {
    evidence.measured +=
        fmt::format("\n  {}, mu {}: eigenvalues 1 {:+.1e} and -1 {:+.1e}, |p| {:.6g}, |q| {:.6g}",
                    row.Text("design"),
                    row.Text("mu"),
                    row.Number("eigenvalue_plus") - 1,
                    row.Number("eigenvalue_minus") + 1,
                    row.Number("p"),
                    row.Number("q"));
  });
  return evidence;
}

Evidence Balance(const Settings&, const Tables& tables) {
  const Frame rows = PointsAtRest(tables);
  Evidence evidence = OfAll(
      rows,
      [](const Frame& row) {
        const double square = row.Number("w1") * row.Number("w1");
        const bool limit = row.Text("gate") == ToString(Gate::kSaturated);
        return row.Number("imbalance_error") <= kRounding * square &&
               (!limit || std::fabs(row.Number("imbalance")) <= kRounding * square);
      },
      kNoPoint);
  if (evidence.exact) {
    evidence.measured += fmt::format(
        " Largest ||w1|^2 - |w2|^2|: {:.1e} where sigma is 1, {:.1e} with real gates, which sigma' explains "
        "to {:.1e}.",
        LargestOf(InTheLimit(tables), "imbalance"),
        LargestOf(rows.Where("gate", ToString(Gate::kSigmoid)), "imbalance"),
        LargestOf(rows, "imbalance_error"));
  }
  return evidence;
}

// Judges the neurons that Adam trained for a teacher, with l2 regularisation or without.
Evidence OfStarts(const Tables& tables, const char* teacher, bool regularised, const Holds& holds) {
  const Frame rows =
      Frame(tables.at(std::string(kStartsTable)))
          .Where("teacher", teacher)
          .Where([&](const Frame& row) { return (row.Number("mu") > 0) == regularised; });
  Evidence evidence = OfAll(rows, holds, "no neuron was trained");
  if (!evidence.exact) return evidence;
  double least = 1, most = 0, start = 0;
  rows.ForEach([&](const Frame& row) {
    const double cos = std::fabs(row.Number("cos"));
    least = std::min(least, cos);
    most = std::max(most, cos);
    start += std::fabs(row.Number("cos_start")) / static_cast<double>(rows.Size());
  });
  evidence.measured += fmt::format(
      " |cos| is {:.2g} at the start (mean) and {:.6g} to {:.6g} after {} steps; largest sigma' {:.2g}.",
      start,
      least,
      most,
      rows.Text("steps"),
      LargestOf(rows, "slope"));
  return evidence;
}

bool IsAligned(const Frame& row) { return std::fabs(row.Number("cos")) > kAligned; }
bool IsApart(const Frame& row) { return std::fabs(row.Number("cos")) < 0.1; }

Evidence SquareAligns(const Settings&, const Tables& tables) {
  return OfStarts(tables, "square", true, IsAligned);
}
Evidence SquareAlignsWithoutL2(const Settings&, const Tables& tables) {
  return OfStarts(tables, "square", false, IsAligned);
}
Evidence LinearStaysApart(const Settings&, const Tables& tables) {
  return OfStarts(tables, "linear", true, IsApart);
}

// SwiGLU(u x)/u^2 is sigma(u), so 1 - ratio = 1 / (1 + e^u) <= e^-u.
Evidence Quadratic(const Settings&, const Tables& tables) {
  const Frame rows = Frame(tables.at(std::string(kGrowthTable))).Where("activation", "swiglu");
  Evidence evidence = OfAll(
      rows,
      [](const Frame& row) {
        const double rest = 1 - row.Number("over_square");
        return rest >= 0 && rest <= std::exp(-row.Number("u")) + 1e-15;
      },
      "the table growth is empty");
  if (evidence.exact) {
    evidence.measured += fmt::format(" At u = {}: {}.",
                                     rows.Text(rows.Size() - 1, "u"),
                                     rows.Text(rows.Size() - 1, "over_square"));
  }
  return evidence;
}

Evidence AtMostLinear(const Settings&, const Tables& tables) {
  const Frame rows = Frame(tables.at(std::string(kGrowthTable))).Where([](const Frame& row) {
    return row.Text("activation") != "swiglu";
  });
  return OfAll(
      rows,
      [](const Frame& row) { return std::fabs(row.Number("over_u")) <= 1; },
      "the table growth is empty");
}

}  // namespace

std::vector<ClaimSpec> ExactClaims() {
  // clang-format off
  return {
      ExactClaim("theorem-1", "theorem-1",
                 "At a stationary point with sigma'(w2.x_n) -> 0 for all samples, w1 -> w2 or w1 -> -w2.",
                 "|cos(w1, w2)| at the points of stationary.csv whose gradient is below 1e-10 and whose largest sigma' is at most 0.01. It holds if this is at least 0.99 at each. Counterexample: inputs (z, b) with a constant b, and the linear teacher y = b (v.z) that w1 = (v, 0), w2 = (0, 1) fits", Theorem),
      ExactClaim("a-squared", "equation-2",
                 "At a stationary point with a saturated gate w1 = A^2 w1 and w2 = A^2 w2 for A = sum of lambda_n x_n x_n^T.",
                 "relative error of A^2 w1 = w1 at the points where sigma is 1. It holds if this is at most 1e-9 at each", Squared),
      ExactClaim("eigenvectors", "equation-2",
                 "\"Since A is symmetric this implies that both w1 and w2 are eigenvectors of A with the same eigenvalue: 1 or -1.\"",
                 "relative error of A w1 = w1 or A w1 = -w1 at the points where sigma is 1. It holds if this is at most 1e-9 at each", Eigenvectors),
      ExactClaim("two-eigenspaces", "equation-2",
                 "What does follow from w1 = A w2, w2 = A w1 (analysis of [Fishman]): w1 = p + q and w2 = p - q with A p = p and A q = -q. For the linear teacher neither p nor q is 0.",
                 "relative errors of A p = p and A q = -q with p = (w1 + w2)/2, q = (w1 - w2)/2, at the points where sigma is 1. It holds if they are at most 1e-9 and, for the linear teacher, A has the eigenvalues 1 and -1 and |p|, |q| > 0.1", Split),
      ExactClaim("norm-balance", "equation-1",
                 "At a stationary point of Equation 1 with a saturated gate |w1| = |w2| (analysis of [Fishman]): the inner products of the equations with w1 and w2 have the same first term. With any gate |w1|^2 - |w2|^2 is the sum of delta_n (w1.x_n) (w2.x_n)^2 sigma'_n over mu.",
                 "It holds if both are true to a relative error of 1e-9 at each point of stationary.csv whose gradient is below 1e-10", Balance),
      ExactClaim("square-teacher-aligns", "section-4.2",
                 "The weight vectors \"tend to align\". For a teacher that is a square, y = (v.z + b)^2, Adam with l2 regularisation aligns them.",
                 "|cos(w1, w2)| after --neuron-steps from each of --starts random starts. It holds if this is above 0.99 from each; a computation, not a proof", SquareAligns),
      ExactClaim("aligns-without-l2", "section-4.2",
                 "Not in the paper, which says that alignment \"occurs due to l2 regularization\": for that teacher Adam aligns them without any.",
                 "the same with mu = 0", SquareAlignsWithoutL2),
      ExactClaim("linear-teacher-stays-apart", "section-4.2",
                 "Not in the paper: for the linear teacher, from the same starts and with l2 regularisation, w1 and w2 do not align. Alignment is possible, not forced.",
                 "|cos(w1, w2)| after --neuron-steps from each of --starts random starts. It holds if this is below 0.1 from each; a computation, not a proof", LinearStaysApart),
      ExactClaim("swiglu-is-quadratic", "section-4.1",
                 "If w1 = w2 and w1.x = 1, SwiGLU(c x) / c^2 -> 1 for c -> infinity.",
                 "The ratio is sigma(c), and 1 - sigma(c) < e^-c. It holds if the ratio computed for c = 1, 2, 4, ..., 64 obeys that bound", Quadratic),
      ExactClaim("others-at-most-linear", "section-4.1",
                 "ReLU, GELU and Swish are \"at most linear at large input magnitudes\": lim |f(u)/u| <= 1.",
                 "f(u)/u is 0 or 1 (ReLU) or a value of the logistic function (Swish, GELU in its tanh form). It holds if the magnitude computed for u = 1, -1, 2, -2, ..., -64 is at most 1", AtMostLinear),
  };
  // clang-format on
}

}  // namespace numsim::experiments::swiglu_alignment
