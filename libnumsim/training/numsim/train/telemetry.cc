#include "numsim/train/telemetry.h"

#include "numsim/base/require.h"

namespace numsim {
namespace {

const std::vector<TelemetryTable>& AllTables() {
  static const std::vector<TelemetryTable> tables = {
      {"train",
       "every telemetry.every steps, and at the last step",
       {{"step", "steps taken before this one, 0 at first"},
        {"tokens", "tokens trained on, including this step; examples for models without tokens"},
        {"loss", "mean loss of the batch, before the step; cross-entropies in nats"},
        {"lr", "learning rate"},
        {"gradient_norm", "norm of all gradients, without the loss scale and before clipping"},
        {"clip_factor", "factor by which clipping multiplied the gradients"},
        {"loss_scale", "scale of the loss in the backward pass"},
        {"skipped", "number of tensors not updated because of NaN or infinity in gradients"},
        {"rms",
         "largest RMS_t of a tensor (see optimizer.csv); nan if there was no update, or without RMS_t"},
        {"rms_tensor", "name of that parameter"},
        {"loss_deviation",
         "standard deviations by which the loss exceeds the mean of the up to 128 losses before; nan "
         "for the first 16"}}},
      {"valid",
       "before the first step, every train.valid_every steps, and at the end",
       {{"step", "steps taken"},
        {"loss", "mean loss over the validation batches; cross-entropies in nats"},
        {"accuracy", "fraction of correct predictions, 0 to 1; nan for the model mlp"},
        {"zero_shot",
         "clip: fraction of the validation images whose nearest caption, among the captions of all "
         "validation examples, belongs to the image's concept; nan for other models"}}},
      {"tensors",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"point", "name of the tensor; for weights and their gradients, of the parameter"},
        {"role",
         "activation; gradient (times the loss scale); weight (before the step); weight-gradient "
         "(times the loss scale, before clipping)"},
        {"mean_abs", "mean magnitude of the finite elements, as stored"},
        {"max_abs", "largest magnitude of the finite elements"},
        {"rms", "root mean square of the finite elements"},
        {"nonfinite", "number of elements that are NaN or infinite"}}},
      {"quantised",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"layer", "linear layer"},
        {"operand", "which operand of the layer's GEMMs"},
        {"format", "format of the codes"},
        {"amax", "largest magnitude before quantisation, NaN and infinity included"},
        {"underflow", "fraction of the finite elements that were nonzero and became zero, 0 to 1"},
        {"overflow", "fraction of the finite elements beyond the format's range, 0 to 1"},
        {"mse", "mean squared error"},
        {"sqnr_db", "signal-to-quantisation-noise ratio, dB"}}},
      {"optimizer",
       "every telemetry.tensors_every steps",
       {{"step", "steps taken before this one"},
        {"tensor", "name of the parameter"},
        {"rms",
         "RMS_t: root mean square of gradient / sqrt(second moment); adamw and stable-adamw only"},
        {"gradient_norm", "norm of the gradient, without the loss scale and before clipping"},
        {"update_rms", "root mean square of the direction of the step"},
        {"max_update", "largest magnitude in the direction of the step"},
        {"m_flushed", "fraction of the first moment's nonzero elements that were stored as zero"},
        {"v_flushed", "fraction of the second moment's nonzero elements that were stored as zero"},
        {"m_error",
         "relative error of the stored first moment: norm of the error / norm of the moment"},
        {"v_error",
         "relative error of the stored second moment: norm of the error / norm of the moment"},
        {"moved", "fraction of the weights whose value changed"},
        {"skipped", "1 if the tensor was not updated because of NaN or infinity in gradients"}}},
      {kWhatIfTable,
       "every what_if.every steps",
       {{"step", "steps taken before this one"},
        {"layer", "linear layer"},
        {"tensor", "X: input; W: weights; G: gradient of the output, times the loss scale"},
        {"recipe", "the recipe under which the tensor would be quantised"},
        {"overflow",
         "fraction of the finite elements that saturate, because their magnitude times the inverse "
         "scale is above the format's largest value, 0 to 1"},
        {"underflow", "fraction of the finite elements that were nonzero and become zero, 0 to 1"},
        {"sqnr_db",
         "10 log10(sum x^2 / sum (x - q)^2), dB; inf without error, nan for a tensor of zeros"},
        {"mse", "mean squared error of the finite elements"},
        {"scale_min",
         "smallest scale of a group of elements that are not all zero; 1 if there is none"},
        {"scale_max", "largest scale of such a group"},
        {"absmax", "largest magnitude of the finite elements"},
        {"nonfinite", "number of elements that are NaN or infinite; they enter no other column"},
        {"kurtosis",
         "E(x - mean)^4 / var^2 of the finite elements, 3 for a normal distribution; nan if all are "
         "equal"},
        {"gradient_to_noise",
         "of G: norm of x / norm of x - q; inf without error, nan for a tensor of zeros; of X and W: "
         "nan"}}},
  };
  return tables;
}

}  // namespace

std::span<const TelemetryTable> TelemetryTables() { return AllTables(); }

std::span<const TelemetryTable> TelemetryTables(const TrainConfig& config) {
  const std::span<const TelemetryTable> all = AllTables();
  return config.what_if.recipes.empty() ? all.first(all.size() - 1) : all;  // what_if is the last
}

Telemetry::Telemetry() {
  for (const TelemetryTable& table : AllTables()) {
    Table& rows = tables_[std::string(table.name)];
    for (const auto& [column, meaning] : table.columns) rows.columns.emplace_back(column);
  }
}

void Telemetry::Add(std::string_view table, Row cells) {
  const auto found = tables_.find(table);
  NUMSIM_REQUIRE(found != tables_.end(), "Telemetry: there is no table {}", table);
  NUMSIM_REQUIRE(cells.size() == found->second.columns.size(),
                 "Telemetry::Add: a row of {} cells, and table {} has {} columns",
                 cells.size(),
                 table,
                 found->second.columns.size());
  found->second.rows.push_back(std::move(cells));
}

const Table& Telemetry::Of(std::string_view table) const {
  const auto found = tables_.find(table);
  NUMSIM_REQUIRE(found != tables_.end(), "Telemetry: there is no table {}", table);
  return found->second;
}

void Telemetry::Clear() {
  for (auto& [name, table] : tables_) table.rows.clear();
}

}  // namespace numsim
