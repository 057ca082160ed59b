// Measures the weight gradients of a training of `switchback-accuracy`.
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/analysis/step_replay.h"
#include "numsim/base/error.h"
#include "numsim/stats/product_error.h"
#include "numsim/train/trainer.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

using study::Measurement;

// All linear layers of both models except the first and last ones.
constexpr const char* kBlockPattern = "*blocks.*";

// Replaces a kind that saves codes of X for backward by the kind that computes the same Y and dX
// but saves X itself.
std::string KindThatKeepsInputs(const std::string& kind) {
  if (kind == "switchback-m") return "switchback";
  if (kind == "te-hybrid") return "tensor-wise";
  return kind;
}

// Returns options that compute Y and dX as `options` do, and dW from operands in fp32.
LinearOptions ExactWeightGradient(LinearOptions options) {
  if (options.kind == kBaseline.kind) {
    // Formats of 16 bits are not scaled, so this is the same cast as in `standard`.
    options.kind = "switchback";
    options.format = options.gradient_format = options.high_precision;
  } else {
    options.kind = KindThatKeepsInputs(options.kind);
    options.high_operands.Insert(LinearOperand::kWeightGradientG);
    options.high_operands.Insert(LinearOperand::kWeightGradientX);
  }
  options.high_precision = "fp32";
  return options;
}

// Compares weight gradients with those of a float64 run, and of a run where they alone are exact.
class GradientProbe final : public study::Probe {
 public:
  explicit GradientProbe(const Measurement& training)
      : has_reference_(
            training.seed - training.settings.seed <
            static_cast<uint64_t>(training.settings.GetInteger("shadow-seeds", 0, 1'000'000))),
        exact_(WithExactWeightGradient(training.trainer.config().linear)) {}

  void Before(Measurement& training) override {
    const uint64_t steps = training.trainer.steps_taken();
    if (has_reference_ && IsShadowStep(training.settings, steps)) AddGradients(training);
  }

 private:
  void AddGradients(Measurement& training) const {
    const StepReplay replay(training.trainer);
    const ReplayPrecision as_trained = numsim::PrecisionOf(training.trainer.config());
    ReplayPrecision with_exact = as_trained;
    with_exact.linear = exact_;
    const StepGradients<double> reference = replay.Run<double>(as_trained);
    const StepGradients<float> own = replay.Run<float>(as_trained);
    const StepGradients<float> exact = replay.Run<float>(with_exact);
    for (const NamedGradient<float>& gradient : own.gradients) {
      if (gradient.role != ParameterRole::kMatrix) continue;
      AddGradient(gradient, *reference.Find(gradient.name), *exact.Find(gradient.name), training);
    }
  }

  static void AddGradient(const NamedGradient<float>& own,
                          const NamedGradient<double>& reference,
                          const NamedGradient<float>& exact,
                          Measurement& training) {
    constexpr std::string_view kSuffix = ".weight";
    NUMSIM_CHECK(own.name.ends_with(kSuffix), "{}", own.name);
    const std::string layer = own.name.substr(0, own.name.size() - kSuffix.size());
    const size_t cols = own.shape.cols;
    const ProductError whole = CompareProduct<double>(reference.values, own.values, cols);
    const ProductError product = CompareProduct<float>(exact.values, own.values, cols);
    training.rows.Add("gradients",
                      {training.trainer.steps_taken(),
                       layer,
                       InnerDimension(training.trainer.config(), layer),
                       whole.relative_error,
                       product.relative_error,
                       whole.cosine});
  }

  bool has_reference_;
  LinearPrecision exact_;
};

}  // namespace

size_t InnerDimension(const TrainConfig& config, std::string_view layer) {
  const ModelConfig& model = config.model;
  const size_t batch = config.train.batch;
  if (model.kind != ModelKind::kClip || layer.starts_with("text.blocks.")) {
    return batch * model.context;
  }
  const size_t patches = (model.image / model.patch) * (model.image / model.patch);
  if (layer == "image.patches") return batch * patches;
  return layer.starts_with("image.blocks.") ? batch * (patches + 1) : batch;
}

size_t Tokens(const TrainConfig& config) {
  return InnerDimension(config,
                        config.model.kind == ModelKind::kClip ? "image.blocks.0" : "blocks.0");
}

bool IsShadowStep(const Settings& settings, uint64_t steps) {
  const auto count = static_cast<uint64_t>(settings.GetInteger("shadow-steps", 0, kMostSteps));
  const auto warmup = static_cast<uint64_t>(settings.GetInteger("warmup", 0, kMostSteps));
  const auto last = static_cast<uint64_t>(settings.GetInteger("steps", 1, kMostSteps));
  for (uint64_t i = 0; i < count; ++i) {
    if (steps == warmup + (last - warmup) * i / count) return true;
  }
  return false;
}

LinearPrecision WithExactWeightGradient(const LinearPrecision& precision) {
  const LinearOptions blocks = ExactWeightGradient(precision.all);
  LinearPrecision exact;
  exact.all = blocks;
  if (precision.first_last_high) {
    exact.all = ExactWeightGradient(kBaseline.Options());
    exact.overrides = {{kBlockPattern, blocks}};
  }
  return exact;
}

study::ProbeSpec Gradients() {
  return {
      .tables = {{"gradients",
                  {{"step", "steps taken before the one that was compared"},
                   {"layer", "linear layer"},
                   {"inner", "inner dimension of its weight gradient"},
                   {"error",
                    "relative error (Frobenius) of its weight gradient dW against the float64 "
                    "reference run"},
                   {"own_error",
                    "relative error of dW against the dW of a run with only that GEMM's operands "
                    "in fp32"},
                   {"cosine", "cosine between dW and the float64 reference run"}}}},
      .make = [](const Measurement& training) {
        return std::make_unique<GradientProbe>(training);
      }};
}

}  // namespace numsim::experiments::switchback_accuracy
