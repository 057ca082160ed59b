// A training of a study with the probes that look at it.
#pragma once

#include <memory>
#include <vector>

#include "experiments/study/probe.h"
#include "experiments/study/study.h"

namespace numsim::experiments::study {

class MeasuredTraining {
 public:
  // All arguments must outlive this.
  MeasuredTraining(const Study& study,
                   const Settings& settings,
                   const Arm& arm,
                   uint64_t seed,
                   Trainer& trainer);

  // Measures the state before the first step.
  void Begin();
  // Takes a step.
  void Step();
  // Measures the end and returns the rows.
  Rows End();

  // Lists the variables that are carried from one step to the next.
  void Keep(StateArchive& archive);
  // Goes on from the variables of another arm's training, whose loss at the start this was.
  void GoOnFrom(StateArchive& archive, double start_loss);
  double& start_loss() { return training_.start_loss; }

 private:
  void Each(void (Probe::*call)(Measurement&));

  Measurement training_;
  std::vector<std::unique_ptr<Probe>> probes_;
};

}  // namespace numsim::experiments::study
