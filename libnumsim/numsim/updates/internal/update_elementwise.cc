// Rules that treat each weight by itself and keep no state, or only a compensation.
#include <array>

#include "numsim/cast/shared/round_f64.h"
#include "numsim/cast/shared/round_step.h"
#include "numsim/updates/internal/update_kinds.h"

namespace numsim {
namespace {

uint64_t CountWantedBeyond(const UpdateJob& job, ElementRange block) {
  return CountBeyond(job.weights.data() + block.begin,
                     job.update.data() + block.begin,
                     static_cast<double>(job.learning_rate),
                     job.LimitAt(job.learning_rate),
                     block.count);
}

}  // namespace

uint64_t NaiveBlock(const UpdateJob& job, ElementRange block, float* after) {
  RoundFloatStepSerial(job.plan,
                       job.weights.data() + block.begin,
                       job.update.data() + block.begin,
                       job.learning_rate,
                       block.count,
                       after);
  return CountWantedBeyond(job, block);
}

uint64_t StochasticBlock(const UpdateJob& job, ElementRange block, float* after) {
  RoundStepSerial(job.own_plan,
                  job.weights.data() + block.begin,
                  job.update.data() + block.begin,
                  job.learning_rate,
                  block.count,
                  after,
                  {job.random, block.begin});
  return CountWantedBeyond(job, block);
}

uint64_t KahanBlock(const UpdateJob& job, ElementRange block, float* after) {
  const size_t n = block.count;
  if (n == 0) return 0;
  const float* const weights = job.weights.data() + block.begin;
  const float* const update = job.update.data() + block.begin;
  float* const compensation = job.state->values.View().data + block.begin;
  const double lr = static_cast<double>(job.learning_rate);
  std::array<double, kSumBlock> before, wanted;
  for (size_t i = 0; i < n; ++i) {
    before[i] = static_cast<double>(weights[i]);
    // The product is exact.
    wanted[i] = static_cast<double>(compensation[i]) + lr * static_cast<double>(update[i]);
  }
  RoundSumSerial(job.plan, before.data(), wanted.data(), n, after);
  for (size_t i = 0; i < n; ++i) wanted[i] -= static_cast<double>(after[i]) - before[i];
  RoundF64Serial(job.own_plan, wanted.data(), n, compensation);
  return CountWantedBeyond(job, block);
}

}  // namespace numsim
