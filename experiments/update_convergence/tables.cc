// The tables of `update-convergence`.
#include <initializer_list>

#include "experiments/update_convergence/update_convergence.h"

namespace numsim::experiments::update_convergence {
namespace {

TableSpec LossesSpec() {
  TableSpec spec;
  spec.name = std::string(kLossesTable);
  spec.columns = {
      {"problem", "quadratic or logistic"},
      {"optimiser", "momentum or adam"},
      {"format", "format of the weights; fp32: the baseline"},
      {"rule", "update rule"},
      {"lr", "learning rate"},
      {"seed", "seed of start, noise, minibatches and stochastic rounding"},
      {"step", "steps taken"},
      {"loss", "loss of the stored weights; inf: the run ended early"},
      {"travel",
       "<w - start, w32 - start32> / ||w32 - start32||^2, w32: the baseline's weights at this "
       "step"},
      {"moved_share", "share of weights that a step changed, mean since the previous row"},
      {"norm_ratio", "sum of ||new - old|| over sum of lr ||u||, since the previous row"},
      {"projection_ratio", "sum of <new - old, u> over sum of lr ||u||^2, since the previous row"},
      {"step_status", "the most severe status of a step since the previous row"},
      {"status", "status of the run: ok, diverged, nonfinite"},
  };
  return spec;
}

std::vector<Column> WithInterval(const std::string& name, const std::string& meaning) {
  return {{name, meaning},
          {name + "_low", "95 % interval over seeds (Student's t)"},
          {name + "_high", "95 % interval over seeds"}};
}

// Returns columns of these names whose meaning is that of losses.csv.
std::vector<Column> AsInLosses(std::initializer_list<const char*> names) {
  std::vector<Column> columns;
  for (const char* const name : names) columns.push_back({name, "as in losses.csv"});
  return columns;
}

TableSpec RunsSpec() {
  TableSpec spec;
  spec.name = std::string(kRunsTable);
  spec.derived = true;
  const std::vector<Column> rest = {
      {"status", "status at the end"},
      {"loss", "loss at the end"},
      {"progress",
       "baseline's loss at the start minus loss at the end, over the baseline's progress; nan, as "
       "all below but travel and ratios, if the baseline makes none"},
      {"gap_half", "loss minus the baseline's at half-time, over the baseline's progress"},
      {"gap", "loss minus the baseline's at the end, over the baseline's progress"},
      {"gap_growth", "gap minus gap_half"},
      {"gap_master_half",
       "loss minus that of master-fp32 in this format at half-time, over the baseline's progress"},
      {"gap_master",
       "loss minus that of master-fp32 in this format at the end, over the baseline's progress"},
      {"travel_half", "travel as in losses.csv, at half-time"},
      {"travel", "travel as in losses.csv, at the end"},
      {"delay",
       "steps to half of the baseline's progress, over the steps of the baseline; inf: not reached"},
      {"least_delay",
       "the smaller of delay and the steps of the whole training over those of the baseline"},
      {"moved_share", "mean over the run"},
      {"norm_ratio", "mean over the run"},
      {"projection_ratio", "mean over the run"},
  };
  spec.columns = Joined(AsInLosses({"problem", "optimiser", "format", "rule", "lr", "seed"}), rest);
  return spec;
}

TableSpec FinalSpec() {
  TableSpec spec;
  spec.name = std::string(kFinalTable);
  spec.derived = true;
  spec.columns =
      Joined(AsInLosses({"problem", "optimiser", "format", "rule", "lr"}),
             {{"seeds", "number of runs"},
              {"bytes", "bytes per weight, with the state of the rule, without the optimiser's"}});
  const auto add = [&](const std::string& name, const std::string& meaning) {
    for (Column& column : WithInterval(name, meaning)) spec.columns.push_back(std::move(column));
  };
  add("loss", "loss at the end, mean over seeds");
  add("progress",
      "baseline's loss at the start minus loss at the end, over the baseline's progress");
  add("gap", "loss minus the baseline's, over the baseline's progress");
  add("gap_master", "loss minus that of master-fp32 in this format, over the baseline's progress");
  add("gap_growth", "gap at the end minus gap at half-time, over the baseline's progress");
  for (
      const Column& column : std::vector<Column>{
          {"travel_half", "travel as in losses.csv, at half-time, mean over seeds"},
          {"travel", "travel as in losses.csv, at the end, mean over seeds"},
          {"delay",
           "steps to half of the baseline's progress, over the steps of the baseline; mean over "
           "seeds"},
          {"moved_share", "mean over the run and seeds"},
          {"norm_ratio", "mean over the run and seeds"},
          {"projection_ratio", "mean over the run and seeds"},
          {"status", "the worst status of the seeds"},
          {"within_fp32",
           "yes: mean gap at most 0.01 at half-time and at the end; otherwise no; none: fp32 makes "
           "no progress"},
          {"within_master",
           "yes: mean gap_master at most 0.01 at half-time and at the end; otherwise no; none: "
           "master-fp32 was not run, or fp32 makes no progress"},
          {"falls_behind",
           "yes: mean gap above 0.01, and mean gap_growth above 0.001 with its interval above 0; "
           "otherwise no; ended: a run ended early; none: fp32 makes no progress"}}) {
    spec.columns.push_back(column);
  }
  return spec;
}

TableSpec CheapestSpec() {
  TableSpec spec;
  spec.name = std::string(kCheapestTable);
  spec.derived = true;
  const std::vector<Column> rest = {
      {"rule",
       "cheapest rule within 1 % of fp32, the first listed among equals, or none; "
       "note-as-printed, which trains at sqrt(lr), is left out"},
      {"bytes", "bytes per weight under that rule"},
      {"rule_master",
       "cheapest rule within 1 % of master-fp32 in this format, chosen in the same way"},
      {"bytes_master", "bytes per weight under rule_master"}};
  spec.columns = Joined(AsInLosses({"problem", "optimiser", "format", "lr"}), rest);
  return spec;
}

}  // namespace

std::vector<TableSpec> TableSpecs() {
  return {LossesSpec(), RunsSpec(), FinalSpec(), CheapestSpec()};
}

}  // namespace numsim::experiments::update_convergence
