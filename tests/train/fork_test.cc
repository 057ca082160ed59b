// Forks: trainings that go on from the state of a baseline.
#include "numsim/config/fork.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "numsim/formats/format_table.h"
#include "numsim/train/run.h"
#include "numsim/train/trainer.h"
#include "tests/support/error_of.h"
#include "tests/support/train_problem.h"
#include "tests/train/interrupted_run.h"

namespace numsim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kFork = 5;

TrainConfig Forked(TrainConfig config, std::vector<std::string> before) {
  config.fork = {.steps = kFork, .before = std::move(before)};
  return config;
}

std::map<std::string, std::string> FieldsOf(const TrainState& state) {
  std::map<std::string, std::string> fields(state.fields.begin(), state.fields.end());
  fields.erase("config");
  fields.erase("forked");
  return fields;
}

void ExpectSameTraining(const Trainer& a, const Trainer& b) {
  EXPECT_EQ(TensorBytes(a.Save()), TensorBytes(b.Save()));
  EXPECT_EQ(FieldsOf(a.Save()), FieldsOf(b.Save()));
}

// A change of TinyConfig or StatefulConfig.
struct Variant {
  const char* name;
  TrainConfig (*start)();
  std::vector<std::string> keys;
};

std::vector<Variant> Variants() {
  return {
      {"adamw", TinyConfig, {"optimizer.kind=adamw"}},
      {"stable-adamw",
       TinyConfig,
       {"optimizer.kind=stable-adamw", "optimizer.stable.previous_u=true"}},
      {"lion", TinyConfig, {"optimizer.kind=lion", "optimizer.m=e5m2"}},
      {"sgd", TinyConfig, {"optimizer.kind=sgd", "optimizer.m=bf16+sr"}},
      {"delayed scales, stochastic moments and weights", StatefulConfig, {}},
      {"smooth", StatefulConfig, {"model.mlp=smooth-swiglu-token"}},
      {"master", TinyConfig, {"optimizer.weights=e4m3fn", "optimizer.update=master-fp16-scaled"}},
      {"kahan", TinyConfig, {"optimizer.weights=bf16", "optimizer.update=kahan"}},
      {"split-master", TinyConfig, {"optimizer.weights=bf16", "optimizer.update=split-master"}},
      {"switchback", TinyConfig, {"linear.kind=switchback", "linear.format=int8"}},
      {"llm-int8", TinyConfig, {"linear.kind=llm-int8"}},
      {"mx", TinyConfig, {"linear.kind=mx", "linear.format=e4m3fn"}},
      {"override",
       TinyConfig,
       {"linear.override.0.layers=*.mlp.down", "linear.override.0.kind=tensor-wise"}},
      {"what-if, parts", TinyConfig, {"train.accumulate=2", "what_if.recipes=e4m3fn delayed"}},
      {"burst",
       TinyConfig,
       {"loss_scaler.kind=dynamic",
        "stress.burst_tensor=head.weight",
        "stress.burst_step=3",
        "stress.burst_steps=4"}},
  };
}

// The strongest test of a fork: one that changes nothing is no fork at all.
TEST(Fork, OfTheBaselineFromItselfIsTheTrainingWithoutAFork) {
  for (const Variant& variant : Variants()) {
    SCOPED_TRACE(variant.name);
    TrainConfig config = variant.start();
    SetConfigKeys(variant.keys, config);
    Trainer whole(config, OpenShared(config.data));
    Trainer forked(Forked(config, {}), OpenShared(config.data));
    StepUntil(whole);
    StepUntil(forked);
    ASSERT_EQ(whole.status(), TrainStatus::kFinished) << whole.reason();
    ExpectSameTraining(whole, forked);
    EXPECT_EQ(TelemetryText(whole.telemetry()), TelemetryText(forked.telemetry()));
  }
}

// The training after a fork, put together by hand from two trainings without one: linear layers and
// the model's storage have no state before it.
TEST(Fork, GoesOnFromTheWeightsAndMomentsOfTheBaseline) {
  const TrainConfig before = TinyConfig();
  TrainConfig after = before;
  SetConfigKeys({"linear.kind=te-hybrid",
                 "linear.delayed_history=4",
                 "storage.activations=bf16",
                 "optimizer.clip_norm=0.5",
                 "schedule.peak=1e-2"},
                after);
  Trainer baseline(before, OpenShared(before.data));
  StepUntil(baseline, kFork);
  TrainState state = baseline.Save();
  for (auto& [name, text] : state.fields) {
    if (name == "config") text = WriteTrainConfig(after);
  }
  Trainer expected(after, OpenShared(after.data));
  expected.Restore(state);
  StepUntil(expected);

  Trainer forked(Forked(after, KeysBefore(before, after)), OpenShared(after.data));
  StepUntil(forked, kFork);
  EXPECT_EQ(TensorBytes(forked.Save()), TensorBytes(baseline.Save()));
  StepUntil(forked);
  ExpectSameTraining(expected, forked);
  StepUntil(baseline);
  EXPECT_NE(TensorBytes(baseline.Save()), TensorBytes(forked.Save()));
}

std::vector<float> Floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// float32 to bf16, to nearest even, by its bits.
uint16_t Bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

TEST(Fork, StoresMomentsInTheOtherFormatOnce) {
  const TrainConfig before = TinyConfig();
  TrainConfig after = before;
  SetConfigKeys({"optimizer.m=bf16", "optimizer.moment_filter=all"}, after);
  Trainer forked(Forked(after, KeysBefore(before, after)), OpenShared(after.data));
  StepUntil(forked, kFork);
  const auto was = TensorBytes(forked.Save());
  forked.ForkIfDue();
  const auto is = TensorBytes(forked.Save());
  size_t moments = 0;
  for (const auto& [name, bytes] : was) {
    if (!name.ends_with("/m")) {
      EXPECT_EQ(is.at(name), bytes) << name;
      continue;
    }
    std::vector<std::byte> expected;
    for (const float value : Floats(bytes)) {
      const uint16_t code = Bf16(value);
      expected.push_back(static_cast<std::byte>(code & 0xff));
      expected.push_back(static_cast<std::byte>(code >> 8));
    }
    EXPECT_EQ(is.at(name), expected) << name;
    ++moments;
  }
  EXPECT_EQ(moments, forked.model().parameters().size());
}

// A moment that has been stored in few bits is read as those few values.
TEST(Fork, ReadsMomentsOfTheBaselineAsValues) {
  TrainConfig before = TinyConfig();
  SetConfigKeys({"optimizer.m=bf16", "optimizer.moment_filter=all"}, before);
  const TrainConfig after = TinyConfig();
  Trainer forked(Forked(after, KeysBefore(before, after)), OpenShared(after.data));
  StepUntil(forked, kFork);
  const auto was = TensorBytes(forked.Save());
  forked.ForkIfDue();
  for (const auto& [name, bytes] : TensorBytes(forked.Save())) {
    if (!name.ends_with("/m")) continue;
    const std::vector<float> values = Floats(bytes);
    for (size_t i = 0; i < values.size(); ++i) {
      const auto code =
          static_cast<uint16_t>(std::to_integer<uint16_t>(was.at(name)[2 * i]) |
                                std::to_integer<uint16_t>(was.at(name)[2 * i + 1]) << 8);
      ASSERT_EQ(std::bit_cast<uint32_t>(values[i]), uint32_t{code} << 16) << name;
    }
  }
}

TEST(Fork, WeightsAreRoundedToTheOtherFormatOnce) {
  const TrainConfig before = TinyConfig();
  TrainConfig after = before;
  SetConfigKeys({"optimizer.weights=bf16", "optimizer.update=kahan"}, after);
  Trainer forked(Forked(after, KeysBefore(before, after)), OpenShared(after.data));
  StepUntil(forked, kFork);
  const auto was = TensorBytes(forked.Save());
  forked.ForkIfDue();
  for (const auto& [name, bytes] : TensorBytes(forked.Save())) {
    if (!name.starts_with("model/")) continue;
    const std::vector<float> old = Floats(was.at(name)), now = Floats(bytes);
    for (size_t i = 0; i < now.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(now[i]), uint32_t{Bf16(old[i])} << 16) << name;
    }
  }
}

TEST(Fork, LossScaleStaysIfItsScalerStays) {
  TrainConfig before = StatefulConfig();
  TrainConfig after = before;
  after.optimizer.clip_norm = 0.5;
  const auto scale_after = [&](const TrainConfig& config) {
    Trainer forked(Forked(config, KeysBefore(before, config)), OpenShared(config.data));
    StepUntil(forked, kFork);
    EXPECT_EQ(forked.optimizer().LossScale(), 2048);  // grew after three steps
    forked.ForkIfDue();
    return forked.optimizer().LossScale();
  };
  EXPECT_EQ(scale_after(after), 2048);
  after.loss_scaler.growth_interval = 4;
  EXPECT_EQ(scale_after(after), 1024);
}

TrainConfig FromTinyToStateful() {
  const TrainConfig after = StatefulConfig();
  return Forked(after, KeysBefore(TinyConfig(), after));
}

TEST(Fork, ContinuesFromEveryStep) {
  const TrainConfig config = FromTinyToStateful();
  Trainer through(config, OpenShared(config.data));
  StepUntil(through);
  for (const uint64_t stop : {uint64_t{1}, kFork - 1, kFork, kFork + 1, uint64_t{9}}) {
    SCOPED_TRACE(stop);
    Trainer first(config, OpenShared(config.data)), second(config, OpenShared(config.data));
    StepUntil(first, stop);
    second.Restore(first.Save());
    StepUntil(second);
    ExpectSameTraining(through, second);
  }
  Trainer at_the_fork(config, OpenShared(config.data));
  StepUntil(at_the_fork, kFork);
  at_the_fork.ForkIfDue();
  Trainer behind(config, OpenShared(config.data));
  StepUntil(behind, kFork + 2);
  behind.Restore(at_the_fork.Save());
  StepUntil(behind);
  ExpectSameTraining(through, behind);
}

TEST(Fork, GoesOnFromACheckpointOfTheBaseline) {
  const TrainConfig config = FromTinyToStateful();
  Trainer through(config, OpenShared(config.data));
  StepUntil(through);
  for (const uint64_t stop : {uint64_t{2}, kFork}) {
    const TrainConfig before = BaselineOf(config);
    Trainer baseline(before, OpenShared(before.data)), forked(config, OpenShared(config.data));
    StepUntil(baseline, stop);
    forked.RestoreBaseline(baseline.Save());
    StepUntil(forked);
    ExpectSameTraining(through, forked);
  }
  Trainer baseline(BaselineOf(config), OpenShared(config.data));
  StepUntil(baseline, kFork + 1);
  Trainer forked(config, OpenShared(config.data));
  EXPECT_THAT(ErrorOf([&] { forked.RestoreBaseline(baseline.Save()); }),
              HasSubstr("6 steps were taken, more than the 5 before the fork"));
  TrainConfig other = BaselineOf(config);
  other.schedule.peak = 1;
  Trainer of_other(other, OpenShared(other.data));
  EXPECT_THAT(ErrorOf([&] { forked.RestoreBaseline(of_other.Save()); }),
              HasSubstr("schedule.peak"));
}

class ForkedRun : public IoTest {};

TEST_F(ForkedRun, InterruptedAnywhereHasTheFilesOfOneThatWasNot) {
  const TrainConfig config = FromTinyToStateful();
  TrainUntil(config, Path("through"), false, UINT64_MAX);
  const auto expected = ReproducibleFiles(Path("through"));
  EXPECT_THAT(expected.at("config.toml"), HasSubstr("[fork]\nsteps = 5\nbefore = ["));
  for (const uint64_t stop : {uint64_t{3}, kFork, kFork + 1}) {
    const std::string folder = "stopped" + std::to_string(stop);
    TrainUntil(config, Path(folder), false, stop);
    TrainUntil(config, Path(folder), true, UINT64_MAX);
    EXPECT_EQ(ReproducibleFiles(Path(folder)), expected) << stop;
  }
  EXPECT_EQ(WriteTrainConfig(ReadTrainConfig(Path("through") / "config.toml", {})),
            expected.at("config.toml"));
}

TEST(Fork, KeysBeforeGiveTheBaseline) {
  for (const Variant& variant : Variants()) {
    SCOPED_TRACE(variant.name);
    TrainConfig other = variant.start();
    SetConfigKeys(variant.keys, other);
    TrainConfig config = TinyConfig();
    config.what_if = other.what_if;
    config.train.accumulate = other.train.accumulate;
    config.optimizer.kind = other.optimizer.kind;
    for (const auto& [before, after] : {std::pair{config, other}, {other, config}}) {
      const TrainConfig forked = Forked(after, KeysBefore(before, after));
      EXPECT_EQ(WriteTrainConfig(BaselineOf(forked)), WriteTrainConfig(before));
      const std::string text = WriteTrainConfig(forked);
      EXPECT_EQ(WriteTrainConfig(ParseTrainConfig(text, "a.toml", {}, {})), text);
    }
  }
}

TEST(Fork, AConfigurationWithoutOneIsWrittenAsBefore) {
  EXPECT_THAT(WriteTrainConfig(TinyConfig()), Not(HasSubstr("fork")));
}

std::string ErrorWith(const std::string& fork) {
  const std::string toml = "[train]\nsteps = 12\n[fork]\n" + fork;
  return ErrorOf([&] { ParseTrainConfig(toml, "a.toml", {}, {}); });
}

TEST(Fork, WhatCannotForkIsRefused) {
  EXPECT_EQ(ErrorWith("steps = 5"), kNoError);
  EXPECT_EQ(
      ErrorWith("steps = 12"),
      "a.toml:4: fork.steps: 12 is not below train.steps = 12: nothing would be left to train");
  EXPECT_EQ(ErrorWith("before = [\"optimizer.beta1=0.5\"]"),
            "a.toml:4: fork.before: has no effect without fork.steps");
  for (const char* const key :
       {"model.width=64", "data.vocabulary=300", "train.seed=1", "train.batch=3"}) {
    EXPECT_THAT(ErrorWith(std::string("steps = 5\nbefore = [\"") + key + "\"]"),
                HasSubstr("fork keeps it; expected a key of linear, storage"))
        << key;
  }
  EXPECT_THAT(ErrorWith("steps = 5\nbefore = [\"optimizer.beta3=1\"]"),
              HasSubstr("a.toml:5: fork.before: optimizer.beta3: there is no such key"));
  EXPECT_THAT(ErrorWith("steps = 5\nbefore = [\"optimizer.kind=lion\"]"),
              HasSubstr("optimizer.kind: adamw cannot go on from the states of lion"));
  EXPECT_THAT(ErrorWith("steps = 5\nbefore = [\"optimizer.beta1=2\"]"), HasSubstr("fork.before: "));
  EXPECT_THAT(ErrorWith("steps = 5\nbefore = [\"linear.kind=switchback\", \"linear.block=3\"]"),
              HasSubstr("fork.before: linear.block"));
  TrainConfig gelu = TinyConfig();
  gelu.fork = {.steps = kFork, .before = {"model.mlp=gelu"}};
  EXPECT_THAT(ErrorOf([&] { Trainer(gelu, OpenShared(gelu.data)); }),
              HasSubstr("differ in parameter 'blocks.0.mlp."));
}

}  // namespace
}  // namespace numsim
