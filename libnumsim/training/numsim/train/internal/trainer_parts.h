// The parts of a Trainer, for the files that implement it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "numsim/train/internal/course.h"
#include "numsim/train/internal/gradient_tree.h"
#include "numsim/train/internal/what_if.h"
#include "numsim/train/shared/tensor_telemetry.h"
#include "numsim/train/trainer.h"

namespace numsim {

struct Trainer::Parts {
  Parts(const TrainConfig& given, std::shared_ptr<const DataSource> source);

  // Makes model and optimiser of a configuration: of `whole`, or before its fork of the baseline.
  void Begin(const TrainConfig& of);
  void BeginModel(const TrainConfig& of);
  void BeginOptimizer();
  // Makes them for one side of the fork, unless they are in place; true: the side behind it.
  void BeginAt(bool side);
  // Returns true if the next step is the first after the fork.
  bool ForkIsDue() const;
  // Goes on with model and optimiser of `whole` from the state of the baseline.
  void Fork();

  // Takes a step without validations, and updates the status.
  void TakeStep();
  // Makes a part of the batch of step `step`.
  void MakeBatch(size_t part, Batch& result) const;
  // Prepares the observers of a part of the batch, and returns the one that the pass needs; nullptr if
  // it needs none.
  PassObserver<float>* Observe(size_t part, bool measures);
  // Does the same for the backward pass after a loss that is not finite, which nobody is shown.
  PassObserver<float>* ObserveUnused();
  // Number of examples of a part.
  size_t PartSize() const;
  // Passes a part forward and backward and adds its loss and gradients to those of the parts before.
  // The last part leaves the sums of the gradients in the parameters; they are of no use if a loss is
  // not finite.
  void PassOfPart(size_t part, bool measures, LossSum& loss);
  LossSum Validate();
  // Runs Validate and records a row, if one is due.
  void RecordValidation();

  // Takes the optimiser's step with the current gradients, and updates the status.
  const OptimizerStep& Update(bool measures);
  // Records the parameters and their gradients.
  void RecordParameters(uint64_t index);
  void RecordUpdates(uint64_t index, const OptimizerStep& result);
  TrainConfig whole;   // as given, after FitToData
  TrainConfig config;  // of the steps on this side of the fork
  bool forked = true;  // false: before a fork
  std::shared_ptr<const DataSource> data;
  std::unique_ptr<Model<float>> model;
  std::unique_ptr<Optimizer> optimizer;
  Parameter<float>* burst = nullptr;  // BurstParameter
  TensorObserver observer;
  PassObserver<float>* guest = nullptr;   // of Trainer::Observe
  std::optional<WhatIfObserver> what_if;  // wraps `observer`
  Telemetry telemetry;
  Batch batch;
  GradientTree gradients;  // of the parts of a batch

  Course course;
  // Retrieval result of the last Validate, recorded or not.
  std::optional<ZeroShot> zero_shot;
  ZeroShotRetrieval retrieval;

  StepProfile profile;
  uint64_t steps_timed = 0;
  double step_seconds = 0, fastest_step_seconds = 0;
};

}  // namespace numsim
