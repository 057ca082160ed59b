// Times the passes of every layer of a trial on a device.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "experiments/linear_speed/operands_device.h"
#include "experiments/linear_speed/timing.h"
#include "numsim/base/error.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::linear_speed {
namespace {

constexpr size_t kRotatedBytes = size_t{256} << 20;  // several times the size of an L2 cache
constexpr size_t kLeadInBytes = size_t{256} << 20;
constexpr int kLeadIns = 4;
constexpr int kWarmUps = 3;
constexpr double kMemoryShare = 0.9;  // share of the device's memory that a trial may take

std::string LayerName(const TimedLayer& layer) {
  return fmt::format("{} {} ({})", layer.recipe.kind, layer.format, layer.product);
}

// Records events around each operation of a pass.
class StepEvents : public LinearObserver {
 public:
  explicit StepEvents(DeviceStream& stream) : stream_(stream) {}

  void Begin(LinearOp step) override {
    steps_.push_back(step);
    if (intervals_.size() < steps_.size()) intervals_.emplace_back();
    intervals_[steps_.size() - 1].begin.Record(stream_);
  }
  void End(LinearOp) override { intervals_[steps_.size() - 1].end.Record(stream_); }

  // Waits for the pass, appends the seconds of its operations to `times` and forgets the pass.
  void Collect(LayerTimes& times) {
    std::array<double, kSteps> seconds = {};
    std::array<bool, kSteps> done = {};
    for (size_t i = 0; i < steps_.size(); ++i) {
      const size_t step = static_cast<size_t>(steps_[i]);
      seconds[step] += DeviceEvent::Seconds(intervals_[i].begin, intervals_[i].end);
      done[step] = true;
    }
    for (size_t step = 0; step < kSteps; ++step) {
      if (done[step]) times.samples[step].push_back(seconds[step]);
    }
    steps_.clear();
  }

 private:
  struct Interval {
    DeviceEvent begin, end;
  };

  DeviceStream& stream_;
  std::vector<Interval> intervals_;
  std::vector<LinearOp> steps_;  // operations of the pass, in order
};

// A layer on the device that records the times of its passes.
class DeviceStopwatch {
 public:
  DeviceStopwatch(const TimedLayer& layer, LayerTimes& times, DeviceStream& stream)
      : linear_(layer.recipe, ThreadPlace()), times_(times), events_(stream), stream_(stream) {}

  // Compares the results of one pass with the CPU's.
  void Check(const TimedLayer& layer, const LayerTensors& tensors, DeviceOperands& on) {
    const std::string name = LayerName(layer);
    CheckSmallLayer(layer.recipe, name);
    on.SpoilResults();
    on.Run(linear_, saved_, {});
    constexpr LinearOp kProductSteps[] = {LinearOp::kForwardProduct,
                                          LinearOp::kInputGradientProduct,
                                          LinearOp::kWeightGradientProduct};
    for (const LinearGemm product : kProducts) {
      const auto step = static_cast<size_t>(kProductSteps[static_cast<size_t>(product)]);
      times_.checked[step] = CheckProduct(layer.recipe, name, product, tensors, on);
    }
    times_.kept_bytes = saved_.Bytes();
  }

  // Enqueue a pass: RunWhole with events around the pass, RunSteps with events around each
  // operation.
  void RunWhole(uint64_t seed, DeviceOperands& on) {
    begin_.Record(stream_);
    on.Run(linear_, saved_, {seed, kLayerStream});
    end_.Record(stream_);
  }
  void RunSteps(uint64_t seed, DeviceOperands& on) {
    on.Run(linear_, saved_, {seed, kLayerStream}, &events_);
  }

  // Waits for one pass of each sort and records their times.
  void Collect() {
    events_.Collect(times_);
    times_.samples[kOtherStep].push_back(DeviceEvent::Seconds(begin_, end_));
  }

 private:
  Linear linear_;
  LinearSaved saved_;
  LayerTimes& times_;
  StepEvents events_;
  DeviceStream& stream_;
  DeviceEvent begin_, end_;
};

// The operands of a trial on host and device, and the memory that the device fills to stay busy
// while the host prepares the first pass of a round.
struct TrialOnDevice {
  LayerTensors tensors;
  std::vector<DeviceOperands> sets;
  Buffer<uint8_t> lead_in;
  size_t next = 0;

  TrialOnDevice(LinearShape shape, uint64_t seed)
      : tensors(shape, seed),
        sets(MakeDeviceSets(tensors, kRotatedBytes)),
        lead_in(ThreadPlace(), kLeadInBytes) {}

  DeviceOperands& NextSet() { return sets[next++ % sets.size()]; }
  size_t Bytes() const { return sets.size() * sets[0].Bytes() + kLeadInBytes; }
};

// Checks and times the layers of a group. Appends to `times`, which is indexed like `layers`.
void TimeGroup(const Settings& settings,
               uint64_t seed,
               std::span<const TimedLayer> layers,
               std::span<const size_t> group,
               TrialOnDevice& on,
               std::vector<LayerTimes>& times) {
  DeviceStream& stream = ThreadStream();
  std::vector<std::unique_ptr<DeviceStopwatch>> watches;
  for (const size_t i : group) {
    watches.push_back(std::make_unique<DeviceStopwatch>(layers[i], times[i], stream));
    watches.back()->Check(layers[i], on.tensors, on.sets.front());
  }
  const auto run = [&] {
    for (int i = 0; i < kLeadIns; ++i) {
      device_memory::FillBytes(on.lead_in.View().data, 0, kLeadInBytes, stream);
    }
    for (const auto& watch : watches) watch->RunWhole(seed, on.NextSet());
    for (const auto& watch : watches) watch->RunSteps(seed, on.NextSet());
    stream.Wait();
  };
  const auto collect = [&] {
    for (const auto& watch : watches) watch->Collect();
  };
  const std::vector<LayerTimes> before = times;  // includes the times of earlier groups
  for (int i = 0; i < kWarmUps; ++i) {
    run();
    collect();
  }
  for (const size_t i : group) times[i].samples = before[i].samples;
  RepeatRounds(settings, group.size(), [&] {
    run();
    collect();
  });
}

// Turns the seconds of whole passes into those of the part `other`, by subtracting the operations.
void SubtractSteps(LayerTimes& times) {
  double steps = 0;
  for (size_t i = 0; i < kSteps; ++i) {
    if (!times.samples[i].empty()) steps += Quantile(times.samples[i], 0.5);
  }
  for (double& seconds : times.samples[kOtherStep]) seconds -= steps;
}

}  // namespace

Rows MeasureOnDevice(const Settings& settings, const Trial& trial) {
  const LinearShape shape = ShapeOf(trial);
  const std::vector<TimedLayer> layers = TimedLayers(settings);
  std::vector<LayerTimes> times(layers.size());
  TrialOnDevice on(shape, trial.seed);
  const auto memory =
      static_cast<size_t>(kMemoryShare * static_cast<double>(Device().memory_bytes));
  const size_t left = memory - std::min(memory, on.Bytes());
  for (const std::vector<size_t>& group : DeviceGroups(layers, shape, left)) {
    TimeGroup(settings, trial.seed, layers, group, on, times);
  }
  for (LayerTimes& layer : times) SubtractSteps(layer);
  const TimedPlace place{
      .device = Device().name, .library = DeviceGemmLibrary(), .value_bytes = sizeof(uint16_t)};
  return OperationRows(trial, place, layers, times);
}

}  // namespace numsim::experiments::linear_speed
