// Measures a training of `moment-formats`: what is lost where moments are stored.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>

#include "experiments/moment_formats/moment_formats.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::moment_formats {
namespace {

using study::Measurement;

// Statistics of one step over the moments of all matrices.
struct MomentSums {
  double elements = 0, m_flushed = 0, v_flushed = 0;  // numbers of elements
  double tensors = 0, m_error = 0, v_error = 0;       // number of tensors; sums of squared errors
  double update_max = 0;
};

// Returns 0 for NaN: an unknown share or error counts as nothing lost.
double OrZero(double x) { return std::isnan(x) ? 0 : x; }
double Square(double x) { return x * x; }

// Sums the telemetry rows of the last step.
MomentSums MomentsOf(Trainer& trainer) {
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

// A probe of the first of every telemetry.tensors_every steps.
class RecordProbe : public study::Probe {
 public:
  void After(Measurement& training) final {
    const Trainer& trainer = training.trainer;
    // A step that was skipped because of NaN or infinity stored nothing.
    const bool stored = trainer.steps_taken() > step_;
    if (step_ % trainer.config().telemetry.tensors_every == 0 && stored) Record(training);
    ++step_;
  }
  void Keep(StateArchive& archive) override { archive(step_); }

 protected:
  virtual void Record(Measurement& training) = 0;

 private:
  uint64_t step_ = 0;
};

class FlushedProbe final : public RecordProbe {
  void Record(Measurement& training) override {
    const MomentSums sums = MomentsOf(training.trainer);
    if (sums.elements == 0) return;
    training.rows.Add("flushed",
                      {training.trainer.steps_taken(),
                       sums.m_flushed / sums.elements,
                       sums.v_flushed / sums.elements,
                       std::sqrt(sums.m_error / sums.tensors),
                       std::sqrt(sums.v_error / sums.tensors),
                       sums.update_max});
  }
};

class SpreadProbe final : public RecordProbe {
 public:
  void End(Measurement& training) override {
    if (!IsBaseline(training.arm)) return;  // what it has then is of the steps before a fork
    for (const auto& [name, spread] : spreads_) {
      training.rows.Add("spread",
                        {spread.step,
                         spread.step_lr,
                         name,
                         spread.embedding ? "embedding" : "matrix",
                         spread.sqrt_v_max,
                         spread.weight_rms});
    }
  }
  void Keep(StateArchive& archive) override {
    RecordProbe::Keep(archive);
    archive(spreads_);
  }

 private:
  void Record(Measurement& training) override {
    if (IsBaseline(training.arm)) UpdateSpreads(training.trainer, spreads_);
  }
  static bool IsBaseline(const Arm& arm) { return MomentPair{arm[kM], arm[kV]} == kBaseline; }

  Spreads spreads_;
};

template <typename T>
std::unique_ptr<study::Probe> Make(const Measurement&) {
  return std::make_unique<T>();
}

}  // namespace

study::ProbeSpec Flushed() {
  return {.tables = {{"flushed",
                      {{"step", "steps taken"},
                       {"m_flushed",
                        "share of nonzero elements of m that are stored as zero; mean over "
                        "matrices, weighted by their sizes"},
                       {"v_flushed",
                        "share of nonzero elements of v that are stored as zero, as "
                        "for m"},
                       {"m_error", "relative error of the stored m, root mean square over tensors"},
                       {"v_error", "relative error of the stored v, root mean square over tensors"},
                       {"update_max", "largest magnitude in the direction of a step"}}}},
          .make = Make<FlushedProbe>};
}

study::ProbeSpec SpreadOfV() {
  return {.tables = {{"spread",
                      {{"step",
                        "steps taken at the record with the largest step_lr sqrt_v_max / "
                        "weight_rms; trainings with fp32 moments only"},
                       {"step_lr", "learning rate of that step"},
                       {"tensor", "name of the matrix"},
                       {"role", "matrix or embedding"},
                       {"sqrt_v_max", "square root of the largest second moment"},
                       {"weight_rms", "root mean square of the weights"}}}},
          .make = Make<SpreadProbe>};
}

}  // namespace numsim::experiments::moment_formats
