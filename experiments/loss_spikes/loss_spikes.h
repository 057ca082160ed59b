// The experiment `loss-spikes`: loss spikes, RMS_t and update clipping (section 3 and appendices E
// and F of [SwitchBack]).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"
#include "numsim/stats/spikes.h"

namespace numsim::experiments {

study::Study LossSpikesStudy();
Experiment LossSpikes();

namespace loss_spikes {

using study::Arm;
using study::Results;

// The places of the axes in an arm.
enum Place : size_t { kModel, kSize, kBatch, kLr, kWarmup, kData, kBeta2, kOptimizer };

inline constexpr const char *kAdamW = "adamw", *kStable = "stable-adamw", *kStudent = "mlp";
inline constexpr const char *kSteady = "steady", *kNewData = "new";
inline constexpr const char* kSchedule = "1-t^-";  // begins the text of a schedule of beta2

// Returns the arm with another value of an axis.
Arm With(Arm arm, Place place, std::string value);
// Returns the arm from which every axis of the options departs, with that beta2.
Arm Centre(const Settings& settings, const std::string& beta2);
// Return the two values of --axis-beta2, and the first of --optimizer-beta2 or "".
std::string High(const Settings& settings);
std::string Low(const Settings& settings);
std::string RemedyBeta2(const Settings& settings);
// Returns where a value lies along its axis: the number, or layers x width^2 of a size.
double PlaceOf(Place place, const std::string& value);
// Returns the values along an axis in its order: those of an option, and the centre.
std::vector<std::string> ValuesAlong(const Settings& settings, Place place, const char* option);
std::vector<std::string> SchedulesOf(const Settings& settings);
std::vector<Arm> ArmsOf(const study::Study& study, const Settings& settings);
// Returns the spike rule of an arm.
SpikeRule RuleOf(const Settings& settings, const Arm& arm);
uint64_t ChangeStep(const Settings& settings);
// Steps before --change-step with which those after it are compared.
inline constexpr uint64_t kBeforeChange = 50;
// Returns the name of the parameter that reads the input.
std::string InputParameter(const std::string& model);
Arm ArmOfRow(const Frame& row);

study::ProbeSpec Spikes();
std::vector<Row> Predictions(const Results& results);
study::Named<std::function<Evidence(const Results&)>> PredictionEvidence();
// Adds the functions that the claims in study.toml name.
void AddClaimFunctions(study::Functions& functions);
// Compares arms with each other.
Evidence Compare(const Results& results,
                 const study::ClaimRow& claim,
                 const std::vector<study::ArmContrast>& contrasts);
study::Named<std::function<Figure(const Results&)>> Figures();
double Loss(const Frame& run);

// The events of one run.
struct RunEvents {
  Arm arm;
  std::string seed;
  uint64_t first = 0, last = 0;  // steps that count
  std::vector<uint64_t> spikes,
      lost;                                          // loss spikes, and the steps that each costs
  std::map<std::string, std::vector<uint64_t>> rms;  // RMS spikes by parameter
  std::optional<std::vector<uint64_t>> curvature;    // if it was measured
};
inline constexpr const char *kAny = "any", *kCurvature = "curvature";
inline constexpr const char *kSteadyScope = "steady", *kNewScope = "new",
                            *kStudentScope = "student";
// Returns the events of AdamW runs. A scope is "steady" (the first model without a change of the
// data), "new" (after the change to new data, once the running mean has only seen these) or
// "student".
std::vector<RunEvents> EventsOf(const Settings& settings,
                                const Tables& tables,
                                std::string_view scope);
// Returns the parameters that have RMS spikes in these runs, sorted, then "any" for those of all
// parameters and, if all runs have it, "curvature".
std::vector<std::string> PredictorsOf(const std::vector<RunEvents>& runs);
// Returns the events of a predictor in the runs that have it.
std::vector<EventSeries> SeriesOf(const std::vector<RunEvents>& runs, const std::string& predictor);

}  // namespace loss_spikes
}  // namespace numsim::experiments
