// Judges how well the maxima of earlier steps predict the next one, as delayed scaling requires.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/shared/special_values.h"
#include "numsim/base/elementary.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/ops/elementwise.h"
#include "numsim/stats/error_measures.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::feature_statistics {
namespace {

constexpr Keyword<Forecast> kNames[] = {{"max", Forecast::kMax}, {"mean", Forecast::kMean}};

// Computes the largest of the last `history` values.
class MovingMax {
 public:
  explicit MovingMax(size_t history) : history_(history) {}

  void Add(double value) {
    while (!kept_.empty() && kept_.back().value <= value) kept_.pop_back();
    kept_.push_back({count_++, value});
    if (kept_.front().index + history_ < count_) kept_.pop_front();
  }
  double Value() const { return kept_.empty() ? 0 : kept_.front().value; }

 private:
  struct Entry {
    size_t index;
    double value;
  };
  size_t history_, count_ = 0;
  std::deque<Entry> kept_;  // descending; each entry is larger than all values after it
};

}  // namespace

double MeanOfLast(std::span<const double> maxima, size_t history) {
  const auto last = maxima.last(std::min(history, maxima.size()));
  double sum = 0;
  for (const double value : last) sum += value;
  return last.empty() ? 0 : sum / static_cast<double>(last.size());
}

double ScaledSqnr(std::span<const float> values, double maximum) {
  static const EncodePlan plan = MakeEncodePlan(kE4M3fn, {}, Overflow::kSaturate);
  const auto scale = static_cast<float>(maximum / MaxFinite(kE4M3fn));
  std::vector<float> rounded;
  rounded.reserve(values.size());
  for (const float value : values) rounded.push_back(value / scale);
  RoundTo(plan, MatrixSpan<float>(rounded.data(), 1, rounded.size()));
  for (float& value : rounded) value *= scale;
  return MeasureError(values, rounded, kInfinity).SqnrDb();
}

std::string_view ToString(Forecast forecast) { return KeywordToString(kNames, forecast); }

ForecastQuality JudgeForecast(std::span<const double> maxima,
                              Forecast forecast,
                              size_t history,
                              size_t first) {
  NUMSIM_CHECK(history >= 1, "history {}", history);
  ForecastQuality quality;
  MovingMax largest(history);
  std::vector<double> changes;
  for (size_t t = 0; t < maxima.size() && std::isfinite(maxima[t]); ++t) {
    const double foretold =
        forecast == Forecast::kMax ? largest.Value() : MeanOfLast(maxima.first(t), history);
    largest.Add(maxima[t]);
    if (t < first || !(foretold > 0) || !(maxima[t] > 0)) continue;
    const double ratio = maxima[t] / foretold;
    ++quality.compared;
    quality.overruns += ratio > 1;
    quality.clipped += ratio > kClips;
    quality.within_2 += ratio < 2 && ratio > 0.5;
    quality.largest_excess = std::max(quality.largest_excess, ratio);
    changes.push_back(std::fabs(Log(ratio) / Log(2)));
  }
  const bool any = !changes.empty();
  quality.change_median = any ? Quantile(changes, 0.5) : std::nan("");
  quality.change_95 = any ? Quantile(changes, 0.95) : std::nan("");
  if (!any) quality.largest_excess = std::nan("");
  return quality;
}

}  // namespace numsim::experiments::feature_statistics
