#include "numsim/optim/internal/optimizer_at_place.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/require.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/moments/shared/moment_at_place.h"
#include "numsim/optim/internal/optimizer_stores.h"
#include "numsim/optim/internal/optimizer_tensor.h"
#include "numsim/optim/internal/place_memory.h"
#include "numsim/optim/optimizer_kinds.h"
#include "numsim/random/streams.h"
#include "numsim/updates/shared/update_parts.h"

namespace numsim {
namespace {

constexpr StateRole kRoles[2] = {StateRole::kFirstMoment, StateRole::kSecondMoment};

DirectionKind DirectionKindOf(OptimizerKind kind) {
  if (kind == OptimizerKind::kAdamW || kind == OptimizerKind::kStableAdamW) {
    return DirectionKind::kAdam;
  }
  if (kind == OptimizerKind::kSgd) return DirectionKind::kSgd;
  if (kind == OptimizerKind::kLion) return DirectionKind::kLion;
  throw Error::Format("the device has no optimiser {}: it has adamw, stable-adamw, sgd and lion",
                      ToString(kind));
}

size_t StateCount(OptimizerKind kind) {
  return DirectionKindOf(kind) == DirectionKind::kAdam ? 2 : 1;
}

// Returns true for rules that find a factor for a whole tensor: their weights step by ApplyUpdate.
bool StepsApart(const UpdateRule& rule) { return Searches(rule.kind); }

StepConstants ConstantsOf(const OptimizerConfig& config,
                          const LossScalerConfig& scaler,
                          uint64_t seed,
                          const Buffer<uint8_t>& m_tables,
                          const Buffer<uint8_t>& v_tables) {
  const auto tables = [](const Buffer<uint8_t>& buffer) {
    return reinterpret_cast<const MomentTables*>(buffer.View().data);
  };
  const auto beta1 = static_cast<float>(config.beta1), beta2 = static_cast<float>(config.beta2);
  const FormatSpec& format = config.weights.spec;
  const EncodePlan own = OwnPlan(config.update, format);
  const bool stochastic = config.update.kind == UpdateKind::kStochastic;
  const bool lion = config.kind == OptimizerKind::kLion;
  const bool plain_weights = config.update.kind == UpdateKind::kNaive && format == kFp32;
  const MomentCodec m(config.m, true, tables(m_tables)), v(config.v, false, tables(v_tables));
  const auto of_all = [&](bool (*holds)(const MomentCodec&)) {
    return holds(m) && (holds(v) || StateCount(config.kind) == 1);
  };
  const auto shift = [](const MomentCodec& codec) {
    return static_cast<uint8_t>(codec.has_blocks ? std::countr_zero(codec.block) : 0);
  };
  return {
      .kind = DirectionKindOf(config.kind),
      .clips_by_rms = config.kind.row->clips_by_rms,
      .from_stored = config.update_from_stored && !lion,
      .apart = StepsApart(config.update),
      .stable = config.stable,
      .adam = {config.kind == OptimizerKind::kStableAdamW,
               beta1,
               beta2,
               static_cast<float>(config.epsilon),
               config.beta2_decay},
      .of_direction = RatesKeeping(beta1),
      .of_m = lion ? RatesKeeping(beta2) : AverageRates{beta1, 1},
      .weight_decay = config.weight_decay,
      .clip_norm = config.clip_norm,
      .scaler = scaler,
      .moment_seed = DeriveSeed(seed, RandomPurpose::kMoments),
      .update_seed = DeriveSeed(seed, RandomPurpose::kUpdate),
      .codecs = {m, v},
      .plain_moments = config.m.IsExact() && (config.v.IsExact() || StateCount(config.kind) == 1),
      .bare = IsBare(m) && IsBare(v) && (lion || !config.update_from_stored) &&
              !StepsApart(config.update),
      .fp8_moments = of_all(IsFp8),
      .ranges_in_step = plain_weights && of_all(FindsRangesInStep),
      .ranges_with_gradient = config.clip_norm == 0 && of_all(IsFp8OfTensors),
      .block_shift = {shift(m), shift(v)},
      .update = config.update.kind,
      .plain_weights = plain_weights,
      .rule = MakeStepRule(stochastic ? own : WeightPlan(format)),
      .own = MakeStepRule(own),
      .largest = MaxFinite(format)};
}

double RootMean(double square, size_t n) {
  return n == 0 ? 0 : std::sqrt(square / static_cast<double>(n));
}

}  // namespace

void CheckOptimizerAtPlace(const OptimizerConfig& config) {
  static_cast<void>(DirectionKindOf(config.kind));
  CheckMomentOnDevice(config.m);
  CheckMomentOnDevice(config.v);
  CheckOnDevice(config.update, config.weights.spec);
}

OptimizerAtPlace::OptimizerAtPlace(const OptimizerConfig& config,
                                   const LossScalerConfig& scaler,
                                   ParameterList<float>& parameters,
                                   uint64_t seed,
                                   std::unique_ptr<KernelRunner> runner)
    : config_(config),
      place_(parameters.place()),
      scaler_(scaler),
      runner_(std::move(runner)),
      rows_there_(place_),
      blocks_there_(place_),
      states_there_(place_),
      plans_there_(place_),
      step_there_(place_),
      without_there_(place_),
      lanes_(place_),
      block_sums_(place_),
      directions_(place_) {
  CheckOptimizerAtPlace(config);
  moment_tables_.push_back(MomentTablesAt(config.m, true, place_));
  moment_tables_.push_back(MomentTablesAt(config.v, false, place_));
  constants_.push_back(ConstantsOf(config_, scaler, seed, moment_tables_[0], moment_tables_[1]));
  for (Parameter<float>& parameter : parameters) AddTensor(parameter);
  const size_t blocks = block_rows_.size();
  rows_there_ = Room<TensorRow>(tensors_.size(), place_);
  blocks_there_ = Room<BlockRow>(blocks, place_);
  states_there_ = Room<TensorState>(tensors_.size(), place_);
  plans_there_ = Room<TensorPlan>(tensors_.size(), place_);
  step_there_ = Room<StepPlan>(1, place_);
  without_there_ = Room<uint8_t>(tensors_.size(), place_);
  // Cleared, because tensors that are skipped write no sums.
  FillZeros(lanes_.Renew(kStepSums * blocks * kSumLanes));
  FillZeros(block_sums_.Renew(kStepSums * blocks));
  if (constants_[0].apart) directions_.Renew(parameters.Elements());
  CopyIn(block_rows_, blocks_there_);
  CopyIn(std::vector<TensorState>(tensors_.size()), states_there_);
  CopyIn(std::vector<StepPlan>{{.scaler = scaler_.Save()}}, step_there_);
}

void OptimizerAtPlace::AddTensor(Parameter<float>& parameter) {
  NUMSIM_CHECK(tensors_.size() < OptimizerTensor::kMaxTensors, "tensor {}", tensors_.size());
  Tensor tensor{.parameter = &parameter,
                .elements = parameter.Elements(),
                .moments = {},
                .ranges = {},
                .inverses = {},
                .update = {},
                .losses = Buffer<uint8_t>(place_)};
  const size_t n = parameter.Elements();
  for (size_t s = 0; s < StateCount(config_.kind); ++s) {
    const MomentFormat format = StateFormat(config_, parameter, kRoles[s]);
    tensor.moments.emplace_back(format, n, s == 0, place_);
    tensor.ranges.push_back(EmptyRanges(format, n, place_));
    scaled_ = scaled_ || format.scaling != MomentScaling::kNone;
    const size_t scales = constants_[0].bare ? tensor.ranges[s].View().Elements() / 2 : 0;
    tensor.inverses.emplace_back(place_, scales);
  }
  const MatrixSpan<float> value = parameter.value.View();
  Buffer<float> weights = CopyAt(value, Place());
  tensor.update = StartUpdates(config_.update, config_.weights.spec, weights.View(), weights.View())
                      .CopiedTo(place_);
  CopyMatrix<float>(weights.View(), value);
  const auto number = static_cast<uint32_t>(tensors_.size());
  for (uint32_t b = 0; b < (n + kSumBlock - 1) / kSumBlock; ++b) block_rows_.push_back({number, b});
  NUMSIM_REQUIRE(block_rows_.size() < UINT32_MAX / kSumLanes,
                 "Optimizer: more than {} parameters",
                 block_rows_.size() * kSumBlock);
  tensors_.push_back(std::move(tensor));
}

TensorRow OptimizerAtPlace::RowOf(Tensor& tensor, bool takes_part) {
  TensorRow row;
  const Parameter<float>& parameter = *tensor.parameter;
  const MatrixSpan<const float> value = parameter.value.View(),
                                gradient = parameter.gradient.View();
  NUMSIM_REQUIRE(value.place == place_ && value.Elements() == tensor.elements,
                 "Optimizer: '{}' has {} elements on the {}, expected {} on the {}",
                 parameter.name,
                 value.Elements(),
                 ToString(value.place),
                 tensor.elements,
                 ToString(place_));
  NUMSIM_REQUIRE(
      !takes_part || (gradient.place == place_ && gradient.Elements() == tensor.elements),
      "Optimizer: the gradient of '{}' has {} elements on the {}, expected {} on the {}",
      parameter.name,
      gradient.Elements(),
      ToString(gradient.place),
      tensor.elements,
      ToString(place_));
  row.weights = tensor.parameter->value.View().data;
  row.gradient = takes_part ? gradient.data : nullptr;
  for (size_t s = 0; s < tensor.moments.size(); ++s) {
    MomentStore& moment = tensor.moments[s];
    row.moments[s] = {moment.Codes(),
                      moment.Scales(),
                      reinterpret_cast<MomentRange*>(tensor.ranges[s].View().data)};
    row.plain[s] = moment.format().IsExact();
    row.inverses[s] = tensor.inverses[s].View().data;
    const size_t parts = (parameter.Elements() + kMomentLossPart - 1) / kMomentLossPart;
    if (!tensor.losses.View().Empty()) row.losses[s] = At<MomentLoss>(tensor.losses) + s * parts;
  }
  row.values = tensor.update.values.View().data;
  row.words = tensor.update.words.View().data;
  row.n = parameter.Elements();
  row.blocks = static_cast<uint32_t>((row.n + kSumBlock - 1) / kSumBlock);
  row.decays = Decays(config_, parameter.role);
  return row;
}

void OptimizerAtPlace::Upload(bool measure, std::span<const uint8_t> without) {
  std::vector<TensorRow> rows;
  uint32_t block = 0;
  size_t offset = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    Tensor& tensor = tensors_[i];
    const size_t parts = (tensor.elements + kMomentLossPart - 1) / kMomentLossPart;
    if (measure) tensor.losses.Renew(2 * parts * sizeof(MomentLoss));
    TensorRow row = RowOf(tensor, without.empty() || without[i] == 0);
    row.first_block = block;
    if (constants_[0].apart) row.direction = directions_.View().data + offset;
    block += row.blocks;
    offset += row.n;
    rows.push_back(row);
  }
  if (rows != rows_) {
    rows_ = std::move(rows);
    CopyIn(rows_, rows_there_);
  }
  if (!std::ranges::equal(without, without_)) {
    without_.assign(without.begin(), without.end());
    CopyIn(without_, without_there_);
  }
}

StepArguments OptimizerAtPlace::Arguments() {
  StepTables tables;
  tables.rows = At<TensorRow>(rows_there_);
  tables.blocks = At<BlockRow>(blocks_there_);
  tables.states = At<TensorState>(states_there_);
  tables.plans = At<TensorPlan>(plans_there_);
  tables.step = At<StepPlan>(step_there_);
  tables.lanes = lanes_.View().data;
  tables.block_sums = block_sums_.View().data;
  tables.tensor_count = static_cast<uint32_t>(tensors_.size());
  tables.block_count = static_cast<uint32_t>(block_rows_.size());
  return {.constants = constants_[0],
          .tables = tables,
          .without = without_.empty() ? nullptr : without_there_.View().data,
          .only_writer = only_writer_};
}

void OptimizerAtPlace::JoinSums(const StepArguments& args, uint32_t first, uint32_t count) {
  runner_->Run(JoinKernel{args, first}, size_t{count} * args.tables.block_count);
  runner_->Run(TotalKernel{args, first},
               TotalKernel::kThreadsPerSum * size_t{count} * args.tables.tensor_count);
}

void OptimizerAtPlace::Decide(const StepArguments& args, bool settles) {
  const size_t tensors = tensors_.size();
  JoinSums(args, kGradientSum, 1);
  runner_->Run(DecideKernel{args}, 1);
  runner_->Run(RatesKernel{args, settles}, tensors);
}

void OptimizerAtPlace::Settle(const StepArguments& args) {
  runner_->Run(RatioKernel{args}, block_rows_.size() * kSumLanes);
  JoinSums(args, kRatioSum, 1);
  runner_->Run(SettleKernel{args}, tensors_.size());
}

void OptimizerAtPlace::Judge(const StepArguments& args) {
  runner_->Run(ScanKernel{args}, block_rows_.size() * kSumLanes);
  runner_->Run(JudgeKernel{args}, tensors_.size());
}

void OptimizerAtPlace::RunBare(const StepArguments& args) {
  const size_t tensors = tensors_.size(), lanes = block_rows_.size() * kSumLanes;
  const size_t threads = block_rows_.size() * kBareThreads;
  const StepConstants& constants = args.constants;
  const bool ranges = scaled_ && !constants.ranges_in_step;
  runner_->Run(BeginKernel{args}, tensors);
  if (constants.ranges_with_gradient) {
    runner_->Run(GradientRangeKernel{args}, lanes);
  } else {
    runner_->Run(GradientKernel{args}, lanes);
  }
  Decide(args, !constants.clips_by_rms);
  if (ranges && !constants.ranges_with_gradient) runner_->Run(BareRangeKernel{args}, threads);
  if (ranges) runner_->Run(InverseKernel{args}, lanes);
  if (constants.clips_by_rms) Settle(args);
  Judge(args);
  if (constants.plain_weights) {
    runner_->Run(BareStepKernel<true>{args}, threads);
  } else if (constants.update == UpdateKind::kStochastic) {
    runner_->Run(BareDrawnStepKernel{args}, threads);
  } else {
    runner_->Run(BareStepKernel<false>{args}, threads);
  }
  if (ranges) runner_->Run(StateScaleKernel{args}, lanes);
  runner_->Run(FinishKernel{args}, tensors);
}

void OptimizerAtPlace::Run(const StepArguments& args, bool measure) {
  const size_t tensors = tensors_.size(), lanes = block_rows_.size() * kSumLanes;
  runner_->Run(BeginKernel{args}, tensors);
  runner_->Run(GradientKernel{args}, lanes);
  // Directions from stored states need their new scales.
  const bool settles = !args.constants.clips_by_rms && !args.constants.from_stored;
  Decide(args, settles);
  if (scaled_) runner_->Run(StateRangeKernel{args}, lanes);
  if (args.constants.clips_by_rms) {
    Settle(args);
  } else if (!settles) {
    runner_->Run(SettleKernel{args}, tensors);
  }
  Judge(args);
  if (measure) runner_->Run(StateLossKernel{args}, lanes);
  runner_->Run(StepKernel{args}, lanes);
  if (scaled_) runner_->Run(StateScaleKernel{args}, lanes);
  const uint32_t first = args.constants.clips_by_rms ? kDirectionSum : kRatioSum;
  JoinSums(args, first, kStepSums - first);
  runner_->Run(FinishKernel{args}, tensors);
}

void OptimizerAtPlace::Step(double learning_rate,
                            uint64_t step,
                            bool measure,
                            std::span<const uint8_t> without) {
  Upload(measure, without);
  StepArguments args = Arguments();
  args.learning_rate = learning_rate;
  args.step = step;
  reported_ = reports_ || measure || !args.constants.bare;
  if (reported_) {
    Run(args, measure);
  } else {
    RunBare(args);
  }
  learning_rate_ = learning_rate;
  measured_ = measure;
  fetched_ = false;
  if (args.constants.apart) StepApart(step);
}

void OptimizerAtPlace::StepApart(uint64_t step) {
  const std::vector<TensorPlan> plans = Fetch<TensorPlan>(plans_there_, tensors_.size());
  apart_.assign(tensors_.size(), {});
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (!plans[i].moves) continue;
    Tensor& tensor = tensors_[i];
    const MatrixSpan<float> value = tensor.parameter->value.View();
    const WeightUpdate update{.format = config_.weights.spec,
                              .weights = value,
                              .update = {rows_[i].direction, value.Shape(), place_},
                              .learning_rate = plans[i].learning_rate,
                              .weight_decay = plans[i].decay};
    const RandomStream random{constants_[0].update_seed,
                              TensorStream(step, static_cast<uint32_t>(i))};
    apart_[i] = ApplyUpdate(config_.update, update, random, tensor.update, value);
  }
}

MomentLoss OptimizerAtPlace::LossOf(const Tensor& tensor, int state) const {
  const size_t parts = (tensor.parameter->Elements() + kMomentLossPart - 1) / kMomentLossPart;
  MomentLoss total;
  const std::vector<MomentLoss> losses = Fetch<MomentLoss>(tensor.losses, 2 * parts);
  for (size_t p = 0; p < parts; ++p) total += losses[static_cast<size_t>(state) * parts + p];
  return total;
}

TensorStep OptimizerAtPlace::ReportOf(size_t i, const TensorPlan& plan) const {
  const size_t n = tensors_[i].parameter->Elements();
  TensorStep report;
  report.skipped = plan.skipped;
  report.gradient_norm = plan.gradient_norm;
  if (!plan.moves || !reported_) return report;
  report.rms = Known(constants_[0].clips_by_rms ? plan.rms : RootMean(plan.sums[kRatioSum], n));
  report.update_rms = Known(RootMean(plan.sums[kDirectionSum], n));
  report.max_update = Known(static_cast<double>(std::bit_cast<float>(plan.direction_bits)));
  if (measured_) {
    report.m = LossOf(tensors_[i], 0);
    if (tensors_[i].moments.size() == 2) report.v = LossOf(tensors_[i], 1);
  }
  if (constants_[0].apart) {
    report.weights = apart_[i];
  } else if (plan.verdict == WeightVerdict::kRefuse) {
    report.weights.status = UpdateStatus::kNonfinite;
  } else if (plan.verdict == WeightVerdict::kZero) {
    report.weights.status = UpdateStatus::kZeroUpdate;
    report.weights.alpha = plan.learning_rate;
  } else {
    const StepSums sums{.square = plan.sums[kStepSum],
                        .projection = plan.sums[kProjectionSum],
                        .moved = static_cast<uint64_t>(plan.sums[kMovedSum]),
                        .saturated = static_cast<uint64_t>(plan.sums[kSaturatedSum])};
    UpdateOutcome found;
    found.alpha = plan.learning_rate;
    report.weights = CompleteOutcome(
        config_.update.kind, plan.learning_rate, sums, plan.sums[kDecayedSum], found);
  }
  return report;
}

const OptimizerStep& OptimizerAtPlace::Last() {
  if (fetched_) return result_;
  const StepPlan step = Fetch<StepPlan>(step_there_, 1)[0];
  const std::vector<TensorPlan> plans = Fetch<TensorPlan>(plans_there_, tensors_.size());
  scaler_.Restore(step.scaler);
  result_ = {};
  result_.skipped = step.skipped;
  result_.finite = step.finite;
  result_.gradient_norm = step.gradient_norm;
  result_.clip_factor = step.clip_factor;
  result_.learning_rate = learning_rate_;
  result_.loss_scale = step.loss_scale;
  for (size_t i = 0; i < plans.size(); ++i) result_.tensors.push_back(ReportOf(i, plans[i]));
  fetched_ = true;
  return result_;
}

LossScaler::State OptimizerAtPlace::Scaler() {
  Last();
  return scaler_.Save();
}

double OptimizerAtPlace::LossScale() {
  if (scaler_.config().kind == LossScaling::kDynamic) Last();
  return scaler_.Scale();
}

}  // namespace numsim
