// Definition of the experiment `fp4-errors`: trials, and the evidence of its exact claims.
#include "experiments/fp4_errors/fp4_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments {
namespace fp4_errors {
namespace {

using study::Results;

constexpr double kRounding = 1e-12;  // relative, of sums in float64

using IsGood = std::function<bool(const Frame& row)>;

// Returns the evidence of a claim that holds if all rows are good.
Evidence OfAll(const Frame& rows, const IsGood& good, const std::string& measured) {
  Evidence evidence;
  const size_t count = rows.Where(good).Size();
  evidence.exact = !rows.Empty() && count == rows.Size();
  evidence.measured = fmt::format("{} of {}{}", count, rows.Size(), measured);
  return evidence;
}

double Largest(const Frame& rows, const char* column) {
  double largest = 0;
  for (const double value : rows.Numbers(column)) largest = std::max(largest, value);
  return largest;
}

Frame Grids(const Results& results, const char* grid) {
  return results.Of("grids").Where("grid", std::string(grid));
}
double Block(const Results& results, const char* source, const char* grid, const char* column) {
  return results.Of("blocks")
      .Where("source", std::string(source))
      .Where("grid", std::string(grid))
      .Number(column);
}

Evidence UniformBins(const Results& results) {
  const auto leans = [](const Frame& row) { return row.Number("lean") > 0; };
  const size_t e2m1 = Grids(results, "e2m1").Where(leans).Size();
  const size_t e1m2 = Grids(results, "e1m2").Where(leans).Size();
  Evidence evidence;
  evidence.exact = e2m1 > 0 && e1m2 == 0;
  evidence.measured = fmt::format(
      "{} of {} inner numbers of e2m1 and {} of {} of e1m2 lie below the middle of their bin.",
      e2m1,
      Grids(results, "e2m1").Size(),
      e1m2,
      Grids(results, "e1m2").Size());
  return evidence;
}

// A tensor of normal elements stays one under any transform.
Evidence ShrinksNormal(const Results& results) {
  const double e2m1 = Block(results, "normal", "e2m1", "shrinkage");
  const double e1m2 = Block(results, "normal", "e1m2", "shrinkage");
  Evidence evidence;
  evidence.exact = e2m1 < 0 && e1m2 >= 0;
  evidence.measured =
      fmt::format("<x, Q(x) - x> / <x, x> is {:.5f} under e2m1 and {:.5f} under e1m2.", e2m1, e1m2);
  return evidence;
}

// Returns the evidence that one grid has the smaller error of the two for a source.
std::function<Evidence(const Results&)> SmallerError(const char* source,
                                                     const char* better,
                                                     const char* worse) {
  return [=](const Results& results) {
    const double small = Block(results, source, better, "nearest");
    const double large = Block(results, source, worse, "nearest");
    Evidence evidence;
    evidence.exact = small < large;
    evidence.measured =
        fmt::format("{} blocks of 16: {:.6f} of the squares under {}, {:.6f} under {}.",
                    source,
                    small,
                    better,
                    large,
                    worse);
    return evidence;
  };
}

Evidence MsEdenUnbiased(const Results& results) {
  return OfAll(
      results.Of("sparse"),
      [](const Frame& row) { return row.Number("bias") <= kRounding; },
      fmt::format(
          " vectors of two elements come back in the mean; the largest bias is {:.3g} of the norm.",
          Largest(results.Of("sparse"), "bias")));
}
Evidence MsEdenProjects(const Results& results) {
  return OfAll(
      results.Of("sparse"),
      [](const Frame& row) { return std::abs(row.Number("projection") - 1) <= kRounding; },
      " vectors of two elements.");
}

Evidence StochasticUnbiased(const Results& results) {
  double share = 0;
  for (const double part : results.Of("scales").Numbers("share")) share += part;
  Evidence evidence;
  evidence.exact = share == 0;
  evidence.measured = fmt::format(
      "The largest element of {:.4g} of the blocks saturates in each draw, for maxima spread evenly over their "
      "logarithms; it loses up to {:.4g} of itself.",
      share,
      Largest(results.Of("scales"), "lost"));
  return evidence;
}

// Of a magnitude spread evenly below the largest, and of the worst one above two thirds of it.
Evidence FourNearLargest(const Results&) {
  const auto worst = [](const char* grid) {
    const std::vector<double>& values = GridOf(grid).values;
    return (values.back() - values[values.size() - 2]) / 2 / values.back();
  };
  Evidence evidence;
  evidence.exact = worst("e2m1-to-4") < worst("e2m1");
  evidence.measured = fmt::format(
      "Largest error between the largest number and the one below it, over the former: {:.4g} under "
      "6, {:.4g} under 4.",
      worst("e2m1"),
      worst("e2m1-to-4"));
  return evidence;
}

// ---- trials

constexpr const char* kExact[] = {"grids", "blocks", "outliers", "sparse", "scales"};

// A difference of two of them is the log of a ratio of squared errors.
double LogError(const Frame& row) { return Log(row.Number("error")) / Log(2.0); }

}  // namespace

std::vector<Trial> Trials(const Settings& settings) {
  settings.GetIntegers("outliers", 1, 1024);
  if (settings.GetInteger("tensor-columns", 128, 1 << 20) % 128 != 0) {
    throw Error::Format("--tensor-columns '{}': expected a multiple of 128, the longest transform",
                        settings.Get("tensor-columns"));
  }
  std::vector<Trial> trials;
  for (const char* const part : kExact) {
    trials.push_back(
        {.label = part, .seed = settings.seed, .parameters = {{"part", part}}, .cost = 1});
  }
  for (const std::string& source : settings.GetList("sources")) {
    ParseDistribution(source);
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      trials.push_back({.label = fmt::format("{} seed={}", source, seed),
                        .seed = seed,
                        .parameters = {{"part", "draws"}, {"source", source}},
                        .cost = 1});
    }
  }
  return trials;
}

Rows Measure(const Settings& settings, const Trial& trial) {
  const std::string& part = trial.parameters.at("part");
  if (part == "grids") return {{part, GridRows()}};
  if (part == "blocks") return {{part, BlockRows()}};
  if (part == "outliers") return {{part, OutlierRows(settings)}};
  if (part == "sparse") return {{part, SparseRows()}};
  if (part == "scales") return {{part, ScaleRows()}};
  return {{part, DrawRows(settings, trial.parameters.at("source"), trial.seed)}};
}

study::Named<std::function<Evidence(const Results&)>> ExactEvidence() {
  return {{"uniform-bins", UniformBins},
          {"shrinks-normal", ShrinksNormal},
          {"e2m1-ahead-on-laplace", SmallerError("laplace", "e2m1", "e1m2")},
          {"e1m2-ahead-on-normal", SmallerError("normal", "e1m2", "e2m1")},
          {"ms-eden-unbiased", MsEdenUnbiased},
          {"ms-eden-projects", MsEdenProjects},
          {"stochastic-unbiased", StochasticUnbiased},
          {"four-near-largest", FourNearLargest}};
}

}  // namespace fp4_errors

Experiment Fp4Errors() {
  using namespace fp4_errors;
  return study::MakeExperiment(study::ReadStudy(study::StudyText("fp4_errors"),
                                                "fp4_errors/study.toml",
                                                {.outcomes = {{"log-error", LogError}},
                                                 .evidence = ExactEvidence(),
                                                 .measurements = {{"errors", {Trials, Measure}}}}));
}

}  // namespace numsim::experiments
