// The losses of loss.h by kernels. row_kernels.h says what `launch` is.
#pragma once

#include "numsim/ops/internal/row_kernels.h"

namespace numsim {

// The results that the kernels of a loss leave for the host, and for one another.
struct LossTotal {
  double sum;
  uint64_t counted, correct;
  uint64_t wrong_targets;  // that are no classes: nothing of their rows counts
  float weight;            // of the gradient of a counted row
};

NUMSIM_INLINE bool IsClass(int32_t target, size_t classes) {
  return target >= 0 && static_cast<size_t>(target) < classes;
}

// Counts the targets; one block.
struct CountTargetsKernel {
  static constexpr unsigned kThreads = kRowThreads;
  struct Shared {
    uint64_t counted[kThreads], wrong[kThreads];
  };
  const int32_t* targets;
  size_t rows, classes;
  double factor;
  LossTotal* total;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared& shared) const {
    uint64_t counted = 0, wrong = 0;
    for (size_t i = env.Thread(); i < rows; i += kThreads) {
      counted += IsClass(targets[i], classes) ? 1 : 0;
      wrong += IsClass(targets[i], classes) || targets[i] == -1 ? 0 : 1;
    }
    shared.counted[env.Thread()] = counted;
    shared.wrong[env.Thread()] = wrong;
    env.Sync();
    if (env.Thread() != 0) return;
    counted = wrong = 0;
    for (unsigned t = 0; t < kThreads; ++t) {
      counted += shared.counted[t];
      wrong += shared.wrong[t];
    }
    total->counted = counted;
    total->wrong_targets = wrong;
    total->weight = counted == 0 ? 0.0f : static_cast<float>(factor / static_cast<double>(counted));
  }
};

struct CrossEntropyRule {
  RowView<const float> logits;
  const int32_t* targets;
  size_t classes;
  const LossTotal* total;   // of CountTargetsKernel
  RowView<float> gradient;  // without data if nobody asks for it
  RowLoss* results;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t) const {
    float* const to = gradient.data == nullptr ? nullptr : gradient.Row(row);
    RowLoss result = {};
    if (IsClass(targets[row], classes)) {
      const auto target = static_cast<size_t>(targets[row]);
      result = CrossEntropyLanes(l, logits.Row(row), classes, target, total->weight, to);
    } else if (to != nullptr) {
      l.ForRow(classes, [&](size_t i, size_t count) { l.Store(0.0f, to + i, count); });
    }
    if (l.Owns(0)) results[row] = result;
  }
};

struct SquaredErrorRule {
  RowView<const float> y, target;
  size_t cols;
  float weight;
  RowView<float> gradient;
  RowLoss* results;

  template <class L>
  NUMSIM_INLINE void operator()(const L& l, size_t row, size_t) const {
    float* const to = gradient.data == nullptr ? nullptr : gradient.Row(row);
    const float sum = SquaredErrorLanes(l, y.Row(row), target.Row(row), cols, weight, to);
    if (l.Owns(0)) results[row] = {static_cast<double>(sum) / static_cast<double>(cols), false};
  }
};

// Adds up the rows, one after another; one block.
struct TotalLossKernel {
  static constexpr unsigned kThreads = kRowThreads;
  struct Shared {
    RowLoss rows[kThreads];
  };
  const RowLoss* results;
  size_t rows;
  LossTotal* total;

  template <class Env>
  NUMSIM_HOST_DEVICE void Run(Env& env, Shared& shared) const {
    double sum = 0;
    uint64_t correct = 0;
    for (size_t begin = 0; begin < rows; begin += kThreads) {
      if (begin + env.Thread() < rows) shared.rows[env.Thread()] = results[begin + env.Thread()];
      env.Sync();
      for (size_t i = 0; env.Thread() == 0 && i < kThreads && begin + i < rows; ++i) {
        sum += shared.rows[i].loss;
        correct += shared.rows[i].correct ? 1 : 0;
      }
      env.Sync();
    }
    if (env.Thread() != 0) return;
    total->sum = sum;
    total->correct = correct;
  }
};

// results has room for a RowLoss per row.
template <class Launch>
void CrossEntropyBy(const Launch& launch,
                    In<float> logits,
                    IndexRef targets,
                    double factor,
                    RowLoss* results,
                    MatrixSpan<float> gradient,
                    LossTotal* total) {
  const size_t rows = logits.rows, classes = logits.cols;
  launch(CountTargetsKernel{targets.data, rows, classes, factor, total}, 1);
  const CrossEntropyRule rule{logits, targets.data, classes, total, gradient, results};
  LaunchVectors(launch, rows, 1, rule);
  launch(TotalLossKernel{results, rows, total}, 1);
}
template <class Launch>
void SquaredErrorBy(const Launch& launch,
                    In<float> y,
                    In<float> target,
                    float weight,
                    RowLoss* results,
                    MatrixSpan<float> gradient,
                    LossTotal* total) {
  const SquaredErrorRule rule{y, target, y.cols, weight, gradient, results};
  LaunchVectors(launch, y.rows, 1, rule);
  launch(TotalLossKernel{results, y.rows, total}, 1);
}

}  // namespace numsim
