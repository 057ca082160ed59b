// Definition of the experiment `linear-speed`: options, columns, trials.
#include "experiments/linear_speed/linear_speed.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/core/settings.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/format_table.h"
#include "numsim/linear/linear_device.h"

namespace numsim::experiments {
namespace linear_speed {
namespace {

constexpr Keyword<Part> kPartNames[] = {{"product", Part::kProduct},
                                        {"quantize", Part::kQuantize},
                                        {"convert", Part::kConvert},
                                        {"other", Part::kOther}};

constexpr std::string_view kDescription =
    "Times the forward and the backward pass of one linear layer, from dim to 4 dim and from\n"
    "4 dim to dim, as in a transformer's MLP: every operation, its share of the time, and what\n"
    "each kind of layer saves over `standard`. The times of both layers are averaged.\n"
    "All kinds of a size are timed in turn, round after round, so that a machine that slows down\n"
    "slows all of them alike; the first round is not counted. Rounds continue until --repeats\n"
    "and --min-seconds per layer are reached, but not beyond --max-seconds. The median time of\n"
    "each operation counts. Operands are normal random numbers. Each pass takes the next of\n"
    "several sets of operands of at least 64 MiB in total, because a layer in a network finds its\n"
    "operands outside the inner caches. The time of a pass outside its operations (memory for\n"
    "results) is the operation `other`.\n"
    "`standard` is timed once for each accumulation mode of --product. Each other layer uses that\n"
    "mode for its GEMMs in high precision, and is compared with `standard` of the same mode.\n"
    "Under --backend cuda the layers run on the device, values are bf16, and the device's clock\n"
    "is used. A round has two passes of each layer: one between two events, which gives the time\n"
    "of the layer, and one with two events around each operation. `other` is then the first time\n"
    "less the operations of the second; because events take time, it may be negative. The first\n"
    "three rounds are not counted; the sets of operands have at least 256 MiB in total. Before\n"
    "timing, the results of each layer are compared with the CPU's: all elements of a small\n"
    "layer, bit for bit, in GEMMs whose accumulation mode the CPU emulates, and some elements of\n"
    "each GEMM at the size that is timed. A difference ends the run. If all layers together do\n"
    "not fit into the device's memory, they are timed in groups, each with `standard`. Layers\n"
    "with int8 sums of more than 133144 terms are left out at that size. --preset paper has the\n"
    "sizes of Figures 6 and 7.\n"
    "Claims under test: int8 matmuls take just over half the time of fp16 ones, quantising an\n"
    "order of magnitude less; SwitchBack saves 5 to 35 % of a layer's time, more for larger dim\n"
    "and batch; quantising takes at most 25 % of it, about 10 % or less for large dim; LLM.int8()\n"
    "saves nothing. The claims were made about an NVIDIA A100; here they are tested on this\n"
    "machine.";

std::vector<Option> Options() {
  constexpr const char* kKinds =
      "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise";
  return {
      {.name = "kinds",
       .quick = kKinds,
       .paper = kKinds,
       .help = "layer kinds, separated by commas; without standard nothing is compared",
       .cuda = "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise,row-wise-gw-hp"},
      {.name = "formats",
       .quick = "int8",
       .paper = "int8,e4m3fn",
       .help = "formats of quantised operands, named or custom, separated by commas",
       .cuda = "int8,e4m3fn"},
      {.name = "dims",
       .quick = "128,256,512,1024,2048",
       .paper = "1024,1280,2048,4096",
       .help = "widths of the network, separated by commas: 1 to 16384"},
      {.name = "widths",
       .quick = "4",
       .paper = "4",
       .help = "inner width of the MLP in units of dim, separated by commas: 1 (one square layer) "
               "to 16"},
      {.name = "tokens",
       .quick = "1024",
       .paper = "8192,16384,32768,65536,131072",
       .help = "batch times sequence length, separated by commas: 1 to 1048576"},
      {.name = "repeats",
       .quick = "5",
       .paper = "9",
       .help = "minimum number of timed passes per layer, 1 to 1000",
       .cuda = "20"},
      {.name = "min-seconds",
       .quick = "0.1",
       .paper = "1",
       .help = "minimum seconds spent per layer and size, 0 to 3600",
       .cuda = "0.02"},
      {.name = "max-seconds",
       .quick = "0",
       .paper = "0",
       .help = "start no further round after these seconds per layer and size, up to 3600; 0: no "
               "limit",
       .cuda = "5"},
      {.name = "high-precision",
       .quick = "fp32",
       .paper = "fp32",
       .help = "format of operands that are not quantised: fp32, bf16, fp16",
       .cuda = "bf16"},
      {.name = "product",
       .quick = "library,fp32",
       .paper = "library",
       .help = "accumulation modes of GEMMs in high precision, separated by commas: library, fp32, "
               "...",
       .cuda = "library"},
      {.name = "accumulate",
       .quick = "fp32",
       .paper = "fp32",
       .help = "accumulation mode of GEMMs of quantised operands that are not integers",
       .cuda = "hopper-fp8-fast"},
  };
}

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
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
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
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
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
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

// Returns the sizes of a list option. Throws Error naming the option if two are equal.
std::vector<size_t> Sizes(const Settings& settings, std::string_view name, int64_t high) {
  std::vector<size_t> sizes;
  std::vector<std::string> texts;
  for (const int64_t size : settings.GetIntegers(name, 1, high)) {
    sizes.push_back(static_cast<size_t>(size));
    texts.push_back(std::to_string(size));
  }
  CheckDistinct(name, texts);
  return sizes;
}

Trial MakeTrial(size_t dim, size_t width, size_t tokens, bool widens, uint64_t seed) {
  const size_t in = widens ? dim : width * dim;
  const size_t out = widens ? width * dim : dim;
  Trial trial;
  trial.label = fmt::format("{} -> {} tokens={} seed={}", in, out, tokens, seed);
  trial.seed = seed;
  trial.parameters = {{"dim", std::to_string(dim)},
                      {"width", std::to_string(width)},
                      {"tokens", std::to_string(tokens)},
                      {"in", std::to_string(in)},
                      {"out", std::to_string(out)}};
  trial.cost = static_cast<double>(tokens) * static_cast<double>(in) * static_cast<double>(out);
  return trial;
}

// Checks the options of repetitions and times.
void CheckTimes(const Settings& settings) {
  settings.GetInteger("repeats", 1, 1000);
  const double least = settings.GetDouble("min-seconds", 0, 3600);
  const double most = settings.GetDouble("max-seconds", 0, 3600);
  if (most > 0 && most < least) {
    throw Error::Format("--max-seconds {}: is less than --min-seconds {}", most, least);
  }
}

std::vector<Trial> Trials(const Settings& settings) {
  TimedLayers(settings);
  CheckTimes(settings);
  const std::vector<size_t> all_tokens = Sizes(settings, "tokens", 1 << 20);
  const std::vector<size_t> widths = Sizes(settings, "widths", 16);
  std::vector<Trial> trials;
  for (const size_t dim : Sizes(settings, "dims", 16384)) {
    for (const size_t tokens : all_tokens) {
      for (int i = 0; i < settings.seeds; ++i) {
        const uint64_t seed = settings.seed + static_cast<uint64_t>(i);
        for (const size_t width : widths) {
          trials.push_back(MakeTrial(dim, width, tokens, true, seed));
          if (width != 1) trials.push_back(MakeTrial(dim, width, tokens, false, seed));
        }
      }
    }
  }
  return trials;
}

TimedLayer MakeLayer(const Settings& settings,
                     const std::string& kind,
                     const Format& format,
                     const std::string& product) {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = settings.Get("high-precision");
  options.high_precision_accumulate = product;
  const bool is_standard = kind == kStandard;
  if (!is_standard) {
    options.format = format.name;
    // Integers are accumulated exactly.
    if (format.spec.sign != Sign::kTwosComplement) options.accumulate = settings.Get("accumulate");
  }
  LinearRecipe recipe = MakeLinearRecipe(options);
  return {is_standard ? recipe.high_precision.name : format.name, product, std::move(recipe)};
}

}  // namespace

std::string_view ToString(Part part) { return KeywordToString(kPartNames, part); }

Part ParsePart(std::string_view text) { return ParseKeyword(kPartNames, "part", text); }

Part PartOf(LinearOp step) {
  switch (step) {
    case LinearOp::kForwardProduct:
    case LinearOp::kInputGradientProduct:
    case LinearOp::kWeightGradientProduct:
      return Part::kProduct;
    case LinearOp::kQuantizeX:
    case LinearOp::kQuantizeW:
    case LinearOp::kQuantizeG:
    case LinearOp::kQuantizeWTransposed:
    case LinearOp::kQuantizeGTransposed:
    case LinearOp::kQuantizeXTransposed:
      return Part::kQuantize;
    case LinearOp::kDequantizeX:
    case LinearOp::kKeepX:
      return Part::kConvert;
  }
  return Part::kOther;
}

std::vector<TimedLayer> TimedLayers(const Settings& settings) {
  const std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  std::vector<std::string> names;
  for (const Format& format : formats) names.push_back(format.name);
  CheckDistinct("formats", names);
  CheckDistinct("kinds", settings.GetList("kinds"));
  CheckDistinct("product", settings.GetList("product"));
  ParseAccumulationMode(settings.Get("accumulate"));
  std::vector<TimedLayer> layers;
  for (const std::string& product : settings.GetList("product")) {
    for (const std::string& kind : settings.GetList("kinds")) {
      for (const Format& format : formats) {
        if (kind == kStandard && &format != &formats.front()) continue;
        layers.push_back(MakeLayer(settings, kind, format, product));
      }
    }
  }
  if (UsesDevice()) {
    for (const TimedLayer& layer : layers) CheckOnDevice(layer.recipe);
  }
  return layers;
}

}  // namespace linear_speed

Experiment LinearSpeed() {
  using namespace linear_speed;
  Experiment experiment;
  experiment.name = "linear-speed";
  experiment.title = "time of each operation of a linear layer, by kind and size";
  experiment.reproduces =
      "Appendix B of [SwitchBack]: Figures 6, 7, 8 and 10, on a processor or a GPU";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.presets = {{"quick", 1, 50}, {"paper", 1}};
  experiment.tables = {
      {.name = std::string(kOperationsTable), .columns = OperationColumns()},
      {.name = std::string(kLayersTable), .derived = true, .columns = LayerTableColumns()},
      {.name = std::string(kCrossingsTable), .derived = true, .columns = CrossingColumns()}};
  experiment.timed = true;
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.summarise = Summarise;
  return experiment;
}

}  // namespace numsim::experiments
