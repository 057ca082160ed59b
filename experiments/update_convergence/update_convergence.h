// Experiment `update-convergence`: the effect of the update rules of numsim/updates/update_rule.h
// on training ([Seed003], Pretraining and Conclusion). study.toml has its options, tables and claims.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/runner/experiment.h"
#include "experiments/study/study_file.h"
#include "experiments/update_convergence/problem.h"
#include "numsim/formats/format_table.h"
#include "numsim/stats/moments.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments {

Experiment UpdateConvergence();

// The parts below are shared between this experiment's files and its tests.
namespace update_convergence {

// The baseline of every rule: the same training without rounding to a small format.
inline constexpr std::string_view kBaselineFormat = "fp32";
inline constexpr std::string_view kBaselineRule = "naive";

// Shares of the baseline's progress. A rule stays "within 1 %" if its gap is at most kWithin at
// half-time and at the end. It falls further behind if its gap is above kWithin at the end and grew
// by more than kGrowth since half-time.
inline constexpr double kWithin = 0.01;
inline constexpr double kGrowth = 0.001;
// A run ends as diverged when its loss exceeds the loss at the start by this factor.
inline constexpr double kDivergence = 1e6;

enum class Optimiser : uint8_t { kMomentum, kAdam };
std::string_view ToString(Optimiser optimiser);
Optimiser ParseOptimiser(std::string_view text);  // throws Error

enum class ProblemKind : uint8_t { kQuadratic, kLogistic };
std::string_view ToString(ProblemKind kind);
ProblemKind ParseProblemKind(std::string_view text);  // throws Error

// The status at the end of a run. If a run ends early, its loss is infinite from then on.
enum class RunStatus : uint8_t {
  kOk,
  kDiverged,   // see kDivergence
  kNonfinite,  // a NaN or infinity in weights, update, state or loss
};
std::string_view ToString(RunStatus status);

// Returns the rules of --rules that serve the format, in the order given. Leaves out kahan:FORMAT
// if it is the same as kahan for this format.
std::vector<UpdateRule> RulesFor(const Settings& settings, const Format& format);
// Returns the formats of --formats. Throws Error naming a format that is the baseline's, is
// unsigned, is listed twice or has no rule.
std::vector<Format> Formats(const Settings& settings);
// Returns the bytes that a weight takes in storage, including the state of the rule.
double BytesPerWeight(const UpdateRule& rule, const FormatSpec& format);

// Returns the steps after which a loss is recorded, in ascending order: 0, equal parts of the
// training, half-time and the end.
std::vector<uint64_t> RecordedSteps(const Settings& settings);

// Returns the learning rate of the trial.
float LearningRate(const Trial& trial);
// Returns the problem that the trial trains.
std::unique_ptr<TrainingProblem> MakeProblem(const Settings& settings, const Trial& trial);
// Returns the first --images images of --input, or generated images without --input. Throws Error
// if the folder cannot be read or holds fewer.
ImageSet ReadImages(const Settings& settings, uint64_t seed);

Rows Measure(const Settings& settings, const Trial& trial);
std::vector<Row> FinalRows(const study::Results& results);
std::vector<Row> CheapestRows(const study::Results& results);
std::vector<Figure> Figures(const study::Results& results);
std::string Notes(const study::Results& results);

// Returns the rows at learning rates that claims are about: below half of bf16's spacing.
Frame LowRates(const study::Results& results, const Frame& runs);
// Returns why no row is; "" if there is one.
std::string NoLowRate(const study::Results& results, const Frame& runs);
// Returns the evidence about delays, which are bounds where a training falls short.
Evidence HeedShortTrainings(const Frame& runs, Evidence delays);

// One run of losses.csv, with one row per recorded step.
struct Run {
  std::string problem, optimiser, format, rule, lr, seed;
  std::vector<double> step, loss, travel;
  double moved_share = 0, norm_ratio = 0, projection_ratio = 0;  // means over the run
  std::string status;                                            // at the end
};
// Returns the runs in the order of the table.
std::vector<Run> RunsOf(const Table& losses);
// Returns the rows of the derived table `runs`: each run that has a baseline with its seed.
std::vector<Row> RunRows(const Table& losses);

}  // namespace update_convergence
}  // namespace numsim::experiments
