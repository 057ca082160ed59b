// The tables of `feature-statistics`.
#include "experiments/feature_statistics/feature_statistics.h"

namespace numsim::experiments::feature_statistics {
namespace {

struct KeyColumns {
  Column size{"size", "layers x width"};
  Column scale{"layer_scale", "initial gain; none: no layer-scale"};
  Column tower{"tower", "image or text"};
  Column tensor{"tensor", "tensor of the block"};
  Column seed{"seed", "seed of weights and batches"};
  Column block{"block", "number of the block, from 0"};
  Column steps{"steps", "steps that are judged: all, or after-warmup"};
  Column forecast{"forecast", "prediction of a maximum: max or mean of the history"};
  Column history{"history", "number of previous steps in the history"};
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
                      {"seeds", "number of seeds"},
                      {"overruns", "share of the steps of all blocks, mean over seeds"},
                      {"overruns_low", "95 % interval of overruns (Student's t); nan for one seed"},
                      {"overruns_high", "95 % interval of overruns"},
                      {"clipped", "share of the steps of all blocks, mean over seeds"},
                      {"clipped_low", "95 % interval of clipped"},
                      {"clipped_high", "95 % interval of clipped"},
                      {"within_2", "share of the steps of all blocks, mean over seeds"},
                      {"largest_excess", "maximum over all blocks and seeds"},
                      {"change_median", "mean over blocks and seeds"},
                      {"change_95", "mean over blocks and seeds"},
                      {"change_95_worst", "largest change_95 of all blocks and seeds"}}};
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
                      {"seeds", "number of seeds"},
                      {"first", "statistic at the first record, mean over seeds"},
                      {"first_low", "95 % interval of first (Student's t); nan for one seed"},
                      {"first_high", "95 % interval of first"},
                      {"last", "statistic at the last record of a training, mean over seeds"},
                      {"last_low", "95 % interval of last"},
                      {"last_high", "95 % interval of last"},
                      {"ratio", "last over first, mean over seeds"},
                      {"ratio_low", "95 % interval of ratio"},
                      {"ratio_high", "95 % interval of ratio"}}};
}

TableSpec DepthSpec(const KeyColumns& keys) {
  return {
      .name = std::string(kDepthTable),
      .derived = true,
      .columns = {keys.size,
                  keys.scale,
                  keys.tower,
                  {"statistic", "mean_abs or max_abs of the output of a block"},
                  {"seeds", "number of seeds"},
                  {"last_block", "statistic of the last block at the last record, mean over seeds"},
                  {"last_block_low", "95 % interval of last_block (Student's t); nan for one seed"},
                  {"last_block_high", "95 % interval of last_block"},
                  {"over_first_block", "last_block over the first block's, mean over seeds"},
                  {"over_first_block_low", "95 % interval of over_first_block"},
                  {"over_first_block_high", "95 % interval of over_first_block"},
                  {"over_none",
                   "last_block over that without layer-scale with the same seed, mean over "
                   "seeds; nan without such a training"},
                  {"over_none_low", "95 % interval of over_none"},
                  {"over_none_high", "95 % interval of over_none"}}};
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
                   {"max_abs", "largest magnitude; inf if an element is not finite"},
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
                   {"compared", "number of steps with a maximum and a forecast above 0"},
                   {"overruns", "number of those steps whose maximum is above the forecast"},
                   {"clipped", "number of those above 16/15 of the forecast"},
                   {"within_2", "number of those within a factor of 2 of the forecast"},
                   {"largest_excess", "largest ratio of a maximum to its forecast"},
                   {"change_median", "median of |log2(maximum / forecast)|"},
                   {"change_95", "95 % quantile of |log2(maximum / forecast)|"}}},
      {.name = std::string(kFinalTable),
       .columns = {keys.size,
                   keys.scale,
                   keys.seed,
                   {"status", "finished or diverged"},
                   {"steps", "steps taken"},
                   {"train_loss", "mean training loss of the last 10 steps, nats"},
                   {"valid_loss", "validation loss at the end; inf when diverged"}}},
      SmoothnessSpec(keys),
      GrowthSpec(keys),
      DepthSpec(keys),
  };
}

}  // namespace numsim::experiments::feature_statistics
