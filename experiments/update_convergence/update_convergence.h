// Experiment `update-convergence`: what the update rules of numsim/updates/update_rule.h mean for
// training ([Seed003], Pretraining and Conclusion).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/core/experiment.h"
#include "experiments/update_convergence/problem.h"
#include "numsim/formats/format_table.h"
#include "numsim/stats/moments.h"
#include "numsim/updates/update_rule.h"

namespace numsim::experiments {

Experiment UpdateConvergence();

// The parts below are shared between this experiment's files and its tests.
namespace update_convergence {

inline constexpr std::string_view kLossesTable = "losses";
inline constexpr std::string_view kFinalTable = "final";
inline constexpr std::string_view kCheapestTable = "cheapest";

// What every rule is compared with: the same training without rounding to a small format.
inline constexpr std::string_view kBaselineFormat = "fp32";
inline constexpr std::string_view kBaselineRule = "naive";

// Shares of the baseline's progress. A rule stays "within 1 %" when its gap is at most the first,
// at half-time and at the end. It falls further behind when it is not within that at the end and
// its gap grew by more than the second since half-time.
inline constexpr double kWithin = 0.01;
inline constexpr double kGrowth = 0.001;
// A run ends as diverged when its loss exceeds this many times the loss at the start.
inline constexpr double kDivergence = 1e6;

enum class Optimiser : uint8_t { kMomentum, kAdam };
std::string_view ToString(Optimiser optimiser);
Optimiser ParseOptimiser(std::string_view text);  // throws Error

enum class ProblemKind : uint8_t { kQuadratic, kLogistic };
std::string_view ToString(ProblemKind kind);
ProblemKind ParseProblemKind(std::string_view text);  // throws Error

// How a run ended. The loss of a run that ended early is infinite from then on.
enum class RunStatus : uint8_t {
  kOk,
  kDiverged,   // see kDivergence
  kNonfinite,  // a NaN or infinity in weights, update, state or loss
};
std::string_view ToString(RunStatus status);

// The rules of --rules that CheckUpdateRule accepts for the format, in their order.
std::vector<UpdateRule> RulesFor(const Settings& settings, const Format& format);
// The formats of --formats without the baseline's. Throws Error naming one without a sign, twice
// or without a rule.
std::vector<Format> Formats(const Settings& settings);
// Bytes a weight takes in storage, with what the rule keeps beside it.
double BytesPerWeight(const UpdateRule& rule, const FormatSpec& format);

// The steps after which a loss is recorded, ascending: 0, equal parts, half-time and the end.
std::vector<uint64_t> RecordedSteps(const Settings& settings);

// The learning rate of the point.
float LearningRate(const Trial& trial);
// What the point trains.
std::unique_ptr<TrainingProblem> MakeProblem(const Settings& settings, const Trial& trial);
// Reads --input and checks that it serves. Throws Error.
ImageSet ReadImages(const Settings& settings, uint64_t seed);

std::vector<TableSpec> TableSpecs();
Rows Measure(const Settings& settings, const Trial& trial);
void Derive(const Settings& settings, Tables& tables);
std::vector<Figure> Figures(const Settings& settings, const Tables& tables);
Summary Summarise(const Settings& settings, const Tables& tables);

// One run of the table of losses, a row for each recorded step.
struct Run {
  std::string problem, optimiser, format, rule, lr, seed;
  std::vector<double> step, loss, travel;
  double moved_share = 0, norm_ratio = 0, projection_ratio = 0;  // means over the run
  std::string status;                                            // at the end
};
// In the order of the table.
std::vector<Run> RunsOf(const Table& losses);

}  // namespace update_convergence
}  // namespace numsim::experiments
