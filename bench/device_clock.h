// Measures the time of work on a device with the device's clock. Used by *_device_bench.cc.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "numsim/backend/device_context.h"

namespace numsim::bench {

inline constexpr int kWarmUpLaunches = 3;
inline constexpr int kTimedLaunches = 25;

// Enqueues launch number i of a series in ThreadStream(); successive launches may use other buffers.
using DeviceLaunch = std::function<void(int i)>;

// Returns the median time of kTimedLaunches launches in seconds, each measured between two events,
// after a warm-up.
inline double MedianSeconds(const DeviceLaunch& launch) {
  DeviceStream& stream = ThreadStream();
  std::vector<DeviceEvent> begin(kTimedLaunches), end(kTimedLaunches);
  for (int i = 0; i < kWarmUpLaunches; ++i) launch(i);
  for (int i = 0; i < kTimedLaunches; ++i) {
    const auto place = static_cast<size_t>(i);
    begin[place].Record(stream);
    launch(kWarmUpLaunches + i);
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

// The amount of work of a launch; the benchmark reports it as a rate.
struct DeviceWork {
  std::string counter;  // name of the counter: "GB/s", "TOP/s"
  double amount;        // work per launch, in units of GB or TOP
};

// Registers a benchmark whose single iteration is the median launch. `prepare` allocates the
// buffers and returns the launch.
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

// Adds a description of the device to the context of the output, calls `add`, which registers the
// benchmarks, and runs them. Returns 0. Without a device, prints the reason and returns 2.
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
