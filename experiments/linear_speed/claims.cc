// The claims of Appendix B of [SwitchBack] about the times of a linear layer, and the evidence of a
// run. The sizes of Figure 6 are those of the authors' script beside [SwitchBack-A100].
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

  explicit Pair(const Tables& tables)
      : switchback(tables.at(std::string(kOperationsTable))), standard(switchback) {
    const Frame layers = Frame(tables.at(std::string(kLayersTable))).Where([](const Frame& row) {
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

ClaimSpec TimeClaim(const std::string& name,
                    const std::string& figure,
                    std::string statement,
                    std::string contrast,
                    std::function<Evidence(const Pair&)> measure) {
  ClaimSpec claim;
  claim.id = "linear-speed/" + name;
  claim.items = {"switchback/appendix-b", "switchback/" + figure};
  claim.statement = std::move(statement);
  claim.contrast = std::move(contrast) + "; every seed is timed anew";
  claim.scale =
      "The paper: an A100, dim 1024 to 4096, 16384 to 131072 tokens. Such sizes on a GPU test it.";
  claim.evidence = [measure = std::move(measure)](const Settings&, const Tables& tables) {
    const Pair pair(tables);
    return pair.why_not.empty() ? measure(pair) : NotTestedBecause(pair.why_not);
  };
  return claim;
}

ClaimSpec Gemms() {
  ClaimSpec claim = TimeClaim(
      "int8-gemms",
      "figure-6",
      "\"Int8 multiplies occupy just over half the time as standard fp16 matmuls.\"",
      "time of the forward and the input-gradient GEMM of switchback int8, dequantisation "
      "included, in percent of those of standard: mean over sizes, compared with 55",
      [](const Pair& pair) {
        return EvidenceOf("int8 GEMMs", ValuesOf(pair, PercentOfGemms), Average, 55);
      });
  claim.kind = ClaimKind::kEquivalence;
  claim.no_control = "No other products are known to take a share that is far from this one.";
  claim.margin = {5, "% of the time", "50 to 60 % is just over half."};
  return claim;
}

ClaimSpec QuantizeOperations() {
  ClaimSpec claim = TimeClaim(
      "quantize-operations",
      "figure-6",
      "\"Quantize operations are roughly an order of magnitude less time than a matmul.\"",
      "log10 of the mean time of a quantise operation of switchback int8 over that of a GEMM of "
      "standard: mean over sizes, compared with 0",
      [](const Pair& pair) {
        return EvidenceOf("a quantise operation", ValuesOf(pair, LogOfQuantizing), Average, 0);
      });
  claim.side = -1;
  claim.margin = {0.5, "orders of magnitude", "Half of what the paper states."};
  claim.papers_effect = 1;
  return claim;
}

ClaimSpec Saves() {
  ClaimSpec claim = TimeClaim(
      "saves-time",
      "figure-6",
      "The speedup of SwitchBack over a standard fp16 layer \"ranges from 5% to 35%\".",
      "time that switchback int8 saves over standard, in percent: the least of all sizes, compared "
      "with 0; more than 35 % is no contradiction",
      [](const Pair& pair) {
        return EvidenceOf("time saved", ValuesOf(pair, PercentSaved), Least, 0);
      });
  claim.margin = {2.5, "% of the time", "Half of the least saving that the paper states."};
  claim.papers_effect = 5;
  return claim;
}

ClaimSpec Grows(const std::string& what,
                const char* option,
                double AtSize::*along,
                double AtSize::*fixed) {
  ClaimSpec claim = TimeClaim(
      "grows-with-" + what,
      "figure-6",
      fmt::format("\"The advantage of SwitchBack is greater for larger dim and batch_size * "
                  "sequence_length\": larger {}.",
                  what),
      fmt::format("percent of time that switchback int8 saves over standard, at the greatest {0} "
                  "minus at the smallest of the paper's: mean over the other size, compared with 0",
                  what),
      [=](const Pair& pair) {
        const auto growth = GrowthOf(ValuesOf(pair, PercentSaved), along, fixed);
        if (growth.empty())
          return NotTestedBecause(fmt::format("{} has a single size of the paper", option));
        return EvidenceOf("growth", growth, Average, 0);
      });
  claim.margin = {5, "% of the time", "The margin of times."};
  claim.papers_effect = 30;
  return claim;
}

ClaimSpec QuantizeShare(const std::string& name,
                        std::string statement,
                        double limit,
                        double least_dim) {
  ClaimSpec claim = TimeClaim(
      name,
      "figure-7",
      std::move(statement),
      fmt::format("share of quantise operations in the time of switchback int8, in percent: the "
                  "largest of all sizes of dim {} or more, compared with {}",
                  least_dim,
                  limit),
      [=](const Pair& pair) {
        std::vector<AtSize> sizes = ValuesOf(pair, PercentQuantizing);
        std::erase_if(sizes, [&](const AtSize& at) { return at.dim < least_dim; });
        if (sizes.empty()) {
          return NotTestedBecause(fmt::format("out of reach: no dim of {} or more", least_dim));
        }
        return EvidenceOf("quantising", sizes, Most, limit);
      });
  claim.side = -1;
  claim.margin = {1, "% of the time", "The paper rounds the limit to points."};
  return claim;
}

// Compares the bytes that the layers save for backward, which no machine changes.
Evidence MemoryEvidence(const Tables& tables) {
  const Frame layers = AtPaperSizes(tables.at(std::string(kLayersTable)));
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

ClaimSpec Memory() {
  ClaimSpec claim;
  claim.id = "linear-speed/switchback-m-memory";
  claim.items = {"switchback/section-2.2.1"};
  claim.statement =
      "SwitchBackM is \"a memory efficient version of SwitchBack which only saves 8 bit tensors for "
      "the backwards pass\" (Section 2.2.1).";
  claim.kind = ClaimKind::kExact;
  claim.contrast =
      "bytes that the forward pass saves, switchback-m over switchback, mean of both layers, at "
      "every size of the paper that was timed: fewer. X takes one byte per element in place of two, "
      "and W is saved as well";
  claim.scale = "The paper: dim 1024 to 4096, 16384 to 131072 tokens, on any machine.";
  claim.evidence = [](const Settings&, const Tables& tables) { return MemoryEvidence(tables); };
  return claim;
}

}  // namespace

std::vector<ClaimSpec> Claims() {
  return {Gemms(),
          QuantizeOperations(),
          Saves(),
          Grows("dim", "--dims", &AtSize::dim, &AtSize::tokens),
          Grows("tokens", "--tokens", &AtSize::tokens, &AtSize::dim),
          QuantizeShare("quantize-share",
                        "\"Quantize operations occupy at most 25% of the time.\"",
                        25,
                        kPaperDim),
          QuantizeShare("quantize-share-large-dim",
                        "The share of quantise operations \"decreases to around 10% or below for "
                        "large dim\".",
                        12,
                        kLargeDim),
          Memory()};
}

}  // namespace numsim::experiments::linear_speed
