// Columns of the CSV files of a training, prepared as curves of a figure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "numsim/io/csv.h"
#include "numsim/models/model_config.h"
#include "numsim/plot/figure.h"

namespace numsim {

struct Curve {
  std::vector<double> x, y;  // of equal lengths
};

// Returns the column over the table's column `step`. Throws Error if there is no such column or a
// cell is not a number.
Curve CurveOf(const Table& table, std::string_view column);

// Returns for each point the mean of it and of up to `window` - 1 points before it. Requires
// window >= 1.
Curve RunningMean(const Curve& curve, size_t window);

// Returns a series of the curve. Of a curve with more points than a figure can show, only every
// n-th one remains, including the last one.
Series MakeSeries(std::string label, int style, const Curve& curve, bool markers = false);

// Returns the label of an axis that shows losses of such a model, with their unit.
std::string LossLabel(ModelKind kind);

}  // namespace numsim
