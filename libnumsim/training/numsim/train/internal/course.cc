#include "numsim/train/internal/course.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "numsim/base/build_info.h"
#include "numsim/base/error.h"
#include "numsim/base/printable.h"
#include "numsim/base/require.h"
#include "numsim/io/csv.h"
#include "numsim/train/internal/continuation.h"

namespace numsim {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Returns the example counts, which identify the data of a checkpoint, with digests where the data have
// them; the path may change.
std::string DataText(const DataSource& data) {
  std::string text = fmt::format("{} {}", data.shape().train_examples, data.shape().valid_examples);
  for (const auto& [name, digest] : data.Digests()) text += fmt::format(" {} {}", name, digest);
  return text;
}

// Lengths of the field "validation": step and loss, followed for contrastive models by the
// retrieval result. If the retrieval result is missing, as in files of earlier versions, there is
// none until the next validation.
constexpr size_t kLossNumbers = 4, kRetrievalNumbers = 7;

std::vector<double> ValidationNumbers(const Course& course) {
  if (!course.validation.has_value()) return {};
  const LossSum& loss = *course.validation;
  std::vector<double> numbers = {static_cast<double>(course.validated_at),
                                 loss.sum,
                                 static_cast<double>(loss.counted),
                                 static_cast<double>(loss.correct)};
  if (!course.zero_shot.has_value()) return numbers;
  for (const size_t count :
       {course.zero_shot->images, course.zero_shot->correct, course.zero_shot->concepts}) {
    numbers.push_back(static_cast<double>(count));
  }
  return numbers;
}

void RestoreValidation(const std::vector<double>& numbers, Course& course) {
  course.validation.reset();
  course.zero_shot.reset();
  if (numbers.empty()) return;
  if (numbers.size() != kLossNumbers && numbers.size() != kRetrievalNumbers) {
    throw Error::Format("field 'validation' has {} numbers", numbers.size());
  }
  const auto count = [&](size_t i) { return static_cast<size_t>(numbers[i]); };
  course.validated_at = static_cast<uint64_t>(numbers[0]);
  course.validation = LossSum{numbers[1], count(2), count(3)};
  if (numbers.size() == kRetrievalNumbers) {
    course.zero_shot = ZeroShot{count(4), count(5), count(6)};
  }
}

}  // namespace

bool IsDue(uint64_t step, uint64_t every) { return every > 0 && step % every == 0; }

uint64_t TokensPerStep(const TrainConfig& config) {
  return config.train.batch * (TraitsOf(config.model.kind).has_tokens ? config.model.context : 1);
}

std::string_view UnitOf(const TrainConfig& config) {
  return TraitsOf(config.model.kind).has_tokens ? "tokens" : "examples";
}

StepNumbers NumbersOf(const OptimizerStep& step, const ParameterList<float>& parameters) {
  StepNumbers numbers{.gradient_norm = step.gradient_norm,
                      .clip_factor = step.clip_factor,
                      .loss_scale = step.loss_scale,
                      .skipped = parameters.size(),
                      .finite = step.finite};
  if (step.skipped) return numbers;
  numbers.skipped = static_cast<uint64_t>(
      std::ranges::count_if(step.tensors, [](const TensorStep& tensor) { return tensor.skipped; }));
  NUMSIM_REQUIRE(step.tensors.size() == parameters.size(),
                 "NumbersOf: a step of {} tensors, and there are {} parameters",
                 step.tensors.size(),
                 parameters.size());
  size_t i = 0;
  for (const Parameter<float>& parameter : parameters) {
    const TensorStep& tensor = step.tensors[i++];
    if (tensor.skipped || !(tensor.rms > 0)) continue;  // 0: the optimiser has no RMS_t
    // The negated comparison takes the first tensor.
    if (tensor.rms <= numbers.rms) continue;
    numbers.rms = tensor.rms;
    numbers.rms_tensor = parameter.name;
  }
  return numbers;
}

StepNumbers NumbersWithoutStep(size_t tensors, double loss_scale) {
  return {.loss_scale = loss_scale, .skipped = tensors};
}

void Course::EndAtLoss() {
  status = TrainStatus::kDiverged;
  reason = fmt::format("step {}: the loss is not finite", step);
}

void Course::EndStep(const LoopConfig& loop, bool gradients_are_finite) {
  const uint64_t index = step;
  if (!gradients_are_finite) {
    status = TrainStatus::kDiverged;
    reason = fmt::format("step {}: gradients are not finite", index);
    return;
  }
  ++step;
  if (losses.Diverged(loop.diverged_above)) {
    status = TrainStatus::kDiverged;
    reason = fmt::format("step {}: the mean loss of {} steps, {:.4g}, is above {} times the first",
                         index,
                         LossHistory::kRecent,
                         losses.Recent(),
                         loop.diverged_above);
  } else if (step >= loop.steps) {
    status = TrainStatus::kFinished;
  }
}

bool Course::ValidationIsDue(const LoopConfig& loop) const {
  if (validation.has_value() && validated_at == step) return false;
  return status != TrainStatus::kRunning || IsDue(step, loop.valid_every);
}

void Course::RecordValidation(const TrainConfig& config,
                              const LossSum& loss,
                              const std::optional<ZeroShot>& retrieval,
                              Telemetry& telemetry) {
  validation = loss;
  zero_shot = retrieval;
  validated_at = step;
  const bool counts = TraitsOf(config.model.kind).has_accuracy && loss.counted > 0;
  const double accuracy =
      counts ? static_cast<double>(loss.correct) / static_cast<double>(loss.counted) : kNan;
  const double of_images = retrieval.has_value() ? retrieval->Accuracy() : kNan;
  telemetry.Add("valid", {step, loss.Mean(), accuracy, of_images});
}

void Course::RecordStep(const TrainConfig& config,
                        uint64_t index,
                        const StepNumbers& numbers,
                        Telemetry& telemetry) const {
  if (status == TrainStatus::kRunning && !IsDue(index, config.telemetry.every)) return;
  telemetry.Add("train",
                {index,
                 (index + 1) * TokensPerStep(config),
                 losses.Last(),
                 config.schedule.At(index),
                 numbers.gradient_norm,
                 numbers.clip_factor,
                 numbers.loss_scale,
                 numbers.skipped,
                 numbers.rms,
                 numbers.rms_tensor,
                 losses.Deviation()});
}

void Course::Save(const TrainConfig& config, const DataSource& data, TrainState& state) const {
  state.fields = {{"version", std::string(BuildVersion())},
                  {"config", WriteTrainConfig(config)},
                  {"data", DataText(data)},
                  {"step", FormatCell(step)},
                  {"status", std::string(ToString(status))},
                  {"reason", reason},
                  {"losses", NumbersText(losses.Save())},
                  {"validation", NumbersText(ValidationNumbers(*this))}};
}

void Course::Restore(const TrainConfig& config, const DataSource& data, const TrainState& state) {
  CheckContinues(config, state.Field("config"));
  if (state.Field("data") != DataText(data)) {
    throw Error::Format(
        "the data differ: {} examples for training and validation, {} in the checkpoint",
        DataText(data),
        Printable(state.Field("data")));
  }
  step = state.Count("step");
  losses.Restore(state.Numbers("losses"));
  RestoreValidation(state.Numbers("validation"), *this);
  reason = state.Field("reason");
  status = ParseTrainStatus(state.Field("status"));
  if (status != TrainStatus::kDiverged) {
    status = step < config.train.steps ? TrainStatus::kRunning : TrainStatus::kFinished;
  }
}

void SaveSide(const TrainConfig& config, bool forked, TrainState& state) {
  if (config.fork.steps > 0) state.fields.emplace_back(kForkedField, forked ? "yes" : "no");
}

}  // namespace numsim
