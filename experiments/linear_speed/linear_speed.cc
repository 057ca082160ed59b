// What the experiment `linear-speed` is: options, columns, points.
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
    "The forward and the backward pass of one linear layer, from dim to 4 dim and from 4 dim to\n"
    "dim, as in a transformer's MLP: the time of every operation, their shares, and what each "
    "kind\n"
    "of layer saves over `standard`. The times of both layers are averaged.\n"
    "All kinds of a size are timed in turn, round after round, so that a machine that slows down\n"
    "slows them alike; the first round is not counted. Rounds go on until there are --repeats and\n"
    "--min-seconds a layer, but not beyond --max-seconds; the median of each operation counts.\n"
    "Operands are normal draws. Each pass takes the next of several sets of operands, of together\n"
    "64 MiB at least, as a layer in a network finds its operands outside of the inner caches. "
    "What\n"
    "the passes need beside their operations (memory for results) is the operation `other`.\n"
    "`standard` is timed once for each rule of --product, and each other layer, whose products in\n"
    "high precision follow that rule too, is compared with the one of its own rule.\n"
    "Under --backend cuda the layers run on the device, their values are bf16, and the clock is\n"
    "the device's. A round has two passes of each layer: one between two events, the time of the\n"
    "layer, and one with two events around each operation. `other` is then the first less the\n"
    "operations of the second; events take time, so it may be below zero. The first three rounds\n"
    "are not counted; the sets of operands have 256 MiB at least. Before that the results of each\n"
    "layer are compared with the CPU's: all elements of a small layer, bit for bit where the rule\n"
    "of the product is stated, and some elements of each product at the size that is timed. A\n"
    "difference ends the run. Where all layers together do not fit into the device's memory, they\n"
    "are timed in groups, `standard` in each. Layers whose sums of int8 are longer than 131071\n"
    "are left out at that size. --preset paper is Figures 6 and 7.\n"
    "Claims under test: int8 products take just over half the time of fp16 ones, quantising an\n"
    "order of magnitude less; SwitchBack saves 5 to 35 % of a layer's time, more for larger dim\n"
    "and batch; quantising takes at most 25 % of it, about 10 % or less for large dim; LLM.int8()\n"
    "saves nothing. They were made of an NVIDIA A100: here they are put to this machine.";

std::vector<Option> Options() {
  constexpr const char* kKinds =
      "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise";
  return {
      {.name = "kinds",
       .quick = kKinds,
       .paper = kKinds,
       .help = "kinds of layer, separated by commas; without standard nothing is compared",
       .cuda = "standard,switchback,switchback-m,switchback-q,llm-int8,tensor-wise,row-wise-gw-hp"},
      {.name = "formats",
       .quick = "int8",
       .paper = "int8,e4m3fn",
       .help = "formats of quantised operands, separated by commas; custom ones too",
       .cuda = "int8,e4m3fn"},
      {.name = "dims",
       .quick = "128,256,512,1024,2048",
       .paper = "1024,1280,2048,4096",
       .help = "widths of the network, separated by commas: 1 to 16384"},
      {.name = "widths",
       .quick = "4",
       .paper = "4",
       .help = "inner width of the MLP over dim, separated by commas: 1 (one square layer) to 16"},
      {.name = "tokens",
       .quick = "1024",
       .paper = "8192,16384,32768,65536,131072",
       .help = "batch times sequence length, separated by commas: 1 to 1048576"},
      {.name = "repeats",
       .quick = "5",
       .paper = "9",
       .help = "least number of timed passes of each layer, 1 to 1000",
       .cuda = "20"},
      {.name = "min-seconds",
       .quick = "0.1",
       .paper = "1",
       .help = "least time spent on each layer of a size, 0 to 3600",
       .cuda = "0.02"},
      {.name = "max-seconds",
       .quick = "0",
       .paper = "0",
       .help = "no further round after that time for each layer of a size; 0: no limit; to 3600",
       .cuda = "5"},
      {.name = "high-precision",
       .quick = "fp32",
       .paper = "fp32",
       .help = "format of operands that are not quantised: fp32, bf16, fp16",
       .cuda = "bf16"},
      {.name = "product",
       .quick = "library,fp32",
       .paper = "library",
       .help = "rules of products in high precision, separated by commas: library, fp32, ...",
       .cuda = "library"},
      {.name = "accumulate",
       .quick = "fp32",
       .paper = "fp32",
       .help = "rule of products of quantised operands that are not integers",
       .cuda = "hopper-fp8-fast"},
  };
}

// What both tables begin with: LayerKey, then the size.
std::vector<Column> LayerColumns() {
  return {
      {"device", "processor, or GPU under backend cuda"},
      {"backend", "implementation of numsim's kernels"},
      {"threads", ""},
      {"library", "what computes products under rule library"},
      {"kind", "of layer"},
      {"format", "of quantised operands; under standard that of all"},
      {"high_precision", "format of the others"},
      {"product", "rule of products in high precision"},
      {"width", "inner width over dim: 4 is dim to 4 dim and 4 dim to dim, 1 is dim to dim"},
      {"dim", "width of the network"},
      {"tokens", "batch times sequence length"},
  };
}

std::vector<Column> OperationColumns() {
  std::vector<Column> columns = LayerColumns();
  const std::vector<Column> rest = {
      {"seed", ""},
      {"in", "inputs of the layer: dim or width dim"},
      {"out", "outputs"},
      {"operation", ""},
      {"part",
       "product, quantize, convert (what is kept), other: of a pass outside of operations; under "
       "cuda a pass without clocks inside less the medians of all operations, also below 0"},
      {"seconds", "median of the passes"},
      {"seconds_low", "first quartile"},
      {"seconds_high", "third quartile"},
      {"repeats", "timed passes"},
      {"giga", "10^9 multiplications and additions, or bytes read and written once; nan for other"},
      {"unit", "GOP or GB"},
      {"rate", "giga a second"},
      {"checked", "elements of a product at this size that were compared with the CPU's (cuda)"},
      {"kept_bytes", "that the forward pass keeps for the backward pass; the same in each row"},
  };
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

std::vector<Column> LayerTableColumns() {
  std::vector<Column> columns = LayerColumns();
  const std::vector<Column> rest = {
      {"seconds", "forward and backward pass, sum over operations and other, mean of both layers"},
      {"product_share", "of seconds"},
      {"quantize_share", ""},
      {"convert_share", "rounding to what is kept, and back"},
      {"other_share", "see part of operations.csv"},
      {"saved_percent", "100 (1 - seconds / seconds of standard): the paper's % speedup"},
      {"speedup", "seconds of standard / seconds"},
      {"kept_bytes", "mean of both layers"},
  };
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

std::vector<Column> CrossingColumns() {
  std::vector<Column> columns = LayerColumns();
  columns.resize(columns.size() - 2);  // without the size
  const std::vector<Column> rest = {
      {"along", "dim: the least dim for a number of tokens; tokens: the least number for a dim"},
      {"at", "that number of tokens, or that dim"},
      {"size", "from which on every size saves time over standard; nan: the greatest does not"},
      {"between", "interpolated in log2, linearly in saved_percent; = size where all save time"},
      {"always", "1: the smallest size that was timed saves time already"},
      {"speedup_low", "at the smallest size"},
      {"speedup_high", "at the greatest size"},
  };
  columns.insert(columns.end(), rest.begin(), rest.end());
  return columns;
}

// A list of different sizes.
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

// Every option that is not of the layers.
void CheckTimes(const Settings& settings) {
  settings.GetInteger("repeats", 1, 1000);
  const double least = settings.GetDouble("min-seconds", 0, 3600);
  const double most = settings.GetDouble("max-seconds", 0, 3600);
  if (most > 0 && most < least) {
    throw Error::Format("--max-seconds {}: less than --min-seconds {}", most, least);
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
    // Integers are added exactly.
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
      "SwitchBack (Wortsman et al. 2023), Appendix B: Figures 6, 7, 8 and 10, on a processor "
      "or a GPU";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
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
