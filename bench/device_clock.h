// Times of work on a device, by the device's clock. For *_device_bench.cc.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "numsim/backend/device.h"

namespace numsim::bench {

inline constexpr int kWarmUpLaunches = 3;
inline constexpr int kTimedLaunches = 25;

// Puts the i-th of a row of launches into the stream; takes the next of several buffers.
using DeviceLaunch = std::function<void(int i, DeviceStream& stream)>;

// The median of the seconds of kTimedLaunches launches, each between two events, after a warm-up.
inline double MedianSeconds(const DeviceLaunch& launch) {
  DeviceStream& stream = ThreadStream();
  std::vector<DeviceEvent> begin(kTimedLaunches), end(kTimedLaunches);
  for (int i = 0; i < kWarmUpLaunches; ++i) launch(i, stream);
  for (int i = 0; i < kTimedLaunches; ++i) {
    const auto place = static_cast<size_t>(i);
    begin[place].Record(stream);
    launch(kWarmUpLaunches + i, stream);
    end[place].Record(stream);
  }
  stream.Wait();
  std::vector<double> seconds;
  for (size_t i = 0; i < begin.size(); ++i) {
    seconds.push_back(DeviceEvent::Seconds(begin[i], end[i]));
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

// What a launch does: a counter of a benchmark, as a rate.
struct DeviceWork {
  std::string counter;  // "GB/s", "TOP/s"
  double amount;        // of that unit
};

// A benchmark of one iteration: the median launch. `prepare` allocates and returns the launch.
inline void RegisterOnDevice(const std::string& name,
                             const std::function<DeviceLaunch()>& prepare,
                             const DeviceWork& work) {
  const auto run = [=](benchmark::State& state) {
    if (!DeviceAvailable()) {
      state.SkipWithError(DeviceUnavailable().c_str());
      return;
    }
    const DeviceLaunch launch = prepare();
    for (auto _ : state) {
      const double seconds = MedianSeconds(launch);
      state.SetIterationTime(seconds);
      state.counters[work.counter] = work.amount / seconds;
    }
    ThreadStream().Wait();
  };
  benchmark::RegisterBenchmark(name.c_str(), run)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond)
      ->Iterations(1);
}

// Describes the device in the output's context, registers what `add` does where there is one, and
// runs. Returns 2 and says why without a device.
inline int DeviceMain(int argc, char** argv, const std::function<void()>& add) {
  benchmark::Initialize(&argc, argv);
  if (!DeviceAvailable()) {
    std::fprintf(stderr, "%s\n", DeviceUnavailable().c_str());
    return 2;
  }
  const DeviceInfo& device = Device();
  benchmark::AddCustomContext("device", device.name);
  benchmark::AddCustomContext("cuda_driver", device.driver);
  benchmark::AddCustomContext("cuda_runtime", device.runtime);
  benchmark::AddCustomContext("launches", std::to_string(kTimedLaunches) + ", median");
  add();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace numsim::bench
