#include <cstdlib>
#include <utility>

#include "experiments/feature_statistics/feature_statistics.h"
#include "experiments/fp4_errors/fp4_errors.h"
#include "experiments/fp4_training/fp4_training.h"
#include "experiments/fp8_interventions/fp8_interventions.h"
#include "experiments/fp8_outliers/fp8_outliers.h"
#include "experiments/linear_error/linear_error.h"
#include "experiments/linear_speed/linear_speed.h"
#include "experiments/loss_scaling/loss_scaling.h"
#include "experiments/loss_spikes/loss_spikes.h"
#include "experiments/moment_formats/moment_formats.h"
#include "experiments/moments_over_tokens/moments_over_tokens.h"
#include "experiments/noise_floor/noise_floor.h"
#include "experiments/quantization_variance/quantization_variance.h"
#include "experiments/runner/experiment.h"
#include "experiments/study/own_studies.h"
#include "experiments/swiglu_alignment/swiglu_alignment.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "experiments/update_convergence/update_convergence.h"
#include "experiments/update_fidelity/update_fidelity.h"

namespace numsim::experiments {
namespace {

// Adds the studies of the user.
std::vector<Experiment> WithOwnStudies(std::vector<Experiment> experiments) {
  const char* const paths = std::getenv(study::kOwnStudies);
  if (paths == nullptr) return experiments;
  for (Experiment& own : study::OwnStudies(paths, experiments))
    experiments.push_back(std::move(own));
  return experiments;
}

}  // namespace

const std::vector<Experiment>& AllExperiments() {
  static const std::vector<Experiment> all = WithOwnStudies({
      QuantizationVariance(),
      UpdateFidelity(),
      UpdateConvergence(),
      LinearError(),
      LinearSpeed(),
      MomentFormats(),
      MomentsOverTokens(),
      SwitchbackAccuracy(),
      FeatureStatistics(),
      Fp8Interventions(),
      LossSpikes(),
      LossScaling(),
      Fp8Outliers(),
      SwigluAlignment(),
      NoiseFloor(),
      Fp4Errors(),
      Fp4Training(),
  });
  return all;
}

const Experiment* FindExperiment(std::string_view name) {
  for (const Experiment& experiment : AllExperiments()) {
    if (experiment.name == name) return &experiment;
  }
  return nullptr;
}

}  // namespace numsim::experiments
