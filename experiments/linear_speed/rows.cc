// The rounds of `linear-speed` and the rows of operations.csv.
#include <chrono>
#include <limits>

#include "experiments/linear_speed/timing.h"
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/parallel.h"
#include "numsim/stats/moments.h"

namespace numsim::experiments::linear_speed {
namespace {

// The work of an operation, in 10^9 arithmetic operations or bytes.
struct Work {
  double giga = std::numeric_limits<double>::quiet_NaN();
  const char* unit = "none";
};

Work WorkOf(const LinearRecipe& recipe, LinearShape shape, LinearOp step, size_t value_bytes) {
  const auto elements = [](size_t rows, size_t cols) {
    return static_cast<double>(rows) * static_cast<double>(cols);
  };
  const double x = elements(shape.tokens, shape.in);
  const double w = elements(shape.out, shape.in);
  const double g = elements(shape.tokens, shape.out);
  // A conversion reads values and writes codes, or vice versa.
  const auto convert = [&](double count, const FormatSpec& format) {
    const size_t bytes = value_bytes + static_cast<size_t>(format.StorageBytes());
    return Work{count * static_cast<double>(bytes) * 1e-9, "GB"};
  };
  const auto& [forward, input, weight] = recipe.products;
  switch (step) {
    case LinearOp::kForwardProduct:
    case LinearOp::kInputGradientProduct:
    case LinearOp::kWeightGradientProduct:
      return {2e-9 * x * static_cast<double>(shape.out), "GOP"};
    case LinearOp::kQuantizeX:
    case LinearOp::kDequantizeX:
      return convert(x, forward.a.format.spec);
    case LinearOp::kQuantizeW:
      return convert(w, forward.b.format.spec);
    case LinearOp::kQuantizeG:
      return convert(g, input.a.format.spec);
    case LinearOp::kQuantizeWTransposed:
      return convert(w, input.b.format.spec);
    case LinearOp::kQuantizeGTransposed:
      return convert(g, weight.a.format.spec);
    case LinearOp::kQuantizeXTransposed:
      return convert(x, weight.b.format.spec);
    case LinearOp::kSaveX:
      return convert(x, recipe.high_precision.spec);
  }
  return {};
}

// Appends the cells of one operation, from `operation` to `rate`.
void AppendTimes(std::string_view operation,
                 Part part,
                 const std::vector<double>& samples,
                 const Work& work,
                 Row& cells) {
  const double seconds = Quantile(samples, 0.5);
  cells.insert(cells.end(),
               {operation,
                ToString(part),
                seconds,
                Quantile(samples, 0.25),
                Quantile(samples, 0.75),
                uint64_t{samples.size()},
                work.giga,
                work.unit,
                work.giga / seconds});
}

}  // namespace

RoundLimits RoundLimitsOf(const Settings& settings) {
  const RoundLimits limits{settings.GetInteger("repeats", 1, 1000),
                           settings.GetDouble("min-seconds", 0, 3600),
                           settings.GetDouble("max-seconds", 0, 3600)};
  if (limits.most > 0 && limits.most < limits.least) {
    throw Error::Format(
        "--max-seconds {}: is less than --min-seconds {}", limits.most, limits.least);
  }
  return limits;
}

void RepeatRounds(const Settings& settings, size_t layers, const std::function<void()>& round) {
  const RoundLimits limits = RoundLimitsOf(settings);
  const double least = limits.least * static_cast<double>(layers);
  const double most = limits.most * static_cast<double>(layers);
  const auto begin = std::chrono::steady_clock::now();
  const auto spent = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (int64_t done = 0; done < limits.repeats || spent() < least; ++done) {
    if (most > 0 && done > 0 && spent() >= most) return;
    round();
  }
}

LinearShape ShapeOf(const Trial& trial) {
  return {std::stoull(trial.parameters.at("tokens")),
          std::stoull(trial.parameters.at("in")),
          std::stoull(trial.parameters.at("out"))};
}

Rows OperationRows(const Trial& trial,
                   const TimedPlace& place,
                   std::span<const TimedLayer> layers,
                   std::span<const LayerTimes> times) {
  Rows rows;
  const LinearShape shape = ShapeOf(trial);
  for (size_t k = 0; k < layers.size(); ++k) {
    const LinearRecipe& recipe = layers[k].recipe;
    for (size_t i = 0; i <= kSteps; ++i) {
      const std::vector<double>& samples = times[k].samples[i];
      if (samples.empty()) continue;
      Row cells = {place.device,
                   BackendName(),
                   ThreadCount(),
                   place.library,
                   recipe.kind,
                   layers[k].format,
                   recipe.high_precision.name,
                   layers[k].product,
                   trial.parameters.at("width"),
                   trial.parameters.at("dim"),
                   trial.parameters.at("tokens"),
                   trial.seed,
                   trial.parameters.at("in"),
                   trial.parameters.at("out")};
      const bool other = i == kOtherStep;
      if (other) {
        AppendTimes(ToString(Part::kOther), Part::kOther, samples, {}, cells);
      } else {
        const LinearOp step = static_cast<LinearOp>(i);
        const Work work = WorkOf(recipe, shape, step, place.value_bytes);
        AppendTimes(numsim::ToString(step), PartOf(step), samples, work, cells);
      }
      cells.emplace_back(uint64_t{other ? 0 : times[k].checked[i]});
      cells.emplace_back(uint64_t{times[k].kept_bytes});
      rows["operations"].push_back(std::move(cells));
    }
  }
  return rows;
}

}  // namespace numsim::experiments::linear_speed
