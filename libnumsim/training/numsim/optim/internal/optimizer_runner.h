// Runs the kernels of a step where its data are.
#pragma once

#include <cstddef>
#include <memory>

#include "numsim/backend/matrix.h"
#include "numsim/optim/internal/optimizer_bare_drawn_kernel.h"
#include "numsim/optim/internal/optimizer_bare_step_kernel.h"
#include "numsim/optim/internal/optimizer_decisions.h"
#include "numsim/optim/internal/optimizer_state_kernels.h"
#include "numsim/optim/internal/optimizer_step_kernel.h"

namespace numsim {

// Run starts the threads of a kernel after all work of earlier calls, and need not wait for them.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  virtual void Run(const BeginKernel& kernel, size_t threads) = 0;
  virtual void Run(const GradientKernel& kernel, size_t threads) = 0;
  virtual void Run(const JoinKernel& kernel, size_t threads) = 0;
  virtual void Run(const TotalKernel& kernel, size_t threads) = 0;
  virtual void Run(const DecideKernel& kernel, size_t threads) = 0;
  virtual void Run(const RatesKernel& kernel, size_t threads) = 0;
  virtual void Run(const StateRangeKernel& kernel, size_t threads) = 0;
  virtual void Run(const RatioKernel& kernel, size_t threads) = 0;
  virtual void Run(const SettleKernel& kernel, size_t threads) = 0;
  virtual void Run(const ScanKernel& kernel, size_t threads) = 0;
  virtual void Run(const JudgeKernel& kernel, size_t threads) = 0;
  virtual void Run(const StateLossKernel& kernel, size_t threads) = 0;
  virtual void Run(const StepKernel& kernel, size_t threads) = 0;
  virtual void Run(const StateScaleKernel& kernel, size_t threads) = 0;
  virtual void Run(const GradientRangeKernel& kernel, size_t threads) = 0;
  virtual void Run(const BareRangeKernel& kernel, size_t threads) = 0;
  virtual void Run(const InverseKernel& kernel, size_t threads) = 0;
  virtual void Run(const BareStepKernel<true>& kernel, size_t threads) = 0;
  virtual void Run(const BareStepKernel<false>& kernel, size_t threads) = 0;
  virtual void Run(const BareDrawnStepKernel& kernel, size_t threads) = 0;
  virtual void Run(const FinishKernel& kernel, size_t threads) = 0;
};

// A runner that calls launch(kernel, threads), with a StepKernelOf in place of a StepKernel, and a
// BareKernelOf in place of a bare kernel.
template <class Launch>
class LaunchingRunner : public KernelRunner {
 public:
  explicit LaunchingRunner(const Launch& launch) : launch_(launch) {}

  void Run(const BeginKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const GradientKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const JoinKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const TotalKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const DecideKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const RatesKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const StateRangeKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const RatioKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const SettleKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const ScanKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const JudgeKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const StateLossKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const StepKernel& kernel, size_t threads) override {
    WithStepKernel(kernel, [&](const auto& step) { launch_(step, threads); });
  }
  void Run(const StateScaleKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const GradientRangeKernel& kernel, size_t threads) override { RunBare(kernel, threads); }
  void Run(const BareRangeKernel& kernel, size_t threads) override { RunBare(kernel, threads); }
  void Run(const InverseKernel& kernel, size_t threads) override { launch_(kernel, threads); }
  void Run(const BareStepKernel<true>& kernel, size_t threads) override {
    RunBare(kernel, threads);
  }
  void Run(const BareStepKernel<false>& kernel, size_t threads) override {
    RunBare(kernel, threads);
  }
  void Run(const BareDrawnStepKernel& kernel, size_t threads) override { RunBare(kernel, threads); }
  void Run(const FinishKernel& kernel, size_t threads) override { launch_(kernel, threads); }

 private:
  template <class Kernel>
  void RunBare(const Kernel& kernel, size_t threads) {
    WithBareKernel(kernel, [&](const auto& one) { launch_(one, threads); });
  }

  Launch launch_;
};

// Returns the runner of a device.
std::unique_ptr<KernelRunner> MakeDeviceRunner(Place place);

}  // namespace numsim
