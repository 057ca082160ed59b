// Definition of the experiment `quantization-variance`: options, tables, trials.
#include "experiments/quantization_variance/quantization_variance.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/quantization_variance/input.h"
#include "numsim/base/error.h"
#include "numsim/quantize/quantize.h"
#include "numsim/random/distributions.h"

namespace numsim::experiments {
namespace quantization_variance {
namespace {

void CheckOptions(const Settings& settings) {
  ParseFormatList(settings.Get("formats"));
  for (const std::string& text : settings.GetList("granularities")) ParseScaleLayout(text);
  for (const std::string& text : settings.GetList("roundings")) ParseRoundingMode(text);
  settings.GetInteger("pairs", 4, 1'000'000);
  settings.GetInteger("tensor-rows", 1, 4096);
  settings.GetInteger("sr-bits", 1, 32);
  CheckInputOptions(settings);
  if (HasInput(settings)) return;
  for (const std::string& text : settings.GetList("distributions")) ParseDistribution(text);
}

// `cut` names how vectors are cut from an input. It sets the trials apart from those of versions that
// cut them otherwise, so that --resume does not mix both.
Trial MakeTrial(
    const std::string& source, std::string_view cut, size_t length, bool sweep, uint64_t seed) {
  Trial trial;
  trial.label = fmt::format("{}{} k={} seed={}", source, cut, length, seed);
  trial.seed = seed;
  trial.parameters = {
      {"source", source}, {"k", std::to_string(length)}, {"sweep", sweep ? "yes" : "no"}};
  const double weight = source == "student-t3" ? 2 : 1;
  trial.cost = weight * static_cast<double>(length) * (sweep ? 1 : 0.3);
  return trial;
}

// Returns the lengths of D.3 that the sweep does not already measure.
std::vector<size_t> ExtraLengths(const Settings& settings) {
  const std::vector<size_t> sweep = SweepLengths(settings);
  std::vector<size_t> extra;
  for (const DimensionRatio& ratio : DimensionRatios()) {
    for (const size_t length : {ratio.noisy.length, ratio.quiet.length}) {
      const auto has = [length](const std::vector<size_t>& v) {
        return std::find(v.begin(), v.end(), length) != v.end();
      };
      if (!has(sweep) && !has(extra) && length <= sweep.back()) extra.push_back(length);
    }
  }
  std::sort(extra.begin(), extra.end());
  return extra;
}

std::vector<Trial> Trials(const Settings& settings) {
  CheckOptions(settings);
  std::vector<Trial> trials;
  for (const std::string& source : Sources(settings)) {
    const bool extra = source == "normal";
    const std::string_view cut = HasInput(settings) ? " aligned" : "";
    for (int i = 0; i < settings.seeds; ++i) {
      const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
      for (const size_t k : SweepLengths(settings)) {
        trials.push_back(MakeTrial(source, cut, k, true, seed));
      }
      if (!extra) continue;
      for (const size_t k : ExtraLengths(settings)) {
        trials.push_back(MakeTrial(source, cut, k, false, seed));
      }
    }
  }
  return trials;
}

std::vector<Option> Options() {
  return {
      {"distributions",
       "normal,uniform,laplace,student-t3",
       "normal,uniform,laplace,student-t3",
       "distributions of the operands: normal, uniform, laplace, student-t3; all of variance 1"},
      {"formats",
       "int8,e4m3fn,e5m2,bf16",
       "int8,e4m3fn,e5m2,bf16,fp16,e3m4",
       "formats; those of up to 8 bits are scaled by absmax, wider ones are cast"},
      {.name = "granularities",
       .quick = "row,tensor,block:128",
       .paper = "row,tensor,block:128",
       .help = "elements that share a scale: row, tensor, block:N, tile:ROWSxCOLS",
       .demo = "row"},
      {"roundings",
       "rne,sr",
       "rne,sr",
       "rounding modes; sr is measured only with the first granularity"},
      {"sr-bits", "16", "16", "random bits of stochastic rounding, 1 to 32"},
      {"pairs", "128", "1024", "pairs of vectors per trial, 4 or more"},
      {"tensor-rows", "32", "32", "rows of a matrix that share a tensor-wise scale, 1 to 4096"},
      {"k-low", "64", "64", "shortest inner product, a power of two"},
      {"k-high", "131072", "131072", "longest inner product, a power of two"},
      {"input", "", "", ".npy or .safetensors file: use rows of a tensor, not random numbers"},
      {"tensor", "", "", "name of the tensor in --input; its first dimension counts the rows"},
      {"input-b",
       "",
       "",
       "file of a second tensor whose rows are the v; u are rows of the first (default with "
       "--tensor-b: --input)"},
      {"tensor-b",
       "",
       "",
       "name of the tensor in --input-b; its rows must be as long as those of --tensor"},
  };
}

std::vector<TableSpec> TableSpecs() {
  const TableSpec variance{
      std::string(kVarianceTable),
      false,
      {{"source", "distribution of the operands, or tensor of --input"},
       {"format", "format of both operands"},
       {"granularity", "elements that share a scale"},
       {"rounding", "rne or sr"},
       {"k", "length of the inner product"},
       {"seed", "seed of operands and of stochastic rounding"},
       {"sweep", "yes: a power of two of the sweep; no: a dimension of D.3"},
       {"pairs", "inner products measured"},
       {"var_product", "variance of the exact inner product <u, v>"},
       {"var_quantized", "variance of the inner product of the quantised vectors"},
       {"var_error", "variance of the error, quantised minus exact"},
       {"var_error_low", "95 % interval of var_error"},
       {"var_error_high", "95 % interval of var_error"},
       {"mean_error", "mean of the error"},
       {"mean_error_low", "95 % interval of mean_error"},
       {"mean_error_high", "95 % interval of mean_error"},
       {"sigma_u2", "mean square of the elements of u"},
       {"sigma_v2", "mean square of the elements of v"},
       {"sigma_q2", "mean square of the elements' errors, over u and v together"},
       {"prediction", "k sigma_q2 (sigma_u2 + sigma_v2 + sigma_q2), Eq. 12"},
       {"ratio", "var_error / prediction"},
       {"ratio_low", "95 % interval of ratio"},
       {"ratio_high", "95 % interval of ratio"},
       {"added_ratio", "(var_quantized - var_product) / prediction: Eq. 12 taken literally"},
       {"added_ratio_low", "95 % interval of added_ratio"},
       {"added_ratio_high", "95 % interval of added_ratio"},
       {"relative_error", "root mean square of the error over that of the exact product"},
       {"correlation_product", "correlation of the error with the exact product"},
       {"correlation_element", "correlation of an element's error with the element"},
       {"underflow_share", "share of nonzero elements that became zero"},
       {"absmax", "mean over rows of the largest |element|"}}};
  const TableSpec slopes{
      std::string(kSlopesTable),
      true,
      {{"source", "as in variance.csv"},
       {"format", "as in variance.csv"},
       {"granularity", "as in variance.csv"},
       {"rounding", "as in variance.csv"},
       {"lengths", "number of lengths k in the fit, over all seeds"},
       {"slope", "d log var_error / d log k; 1: linear growth"},
       {"slope_low", "95 % interval of slope"},
       {"slope_high", "95 % interval of slope"},
       {"relative_slope", "d log relative_error / d log k; 0: no growth relative to the signal"},
       {"relative_slope_low", "95 % interval of relative_slope"},
       {"relative_slope_high", "95 % interval of relative_slope"},
       {"sigma_q2_slope", "d log sigma_q2 / d log k; 0 in the paper's model"},
       {"ratio_min", "smallest var_error / prediction over k"},
       {"ratio_max", "largest var_error / prediction over k"},
       {"covered_share", "share of trials whose interval of ratio contains 1"}}};
  const TableSpec ratios{
      std::string(kRatiosTable),
      true,
      {{"model", "CLIP ViT-Huge or LLaMA 65B"},
       {"noisy", "the matmul with more noise"},
       {"noisy_k", "inner dimension of that matmul"},
       {"quiet", "the matmul with less noise"},
       {"quiet_k", "inner dimension of that matmul"},
       {"claimed", "ratio of variances in D.3; 0: not in the paper"},
       {"predicted", "noisy_k / quiet_k: Eq. 12 with a constant sigma_q"},
       {"format",
        "format of both operands, which are normal, rounded to nearest even, with scales of the "
        "first granularity"},
       {"measured", "var_error(noisy_k) / var_error(quiet_k)"},
       {"measured_low", "95 % interval of measured"},
       {"measured_high", "95 % interval of measured"},
       {"relative_error_ratio", "relative_error(noisy_k) / relative_error(quiet_k)"},
       {"note", "where the paper and the model differ"}}};
  return {variance, slopes, ratios};
}

// Returns the lengths that were measured: rows of --input may be shorter than --k-high.
std::string ScaleText(const Settings& settings, const Tables& tables) {
  const std::vector<double> lengths = Frame(tables.at(std::string(kVarianceTable))).Numbers("k");
  if (lengths.empty()) return "";
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  return fmt::format("k from {} to {}, {} pairs of vectors", *least, *most, settings.Get("pairs"));
}

}  // namespace

std::vector<std::string> Sources(const Settings& settings) {
  if (!HasInput(settings)) return settings.GetList("distributions");
  return {InputSource(settings)};
}

std::vector<size_t> SweepLengths(const Settings& settings) {
  const auto low = static_cast<size_t>(settings.GetInteger("k-low", 2, 1 << 24));
  auto high = static_cast<size_t>(settings.GetInteger("k-high", 2, 1 << 24));
  const auto is_power = [](size_t n) { return (n & (n - 1)) == 0; };
  if (!is_power(low) || !is_power(high) || low > high) {
    throw Error::Format("--k-low {} and --k-high {} must be powers of two, low <= high", low, high);
  }
  if (HasInput(settings)) {
    const size_t cols = InputColumns(settings);
    if (cols < low) {
      throw Error::Format("--input: rows of {} elements are shorter than --k-low {}", cols, low);
    }
    high = std::min(high, cols);
  }
  std::vector<size_t> lengths;
  for (size_t k = low; k <= high; k *= 2) lengths.push_back(k);
  return lengths;
}

std::vector<Treatment> Treatments(const Settings& settings, const Trial& trial) {
  const auto sr_bits = static_cast<int>(settings.GetInteger("sr-bits", 1, 32));
  const std::vector<std::string> granularities = settings.GetList("granularities");
  const bool sweep = trial.parameters.at("sweep") == "yes";
  std::vector<Treatment> treatments;
  for (const Format& format : ParseFormatList(settings.Get("formats"))) {
    for (const std::string& mode_text : settings.GetList("roundings")) {
      const RoundingMode mode = ParseRoundingMode(mode_text);
      const bool stochastic = mode == RoundingMode::kStochastic;
      if (!sweep && stochastic) continue;
      for (const std::string& granularity : granularities) {
        const bool first = granularity == granularities.front();
        if (!first && (stochastic || !sweep)) continue;
        treatments.push_back(
            {format, ParseScaleLayout(granularity), {mode, StochasticVariant::kA, sr_bits}});
      }
    }
  }
  return treatments;
}

}  // namespace quantization_variance

Experiment QuantizationVariance() {
  using namespace quantization_variance;
  Experiment experiment;
  experiment.name = "quantization-variance";
  experiment.title = "variance that quantisation adds to an inner product, against its length";
  experiment.reproduces = "Appendix D of [SwitchBack]: Eq. 12 and D.3";
  experiment.description =
      "Draws pairs of vectors of length k, quantises both, and compares the inner product of the\n"
      "quantised vectors with the exact one in float64. Claims under test: the variance of the\n"
      "error is k sigma_q^2 (sigma_u^2 + sigma_v^2 + sigma_q^2) and so grows linearly with k\n"
      "(Eq. 12, with sigma_q independent of k); CLIP's weight gradient is therefore 12.8 to 51.2\n"
      "times as noisy as its other matmuls, LLaMA's 4 to 16 times less noisy (D.3). The\n"
      "experiment also measures whether the error grows relative to the signal, and where the\n"
      "model's assumptions fail (sigma_q grows with absmax; rounding errors correlate with the\n"
      "signal; underflow).\n"
      "\n"
      "With --input, u and v are rows of a tensor: two different rows, or a row of --tensor and a\n"
      "row of --tensor-b (activations and weights). For each pair a window of as many adjacent\n"
      "columns as the greatest k is drawn and divided into segments of k columns; u and v are one\n"
      "of these segments, the same columns of both rows. Every k uses the same rows and windows,\n"
      "so points at different k differ in nothing but k. A slope needs three lengths, a useful\n"
      "interval five: use a --k-low of at most a sixteenth of the row.";
  experiment.options = Options();
  experiment.presets = {{"quick", 5, 75}, {"paper", 5, 600}, {"demo", 3, 25}};
  experiment.tables = TableSpecs();
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = {
      {"",
       "The paper derives Eq. 12 for errors that are independent of the elements",
       "D.1",
       "Here elements are rounded, so that an error is a function of its element."}};
  experiment.scale = ScaleText;
  experiment.notes = Notes;
  experiment.unused_options = UnusedOptions;
  return experiment;
}

}  // namespace numsim::experiments
