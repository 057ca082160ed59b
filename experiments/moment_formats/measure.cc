// Measures one trial of `moment-formats`: a training.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/training.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::moment_formats {
namespace {

// Statistics of one step over the moments of all matrices.
struct MomentSums {
  double elements = 0, m_flushed = 0, v_flushed = 0;  // numbers of elements
  double tensors = 0, m_error = 0, v_error = 0;       // number of tensors; sums of squared errors
  double update_max = 0;
};

// Returns 0 for NaN: an unknown share or error counts as nothing lost.
double OrZero(double x) { return std::isnan(x) ? 0 : x; }
double Square(double x) { return x * x; }

// Sums the telemetry rows of the last step and clears the telemetry.
MomentSums TakeMoments(Trainer& trainer) {
  const Table& table = trainer.telemetry().Of("optimizer");
  std::map<std::string, double> elements;
  for (const auto& parameter : trainer.model().parameters()) {
    const bool matrix =
        parameter.role == ParameterRole::kMatrix || parameter.role == ParameterRole::kEmbedding;
    if (matrix) elements[parameter.name] = static_cast<double>(parameter.Elements());
  }
  MomentSums sums;
  for (size_t r = 0; r < table.rows.size(); ++r) {
    sums.update_max = std::max(sums.update_max, table.Number(r, "max_update"));
    const auto matrix = elements.find(table.Text(r, "tensor"));
    if (matrix == elements.end()) continue;
    sums.elements += matrix->second;
    sums.m_flushed += matrix->second * OrZero(table.Number(r, "m_flushed"));
    sums.v_flushed += matrix->second * OrZero(table.Number(r, "v_flushed"));
    sums.tensors += 1;
    sums.m_error += Square(OrZero(table.Number(r, "m_error")));
    sums.v_error += Square(OrZero(table.Number(r, "v_error")));
  }
  trainer.telemetry().Clear();
  return sums;
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const MomentPair pair{trial.parameters.at("m"), trial.parameters.at("v")};
  const TrainConfig config = ConfigOf(settings, pair, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  const double start = trainer.Validate().Mean();

  TrainingRows rows({pair.m, pair.v, trial.seed});
  rows.Add(kCurvesTable, {0, start});
  const uint64_t every = config.telemetry.tensors_every;
  LossCurve curve(every);
  for (uint64_t step = 0; trainer.status() == TrainStatus::kRunning; ++step) {
    trainer.Step();
    if (step % every == 0) {
      const MomentSums sums = TakeMoments(trainer);
      // A step that was skipped because of NaN or infinity stored nothing.
      if (sums.elements > 0 && trainer.steps_taken() > step) {
        rows.Add(kFlushedTable,
                 {step + 1,
                  sums.m_flushed / sums.elements,
                  sums.v_flushed / sums.elements,
                  std::sqrt(sums.m_error / sums.tensors),
                  std::sqrt(sums.v_error / sums.tensors),
                  sums.update_max});
      }
    }
    if (curve.Add(trainer)) rows.Add(kCurvesTable, {curve.steps(), curve.loss()});
  }
  const Optimizer::Bytes bytes = trainer.optimizer().StoredBytes();
  rows.Add(kFinalTable,
           {ToString(trainer.status()),
            trainer.steps_taken(),
            start,
            trainer.recent_loss(),
            FinalLoss(trainer),
            trainer.data().EntropyBound().value_or(std::nan("")),
            bytes.m,
            bytes.v});
  return rows.Take();
}

}  // namespace numsim::experiments::moment_formats
