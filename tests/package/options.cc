// Writes each struct of options with a designated initialiser for one member, or for a few. The
// compiler must not warn of the others (-Wextra has -Wmissing-field-initializers).
#include <cstdio>
#include <vector>

#include "numsim/analysis/precision_ranking.h"
#include "numsim/analysis/step_replay.h"
#include "numsim/gemm.h"
#include "numsim/io/csv.h"
#include "numsim/plot/figure.h"
#include "numsim/quantize.h"
#include "numsim/train.h"
#include "numsim/update.h"

int main() {
  using namespace numsim;
  const FormatSpec e4m3fn = ParseFormat("e4m3fn").spec;
  const std::vector<float> values = {1, -2, 4};

  const ScaleLayout layout{.granularity = Granularity::kRow};
  const Rounding rounding{.mode = RoundingMode::kStochastic};
  const ArrayRandom random{.first_index = 1};
  const QuantizeOptions quantize{.format = e4m3fn, .layout = layout};
  const DelayedScalingOptions delayed{.history = 4};
  const ArrayOperand array_operand{.format = e4m3fn};
  const GemmScales scales{.row_stride = 1};
  const GemmOperand operand{.format = e4m3fn, .values = values, .rows = 1, .inner = 3};
  const AccumulationMode mode{.kind = AccumulationKind::kFloat64};
  const UpdateRule rule{.kind = UpdateKind::kStochastic};
  const MatrixSpan<const float> view(values.data(), MatrixShape{.rows = 1, .cols = 3});
  const WeightUpdate update{.weights = view, .learning_rate = 1};
  const LinearOptions linear{.kind = "switchback"};
  const MomentFormat moment{.scaling = MomentScaling::kTensor};
  const LossScalerConfig scaler{.kind = LossScaling::kDynamic};
  const Schedule schedule{.peak = 1};
  const StressConfig stress{.value = 1};
  const LoopConfig loop{.steps = 2};
  const DataConfig data{.size = 4};
  const ModelConfig model{.layers = 2};
  const LinearOverride override_{.layers = "head"};
  const LinearPrecision precision{.all = linear};
  const TrainConfig train{.model = model};
  const TrainRunOptions run{.out = "results"};
  const RankRunOptions rank{.out = "results"};
  const ReplayPrecision replay{.linear = precision};
  const Series series{.x = {1}, .y = {2}};
  const Panel panel{.title = "error"};
  const Figure figure{.name = "error", .panels = {panel}};
  const Table table{.columns = {"a"}};

  // Members that are left out have the defaults of an object that names none.
  const bool defaults = quantize.rounding == Rounding{} &&
                        quantize.scale_rule == ScaleRule::kAbsmax && rule.random_bits == 32 &&
                        update.weights.rows == 1 && linear.block == 0 && random.stream.seed == 0;
  const bool given =
      rounding.mode == RoundingMode::kStochastic && delayed.history == 4 &&
      array_operand.codes.size() == 0 && scales.row_stride == 1 && operand.inner == 3 &&
      mode.chunk == 0 && view.rows == 1 && moment.block == 128 && scaler.growth == 2 &&
      schedule.peak == 1 && stress.value == 1 && loop.steps == 2 && data.size == 4 &&
      override_.layers == "head" && precision.all.kind == "switchback" && train.model.layers == 2 &&
      run.out == "results" && rank.out == run.out && replay.linear.all.kind == "switchback" &&
      series.low.empty() && figure.panels.size() == 1 && table.rows.empty();
  if (defaults && given) return 0;
  std::printf("a member does not have its default\n");
  return 1;
}
