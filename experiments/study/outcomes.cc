#include "experiments/study/outcomes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "experiments/shared/special_values.h"
#include "experiments/study/lines.h"

namespace numsim::experiments::study {
namespace {

Frame FinishedOf(const Frame& rows) { return rows.Where("status", "finished"); }

Arm ArmOfRow(const Study& study, const Frame& row) {
  Arm arm;
  for (const Axis& axis : study.axes) arm.push_back(row.Text(axis.name));
  return arm;
}

std::vector<Arm> ArmsIn(const Study& study, const Frame& runs) {
  std::vector<Arm> arms;
  runs.ForEach([&](const Frame& run) {
    Arm arm = ArmOfRow(study, run);
    if (std::ranges::count(arms, arm) == 0) arms.push_back(std::move(arm));
  });
  return arms;
}

const std::string& BaselineOf(const Study& study, const std::string& axis) {
  return std::ranges::find(study.axes, axis, &Axis::name)->baseline;
}

// Returns the gap to a baseline; NaN if the baseline diverged.
Estimate GapTo(const Frame& baseline, const Frame& rows) {
  if (FinishedOf(baseline).Size() < baseline.Size()) return {kNaN, kNaN, kNaN};
  return PairedGap(rows.OverSeeds("valid_loss"), baseline.OverSeeds("valid_loss"));
}

Row OutcomeRow(const Results& results,
               const Frame& runs,
               const Arm& arm,
               const std::vector<GapColumn>& gaps) {
  const Frame rows = results.OfArm(runs, arm);
  Row row(arm.begin(), arm.end());
  row.insert(row.end(),
             {rows.Size(),
              rows.Size() - FinishedOf(rows).Size(),
              FinishedOf(rows).Where([](const Frame& run) { return Failed(run); }).Size()});
  Append({MeanOf(rows.OverSeeds("valid_loss"))}, row);
  for (const GapColumn& gap : gaps) {
    Arm baseline = arm;
    for (size_t i = 0; i < arm.size(); ++i) {
      const Axis& axis = results.study.axes[i];
      if (std::ranges::count(gap.baseline_of, axis.name) > 0) baseline[i] = axis.baseline;
    }
    Append({GapTo(results.OfArm(runs, baseline), rows)}, row);
  }
  const auto judged = [](const Frame& run) { return std::isfinite(run.Number("zero_shot")); };
  row.emplace_back(rows.Where(judged).Mean("zero_shot"));
  return row;
}

// Limits the axis of losses to those of the baseline's panel, with some room.
void LimitLosses(const Frame& curves, const Frame& of_baseline, Panel& panel) {
  double low = kInfinity, high = 0;
  for (const double loss : curves.Numbers("loss")) {
    if (std::isfinite(loss)) low = std::min(low, loss);
  }
  for (const double loss : of_baseline.Numbers("loss")) {
    if (std::isfinite(loss)) high = std::max(high, loss);
  }
  const double room = 0.05 * (high - low);
  panel.y.low = low - room;
  panel.y.high = high + 2 * room;
}

SeedValues ValuesOf(const MeanColumn& column, const Frame& runs) {
  if (!column.outcome) return runs.OverSeeds(column.name);
  SeedValues values;
  runs.ForEach([&](const Frame& run) { values[run.Text("seed")] = column.outcome(run); });
  return values;
}

}  // namespace

bool Failed(const Frame& run) {
  return run.Text("status") != "finished" ||
         !(run.Number("valid_loss") <= (1 - kCollapsed) * run.Number("chance_loss"));
}

DerivedTable Outcomes(const std::vector<GapColumn>& gaps) {
  DerivedTable table{
      .name = "outcomes",
      .columns = {{"seeds", "number of seeds"},
                  {"diverged", "number of seeds that diverged"},
                  {"collapsed",
                   "number of other seeds whose loss is less than 5 % below chance_loss"},
                  {"valid_loss", "mean over seeds, nats"},
                  {"valid_loss_low", "95 % interval of valid_loss (Student's t); nan for one seed"},
                  {"valid_loss_high", "95 % interval of valid_loss"}},
      .of_arms = true};
  for (const GapColumn& gap : gaps) {
    const std::string interval = "95 % interval of " + gap.name;
    table.columns.push_back({gap.name, gap.meaning});
    table.columns.push_back({gap.name + "_low", interval});
    table.columns.push_back({gap.name + "_high", interval});
  }
  table.columns.push_back({"zero_shot", "mean over the seeds that did not diverge"});
  table.rows = [gaps](const Results& results) {
    const Frame runs = results.Of(results.study.runs);
    std::vector<Row> rows;
    for (const Arm& arm : ArmsIn(results.study, runs)) {
      rows.push_back(OutcomeRow(results, runs, arm, gaps));
    }
    return rows;
  };
  return table;
}

DerivedTable ArmMeans(const std::string& name, const std::vector<MeanColumn>& columns) {
  DerivedTable table{.name = name, .columns = {{"seeds", "number of seeds"}}, .of_arms = true};
  for (const MeanColumn& column : columns) {
    table.columns.push_back({column.name, column.meaning});
    if (!column.interval) continue;
    table.columns.push_back(
        {column.name + "_low", "95 % interval (Student's t); nan for one seed"});
    table.columns.push_back({column.name + "_high", "95 % interval"});
  }
  table.rows = [columns](const Results& results) {
    const Frame runs = results.Of(results.study.runs);
    std::vector<Row> rows;
    for (const Arm& arm : ArmsIn(results.study, runs)) {
      const Frame own = results.OfArm(runs, arm);
      Row& row = rows.emplace_back(arm.begin(), arm.end());
      row.emplace_back(own.Size());
      for (const MeanColumn& column : columns) {
        const Frame used = column.finished ? FinishedOf(own) : own;
        if (column.diverged) {
          row.emplace_back(own.Size() - FinishedOf(own).Size());
        } else if (column.interval) {
          Append({MeanOf(ValuesOf(column, used))}, row);
        } else if (column.outcome) {
          row.emplace_back(MeanOf(ValuesOf(column, used)).value);
        } else {
          row.emplace_back(used.Mean(column.name));
        }
      }
    }
    return rows;
  };
  return table;
}

std::function<Figure(const Results&)> LossFigure(const std::string& name,
                                                 const std::string& title,
                                                 const std::string& panel,
                                                 const std::string& line,
                                                 PanelTitle panel_title) {
  Lines lines{.name = name,
              .title = title,
              .table = "curves",
              .panel = panel,
              .line = line,
              .x = "step",
              .y = "loss",
              .x_label = "step",
              .y_label = "training loss, nats",
              .to_last = true,
              .panel_title = std::move(panel_title)};
  lines.complete =
      [=](const Results& results, const Frame& curves, const std::string& value, Panel& of) {
        const std::string base = BaselineOf(results.study, panel);
        const std::string other = BaselineOf(results.study, line);
        const Frame of_baseline = curves.Where(panel, base);
        LimitLosses(curves, of_baseline, of);
        if (value == base) return;
        Series baseline = Line(of_baseline.Where(line, other), "step", "loss");
        baseline.low.clear();
        baseline.high.clear();
        baseline.dashed = true;
        AddSeries(std::move(baseline), base + ", " + other, of);
      };
  return Draw(std::move(lines));
}

std::function<Figure(const Results&)> GapFigure(const std::string& name,
                                                const std::string& title,
                                                const std::string& along,
                                                const std::string& line) {
  return [=](const Results& results) {
    const Frame outcomes = results.Of("outcomes");
    std::vector<std::string> values = outcomes.Distinct(along);
    std::erase(values, BaselineOf(results.study, along));
    Figure figure{.name = name, .title = title, .source_csv = "outcomes.csv"};
    if (values.empty()) return figure;
    Panel& panel = figure.panels.emplace_back();
    panel.title = along + "s: ";
    for (size_t i = 0; i < values.size(); ++i) {
      panel.title += fmt::format("{}{} {}", i == 0 ? "" : ", ", i + 1, values[i]);
    }
    panel.x = {.label = along, .low = 0.5, .high = static_cast<double>(values.size()) + 0.5};
    panel.y = {.label = "gap, nats"};
    for (const Frame& rows : outcomes.By({line})) {
      Series series;
      rows.ForEach([&](const Frame& row) {
        const auto at = std::ranges::find(values, row.Text(along));
        if (at == values.end()) return;
        series.x.push_back(static_cast<double>(at - values.begin()) + 1);
        series.y.push_back(row.Number("diverged") > 0 ? kInfinity : row.Number("gap"));
        series.low.push_back(row.Number("gap_low"));
        series.high.push_back(row.Number("gap_high"));
      });
      AddSeries(std::move(series), rows.Text(line), panel);
    }
    return figure;
  };
}

double LossOrStart(const Frame& run) {
  return run.Number(run.Text("status") == "finished" ? "valid_loss" : "start_loss");
}

Frame LastSteps(const Results& results, const Frame& frame) {
  const auto key = [&](const Frame& row) {
    std::string text = row.Text("seed");
    for (const std::string& name : ArmOfRow(results.study, row)) text += " " + name;
    return text;
  };
  std::map<std::string, double> last;
  frame.ForEach([&](const Frame& row) {
    double& step = last[key(row)];
    step = std::max(step, row.Number("step"));
  });
  return frame.Where([&](const Frame& row) { return row.Number("step") == last.at(key(row)); });
}

SeedValues ForBoth(const Frame& a,
                   const Frame& b,
                   const std::function<double(const Frame&, const Frame&)>& value) {
  SeedValues values;
  for (const Frame& training : a.By({"seed"})) {
    const Frame other = b.Where("seed", training.Text("seed"));
    if (!other.Empty()) values[training.Text("seed")] = value(training, other);
  }
  return values;
}

}  // namespace numsim::experiments::study
