// The derived tables of `quantization-variance`: fitted slopes and D.3's ratios.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/shared/log_slope.h"
#include "numsim/base/elementary.h"

namespace numsim::experiments::quantization_variance {
namespace {

constexpr double kZ95 = 1.959963984540054;

Row SlopeRow(const Frame& curve) {
  const Estimate growth = LogSlope(curve, "k", "var_error", LogVarianceError);
  const Estimate relative = LogSlope(curve, "k", "relative_error", LogRelativeError);
  const std::vector<double> ratios = curve.Numbers("ratio");
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  const Frame covered = curve.Where([](const Frame& row) {
    return row.Number("ratio_low") <= 1 && 1 <= row.Number("ratio_high");
  });
  return {curve.Text("source"),
          curve.Text("format"),
          curve.Text("granularity"),
          curve.Text("rounding"),
          curve.Distinct("k").size(),
          growth.value,
          growth.low,
          growth.high,
          relative.value,
          relative.low,
          relative.high,
          LogSlope(curve, "k", "sigma_q2").value,
          *low,
          *high,
          static_cast<double>(covered.Size()) / static_cast<double>(curve.Size())};
}

// Variance of the error and relative error at one length, as geometric means over seeds; log_error2
// is the squared standard error of log_variance.
struct LengthError {
  double log_variance = 0, log_error2 = 0, log_relative = 0;
  int seeds = 0;
};

LengthError ErrorAt(const Frame& rows, size_t k) {
  LengthError sum;
  rows.Where("k", k).ForEach([&](const Frame& row) {
    if (!(row.Number("var_error") > 0)) return;
    const double log_error = LogVarianceError(row);
    sum.log_variance += Log(row.Number("var_error"));
    sum.log_relative += Log(row.Number("relative_error"));
    sum.log_error2 += log_error * log_error;
    ++sum.seeds;
  });
  if (sum.seeds == 0) return sum;
  sum.log_variance /= sum.seeds;
  sum.log_relative /= sum.seeds;
  sum.log_error2 /= sum.seeds * sum.seeds;
  return sum;
}

void AddRatio(const DimensionRatio& ratio, const Frame& of_format, std::vector<Row>& ratios) {
  const auto& [noisy_at, quiet_at, claimed, note] = ratio;
  const LengthError noisy = ErrorAt(of_format, noisy_at.length);
  const LengthError quiet = ErrorAt(of_format, quiet_at.length);
  if (noisy.seeds == 0 || quiet.seeds == 0) return;
  const double log_ratio = noisy.log_variance - quiet.log_variance;
  const double half = kZ95 * std::sqrt(noisy.log_error2 + quiet.log_error2);
  ratios.push_back({noisy_at.model,
                    noisy_at.operation,
                    noisy_at.length,
                    fmt::format("{} {}", quiet_at.model, quiet_at.operation),
                    quiet_at.length,
                    claimed,
                    static_cast<double>(noisy_at.length) / static_cast<double>(quiet_at.length),
                    of_format.Text("format"),
                    Exp(log_ratio),
                    Exp(log_ratio - half),
                    Exp(log_ratio + half),
                    Exp(noisy.log_relative - quiet.log_relative),
                    note});
}

}  // namespace

const std::vector<DimensionRatio>& DimensionRatios() {
  static const NamedDimension clip_gradient{"CLIP ViT-Huge", "weight gradient", 65536};
  static const NamedDimension llama_output{
      "LLaMA 65B", "output projection as the paper has it", 32768};
  static const std::vector<DimensionRatio> ratios = {
      {clip_gradient, {"CLIP ViT-Huge", "forward or backward, inner 1280", 1280}, 51.2, ""},
      {clip_gradient, {"CLIP ViT-Huge", "forward or backward, inner 5120", 5120}, 12.8, ""},
      {llama_output, {"LLaMA 65B", "weight gradient", 2048}, 16, ""},
      {{"LLaMA 65B", "forward, inner 8192", 8192}, {"LLaMA 65B", "weight gradient", 2048}, 4, ""},
      {{"LLaMA 65B", "output projection of the model", 22016},
       {"LLaMA 65B", "weight gradient", 2048},
       0,
       "LLaMA 65B's feed-forward width is 22016; the paper computes with 4 x 8192 = 32768"},
      {clip_gradient, llama_output, 2, ""},
  };
  return ratios;
}

std::string FirstGranularity(const Settings& settings) {
  return ToString(ParseScaleLayout(settings.GetList("granularities").front()));
}

// The interval in the table is var_error * exp(+-1.96 error).
double LogVarianceError(const Frame& row) {
  return Log(row.Number("var_error_high") / row.Number("var_error_low")) / (2 * kZ95);
}

// A root mean square of n values has about half the relative error of their variance.
double LogRelativeError(const Frame& row) { return 0.5 * LogVarianceError(row); }

std::vector<Row> SlopeRows(const study::Results& results) {
  std::vector<Row> rows;
  const Frame sweep = results.Of("variance").Where("sweep", "yes");
  for (const Frame& curve : sweep.By({"source", "format", "granularity", "rounding"})) {
    rows.push_back(SlopeRow(curve));
  }
  return rows;
}

std::vector<Row> RatioRows(const study::Results& results) {
  const std::vector<Frame> formats = results.Of("variance")
                                         .Where("source", "normal")
                                         .Where("granularity", FirstGranularity(results.settings))
                                         .Where("rounding", "rne")
                                         .By({"format"});
  std::vector<Row> rows;
  for (const DimensionRatio& ratio : DimensionRatios()) {
    for (const Frame& of_format : formats) AddRatio(ratio, of_format, rows);
  }
  return rows;
}

}  // namespace numsim::experiments::quantization_variance
