// The figures of `loss-scaling`: the scale and the loss of one seed, and what was skipped.
#include "experiments/claims/frame.h"
#include "experiments/loss_scaling/loss_scaling.h"

namespace numsim::experiments::loss_scaling {
namespace {

Series LineOf(const Frame& rows, const char* column, int style) {
  Series line;
  line.label = ArmOf(rows).Text();
  line.style = style;
  line.markers = false;
  rows.ForEach([&](const Frame& row) {
    line.x.push_back(row.Number("step"));
    line.y.push_back(row.Number(column));
  });
  return line;
}

Figure ScaleFigure(const Frame& scale) {
  Figure figure{"scaling-trace", "Loss scale and training loss, one seed", 2, {}, "scale.csv"};
  Panel scales, losses;
  scales.x.label = losses.x.label = "step";
  scales.y = {.label = "loss scale", .log2 = true};
  losses.y.label = "training loss, nats";
  int style = 0;
  for (const Frame& arm : scale.By({"scaler", "scale", "event"})) {
    if (arm.Text("scaler") != kFp32) scales.series.push_back(LineOf(arm, "loss_scale", style));
    losses.series.push_back(LineOf(arm, "loss", style));
    ++style;
  }
  figure.panels = {std::move(scales), std::move(losses)};
  return figure;
}

Figure SkippedFigure(const Frame& arms) {
  Figure figure{.name = "scaling-skipped",
                .title = "Updates of tensors that were skipped",
                .source_csv = "arms.csv"};
  Panel panel;
  panel.x.label = "share of all updates, %";
  Series bars;
  arms.ForEach([&](const Frame& arm) {
    if (arm.Text("scaler") == kFp32) return;
    bars.x.push_back(100 * arm.Number("updates_skipped"));
    bars.y.push_back(static_cast<double>(panel.rows.size()));
    panel.rows.push_back(ArmOf(arm).Text());
  });
  panel.series.push_back(std::move(bars));
  figure.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace

std::vector<Figure> Figures(const Settings& /*settings*/, const Tables& tables) {
  return {ScaleFigure(tables.at(std::string(kScaleTable))),
          SkippedFigure(tables.at(std::string(kArmsTable)))};
}

}  // namespace numsim::experiments::loss_scaling
