// Steps of update rules with 2^24 (16M) and 2^20 (1M) weights. Weights are independent normally
// distributed numbers rounded to the format; updates are normally distributed numbers or their
// signs. Columns:
//   ns/elem       time per weight
//   of_limit      ratio to the time of one naive pass plus one read of both arrays, measured in
//                 this process for the same arrays and number of threads
//   of_selection  ratio to the time of the selection solver for the same quantity, or for the norm
//                 in rows without a quantity
//   passes        number of passes over all weights
// and after them the status of the step. Rows:
//   read        finds the largest magnitude of both arrays
//   naive-pass  computes only Q(fl32(w + fl32(lr u)))
//   selection-, bisection-  the two solvers for norm and projection, including the target's sum
//   apply/RULE  ApplyUpdate() with all its checks and measurements; note-as-printed does all passes
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "bench/report.h"
#include "numsim/base/parallel.h"
#include "numsim/cast/shared/cast_serial.h"
#include "numsim/formats/format_table.h"
#include "numsim/quantize/quantize.h"
#include "numsim/random/distributions.h"
#include "numsim/updates/internal/matched_step.h"
#include "numsim/updates/step_sums.h"
#include "numsim/updates/update_rule.h"

namespace numsim::bench {
namespace {

enum class Updates { kNormal, kSigns };

struct Problem {
  std::string format;
  size_t n = kElements;
  Updates updates = Updates::kNormal;
  float learning_rate = 0;
  int threads = 1;

  auto Key() const { return std::tuple(format, n, updates, learning_rate, threads); }
  std::string Text() const {
    return fmt::format("/{}/{}M/{}/lr:{:g}/threads:{}",
                       format,
                       n >> 20,
                       updates == Updates::kNormal ? "normal" : "signs",
                       learning_rate,
                       threads);
  }
};

std::vector<float> NormalDraws(uint64_t stream) {
  std::vector<float> draws(kElements);
  ParallelFor(kElements, 4096, [&](size_t begin, size_t end) {
    FillNormal({1, stream}, begin, std::span(draws).subspan(begin, end - begin));
  });
  return draws;
}

// The arrays of one problem, and the encode plans of naive and matched steps.
struct Arrays {
  FormatSpec format;
  EncodePlan plan;             // casts like a framework
  EncodePlan saturating_plan;  // for matched steps
  std::vector<float> weights, update, new_weights;
};

Arrays MakeArrays(const Problem& problem) {
  static const std::vector<float> weight_draws = NormalDraws(0);
  static const std::vector<float> update_draws = NormalDraws(1);
  const FormatSpec format = ParseFormat(problem.format).spec;
  Arrays arrays{format,
                MakeEncodePlan(format),
                MakeEncodePlan(format, {}, Overflow::kSaturate),
                std::vector<float>(problem.n),
                {update_draws.begin(), update_draws.begin() + static_cast<ptrdiff_t>(problem.n)},
                std::vector<float>(problem.n)};
  FakeQuantize(arrays.plan, std::span(weight_draws).first(problem.n), arrays.weights);
  if (problem.updates == Updates::kSigns) {
    for (float& u : arrays.update) u = std::copysign(1.0f, u);
  }
  return arrays;
}

// Returns the arrays of a problem. Keeps those of the last one, because its rows are consecutive.
Arrays& ArraysOf(const Problem& problem) {
  static std::pair<std::tuple<std::string, size_t, Updates>, Arrays> last;
  const std::tuple key(problem.format, problem.n, problem.updates);
  if (last.second.weights.empty() || last.first != key) {
    last.second = {};  // frees the large arrays before the new ones are allocated
    last = {key, MakeArrays(problem)};
  }
  return last.second;
}

void Read(Arrays& arrays) {
  benchmark::DoNotOptimize(AbsmaxOfAll(arrays.weights));
  benchmark::DoNotOptimize(AbsmaxOfAll(arrays.update));
}

void NaivePass(Arrays& arrays, float learning_rate) {
  constexpr size_t kBlock = 4096;
  ParallelFor(arrays.weights.size(), kBlock, [&](size_t first, size_t last) {
    for (size_t begin = first; begin < last; begin += kBlock) {
      const size_t n = std::min(kBlock, last - begin);
      const float* const weights = arrays.weights.data() + begin;
      const float* const update = arrays.update.data() + begin;
      float* const out = arrays.new_weights.data() + begin;
      for (size_t i = 0; i < n; ++i) out[i] = weights[i] + learning_rate * update[i];
      FakeQuantizeSerial(arrays.plan, out, n, out, {});
    }
  });
  benchmark::ClobberMemory();
}

MatchedStep Match(Arrays& arrays,
                  float learning_rate,
                  MatchedQuantity quantity,
                  MatchSolver solver) {
  MatchedProblem matched;
  matched.plan = &arrays.saturating_plan;
  matched.weights = arrays.weights;
  matched.update = arrays.update;
  matched.learning_rate = learning_rate;
  matched.update_square = SquaredSum(arrays.update);
  matched.quantity = quantity;
  matched.random = {1, 2};
  const MatchedStep step = TakeMatchedStep(matched, solver, arrays.new_weights);
  benchmark::ClobberMemory();
  return step;
}

// Returns the median time of several calls in seconds, not counting a first one.
double Seconds(const std::function<void()>& call) {
  using Clock = std::chrono::steady_clock;
  call();
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(300);
  std::vector<double> seconds;
  while (seconds.size() < 5 || Clock::now() < end) {
    const Clock::time_point start = Clock::now();
    call();
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const auto middle = seconds.begin() + static_cast<ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

using ProblemKey = decltype(std::declval<Problem>().Key());

double LimitSeconds(const Problem& problem) {
  static std::map<ProblemKey, double> measured;
  const auto [entry, added] = measured.try_emplace(problem.Key());
  if (added) {
    Arrays& arrays = ArraysOf(problem);
    entry->second =
        Seconds([&] { NaivePass(arrays, problem.learning_rate); }) + Seconds([&] { Read(arrays); });
  }
  return entry->second;
}

double SelectionSeconds(const Problem& problem, MatchedQuantity quantity) {
  static std::map<std::pair<ProblemKey, MatchedQuantity>, double> measured;
  const auto [entry, added] = measured.try_emplace({problem.Key(), quantity});
  if (added) {
    Arrays& arrays = ArraysOf(problem);
    entry->second =
        Seconds([&] { Match(arrays, problem.learning_rate, quantity, MatchSolver::kSelection); });
  }
  return entry->second;
}

// Returns the time per iteration in seconds. Uses its own clock, because Google Benchmark would
// print the counters as rates.
double TimeIterations(benchmark::State& state, const std::function<void()>& call) {
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) call();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return seconds.count() / static_cast<double>(state.iterations());
}

// Sets the counters. All rows have all columns, so that --benchmark_counters_tabular aligns them.
void Report(benchmark::State& state,
            const Problem& problem,
            double seconds,
            int passes,
            MatchedQuantity quantity = MatchedQuantity::kNorm) {
  state.counters["ns/elem"] = seconds * 1e9 / static_cast<double>(problem.n);
  state.counters["of_limit"] = seconds / LimitSeconds(problem);
  state.counters["of_selection"] = seconds / SelectionSeconds(problem, quantity);
  state.counters["passes"] = passes;
}

void BM_Read(benchmark::State& state, const Problem& problem) {
  SetThreadCount(problem.threads);
  Arrays& arrays = ArraysOf(problem);
  Report(state, problem, TimeIterations(state, [&] { Read(arrays); }), 1);
}

void BM_NaivePass(benchmark::State& state, const Problem& problem) {
  SetThreadCount(problem.threads);
  Arrays& arrays = ArraysOf(problem);
  const auto pass = [&] { NaivePass(arrays, problem.learning_rate); };
  Report(state, problem, TimeIterations(state, pass), 1);
}

void BM_Match(benchmark::State& state,
              const Problem& problem,
              MatchedQuantity quantity,
              MatchSolver solver) {
  SetThreadCount(problem.threads);
  Arrays& arrays = ArraysOf(problem);
  MatchedStep step;
  const double seconds =
      TimeIterations(state, [&] { step = Match(arrays, problem.learning_rate, quantity, solver); });
  Report(state, problem, seconds, step.passes, quantity);
  state.SetLabel(std::string(ToString(step.status)));
}

void BM_Apply(benchmark::State& state, const Problem& problem, UpdateRule rule) {
  SetThreadCount(problem.threads);
  rule.tolerance = 0;
  Arrays& arrays = ArraysOf(problem);
  std::vector<float> weights(problem.n);
  const MatrixShape shape{1, problem.n};
  UpdateState kept = StartUpdates(
      rule, arrays.format, HostMatrix(arrays.weights, shape), HostMatrix(weights, shape));
  WeightUpdate step;
  step.format = arrays.format;
  step.weights = HostMatrix(weights, shape);
  step.update = HostMatrix(arrays.update, shape);
  step.learning_rate = problem.learning_rate;
  UpdateOutcome outcome;
  const double seconds = TimeIterations(state, [&] {
    outcome = ApplyUpdate(rule, step, {1, 2}, kept, HostMatrix(arrays.new_weights, shape));
    benchmark::ClobberMemory();
  });
  const auto quantity = rule.kind == UpdateKind::kProjectionMatched ? MatchedQuantity::kProjection
                                                                    : MatchedQuantity::kNorm;
  Report(state, problem, seconds, std::max(outcome.passes, 1), quantity);
  state.SetLabel(std::string(ToString(outcome.status)));
}

void RegisterSteps(const Problem& problem) {
  const auto add = [&](const std::string& name, const auto& function) {
    Register(name + problem.Text(),
             [problem, function](benchmark::State& state) { function(state, problem); });
  };
  add("read", BM_Read);
  add("naive-pass", BM_NaivePass);
  for (const auto quantity : {MatchedQuantity::kNorm, MatchedQuantity::kProjection}) {
    for (const auto solver : {MatchSolver::kSelection, MatchSolver::kBisection}) {
      const std::string name =
          std::string(solver == MatchSolver::kSelection ? "selection" : "bisection") +
          (quantity == MatchedQuantity::kNorm ? "-norm" : "-projection");
      add(name,
          [=](benchmark::State& state, const Problem& p) { BM_Match(state, p, quantity, solver); });
    }
  }
}

void RegisterRules(const Problem& problem) {
  for (const UpdateKind kind : UpdateKinds()) {
    if (kind == UpdateKind::kSplitMaster && problem.format != "bf16") continue;
    UpdateRule rule;
    rule.kind = kind;
    Register("apply/" + ToString(rule) + problem.Text(),
             [=](benchmark::State& state) { BM_Apply(state, problem, rule); });
  }
}

void RegisterAll(int threads) {
  for (const auto& [format, n] : {std::pair<const char*, size_t>{"bf16", kElements},
                                  {"bf16", size_t{1} << 20},
                                  {"e4m3fn", kElements},
                                  {"fp16", kElements}}) {
    const Problem typical{format, n, Updates::kNormal, 1e-4f, threads};
    RegisterSteps(typical);
    RegisterRules(typical);
    if (typical.format == "bf16") {
      RegisterSteps({format, n, Updates::kNormal, 1e-3f, threads});
      RegisterSteps({format, n, Updates::kNormal, 1e-6f, threads});
    }
    RegisterSteps({format, n, Updates::kSigns, 1e-4f, threads});
  }
}

}  // namespace
}  // namespace numsim::bench

int main(int argc, char** argv) {
  return numsim::bench::Main(argc, argv, numsim::bench::RegisterAll);
}
