// The evidence of the claims of Appendix B of [SwitchBack], on the times of a linear layer. The sizes of Figure 6
// are those of the authors' script beside [SwitchBack-A100].
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

// The smallest sizes of Figure 6 (right).
constexpr double kPaperDim = 1024, kPaperTokens = 16384;
constexpr double kLargeDim = 4096;

// Selects the rows at sizes of the paper.
Frame AtPaperSizes(const Frame& frame) {
  return frame.Where([](const Frame& row) {
    return row.Number("dim") >= kPaperDim && row.Number("tokens") >= kPaperTokens;
  });
}

// The operations of int8 SwitchBack and of its standard layer, at sizes of the paper.
struct Pair {
  Frame switchback, standard;
  std::string why_not;  // why they test no claim; empty if they do

  explicit Pair(const study::Results& results)
      : switchback(results.Of("operations")), standard(switchback) {
    const Frame layers = results.Of("layers").Where([](const Frame& row) {
      const std::string kind = row.Text("kind");
      return kind == kStandard || (kind == "switchback" && row.Text("format") == "int8");
    });
    if (layers.Empty()) {
      why_not = "no layer of the claim was timed";
      return;
    }
    const LayerKey key = Subject(layers);
    switchback = AtPaperSizes(OfLayer(switchback, key));
    standard = AtPaperSizes(OfLayer(standard, key.Standard()));
    if (key.kind == kStandard || OfLayer(layers, key.Standard()).Empty()) {
      why_not = "--kinds and --formats leave out standard or switchback in int8";
    } else if (key.backend != "cuda") {
      why_not = "out of reach: these are times of a processor, the paper's those of a GPU";
    } else if (switchback.Empty()) {
      why_not = "out of reach: no dim of 1024 or more with 16384 tokens or more";
    }
  }
};

// A quantity at one size, by seed: every seed is timed anew.
struct AtSize {
  double dim = 0, tokens = 0;
  SeedValues values;
};
using PerSeed = std::function<double(const Frame& switchback, const Frame& standard)>;

std::vector<AtSize> ValuesOf(const Pair& pair, const PerSeed& measure) {
  std::vector<AtSize> sizes;
  for (const Frame& size : pair.switchback.By({"dim", "tokens"})) {
    const Frame standard =
        pair.standard.Where("dim", size.Text("dim")).Where("tokens", size.Text("tokens"));
    AtSize& at = sizes.emplace_back(AtSize{size.Number("dim"), size.Number("tokens"), {}});
    for (const Frame& seed : size.By({"seed"})) {
      at.values[seed.Text("seed")] = measure(seed, standard.Where("seed", seed.Text("seed")));
    }
  }
  return sizes;
}

// Returns for each seed the values of all sizes, reduced to one.
SeedValues OverSizes(const std::vector<AtSize>& sizes,
                     double (*reduce)(const std::vector<double>&)) {
  std::map<std::string, std::vector<double>> by_seed;
  for (const AtSize& at : sizes) {
    for (const auto& [seed, value] : at.values) by_seed[seed].push_back(value);
  }
  SeedValues reduced;
  for (const auto& [seed, values] : by_seed) reduced[seed] = reduce(values);
  return reduced;
}

double Least(const std::vector<double>& values) {
  return *std::min_element(values.begin(), values.end());
}
double Most(const std::vector<double>& values) {
  return *std::max_element(values.begin(), values.end());
}
double Average(const std::vector<double>& values) { return MeanOf(values).value; }

// Returns evidence about a quantity with its values, as means over seeds.
Evidence EvidenceOf(const std::string& name,
                    const std::vector<AtSize>& sizes,
                    double (*reduce)(const std::vector<double>&),
                    double reference) {
  Evidence evidence = AgainstReference(name, OverSizes(sizes, reduce), reference);
  for (const AtSize& at : sizes) {
    evidence.measured += fmt::format("{}  dim {}, {} tokens: {:.3g}",
                                     evidence.measured.empty() ? "" : "\n",
                                     at.dim,
                                     at.tokens,
                                     MeanOf(at.values).value);
  }
  return evidence;
}

double PercentSaved(const Frame& switchback, const Frame& standard) {
  return 100 * (1 - PassTimes(switchback).Mean() / PassTimes(standard).Mean());
}

double PercentQuantizing(const Frame& switchback, const Frame&) {
  return 100 * PassTimes(switchback).Share(Part::kQuantize);
}

// Returns the seconds of the GEMMs that SwitchBack computes in int8.
double Int8Seconds(const Frame& operations) {
  return operations.Where("operation", ToString(LinearOp::kForwardProduct)).Mean("seconds") +
         operations.Where("operation", ToString(LinearOp::kInputGradientProduct)).Mean("seconds");
}

double PercentOfGemms(const Frame& switchback, const Frame& standard) {
  return 100 * Int8Seconds(switchback) / Int8Seconds(standard);
}

// Returns log10 of the mean time of a quantise operation over that of a standard GEMM.
double LogOfQuantizing(const Frame& switchback, const Frame& standard) {
  return std::log10(switchback.Where("part", ToString(Part::kQuantize)).Mean("seconds") /
                    standard.Where("part", ToString(Part::kProduct)).Mean("seconds"));
}

// Returns the growth from the smallest to the greatest size along `along`, at each size of the
// other kind at which there are two.
std::vector<AtSize> GrowthOf(const std::vector<AtSize>& sizes,
                             double AtSize::*along,
                             double AtSize::*fixed) {
  std::map<double, std::map<double, AtSize>> lines;
  for (const AtSize& at : sizes) lines[at.*fixed][at.*along] = at;
  std::vector<AtSize> growths;
  for (const auto& [unused, line] : lines) {
    if (line.size() < 2) continue;
    const AtSize& first = line.begin()->second;
    AtSize growth = line.rbegin()->second;
    for (auto& [seed, value] : growth.values) value -= first.values.at(seed);
    growths.push_back(std::move(growth));
  }
  return growths;
}

using EvidenceFunction = std::function<Evidence(const study::Results&)>;

// Returns the function that judges the pair if it tests the claims.
EvidenceFunction OfPair(std::function<Evidence(const Pair&)> measure) {
  return [measure = std::move(measure)](const study::Results& results) {
    const Pair pair(results);
    return pair.why_not.empty() ? measure(pair) : NotTestedBecause(pair.why_not);
  };
}

// Returns the evidence about a quantity, reduced over all sizes and compared with a number.
EvidenceFunction Reduced(const char* name,
                         const PerSeed& measure,
                         double (*reduce)(const std::vector<double>&),
                         double reference) {
  return OfPair([=](const Pair& pair) {
    return EvidenceOf(name, ValuesOf(pair, measure), reduce, reference);
  });
}

EvidenceFunction Growth(const char* option, double AtSize::*along, double AtSize::*fixed) {
  return OfPair([=](const Pair& pair) {
    const auto growth = GrowthOf(ValuesOf(pair, PercentSaved), along, fixed);
    if (growth.empty()) {
      return NotTestedBecause(fmt::format("{} has a single size of the paper", option));
    }
    return EvidenceOf("growth", growth, Average, 0);
  });
}

EvidenceFunction QuantizeShare(double limit, double least_dim) {
  return OfPair([=](const Pair& pair) {
    std::vector<AtSize> sizes = ValuesOf(pair, PercentQuantizing);
    std::erase_if(sizes, [&](const AtSize& at) { return at.dim < least_dim; });
    if (sizes.empty()) {
      return NotTestedBecause(fmt::format("out of reach: no dim of {} or more", least_dim));
    }
    return EvidenceOf("quantising", sizes, Most, limit);
  });
}

// Compares the bytes that the layers save for backward, which no machine changes.
Evidence MemoryEvidence(const study::Results& results) {
  const Frame layers = AtPaperSizes(results.Of("layers"));
  const auto int8 = [&](const char* kind) {
    return layers.Where("kind", kind).Where("format", "int8");
  };
  const Frame saving = int8("switchback-m"), plain = int8("switchback");
  Evidence evidence;
  for (const Frame& size : saving.By({"dim", "tokens"})) {
    const Frame other = plain.Where("dim", size.Text("dim")).Where("tokens", size.Text("tokens"));
    if (other.Empty()) continue;
    const double share = size.Number("kept_bytes") / other.Number("kept_bytes");
    evidence.exact = evidence.exact.value_or(true) && share < 1;
    evidence.measured += fmt::format("{}  dim {}, {} tokens: {:.3g} % of the bytes of switchback",
                                     evidence.measured.empty() ? "" : "\n",
                                     size.Text("dim"),
                                     size.Text("tokens"),
                                     100 * share);
  }
  if (evidence.exact) return evidence;
  return NotTestedBecause(
      "no dim of 1024 or more with 16384 tokens or more was timed with switchback-m and switchback "
      "in int8");
}

}  // namespace

study::Named<EvidenceFunction> ClaimEvidence() {
  return {{"int8-gemms", Reduced("int8 GEMMs", PercentOfGemms, Average, 55)},
          {"quantize-operations", Reduced("a quantise operation", LogOfQuantizing, Average, 0)},
          {"saves-time", Reduced("time saved", PercentSaved, Least, 0)},
          {"growth-with-dim", Growth("--dims", &AtSize::dim, &AtSize::tokens)},
          {"growth-with-tokens", Growth("--tokens", &AtSize::tokens, &AtSize::dim)},
          {"quantize-share", QuantizeShare(25, kPaperDim)},
          {"quantize-share-large-dim", QuantizeShare(12, kLargeDim)},
          {"memory", MemoryEvidence}};
}

}  // namespace numsim::experiments::linear_speed
