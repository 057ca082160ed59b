// Definition of the experiment `linear-speed`: options, columns, trials.
#include "experiments/linear_speed/linear_speed.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/linear_speed/timing.h"
#include "experiments/runner/settings.h"
#include "numsim/arith/accumulation_mode.h"
#include "numsim/backend/backend.h"
#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/formats/format_table.h"
#include "numsim/linear/linear.h"

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
    "with int8 sums of more than 131071 terms are left out at that size. --preset paper has the\n"
    "sizes of Figures 6 and 7. Each seed times every size anew.";

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

std::vector<PaperSetting> PaperSettings() {
  constexpr const char* kScript = "Figure 6 and the script beside [SwitchBack-A100]";
  return {
      {"dims", "1024,1280,1408,1664,2048,4096", kScript, "Other sizes take other times."},
      {"tokens", "16384,32768,65536,131072", kScript, "Smaller ones gain less."},
      {"widths", "4", "Figure 6", ""},
      {"high-precision", "fp16", "Appendix B", "numsim's standard on a GPU is bf16."},
      {"",
       "The paper times kernels in Triton against torch.matmul on an A100",
       "Appendix B",
       "Here the kernels are numsim's, and the machine is that of the run."},
      {"",
       "The paper does not say how often it repeats a measurement",
       "Appendix B",
       "Here --seeds repeats it in one process on one machine: intervals cover no other machine."},
  };
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

std::string ScaleText(const Settings& settings, const Tables&) {
  return fmt::format("dim {}, {} tokens", settings.Get("dims"), settings.Get("tokens"));
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

std::vector<Trial> Trials(const Settings& settings) {
  TimedLayers(settings);
  RoundLimitsOf(settings);
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
    case LinearOp::kSaveX:
      return Part::kConvert;
  }
  return Part::kOther;
}

// On a device, results are compared with single elements that the CPU computes (SampleOnCpu).
static void CheckSampled(const LinearRecipe& recipe) {
  if (recipe.high_precision.name != "bf16") {
    throw Error::Format("high_precision: {}; on a device this experiment takes tensors in bf16",
                        recipe.high_precision.name);
  }
  for (const GemmRecipe& product : recipe.products) {
    for (const OperandRecipe* operand : {&product.a, &product.b}) {
      if (operand->layout.block == 0) continue;
      throw Error::Format(
          "kind '{}': scales of layout {}; on a device this experiment takes tensor and row",
          recipe.kind,
          ToString(operand->layout));
    }
  }
}

std::vector<TimedLayer> TimedLayers(const Settings& settings) {
  const std::vector<Format> formats = ParseFormatList(settings.Get("formats"));
  std::vector<std::string> names;
  names.reserve(formats.size());
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
    for (const TimedLayer& layer : layers) {
      CheckOnDevice(layer.recipe);
      CheckSampled(layer.recipe);
    }
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
      "Appendix B of [SwitchBack]: Figures 6, 7 (left) and 10, on a processor or a GPU";
  experiment.description = std::string(kDescription);
  experiment.options = Options();
  experiment.presets = {{"quick", 1, 50}, {"paper", 3}};
  experiment.tables = TableSpecs();
  experiment.timed = true;
  experiment.trials = Trials;
  experiment.run = Measure;
  experiment.derive = Derive;
  experiment.figures = Figures;
  experiment.claims = Claims();
  experiment.paper_settings = PaperSettings();
  experiment.scale = ScaleText;
  experiment.notes = Notes;
  return experiment;
}

}  // namespace numsim::experiments
