// Definition of the experiment `linear-speed`: what study.toml does not say, layers and trials.
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
  study::Functions functions{.evidence = ClaimEvidence(),
                             .tables = {{"layers", LayerRows},
                                        {"crossings",
                                         [](const study::Results& results) {
                                           return CrossingRows(results.Of("layers"));
                                         }}},
                             .figures = Figures(),
                             .measurements = {{"layers", {Trials, Measure}}}};
  study::Study study =
      study::ReadStudy(study::StudyText("linear_speed"), "linear_speed/study.toml", functions);
  study.notes = Notes;
  return study::MakeExperiment(std::move(study));
}

}  // namespace numsim::experiments
