#include "numsim/config/shared/config_table.h"

namespace numsim {
namespace {

ConfigRows<StorageConfig> StorageRows() {
  using S = StorageConfig;
  return {
      FormatRow(
          "activations",
          &S::activations,
          "format in which activations are stored between operations, rounded to nearest even"),
      FormatRow("gradients",
                &S::gradients,
                "format in which gradients of activations are stored, rounded to nearest even"),
  };
}

ConfigRows<StressConfig> StressRows() {
  using S = StressConfig;
  return {
      TextRow("point",
              &S::point,
              "pattern of the names of the activations (training.md) to which `value` is added; "
              "'*' matches any characters; empty: none",
              "a pattern"),
      WholeRow("channel", &S::channel, 0, "column to which `value` is added, in every row"),
      RealRow("value",
              &S::value,
              {-kLargestPlanted, false, kLargestPlanted, false},
              "massive activation: constant added before storage, in training and in validation"),
      RealRow("input_tail",
              &S::input_tail,
              {0, false, kLargestInputTail, false},
              "t for heavy-tailed inputs: pixels and features x become sinh(t x) / t; 0: "
              "unchanged; not for text"),
      WholeRow("jump_step", &S::jump_step, 0, "step from which the two factors below apply"),
      RealRow("jump_loss",
              &S::jump_loss,
              {0, true, kLargestJump, false},
              "factor of the gradients of the loss in training; losses are reported without it"),
      RealRow("jump_contrast",
              &S::jump_contrast,
              {0, true, kLargestJump, false},
              "factor of pixels and features in training; not for text"),
      WholeRow("old_steps",
               &S::old_steps,
               0,
               "number of steps at the start that see the same few batches again and again"),
      WholeRow("old_batches", &S::old_batches, 1, "number of these batches"),
      TextRow("burst_tensor",
              &S::burst_tensor,
              "parameter whose gradient becomes infinite in the steps below; empty: none",
              "a parameter"),
      WholeRow("burst_step", &S::burst_step, 0, "first step with an infinite gradient"),
      WholeRow("burst_steps", &S::burst_steps, 1, "number of such steps"),
      WholeRow(
          "nudge_draw",
          &S::nudge_draw,
          0,
          "number of a draw of one weight, which becomes the next float32 away from zero; 0: none"),
      WholeRow("nudge_step", &S::nudge_step, 0, "step before which it does"),
  };
}

ConfigRows<TelemetryConfig> TelemetryRows() {
  using T = TelemetryConfig;
  return {
      WholeRow("every", &T::every, 1, "steps between rows of train.csv"),
      WholeRow("tensors_every",
               &T::tensors_every,
               0,
               "steps between rows of tensors.csv, quantised.csv and optimizer.csv; 0: no rows"),
  };
}

ConfigRows<CheckpointConfig> CheckpointRows() {
  return {WholeRow("every",
                   &CheckpointConfig::every,
                   0,
                   "steps between checkpoints; 0: only when the run ends or is interrupted")};
}

ConfigRows<TrainConfig> MakeTrainConfigRows() {
  using T = TrainConfig;
  ConfigRows<LinearPrecision> linear;
  InSection(linear, "", &LinearPrecision::all, LinearRows());
  linear.push_back(FlagRow("first_last_high",
                           &LinearPrecision::first_last_high,
                           "use kind standard for the first and the last linear layer"));
  linear.push_back(
      RealRow("high_last",
              &LinearPrecision::high_last,
              kZeroToOne,
              "share of the blocks, the last ones, rounded up, to use kind standard for"));
  ConfigRows<ModelConfig> attention;
  InSection(attention, "attention", &ModelConfig::attention, AttentionRows());
  ConfigRows<T> rows;
  InSection(rows, "model", &T::model, ModelRows());
  InSection(rows, "", &T::model, attention);
  InSection(rows, "linear", &T::linear, linear);
  InSection(rows, "storage", &T::storage, StorageRows());
  InSection(rows, "stress", &T::stress, StressRows());
  InSection(rows, "optimizer", &T::optimizer, OptimizerRows());
  InSection(rows, "schedule", &T::schedule, ScheduleRows());
  InSection(rows, "loss_scaler", &T::loss_scaler, LossScalerRows());
  InSection(rows, "data", &T::data, DataRows());
  InSection(rows, "train", &T::train, LoopRows());
  InSection(rows, "fork", &T::fork, ForkRows());
  InSection(rows, "telemetry", &T::telemetry, TelemetryRows());
  InSection(rows, "what_if", &T::what_if, WhatIfRows());
  InSection(rows, "checkpoint", &T::checkpoint, CheckpointRows());
  return rows;
}

ConfigRows<LinearOverride> MakeLinearOverrideRows() {
  using O = LinearOverride;
  ConfigRows<O> rows = {TextRow(
      "layers",
      &O::layers,
      "pattern of the names of the layers that this table applies to; '*' matches any characters",
      "a pattern")};
  InSection(rows, "", &O::precision, LinearRows());
  return rows;
}

}  // namespace

const ConfigRows<TrainConfig>& TrainConfigRows() {
  static const ConfigRows<TrainConfig> rows = MakeTrainConfigRows();
  return rows;
}

const ConfigRows<LinearOverride>& LinearOverrideRows() {
  static const ConfigRows<LinearOverride> rows = MakeLinearOverrideRows();
  return rows;
}

}  // namespace numsim
