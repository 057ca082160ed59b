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

// Returns the stationary points with a saturated gate.
Frame PointsAtRest(const Results& results) {
  return results.Of("stationary").Where([](const Frame& row) {
    return row.Number("gradient") < kAtRest && row.Number("slope") <= kNegligibleSlope;
  });
}

// Returns those whose sigma is 1.
Frame InTheLimit(const Results& results) {
  return PointsAtRest(results).Where("gate", ToString(Gate::kSaturated));
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

Evidence Theorem(const Results& results) {
  const Frame rows = PointsAtRest(results);
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

Evidence Squared(const Results& results) {
  const Frame rows = InTheLimit(results);
  Evidence evidence = OfAll(
      rows, [](const Frame& row) { return row.Number("square_error") <= kRounding; }, kNoPoint);
  if (evidence.exact) {
    evidence.measured += fmt::format(" Largest relative error of A^2 w1 = w1: {:.1e}.",
                                     LargestOf(rows, "square_error"));
  }
  return evidence;
}

Evidence Eigenvectors(const Results& results) {
  const Frame rows = InTheLimit(results);
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

Evidence Split(const Results& results) {
  const Frame rows = InTheLimit(results);
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

Evidence Balance(const Results& results) {
  const Frame rows = PointsAtRest(results);
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
        LargestOf(InTheLimit(results), "imbalance"),
        LargestOf(rows.Where("gate", ToString(Gate::kSigmoid)), "imbalance"),
        LargestOf(rows, "imbalance_error"));
  }
  return evidence;
}

// Judges the neurons that Adam trained for a teacher, with l2 regularisation or without.
Evidence OfStarts(const Results& results,
                  const char* teacher,
                  bool regularised,
                  const Holds& holds) {
  const Frame rows = results.Of("starts").Where("teacher", teacher).Where([&](const Frame& row) {
    return (row.Number("mu") > 0) == regularised;
  });
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

Evidence SquareAligns(const Results& results) {
  return OfStarts(results, "square", true, IsAligned);
}
Evidence SquareAlignsWithoutL2(const Results& results) {
  return OfStarts(results, "square", false, IsAligned);
}
Evidence LinearStaysApart(const Results& results) {
  return OfStarts(results, "linear", true, IsApart);
}

// SwiGLU(u x)/u^2 is sigma(u), so 1 - ratio = 1 / (1 + e^u) <= e^-u.
Evidence Quadratic(const Results& results) {
  const Frame rows = results.Of("growth").Where("activation", "swiglu");
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

Evidence AtMostLinear(const Results& results) {
  const Frame rows = results.Of("growth").Where(
      [](const Frame& row) { return row.Text("activation") != "swiglu"; });
  return OfAll(
      rows,
      [](const Frame& row) { return std::fabs(row.Number("over_u")) <= 1; },
      "the table growth is empty");
}

}  // namespace

study::Named<std::function<Evidence(const Results&)>> ExactEvidence() {
  return {{"theorem-1", Theorem},
          {"a-squared", Squared},
          {"eigenvectors", Eigenvectors},
          {"two-eigenspaces", Split},
          {"norm-balance", Balance},
          {"square-teacher-aligns", SquareAligns},
          {"aligns-without-l2", SquareAlignsWithoutL2},
          {"linear-teacher-stays-apart", LinearStaysApart},
          {"swiglu-is-quadratic", Quadratic},
          {"others-at-most-linear", AtMostLinear}};
}

}  // namespace numsim::experiments::swiglu_alignment
