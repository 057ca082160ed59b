// Measures one trial of `moment-formats`: a training.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "experiments/moment_formats/moment_formats.h"
#include "experiments/shared/training.h"
#include "experiments/shared/training_steps.h"
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

// The spread of the second moment of a matrix, at the step at which PredictedEpsilon is largest.
struct Spread {
  uint64_t step = 0;
  double step_lr = 0, sqrt_v_max = 0, weight_rms = 1;
  bool embedding = false;

  double Ratio() const { return step_lr * sqrt_v_max / weight_rms; }
  void Keep(StateArchive& archive) { archive(step, step_lr, sqrt_v_max, weight_rms, embedding); }
};
using Spreads = std::map<std::string, Spread>;  // by matrix

double LargestOf(const NamedBytes& state) {
  float largest = 0;
  for (size_t i = 0; i + sizeof(float) <= state.bytes.size(); i += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, state.bytes.data() + i, sizeof(float));
    largest = std::max(largest, value);
  }
  return static_cast<double>(largest);
}

double RootMeanSquare(const Parameter<float>& parameter) {
  double squares = 0;
  for (const float weight : parameter.value.View().Span()) {
    squares += Square(static_cast<double>(weight));
  }
  return std::sqrt(squares / static_cast<double>(parameter.Elements()));
}

// Keeps, for each matrix, the larger of its spread so far and its spread now. Requires a v in
// float32.
void UpdateSpreads(const Trainer& trainer, Spreads& spreads) {
  const std::vector<NamedBytes> saved = trainer.optimizer().Save();
  for (const Parameter<float>& parameter : trainer.model().parameters()) {
    const bool embedding = parameter.role == ParameterRole::kEmbedding;
    if (!embedding && parameter.role != ParameterRole::kMatrix) continue;
    const auto v = std::find_if(saved.begin(), saved.end(), [&](const NamedBytes& state) {
      return state.name == parameter.name + "/v";
    });
    if (v == saved.end()) continue;
    const uint64_t step = trainer.steps_taken();
    const Spread now{step,
                     trainer.config().schedule.At(step - 1),
                     std::sqrt(LargestOf(*v)),
                     RootMeanSquare(parameter),
                     embedding};
    Spread& largest = spreads[parameter.name];
    if (now.Ratio() > largest.Ratio()) largest = now;
  }
}

void AddSpreads(const Spreads& spreads, TrainingRows& rows) {
  for (const auto& [name, spread] : spreads) {
    rows.Add(kSpreadTable,
             {spread.step,
              spread.step_lr,
              name,
              spread.embedding ? "embedding" : "matrix",
              spread.sqrt_v_max,
              spread.weight_rms});
  }
}

}  // namespace

Rows Measure(const Settings& settings, const Trial& trial) {
  const Arm arm = ArmOf(trial);
  const TrainConfig config = ConfigOf(settings, arm, trial.seed);
  Trainer trainer(config, OpenData(config.data));
  const double start = trainer.Validate().Mean();

  TrainingRows rows({arm.pair.m,
                     arm.pair.v,
                     arm.regime.epsilon,
                     arm.regime.update_from,
                     arm.regime.lr,
                     trial.seed});
  rows.Add(kCurvesTable, {0, start});
  Spreads spreads;
  const uint64_t every = config.telemetry.tensors_every;
  LossCurve curve(every);
  uint64_t step = 0;
  TrainingSteps loop(
      trial, trainer, [&](StateArchive& archive) { archive(rows, curve, spreads, step); });
  for (; loop.Next(); ++step) {
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
      if (arm.pair == kBaseline && trainer.steps_taken() > step) UpdateSpreads(trainer, spreads);
    }
    if (curve.Add(trainer)) rows.Add(kCurvesTable, {curve.steps(), curve.loss()});
  }
  AddSpreads(spreads, rows);
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
