#include "numsim/train/internal/curve.h"

#include <fmt/format.h>

namespace numsim {
namespace {

// Largest number of points per curve; more cannot be distinguished in a figure of one paper column.
constexpr size_t kMostPoints = 1000;

// Returns every n-th point, including the last one, so that at most kMostPoints remain.
Curve Thinned(const Curve& curve) {
  const size_t every = (curve.x.size() + kMostPoints - 1) / kMostPoints;
  Curve result;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    if ((curve.x.size() - 1 - i) % every != 0) continue;
    result.x.push_back(curve.x[i]);
    result.y.push_back(curve.y[i]);
  }
  return result;
}

}  // namespace

Curve CurveOf(const Table& table, std::string_view column) {
  Curve curve;
  for (size_t row = 0; row < table.rows.size(); ++row) {
    curve.x.push_back(table.Number(row, "step"));
    curve.y.push_back(table.Number(row, column));
  }
  return curve;
}

Curve RunningMean(const Curve& curve, size_t window) {
  Curve result{curve.x, {}};
  for (size_t i = 0; i < curve.y.size(); ++i) {
    const size_t begin = i + 1 < window ? 0 : i + 1 - window;
    double sum = 0;
    for (size_t j = begin; j <= i; ++j) sum += curve.y[j];
    result.y.push_back(sum / static_cast<double>(i + 1 - begin));
  }
  return result;
}

Series MakeSeries(std::string label, int style, const Curve& curve, bool markers) {
  Curve shown = Thinned(curve);
  Series series;
  series.label = std::move(label);
  series.style = style;
  series.markers = markers;
  series.x = std::move(shown.x);
  series.y = std::move(shown.y);
  return series;
}

std::string LossLabel(ModelKind kind) { return fmt::format("loss, {}", TraitsOf(kind).loss_unit); }

}  // namespace numsim
