#include "experiments/shared/paper_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "experiments/runner/model_size.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim::experiments {
namespace {

using Value = std::optional<std::string>;  // empty: the setting does not apply to the training

// ---- the values of a training

bool IsClip(const TrainConfig& c) { return c.model.kind == ModelKind::kClip; }
bool HasImages(const TrainConfig& c) { return IsClip(c) || c.model.kind == ModelKind::kVit; }
bool HasText(const TrainConfig& c) { return TraitsOf(c.model.kind).has_tokens || IsClip(c); }

Value ModelName(const TrainConfig& c) { return std::string(ToString(c.model.kind)); }
Value Parameters(const TrainConfig& c) { return CountText(CountParameters(c).all); }
Value BlockParameters(const TrainConfig& c) { return CountText(CountParameters(c).blocks); }

Value OfTowers(const TrainConfig& c, size_t image, size_t text) {
  if (!IsClip(c)) return fmt::format("{}", image);
  return fmt::format("{} + {}", image, text == 0 ? image : text);
}
Value Depth(const TrainConfig& c) { return OfTowers(c, c.model.layers, c.model.text_layers); }
Value Width(const TrainConfig& c) { return OfTowers(c, c.model.width, c.model.text_width); }

Value Context(const TrainConfig& c) {
  if (!TraitsOf(c.model.kind).has_tokens) return {};
  return fmt::format("{}", c.model.context);
}
Value Image(const TrainConfig& c) {
  if (!HasImages(c)) return {};
  const bool generated =
      c.data.kind == DataKind::kGeneratedShapes || c.data.kind == DataKind::kGeneratedImages;
  return fmt::format("{} / {}", generated ? c.data.image : c.model.image, c.model.patch);
}
Value Vocabulary(const TrainConfig& c) {
  if (!HasText(c)) return {};
  return fmt::format("{}", VocabularyOf(c));
}

Value Data(const TrainConfig& c) {
  const std::string file = c.data.path.filename().string();
  switch (c.data.kind) {
    case DataKind::kText:
      return "the text " + file;
    case DataKind::kGeneratedText:
      return "generated text";
    case DataKind::kZipf:
      return "generated tokens, Zipf";
    case DataKind::kGeneratedShapes:
      return "generated shapes, captions";
    case DataKind::kGeneratedImages:
      return "generated images";
    case DataKind::kImages:
      return "the images " + file;
    case DataKind::kCaptions:
      return "the captions " + file;
    case DataKind::kGaussian:
      return "normal features, a teacher";
  }
  return {};
}

Value Batch(const TrainConfig& c) { return fmt::format("{}", c.train.batch); }
Value Step(const TrainConfig& c) { return CountText(TokensOrPatchesPerStep(c)); }
Value Tokens(const TrainConfig& c) { return CountText(TokensOrPatches(c)); }
Value Steps(const TrainConfig& c) { return CountText(static_cast<double>(c.train.steps)); }
Value WarmUp(const TrainConfig& c) {
  const double share = static_cast<double>(c.schedule.warmup) / static_cast<double>(c.train.steps);
  return fmt::format("{:.2g} %", 100 * share);
}
Value ScheduleText(const TrainConfig& c) {
  if (c.schedule.kind == ScheduleKind::kConstant || c.schedule.final == 1) return "constant";
  return fmt::format("{} to {:g}", ToString(c.schedule.kind), c.schedule.final);
}
Value Rate(const TrainConfig& c) { return fmt::format("{:g}", c.schedule.peak); }

Value OptimizerName(const TrainConfig& c) { return std::string(ToString(c.optimizer.kind)); }
Value Epsilon(const TrainConfig& c) { return fmt::format("{:g}", c.optimizer.epsilon); }
Value Betas(const TrainConfig& c) {
  const OptimizerConfig& o = c.optimizer;
  if (o.beta2_decay > 0) return fmt::format("{:g}, 1 - t^-{:g}", o.beta1, o.beta2_decay);
  return fmt::format("{:g}, {:g}", o.beta1, o.beta2);
}
Value Clipping(const TrainConfig& c) {
  return c.optimizer.clip_norm == 0 ? "none" : fmt::format("{:g}", c.optimizer.clip_norm);
}
Value Decay(const TrainConfig& c) { return fmt::format("{:g}", c.optimizer.weight_decay); }
Value PatchDropout(const TrainConfig& c) {
  if (!HasImages(c)) return {};
  return fmt::format("{:g}", c.model.patch_dropout);
}

Value HighPrecisionProducts(const TrainConfig& c) {
  const std::string& format = c.linear.all.high_precision;
  return format.empty() ? "bf16" : format;
}
Value Storage(const TrainConfig& c) {
  const std::string forward = c.storage.activations.name, backward = c.storage.gradients.name;
  return forward == backward ? forward : forward + " / " + backward;
}

// Returns the options of the quantised layers: of an override if no other layer is quantised.
std::optional<LinearOptions> Quantised(const TrainConfig& c) {
  if (c.linear.all.kind != "standard") return c.linear.all;
  for (const LinearOverride& other : c.linear.overrides) {
    if (other.precision.kind != "standard") return other.precision;
  }
  return {};
}

Value LowPrecisionProducts(const TrainConfig& c) {
  const std::optional<LinearOptions> options = Quantised(c);
  if (!options) return "none";
  const LinearRecipe recipe = MakeLinearRecipe(*options);
  const std::string& forward = recipe[LinearOperand::kForwardX].format.name;
  const std::string& backward = recipe[LinearOperand::kInputGradientG].format.name;
  return fmt::format("{} {}{}{}",
                     options->kind,
                     forward,
                     forward == backward ? "" : "/" + backward,
                     recipe.delayed ? ", delayed" : "");
}
Value Sums(const TrainConfig& c) {
  const std::optional<LinearOptions> options = Quantised(c);
  if (!options) return {};
  return ToString(MakeLinearRecipe(*options)[LinearGemm::kForward].accumulation);
}
Value QuantisedLayers(const TrainConfig& c) {
  if (!Quantised(c)) return {};
  const bool most = c.linear.all.kind != "standard";
  std::string layers = !most ? "" : c.linear.first_last_high ? "blocks" : "all";
  for (const LinearOverride& other : c.linear.overrides) {
    if (most) layers += ", other options for " + other.layers;
    if (!most && other.precision.kind != "standard") layers += other.layers + " ";
  }
  return layers;
}

const char* NameOf(const OperandRecipe& operand) {
  if (operand.Unscaled()) return "none";
  switch (operand.layout.granularity) {
    case Granularity::kTensor:
      return "tensor";
    case Granularity::kRow:
      return "row";
    case Granularity::kColumn:
      return "column";
    case Granularity::kBlock:
      return "block";
    case Granularity::kTile:
      return "tile";
  }
  return "";
}
Value Scales(const TrainConfig& c) {
  const std::optional<LinearOptions> options = Quantised(c);
  if (!options) return {};
  const LinearRecipe recipe = MakeLinearRecipe(*options);
  return fmt::format("X {}, W {}, G {}",
                     NameOf(recipe[LinearOperand::kForwardX]),
                     NameOf(recipe[LinearOperand::kForwardW]),
                     NameOf(recipe[LinearOperand::kInputGradientG]));
}

std::string NameOf(const MomentFormat& moment) {
  return moment.scaling == MomentScaling::kDynamic ? "dynamic" : moment.format.name;
}
Value Moments(const TrainConfig& c) {
  return fmt::format("{} / {}", NameOf(c.optimizer.m), NameOf(c.optimizer.v));
}
Value MomentScales(const TrainConfig& c) {
  const auto is_scaled = [](const MomentFormat& m) { return m.scaling != MomentScaling::kNone; };
  if (is_scaled(c.optimizer.v)) return std::string(ToString(c.optimizer.v.scaling));
  if (is_scaled(c.optimizer.m)) return std::string(ToString(c.optimizer.m.scaling));
  return {};
}

Value Hardware(const TrainConfig&) { return "simulated by numsim"; }

// ---- the list

constexpr std::string_view kNames[] = {"SwitchBack", "Fishman", "NVFP4"};  // of Paper, in its order

struct Stated {
  const char* values;  // several are separated by "; "; empty: the paper says nothing
  const char* source;
};

// A setting of the list, and what the papers say about it as a whole.
struct ListedSetting {
  const char* name;
  Value (*value)(const TrainConfig&);
  Stated switchback, fishman;
  Stated nvfp4 = {"", ""};
};

constexpr const char* kAsLlama2 = "section 6.1: as Llama 2";
constexpr const char* kNano2 =
    "Nemotron Nano 2, 12B base, whose shape and settings the paper takes";
constexpr const char* kOpenClip = "ViT-H/14 of OpenCLIP, which section 2.2.2 trains";

constexpr ListedSetting kList[] = {
    {"model",
     ModelName,
     {"clip", "section 2.2.2"},
     {"llama", "section 6.1"},
     {"hybrid of Mamba 2 and attention", "abstract"}},
    {"parameters",
     Parameters,
     {"1 B", "section 1: ViT-Huge, with the text tower"},
     {"6.7 B", "section 6.1: Llama 2, 7B"},
     {"12 B", "abstract"}},
    {"parameters without embeddings",
     BlockParameters,
     {"930 M", kOpenClip},
     {"6.5 B", kAsLlama2},
     {"11 B", kNano2}},
    {"depth (image + text)", Depth, {"32 + 24", kOpenClip}, {"32", kAsLlama2}, {"62", kNano2}},
    {"width (image + text)",
     Width,
     {"1280 + 1024", kOpenClip},
     {"4096", kAsLlama2},
     {"5120", kNano2}},
    {"batch",
     Batch,
     {"16384", "section 2.2.2"},
     {"1024", "4 M tokens of Llama 2, over the context"},
     {"736", kNano2}},
    {"tokens per step (of images: patches)",
     Step,
     {"4.2 M", "section 2.2.2 and appendix D.3: 16,384 images of 256 patches"},
     {"4.2 M", "section 6.1: as Llama 2, 4 M"},
     {"6 M", "736 sequences of 8192"}},
    {"steps",
     Steps,
     {"20 k", "section 2.2.2"},
     {"0.48 M", "section 6.1: 2 trillion tokens at those of a step"},
     {"1.7 M", "10 trillion tokens at those of a step"}},
    {"tokens in all",
     Tokens,
     {"84 B", "20,000 steps; section 2.2.2 says 380 million images"},
     {"2 T", "section 6.1"},
     {"10 T", "abstract"}},
    {"context", Context, {"", ""}, {"4096", kAsLlama2}, {"8192", kNano2}},
    {"image / patch", Image, {"224 / 14", "appendix D.3"}, {"", ""}},
    {"vocabulary",
     Vocabulary,
     {"49408", "CLIP's tokens"},
     {"32000", kAsLlama2},
     {"131072", kNano2}},
    {"data",
     Data,
     {"LAION-2B", "section 2.2.2"},
     {"Red Pajama", "section 6.1"},
     {"that of Nemotron Nano 2", kNano2}},
    {"schedule",
     ScheduleText,
     {"cosine to 0", "section 2.2.2"},
     {"cosine to 0.1", "section 6.1: as Llama 2"},
     {"constant, then a decay to 0.01", kNano2}},
    {"warm-up, share of the steps",
     WarmUp,
     {"25 %", "section 2.2.2: 5000 of 20,000"},
     {"0.42 %", "section 6.1: as Llama 2, 2000 of 480,000"}},
    {"peak learning rate",
     Rate,
     {"0.002", "section 2.2.2"},
     {"0.0003", kAsLlama2},
     {"0.00045", kNano2}},
    {"optimiser", OptimizerName, {"stable-adamw", "sections 2.2.2 and 3.5"}, {"adamw", kAsLlama2}},
    {"epsilon", Epsilon, {"1e-06", "appendix F.2"}, {"1e-05", kAsLlama2}},
    {"betas", Betas, {"0.9, 0.99", "section 3.5"}, {"0.9, 0.95", kAsLlama2}, {"0.9, 0.95", kNano2}},
    {"clipping of gradients", Clipping, {"none", "section 3.2"}, {"1", kAsLlama2}},
    {"weight decay", Decay, {"0.2", "section 2.2.2"}, {"0.1", kAsLlama2}, {"0.1", kNano2}},
    {"patch dropout", PatchDropout, {"0.5", "section 2.2.2"}, {"", ""}},
    {"products of 16 or 32 bits",
     HighPrecisionProducts,
     {"bf16", "section 2.2.3"},
     {"bf16", "section 6.2"}},
    {"products of 8 bits",
     LowPrecisionProducts,
     {"none; switchback int8; llm-int8 int8; switchback bnb-e4m3/bnb-e5m2; tensor-wise "
      "bnb-e4m3/bnb-e5m2",
      "section 2.2.3; section 2.3: the values of bitsandbytes"},
     {"none; e5m2-backward e4m3/e5m2, delayed", "section 6.2 and the authors' code"}},
    {"sums of such products",
     Sums,
     {"exact; fp16", "section 2.3: \"computations in float16 precision\"; int8 on A100"},
     {"Gaudi2's", "section 6.1"}},
    {"quantised layers", QuantisedLayers, {"blocks", "figure 7"}, {"blocks", "section 6.2"}},
    {"their scales",
     Scales,
     {"X row, W tensor, G row; X row, W row, G row; X tensor, W tensor, G tensor", "section 2.2"},
     {"X tensor, W tensor, G tensor", "section 6.2: delayed scaling"}},
    {"storage between operations", Storage, {"bf16", "section 2.2.3"}, {"bf16", "section 6.2"}},
    {"moments m / v", Moments, {"", ""}, {"fp32 / fp32; e4m3fn / e5m2", "section 5.2, figure 6"}},
    {"scales of moments", MomentScales, {"", ""}, {"shard of a tensor", "the authors' code: ZeRO"}},
    {kHardwareSetting,
     Hardware,
     {"A100; fp8 is simulated", "section 2.2.1"},
     {"256 Gaudi2", "section 6.1"},
     {"Blackwell GPUs", "abstract"}},
};

// A setting of one figure or section that differs from the paper's as a whole.
struct FigureSetting {
  Paper paper;
  const char* figure;
  const char* name;
  Stated stated;
};

constexpr const char* kVitLarge = "figure 2 (left): ViT-Large, as L/14 of OpenCLIP";
constexpr const char* kSection3 = "section 3.2: as the baseline of section 2";
constexpr const char* kShapeOf100m = "figure 5 names 100 million; numsim assumes this shape";

constexpr FigureSetting kFigures[] = {
    {Paper::kSwitchBack, "Figure 2", "parameters", {"430 M", kVitLarge}},
    {Paper::kSwitchBack, "Figure 2", "parameters without embeddings", {"390 M", kVitLarge}},
    {Paper::kSwitchBack, "Figure 2", "depth (image + text)", {"24 + 12", kVitLarge}},
    {Paper::kSwitchBack, "Figure 2", "width (image + text)", {"1024 + 768", kVitLarge}},
    {Paper::kSwitchBack, "Figure 2", "clipping of gradients", {"none; 1", "section 2.3"}},
    {Paper::kSwitchBack,
     "Figure 2",
     "products of 8 bits",
     {"none; tensor-wise bnb-e4m3/bnb-e5m2", "section 2.3"}},
    {Paper::kSwitchBack, "Figure 2", "sums of such products", {"fp16", "section 2.3"}},
    {Paper::kSwitchBack,
     "Figure 2",
     "their scales",
     {"X tensor, W tensor, G tensor", "section 2.3"}},
    {Paper::kSwitchBack, "Section 3", "products of 8 bits", {"none", kSection3}},
    {Paper::kSwitchBack, "Section 3", "optimiser", {"adamw; stable-adamw", "section 3.5"}},
    {Paper::kSwitchBack, "Section 3", "clipping of gradients", {"none; 1; 2", "footnote 3"}},
    {Paper::kSwitchBack,
     "Section 3",
     "betas",
     {"0.9, 0.5; 0.9, 0.8; 0.9, 0.9; 0.9, 0.95; 0.9, 0.98; 0.9, 0.99; 0.9, 0.995; 0.9, 0.999",
      "legends of figures 3, 12 and 13"}},
    {Paper::kSwitchBack, "Figure 21", "products of 8 bits", {"none", "appendix G"}},
    {Paper::kSwitchBack, "Figure 21", "products of 16 or 32 bits", {"fp16", "appendix G"}},
    {Paper::kSwitchBack, "Figure 21", "storage between operations", {"fp16", "appendix G"}},
    {Paper::kFishman, "Figure 5", "parameters", {"100 M", "figure 5"}},
    {Paper::kFishman, "Figure 5", "parameters without embeddings", {"85 M", kShapeOf100m}},
    {Paper::kFishman, "Figure 5", "depth (image + text)", {"12", kShapeOf100m}},
    {Paper::kFishman, "Figure 5", "width (image + text)", {"768", kShapeOf100m}},
    {Paper::kFishman,
     "Figure 5",
     "tokens in all",
     {"2 T", "section 6.1; figure 5 does not say for how many it trains"}},
    {Paper::kFishman,
     "Figure 5",
     "moments m / v",
     {"fp32 / fp32; e4m3fn / e4m3fn; e4m3fn / e5m2; e5m2 / e4m3fn; e5m2 / e5m2", "figure 5"}},
    {Paper::kFishman,
     "Figure 2",
     "moments m / v",
     {"fp32 / fp32", "figure 6: \"FP32 Adam moments\""}},
};

// The paper's largest training, in numbers.
struct PaperSize {
  Paper paper;
  const char* figure;
  double parameters, tokens;
};
constexpr double kPatches = 20000.0 * 16384 * 256;  // SwitchBack, section 2.2.2 and appendix D.3
constexpr PaperSize kSizes[] = {
    {Paper::kSwitchBack, "", 1e9, kPatches},
    {Paper::kSwitchBack, "Figure 2", 430e6, kPatches},
    {Paper::kNvfp4, "", 12e9, 10e12},
    {Paper::kFishman, "", 6.7e9, 2e12},
    {Paper::kFishman, "Figure 5", 100e6, 2e12},
};

Stated StatedBy(const PaperTraining& training, const ListedSetting& setting) {
  for (const FigureSetting& row : kFigures) {
    if (row.paper == training.paper && row.figure == training.figure &&
        row.name == std::string_view(setting.name)) {
      return row.stated;
    }
  }
  switch (training.paper) {
    case Paper::kSwitchBack:
      return setting.switchback;
    case Paper::kFishman:
      return setting.fishman;
    case Paper::kNvfp4:
      break;
  }
  return setting.nvfp4;
}

std::set<std::string> SetOf(std::string_view values) {
  std::set<std::string> set;
  for (size_t begin = 0; begin <= values.size();) {
    const size_t end = std::min(values.find("; ", begin), values.size());
    set.emplace(values.substr(begin, end - begin));
    begin = end + 2;
  }
  return set;
}

// The values of a setting, in the order of the trainings.
class Values {
 public:
  // Adds the value of a training of a kind of model.
  void Add(const std::string& model, const std::string& value) {
    all_.insert(value);
    std::vector<std::string>& values = of_model_[model];
    if (std::ranges::count(values, value) == 0) values.push_back(value);
  }
  const std::set<std::string>& all() const { return all_; }
  // Returns "0.2", or "clip: 0.2; mlp: 0" where models have other values.
  std::string Text() const {
    const std::vector<std::string>& first = of_model_.begin()->second;
    const bool same =
        std::ranges::all_of(of_model_, [&](const auto& model) { return model.second == first; });
    if (same) return fmt::format("{}", fmt::join(first, "; "));
    std::string text;
    for (const auto& [model, values] : of_model_) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", model, fmt::join(values, "; "));
    }
    return text;
  }

 private:
  std::set<std::string> all_;
  std::map<std::string, std::vector<std::string>> of_model_;
};

}  // namespace

std::string_view ToString(Paper paper) { return kNames[static_cast<size_t>(paper)]; }

Paper ParsePaper(std::string_view text) {
  const auto found = std::ranges::find(kNames, text);
  if (found != std::end(kNames)) return static_cast<Paper>(found - std::begin(kNames));
  throw NotOneOf("the paper", std::string(text), fmt::format("{}", fmt::join(kNames, ", ")));
}

std::vector<std::string> FiguresOf(Paper paper) {
  std::vector<std::string> figures;
  for (const FigureSetting& row : kFigures) {
    if (row.paper == paper && std::ranges::count(figures, row.figure) == 0) {
      figures.emplace_back(row.figure);
    }
  }
  return figures;
}

std::vector<SharedSetting> SettingsOf(const PaperTraining& training) {
  std::vector<SharedSetting> settings;
  for (const ListedSetting& setting : kList) {
    const Stated stated = StatedBy(training, setting);
    if (*stated.values != '\0') settings.push_back({setting.name, stated.values, stated.source});
  }
  return settings;
}

std::vector<Deviation> DeviationsOf(const PaperTraining& training,
                                    const std::vector<TrainConfig>& trainings) {
  NUMSIM_CHECK(!trainings.empty(), "no trainings");
  std::vector<Deviation> deviations;
  for (const ListedSetting& setting : kList) {
    const Stated stated = StatedBy(training, setting);
    if (*stated.values == '\0') continue;
    Values values;
    for (const TrainConfig& config : trainings) {
      if (const Value value = setting.value(config)) {
        const bool is_model = setting.value == ModelName;
        values.Add(is_model ? "" : std::string(ToString(config.model.kind)), *value);
      }
    }
    if (values.all().empty() || values.all() == SetOf(stated.values)) continue;
    deviations.push_back({setting.name, stated.values, values.Text()});
  }
  return deviations;
}

TrainedScale TrainedScaleOf(const std::vector<TrainConfig>& trainings) {
  TrainedScale scale;
  for (const TrainConfig& config : trainings) {
    const double parameters = CountParameters(config).all, tokens = TokensOrPatches(config);
    if (std::pair(parameters, tokens) > std::pair(scale.parameters, scale.tokens)) {
      scale.parameters = parameters;
      scale.tokens = tokens;
    }
  }
  return scale;
}

TrainedScale TrainedScaleOf(const PaperTraining& training,
                            const std::vector<TrainConfig>& trainings) {
  TrainedScale scale = TrainedScaleOf(trainings);
  for (const PaperSize& size : kSizes) {  // the figure's own row follows that of the paper
    const bool is_figures = size.figure == training.figure || *size.figure == '\0';
    if (size.paper != training.paper || !is_figures) continue;
    scale.paper_parameters = size.parameters;
    scale.paper_tokens = size.tokens;
  }
  return scale;
}

}  // namespace numsim::experiments
