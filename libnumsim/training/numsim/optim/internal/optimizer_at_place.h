// An optimiser by kernels: all tensors in each of them, decisions in memory of the place, results
// when they are asked for. Its numbers are those of the optimiser on the host, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "numsim/models/parameter.h"
#include "numsim/moments/moment_store.h"
#include "numsim/optim/internal/optimizer_runner.h"
#include "numsim/optim/loss_scaler.h"
#include "numsim/optim/optimizer.h"
#include "numsim/optim/optimizer_config.h"
#include "numsim/optim/optimizer_state.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

// Throws Error naming what has no form for a device: the optimiser, a format or an update rule.
void CheckOptimizerAtPlace(const OptimizerConfig& config);

class OptimizerAtPlace {
 public:
  // Rounds the parameters to the weight format. The configuration and the parameters must outlive
  // this object. The runner runs at the place of the parameters.
  OptimizerAtPlace(const OptimizerConfig& config,
                   const LossScalerConfig& scaler,
                   ParameterList<float>& parameters,
                   uint64_t seed,
                   std::unique_ptr<KernelRunner> runner);
  OptimizerAtPlace(const OptimizerAtPlace&) = delete;
  OptimizerAtPlace& operator=(const OptimizerAtPlace&) = delete;

  // Starts a step, with arguments that Optimizer::Step has checked. Waits only for rules that search
  // (norm-matched, projection-matched).
  void Step(double learning_rate, uint64_t step, bool measure, std::span<const uint8_t> without);
  // See Optimizer::SetOnlyWriter.
  void SetOnlyWriter(bool only_writer) { only_writer_ = only_writer; }
  // See Optimizer::SetReports.
  void SetReports(bool reports) { reports_ = reports; }
  // Waits for the last step and returns its result.
  const OptimizerStep& Last();
  // Returns the result as far as it was fetched.
  const OptimizerStep& Fetched() const { return result_; }
  // Waits for the last step, unless the scale never changes.
  double LossScale();

  Optimizer::Bytes StoredBytes(size_t tensor) const;  // totals of a tensor
  // The pieces of Optimizer::Save, except that of the loss scaler. Waits.
  std::vector<NamedBytes> Save();
  void Restore(StateReader& state);
  LossScaler::State Scaler();  // waits
  void SetScaler(const LossScaler::State& state);

 private:
  // A parameter with its states.
  struct Tensor {
    Parameter<float>* parameter;
    size_t elements;
    std::vector<MomentStore> moments;  // m, v
    std::vector<Buffer<uint32_t>> ranges;
    std::vector<Buffer<float>> inverses;  // one per range, if bare kernels serve the moments
    UpdateState update;
    Buffer<uint8_t> losses;
  };

  void AddTensor(Parameter<float>& parameter);
  TensorRow RowOf(Tensor& tensor, bool takes_part);
  // Copies the table of tensors, if an address in it has changed, and `without`.
  void Upload(bool measure, std::span<const uint8_t> without);
  StepArguments Arguments();
  void Run(const StepArguments& args, bool measure);
  void RunBare(const StepArguments& args);
  // Runs the kernels that decide on the step from the gradients' sums, and on each tensor if `settles`.
  void Decide(const StepArguments& args, bool settles);
  // Runs the kernels that decide on each tensor from its RMS, which clips.
  void Settle(const StepArguments& args);
  // Runs the kernels that look at all elements of tensors that are not decided on yet, and decide.
  void Judge(const StepArguments& args);
  void StepApart(uint64_t step);  // the weights of rules that search
  void JoinSums(const StepArguments& args, uint32_t first, uint32_t count);
  TensorStep ReportOf(size_t i, const TensorPlan& plan) const;  // of a tensor
  MomentLoss LossOf(const Tensor& tensor, int state) const;

  const OptimizerConfig& config_;
  Place place_;
  LossScaler scaler_;
  std::unique_ptr<KernelRunner> runner_;
  std::vector<Tensor> tensors_;
  std::vector<Buffer<uint8_t>> moment_tables_;  // of m and of v
  std::vector<StepConstants> constants_;        // one
  std::vector<TensorRow> rows_;
  std::vector<BlockRow> block_rows_;
  std::vector<uint8_t> without_;
  // At the place: TensorRow, BlockRow, TensorState, TensorPlan, StepPlan.
  Buffer<uint8_t> rows_there_, blocks_there_, states_there_, plans_there_, step_there_;
  Buffer<uint8_t> without_there_;
  Buffer<double> lanes_, block_sums_;
  Buffer<float> directions_;
  bool scaled_ = false;  // a moment has scales
  bool only_writer_ = false, reports_ = true;
  bool reported_ = false;  // the last step was taken with its report
  bool measured_ = false, fetched_ = true;
  std::vector<UpdateOutcome> apart_;  // outcomes of rules that search
  double learning_rate_ = 0;
  OptimizerStep result_;
};

}  // namespace numsim
