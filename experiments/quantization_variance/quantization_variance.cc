// Definition of the experiment `quantization-variance`: what study.toml does not say, and trials.
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

// Returns the lengths that were measured: rows of --input may be shorter than --k-high.
std::string ScaleText(const study::Results& results) {
  const std::vector<double> lengths = results.Of("variance").Numbers("k");
  if (lengths.empty()) return "";
  const auto [least, most] = std::minmax_element(lengths.begin(), lengths.end());
  return fmt::format(
      "k from {} to {}, {} pairs of vectors", *least, *most, results.settings.Get("pairs"));
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
  study::Functions functions{
      .values = {{"first-granularity", FirstGranularity},
                 {"own-source",
                  [](const Settings& settings) { return HasInput(settings) ? "*" : "normal"; }}},
      .tables = {{"slopes", SlopeRows}, {"dimension-ratios", RatioRows}},
      .figures = {{"relative-error", RelativeFigure}},
      .scales = {{"lengths", ScaleText}},
      .measurements = {{"inner-products", {Trials, Measure}}}};
  AddClaimFunctions(functions);
  study::Study study = study::ReadStudy(
      study::StudyText("quantization_variance"), "quantization_variance/study.toml", functions);
  study.notes = Notes;
  study.unused_options = UnusedOptions;
  return study::MakeExperiment(std::move(study));
}

}  // namespace numsim::experiments
