// The experiment `swiglu-alignment`: the alignment of a SwiGLU channel's weights, and the outliers
// that it brings (sections 4.1 to 4.3 of [Fishman]).
//
// w1 is the weight of the linear branch, w2 that of the gate. An *outlier channel* is the channel of all
// MLPs whose activation is the largest over a batch at the end of the training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "experiments/study/study.h"
#include "experiments/study/study_file.h"
#include "experiments/swiglu_alignment/neuron.h"

namespace numsim::experiments {

study::Study SwigluAlignmentStudy();
Experiment SwigluAlignment();

namespace swiglu_alignment {

using study::Arm;
using study::Results;

// ---- the exact part

// The regularisation of the neurons that Adam trains; they are also trained without any.
inline constexpr double kNeuronDecay = 1e-2;

struct StationaryPoint {
  std::vector<double> w;
  double gradient = 0;         // its norm
  double least_curvature = 0;  // least eigenvalue of the Hessian: positive at a minimum
};
// Returns the stationary point that Newton's method finds from w.
StationaryPoint FindStationaryPoint(const NeuronProblem& problem, std::vector<double> w);

// Return the rows of the tables of the exact part.
std::vector<Row> StationaryRows();
std::vector<Row> StartRows(const Settings& settings, uint64_t seed);
std::vector<Row> GrowthRows();

// ---- the trainings

// The part of a training after which the paper looks at "an early training stage": 8 of 330 billion
// tokens.
inline constexpr uint64_t kEarlyPart = 40;
// Returns the steps of a training's records, ascending: 0, the early one, and --points of equal
// distance.
std::vector<uint64_t> RecordSteps(const Settings& settings, uint64_t steps);

// Returns the rows of the centre.
Frame OfCentre(const Results& results, const char* table);

// Returns the probe of the channels.
study::ProbeSpec Channels();
study::Named<std::function<Evidence(const Results&)>> ExactEvidence();
// Adds the functions that the claims about trainings in study.toml name.
void AddClaimFunctions(study::Functions& functions);
study::Named<std::function<Figure(const Results&)>> Figures();

}  // namespace swiglu_alignment
}  // namespace numsim::experiments
