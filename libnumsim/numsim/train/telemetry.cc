#include "numsim/train/telemetry.h"

#include "numsim/base/error.h"

namespace numsim {
namespace {

const std::vector<TelemetryTable>& AllTables() {
  static const std::vector<TelemetryTable> tables = {
      {"train",
       "every telemetry.every steps, and the last one",
       {{"step", "steps taken before this one, 0 at first"},
        {"tokens", "tokens trained on, this step's included; examples where there are no tokens"},
        {"loss", "mean loss of the batch, before the step; nats for cross entropies"},
        {"lr", "learning rate"},
        {"gradient_norm", "norm of all gradients, without the loss scale and before clipping"},
        {"clip_factor", "factor by which clipping multiplied the gradients"},
        {"loss_scale", "factor of the loss in the backward pass"},
        {"skipped", "tensors that did not move, for NaN or infinity in gradients"}}},
      {"valid",
       "before the first step, every train.valid_every steps, and at the end",
       {{"step", "steps taken"},
        {"loss", "mean loss over the validation batches; nats for cross entropies"},
        {"accuracy", "share of right predictions, 0 to 1; nan for the model mlp"},
        {"zero_shot",
         "clip: share of the validation images whose nearest caption, among those of all examples "
         "of the validation, is one of their concept; nan for others"}}},
      {"tensors",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"point", "where in the model; of weights and their gradients the name of the parameter"},
        {"role",
         "activation; gradient, times the loss scale; weight, before the step; weight-gradient, "
         "times the loss scale and before clipping"},
        {"mean_abs", "mean magnitude of the finite elements, as they are stored"},
        {"max_abs", "largest magnitude of those"},
        {"rms", "root mean square of those"},
        {"nonfinite", "elements that are NaN or infinite"}}},
      {"quantised",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"layer", "linear layer"},
        {"operand", "which operand of the layer's products"},
        {"format", "format of the codes"},
        {"amax", "largest magnitude before quantisation, NaN and infinity included"},
        {"underflow", "share of the finite elements that became zero and were not, 0 to 1"},
        {"overflow", "share of the finite elements beyond the format's range, 0 to 1"},
        {"mse", "mean square of the error"},
        {"sqnr_db", "signal to quantisation noise, dB"}}},
      {"optimizer",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"tensor", "name of the parameter"},
        {"rms", "RMS_t: root mean square of gradient over root of the second moment; Adam alone"},
        {"gradient_norm", "without the loss scale and before clipping"},
        {"update_rms", "root mean square of the direction of the step"},
        {"max_update", "largest magnitude in that direction"},
        {"m_flushed", "share of the first moment's elements, not zero, that were stored as zero"},
        {"v_flushed", "the same of the second moment"},
        {"m_error", "relative error of the stored first moment: root of the sums of squares"},
        {"v_error", "the same of the second moment"},
        {"moved", "share of the weights whose value changed"},
        {"skipped", "1 where the tensor did not move, for NaN or infinity in its gradient"}}},
  };
  return tables;
}

}  // namespace

std::span<const TelemetryTable> TelemetryTables() { return AllTables(); }

Telemetry::Telemetry() {
  for (const TelemetryTable& table : AllTables()) {
    Table& rows = tables_[std::string(table.name)];
    for (const auto& [column, meaning] : table.columns) rows.columns.emplace_back(column);
  }
}

void Telemetry::Add(std::string_view table, std::vector<std::string> cells) {
  const auto found = tables_.find(table);
  NUMSIM_CHECK(found != tables_.end(), "no table {}", table);
  NUMSIM_CHECK(cells.size() == found->second.columns.size(), "{}: {} cells", table, cells.size());
  found->second.rows.push_back(std::move(cells));
}

const Table& Telemetry::Of(std::string_view table) const {
  const auto found = tables_.find(table);
  NUMSIM_CHECK(found != tables_.end(), "no table {}", table);
  return found->second;
}

void Telemetry::Clear() {
  for (auto& [name, table] : tables_) table.rows.clear();
}

}  // namespace numsim
