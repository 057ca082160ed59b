// What every benchmark shares: input, threads, and the machine's own limit, a memcpy of the same
// process and thread count, beside which each rate is stated.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

namespace numsim::bench {

// 64 MiB of float32: beyond the second-level caches of common machines.
inline constexpr size_t kElements = size_t{1} << 24;

// kElements values spread over normals and subnormals of the small formats.
const std::vector<float>& Input();

// Sets the threads of the kernels and, once, measures memcpy on them.
void Prepare(int threads);

// Counters of a benchmark that handled kElements elements an iteration: Melem/s; GB/s read plus
// written; of_memcpy, that over memcpy's best GB/s.
void Report(benchmark::State& state, int threads, double bytes_per_element);

void Register(const std::string& name, const std::function<void(benchmark::State&)>& function);

// Applies NUMSIM_BACKEND, registers memcpy and what `add` registers for 1 thread and for all cores,
// and runs.
int Main(int argc, char** argv, const std::function<void(int)>& add);

}  // namespace numsim::bench
