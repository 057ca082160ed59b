#include "numsim/models/internal/field_checks.h"
#include "numsim/models/internal/model_kinds.h"
#include "numsim/models/internal/residual_mlp.h"
#include "numsim/ops/elementwise.h"
#include "numsim/random/streams.h"

namespace numsim {
namespace {

ResidualMlpOptions ShapeOf(const ModelConfig& config, bool norms) {
  return {.layers = config.layers,
          .width = config.width,
          .hidden = config.hidden != 0 ? config.hidden : 4 * config.width,
          .inputs = config.inputs,
          .norms = norms,
          .biases = false,
          .norm_epsilon = config.norm_epsilon};
}

LinearPrecision Float32() {
  LinearPrecision precision;
  precision.all.high_precision = "fp32";
  return precision;
}

template <typename T>
class Teacher {
 public:
  Teacher(const ModelConfig& config, uint64_t seed, Place place)
      : parameters_(DeriveSeed(seed, RandomPurpose::kTeacher), InitialValues::kDrawn, place),
        linears_(parameters_, Float32()),
        mlp_(linears_, "teacher.", ShapeOf(config, false)) {}

  // Returns the teacher's outputs, in memory of the teacher. Observers do not see its tensors, and
  // its time is counted as data.
  In<T> Answer(const Pass<T>& pass, MatrixSpan<T> x) {
    const TimedPart timed(pass.profile, StepPhase::kData);
    return mlp_.Forward(Pass<T>{}, x);
  }

 private:
  ParameterList<T> parameters_;
  LinearFactory<T> linears_;
  ResidualMlp<T> mlp_;
};

// Model of kind mlp: the proxy model on which [MXInstability]
// studies instabilities. The student is a residual MLP (residual_mlp.h) with norms. The teacher has
// the same shape without norms; `seed` also decides its weights (RandomPurpose::kTeacher), and it
// computes in float32 (float64 in a model of double) whatever the precision of the student. The
// loss is the squared error against the teacher's outputs, without noise. The tensor names are
// those of the student with prefix "".
//
// As in the paper, the input has `width` features and the output is the residual stream. If the
// number of features differs from `width`, an input and an output projection are added. Unlike the
// paper, the MLPs have no biases, GELU uses the tanh form, and the teacher has residual
// connections.
template <typename T>
class StudentModel final : public LayeredModel<T> {
 public:
  StudentModel(const ModelConfig& config,
               const LinearPrecision& precision,
               uint64_t seed,
               InitialValues initial)
      : LayeredModel<T>(precision, seed, initial),
        inputs_size_(config.inputs),
        teacher_(config, seed, this->parameters_->place()),
        student_(this->linears_, "", ShapeOf(config, true)),
        inputs_(this->parameters_->place()),
        gradient_(this->parameters_->place()) {
    this->linears_.CheckOverrides();
  }

  LossSum Forward(const Pass<T>& pass, const Batch& batch) override;
  void Backward(const Pass<T>& pass) override;

 private:
  size_t inputs_size_;
  Teacher<T> teacher_;
  ResidualMlp<T> student_;
  Buffer<T> inputs_, gradient_;
  In<T> answers_, results_;  // in memory of the teacher and the student
};

template <typename T>
LossSum StudentModel<T>::Forward(const Pass<T>& pass, const Batch& batch) {
  const MatrixSpan<T> inputs = inputs_.Resize(batch.examples, inputs_size_);
  {
    const TimedPart timed(pass.profile, StepPhase::kData);
    Upload<T>(batch.values, inputs);
  }
  answers_ = teacher_.Answer(pass, inputs);
  results_ = student_.Forward(pass, inputs);
  const TimedPart timed(pass.profile, StepPhase::kLoss);
  MatrixSpan<T> gradient;
  if (pass.gradients) gradient = gradient_.Resize(results_.rows, results_.cols);
  return SquaredError<T>(results_, answers_, pass.loss_scale, gradient);
}

template <typename T>
void StudentModel<T>::Backward(const Pass<T>& pass) {
  student_.Backward(pass, gradient_.View());
}

void CheckMlp(const ModelConfig& config) { CheckSize("inputs", config.inputs); }

bool FitFeatures(ModelConfig& config, const DataShape& data) {
  if (data.features == 0) return false;
  config.inputs = data.features;
  return true;
}

}  // namespace

const ModelKindRow& MlpRow() {
  static constexpr ModelKindRow kRow = MakeRow<StudentModel>(
      {.has_accuracy = false, .loss_unit = "mean square"}, "gaussian", CheckMlp, FitFeatures);
  return kRow;
}

}  // namespace numsim
