// The tables of `feature-statistics`.
#include "experiments/feature_statistics/feature_statistics.h"

namespace numsim::experiments::feature_statistics {
namespace {

struct KeyColumns {
  Column size{"size", "layers x width"};
  Column scale{"layer_scale", "initial gain; none: no layer-scale"};
  Column tower{"tower", "image or text"};
  Column tensor{"tensor", "which of the block"};
  Column seed{"seed", "of weights and batches"};
  Column block{"block", "number, 0 first"};
  Column steps{"steps", "steps that are judged: all, or those after the warm-up"};
  Column forecast{"forecast", "what foretells a maximum: max or mean of the history"};
  Column history{"history", "maxima of how many steps before"};
};

TableSpec SmoothnessSpec(const KeyColumns& keys) {
  return {.name = std::string(kSmoothnessTable),
          .derived = true,
          .columns = {keys.size,
                      keys.scale,
                      keys.tower,
                      keys.tensor,
                      keys.steps,
                      keys.forecast,
                      keys.history,
                      {"seeds", ""},
                      {"overruns", "share of the steps of all blocks, mean over seeds"},
                      {"overruns_low", "95 % interval (Student's t); nan for one seed"},
                      {"overruns_high", ""},
                      {"clipped", "share of the steps, mean over seeds"},
                      {"clipped_low", "95 % interval"},
                      {"clipped_high", ""},
                      {"within_2", "share of the steps, mean over seeds"},
                      {"largest_excess", "of all blocks and seeds"},
                      {"change_median", "mean over blocks and seeds"},
                      {"change_95", "mean over blocks and seeds"},
                      {"change_95_worst", "largest of all blocks and seeds"}}};
}

TableSpec GrowthSpec(const KeyColumns& keys) {
  return {.name = std::string(kGrowthTable),
          .derived = true,
          .columns = {keys.size,
                      keys.scale,
                      keys.tower,
                      keys.block,
                      keys.tensor,
                      {"statistic", "mean_abs or max_abs"},
                      {"seeds", ""},
                      {"first", "at the first record, mean over seeds"},
                      {"first_low", "95 % interval (Student's t); nan for one seed"},
                      {"first_high", ""},
                      {"last", "at the last record of a training, mean over seeds"},
                      {"last_low", "95 % interval"},
                      {"last_high", ""},
                      {"ratio", "last over first, mean over seeds"},
                      {"ratio_low", "95 % interval"},
                      {"ratio_high", ""}}};
}

TableSpec DepthSpec(const KeyColumns& keys) {
  return {.name = std::string(kDepthTable),
          .derived = true,
          .columns = {keys.size,
                      keys.scale,
                      keys.tower,
                      {"statistic", "mean_abs or max_abs, of what a block puts out"},
                      {"seeds", ""},
                      {"last_block", "of the last block at the last record, mean over seeds"},
                      {"last_block_low", "95 % interval (Student's t); nan for one seed"},
                      {"last_block_high", ""},
                      {"over_first_block", "that over the first block's, mean over seeds"},
                      {"over_first_block_low", "95 % interval"},
                      {"over_first_block_high", ""},
                      {"over_none",
                       "that over the one without layer-scale, of the same seed, mean over seeds; "
                       "nan without such a training"},
                      {"over_none_low", "95 % interval"},
                      {"over_none_high", ""}}};
}

}  // namespace

std::vector<TableSpec> TableSpecs() {
  const KeyColumns keys;
  return {
      {.name = std::string(kFeaturesTable),
       .columns = {keys.size,
                   keys.scale,
                   keys.seed,
                   {"step", "steps taken before this one"},
                   keys.tower,
                   keys.block,
                   keys.tensor,
                   {"mean_abs", "mean magnitude of the finite elements"},
                   {"max_abs", "largest magnitude; inf where an element is not finite"},
                   {"rms", "root mean square of the finite elements"}}},
      {.name = std::string(kMaximaTable),
       .columns = {keys.size,
                   keys.scale,
                   keys.seed,
                   keys.tower,
                   keys.block,
                   keys.tensor,
                   keys.steps,
                   keys.forecast,
                   keys.history,
                   {"compared", "steps with a maximum and a forecast above 0"},
                   {"overruns", "of those, steps whose maximum is above the forecast"},
                   {"clipped", "above 16/15 of the forecast"},
                   {"within_2", "less than a factor 2 off, to either side"},
                   {"largest_excess", "largest maximum over its forecast"},
                   {"change_median", "of |log2(maximum / forecast)|"},
                   {"change_95", "95 % quantile of that"}}},
      {.name = std::string(kFinalTable),
       .columns = {keys.size,
                   keys.scale,
                   keys.seed,
                   {"status", "finished or diverged"},
                   {"steps", "steps taken"},
                   {"train_loss", "mean of the last 10 steps, nats"},
                   {"valid_loss", "at the end; inf when diverged"}}},
      SmoothnessSpec(keys),
      GrowthSpec(keys),
      DepthSpec(keys),
  };
}

}  // namespace numsim::experiments::feature_statistics
