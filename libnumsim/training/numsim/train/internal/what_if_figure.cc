#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "numsim/base/elementary.h"
#include "numsim/stats/moments.h"
#include "numsim/train/internal/curve.h"
#include "numsim/train/internal/what_if_error.h"
#include "numsim/train/internal/what_if_report.h"
#include "numsim/train/internal/what_if_rows.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {
namespace {

// The SQNR of the layers at each step: an infinite one, of a tensor that the format represents
// exactly, cannot be drawn and is left out.
Series SqnrSeries(std::string label, int style, const std::vector<WhatIfRow>& rows) {
  std::map<uint64_t, std::vector<double>> steps;
  for (const WhatIfRow& row : rows) {
    std::vector<double>& values = steps[row.step];
    if (std::isfinite(row.sqnr_db)) values.push_back(row.sqnr_db);
  }
  Curve median, low, high;
  for (const auto& [step, values] : steps) {
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    for (Curve* curve : {&median, &low, &high}) curve->x.push_back(static_cast<double>(step));
    median.y.push_back(values.empty() ? kNone : Quantile(values, 0.5));
    low.y.push_back(values.empty() ? kNone : *std::min_element(values.begin(), values.end()));
    high.y.push_back(values.empty() ? kNone : *std::max_element(values.begin(), values.end()));
  }
  Series series = MakeSeries(std::move(label), style, median);
  series.low = MakeSeries("", style, low).y;
  series.high = MakeSeries("", style, high).y;
  return series;
}

// The SQNR at which the norm of a gradient is sqrt(3) times that of its noise.
Series EffectiveLine(const std::vector<WhatIfRow>& rows, int style) {
  constexpr double kDecibelPerNeper = 4.342944819032518;  // 10 / ln 10
  const double level =
      kDecibelPerNeper * Log(kEffectiveGradientToNoise * kEffectiveGradientToNoise);
  const auto first = static_cast<double>(rows.front().step);
  const auto last = static_cast<double>(rows.back().step);
  Series line =
      MakeSeries("norm of G is √3 times its noise", style, {{first, last}, {level, level}});
  line.dashed = true;
  return line;
}

Panel PanelOf(const WhatIfConfig& config, const WhatIfTable& table, const std::string& tensor) {
  Panel panel;
  panel.title = tensor;
  panel.x.label = "step";
  panel.y.label = "SQNR, dB";
  const bool labels = tensor == "X";  // in one panel alone, for they are one legend
  const std::vector<WhatIfRow>* last = nullptr;
  for (size_t i = 0; i < config.recipes.size(); ++i) {
    const std::string name = ToString(config.recipes[i]);
    const auto found = table.find({name, tensor});
    if (found == table.end()) continue;
    last = &found->second;
    panel.series.push_back(SqnrSeries(labels ? name : "", static_cast<int>(i), found->second));
  }
  if (tensor == "G" && last != nullptr) {
    panel.series.push_back(EffectiveLine(*last, static_cast<int>(config.recipes.size())));
  }
  return panel;
}

}  // namespace

Figure WhatIfFigure(const TrainConfig& config, const std::filesystem::path& directory) {
  const WhatIfTable table = ReadWhatIf(config, directory);
  Figure figure;
  figure.name = kWhatIfTable;
  figure.title = "What if: median and range of the layers";
  figure.columns = static_cast<int>(std::size(kWhatIfTensors));
  figure.source_csv = CsvFile(kWhatIfTable);
  for (const char* const tensor : kWhatIfTensors) {
    Panel panel = PanelOf(config.what_if, table, tensor);
    if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  }
  return figure;
}

}  // namespace numsim
