// Common parts of the benchmarks: input, number of threads, and the limit of the machine. The limit
// is a memcpy in the same process with the same number of threads; each rate is reported relative
// to it.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace numsim::bench {

// 64 MiB of float32, more than the second-level caches of common machines.
inline constexpr size_t kElements = size_t{1} << 24;

// Returns kElements values that cover normal and subnormal numbers of the small formats.
const std::vector<float>& Input();

// Sets the number of threads of the kernels. The first call for each number measures memcpy.
void Prepare(int threads);

// Sets the counters of a benchmark that processed kElements elements per iteration: Melem/s; GB/s,
// read plus written; of_memcpy, the ratio of GB/s to memcpy's best GB/s.
void Report(benchmark::State& state, int threads, double bytes_per_element);

// Registers a benchmark that is measured in real time.
void Register(const std::string& name, const std::function<void(benchmark::State&)>& function);

// Applies NUMSIM_BACKEND, registers memcpy and the benchmarks of `add` for 1 thread and for all
// threads, and runs them. Returns the exit code 0.
int Main(int argc, char** argv, const std::function<void(int)>& add);

}  // namespace numsim::bench
