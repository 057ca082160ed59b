#include "numsim/train/recorded_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "numsim/base/require.h"
#include "numsim/config/fork.h"
#include "numsim/train/internal/course.h"
#include "numsim/train/internal/run_summary.h"
#include "numsim/train/shared/run_files.h"

namespace numsim {

struct RecordedRun::Parts {
  Parts(const TrainConfig& given, std::shared_ptr<const DataSource> source, RecordOptions chosen)
      : config(given),
        before_fork(BaselineOf(given)),
        data(std::move(source)),
        options(std::move(chosen)),
        run(
            options.out,
            config,
            options.resume,
            [this](TrainState& state) { Restore(state); },
            options.notice) {}

  void Restore(TrainState& state) {
    course.Restore(config, *data, state);
    checkpoint = std::move(state.tensors);
  }

  TrainConfig config, before_fork;
  std::shared_ptr<const DataSource> data;
  RecordOptions options;
  std::string started = UtcNow();
  Course course;
  std::optional<Tensors> checkpoint;
  Telemetry telemetry;
  TrainSpeed speed;
  OpenRun run;  // restores the members above
};

RecordedRun::RecordedRun(const TrainConfig& config,
                         std::shared_ptr<const DataSource> data,
                         RecordOptions options)
    : parts_(std::make_unique<Parts>(config, std::move(data), std::move(options))) {}
RecordedRun::~RecordedRun() = default;

std::optional<RecordedRun::Tensors> RecordedRun::TakeCheckpoint() {
  return std::exchange(parts_->checkpoint, std::nullopt);
}

TrainStatus RecordedRun::status() const { return parts_->course.status; }
const std::string& RecordedRun::reason() const { return parts_->course.reason; }
uint64_t RecordedRun::steps_taken() const { return parts_->course.step; }
double RecordedRun::recent_loss() const { return parts_->course.losses.Recent(); }

bool RecordedRun::ValidationIsDue() const {
  return parts_->course.ValidationIsDue(parts_->config.train);
}

void RecordedRun::AddValidation(const LossSum& loss) {
  Parts& p = *parts_;
  p.course.RecordValidation(p.config, loss, std::nullopt, p.telemetry);
  p.run.files().Append(p.telemetry);
}

TrainStatus RecordedRun::AddStep(double loss, const StepNumbers& numbers, double seconds) {
  Parts& p = *parts_;
  NUMSIM_REQUIRE(p.course.status == TrainStatus::kRunning,
                 "RecordedRun::AddStep: the training is {}, expected running",
                 ToString(p.course.status));
  const uint64_t index = p.course.step;
  p.course.losses.Add(loss);
  if (std::isfinite(loss)) {
    const bool copes = p.config.loss_scaler.kind != LossScaling::kNone;
    p.course.EndStep(p.config.train, numbers.finite || copes);
  } else {
    p.course.EndAtLoss();
  }
  const TrainConfig& trained = index < p.config.fork.steps ? p.before_fork : p.config;
  p.course.RecordStep(trained, index, numbers, p.telemetry);
  p.run.files().Append(p.telemetry);
  p.speed.seconds += seconds;
  p.speed.fastest = p.speed.steps == 0 ? seconds : std::min(p.speed.fastest, seconds);
  ++p.speed.steps;
  return p.course.status;
}

void RecordedRun::Save(Tensors tensors) {
  TrainState state;
  state.tensors = std::move(tensors);
  const TrainConfig& config = parts_->config;
  parts_->course.Save(config, *parts_->data, state);
  SaveSide(config, parts_->course.step > config.fork.steps, state);
  parts_->run.SaveCheckpoint(std::move(state));
}

TrainRunResult RecordedRun::Finish(const Optimizer::Bytes& bytes) {
  const Parts& p = *parts_;
  const RunFacts facts{.config = p.config,
                       .data = *p.data,
                       .status = p.course.status,
                       .reason = p.course.reason,
                       .steps = p.course.step,
                       .recent_loss = p.course.losses.Recent(),
                       .validation = p.course.validation,
                       .parameters = p.options.parameters,
                       .bytes = bytes};
  TrainRunResult result = ResultOf(facts);
  result.speed = p.speed;
  result.speed.unit = UnitOf(p.config);
  if (p.speed.steps > 0) {
    const auto tokens = static_cast<double>(p.speed.steps * TokensPerStep(p.config));
    result.speed.tokens_per_second = tokens / p.speed.seconds;
  }
  if (result.status == TrainStatus::kRunning) return result;
  const RunOrigin origin{
      p.options.out, p.options.figures, p.options.command, p.options.versions, p.started};
  WriteResults(facts, origin, result);
  return result;
}

}  // namespace numsim
