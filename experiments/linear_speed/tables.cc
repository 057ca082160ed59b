// The tables of `linear-speed`.
#include "experiments/linear_speed/linear_speed.h"

namespace numsim::experiments::linear_speed {
namespace {

// Returns the first columns of operations.csv and layers.csv: LayerKey, then the size.
std::vector<Column> LayerColumns() {
  return {
      {"device", "processor, or GPU under backend cuda"},
      {"backend", "implementation of numsim's kernels"},
      {"threads", "number of CPU threads"},
      {"library", "library that computes GEMMs under the accumulation mode library"},
      {"kind", "layer kind"},
      {"format", "format of quantised operands; under standard, of all operands"},
      {"high_precision", "format of the other operands"},
      {"product", "accumulation mode of GEMMs in high precision"},
      {"width", "inner width over dim: 4 is dim to 4 dim and 4 dim to dim, 1 is dim to dim"},
      {"dim", "width of the network"},
      {"tokens", "batch times sequence length"},
  };
}

std::vector<Column> OperationColumns() {
  std::vector<Column> columns = LayerColumns();
  const std::vector<Column> rest = {
      {"seed", "seed of the operands"},
      {"in", "inputs of the layer: dim or width dim"},
      {"out", "outputs of the layer"},
      {"operation", "name of the operation"},
      {"part",
       "product (a GEMM), quantize, convert (tensors saved for backward), other (the time of a "
       "pass outside its operations; under cuda, the time of a pass without inner events less the "
       "medians of all operations, which can be negative)"},
      {"seconds", "median over passes"},
      {"seconds_low", "first quartile of seconds"},
      {"seconds_high", "third quartile of seconds"},
      {"repeats", "number of timed passes"},
      {"giga",
       "10^9 multiplications and additions, or bytes that are read or written; nan for other"},
      {"unit", "GOP, GB or none"},
      {"rate", "giga per second"},
      {"checked",
       "elements of a GEMM's result at this size that were compared with the CPU (cuda)"},
      {"kept_bytes", "bytes that forward saves for backward; the same in each row of a layer"},
  };
  return Joined(std::move(columns), rest);
}

std::vector<Column> LayerTableColumns() {
  std::vector<Column> columns = LayerColumns();
  const std::vector<Column> rest = {
      {"seconds",
       "time of a forward and a backward pass: sum over operations, mean of both layers"},
      {"product_share", "share of the GEMMs in seconds"},
      {"quantize_share", "share of quantising operands"},
      {"convert_share", "share of converting tensors saved for backward"},
      {"other_share", "share of the operation other; see part of operations.csv"},
      {"saved_percent", "100 (1 - seconds / seconds of standard): the paper's % speedup"},
      {"speedup", "seconds of standard / seconds"},
      {"kept_bytes", "bytes saved for backward, mean of both layers"},
  };
  return Joined(std::move(columns), rest);
}

std::vector<Column> CrossingColumns() {
  std::vector<Column> columns = LayerColumns();
  columns.resize(columns.size() - 2);  // without the size
  const std::vector<Column> rest = {
      {"along",
       "dim: a dim at a fixed number of tokens; tokens: a number of tokens at a fixed dim"},
      {"at", "that fixed number of tokens, or that fixed dim"},
      {"size",
       "size from which every timed size saves time over standard; nan: the greatest does not"},
      {"between",
       "size interpolated to saved_percent = 0, linearly in log2 of the size; equal to size if all "
       "sizes save time"},
      {"always", "1: even the smallest size that was timed saves time; otherwise 0"},
      {"speedup_low", "speedup at the smallest size"},
      {"speedup_high", "speedup at the greatest size"},
  };
  return Joined(std::move(columns), rest);
}

}  // namespace

std::vector<TableSpec> TableSpecs() {
  return {{.name = std::string(kOperationsTable), .columns = OperationColumns()},
          {.name = std::string(kLayersTable), .derived = true, .columns = LayerTableColumns()},
          {.name = std::string(kCrossingsTable), .derived = true, .columns = CrossingColumns()}};
}

}  // namespace numsim::experiments::linear_speed
