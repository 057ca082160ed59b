#include "numsim/linear/linear_recipe.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>
#include <vector>

#include "numsim/base/error.h"
#include "numsim/base/keyword.h"
#include "numsim/base/nearest_name.h"
#include "numsim/base/split_list.h"
#include "numsim/formats/format_names.h"
#include "numsim/formats/named_formats.h"
#include "numsim/linear/internal/linear_device_recipe.h"
#include "numsim/linear/internal/linear_kinds.h"
#include "numsim/quantize/quantized_matrix.h"

namespace numsim {
namespace {

constexpr Keyword<LinearGemm> kProductNames[] = {{"forward", LinearGemm::kForward},
                                                 {"input-gradient", LinearGemm::kInputGradient},
                                                 {"weight-gradient", LinearGemm::kWeightGradient}};

constexpr char kHigh = 'h';

// Returns parse(text), or parse(fallback) if the text is empty. An Error names the option.
template <typename Parse>
auto ParseOption(std::string_view option,
                 std::string_view text,
                 std::string_view fallback,
                 const Parse& parse) {
  try {
    return parse(text.empty() ? fallback : text);
  } catch (const Error& error) {
    throw KeyError(std::string(option), error.what());
  }
}

Format ParseQuantized(std::string_view text) {
  Format format = ParseFormat(text);
  if (format.spec.Bits() > 16 || !format.spec.IsSigned()) {
    throw Error::Format("format '{}' is not a signed format of at most 16 bits", text);
  }
  return format;
}

Format ParseHighPrecision(std::string_view text) {
  Format format = ParseFormat(text);
  if (format.spec != kFp32 && format.spec != kBf16 && format.spec != kFp16) {
    throw Error::Format("format '{}' is not one of fp32, bf16, fp16", text);
  }
  return format;
}

Format ParseContainer(std::string_view text) {
  Format format = ParseFormat(text);
  if (format.spec != kBf16 && format.spec != kFp16) {
    throw Error::Format("format '{}' is not one of bf16, fp16", text);
  }
  return format;
}

// Throws Error unless the operands of the GEMM keep their values in its container.
void CheckContainer(LinearGemm product, const GemmRecipe& made) {
  for (const OperandRecipe* operand : {&made.a, &made.b}) {
    if (!ContainerHolds(made.container->spec, operand->format.spec)) {
      throw KeyError::Format("container",
                             "{} does not hold every value of {}, an operand of the {} GEMM",
                             made.container->name,
                             operand->format.name,
                             ToString(product));
    }
    if (operand->layout.block != 0 && !GivesPowersOfTwo(operand->scale_rule)) {
      throw KeyError::Format(
          "container",
          "scales of blocks enter the operands, so scale_rule must give powers of two, as "
          "pow2-floor, pow2-ceil and e8m0 do, not {}",
          ToString(operand->scale_rule));
    }
  }
}

// Throws Error unless the unit of a block-scaled mode takes the operands and the scales of the GEMM.
void CheckBlockScaled(LinearGemm product, const GemmRecipe& made) {
  const AccumulationMode& mode = made.accumulation;
  const std::string name = ToString(mode);
  if (made.container.has_value()) {
    throw KeyError::Format(
        "accumulate", "{} takes operands of its own formats, no container", name);
  }
  const AccumulationModeRow* const row = FindAccumulationMode(name);
  const bool e4m3 = mode.format != kE8M0fnu;
  for (const OperandRecipe* operand : {&made.a, &made.b}) {
    if (row != nullptr && !IsFor(*row, operand->format.spec)) {
      throw KeyError::Format("accumulate",
                             "{} is for {}, not for {}, an operand of the {} GEMM",
                             name,
                             row->operands,
                             operand->format.name,
                             ToString(product));
    }
    const ScaleRule rule = operand->scale_rule;
    if (e4m3 == GivesPowersOfTwo(rule) || rule == ScaleRule::kAbsmax) {
      throw KeyError::Format("accumulate",
                             "{} takes scales of {}, which the scale rule {} does not give",
                             name,
                             ToString(mode.format),
                             ToString(rule));
    }
    const auto least = static_cast<size_t>(LeastBlock(mode));
    if (operand->layout.block % least != 0) {
      throw KeyError::Format("accumulate",
                             "{} takes blocks of a multiple of {} elements, not of {}",
                             name,
                             least,
                             operand->layout.block);
    }
  }
}

// One recipe for each sort of operand, except for the layout.
struct Choices {
  OperandRecipe forward;   // quantised X and W
  OperandRecipe backward;  // quantised X and W of the backward GEMMs
  OperandRecipe gradient;  // quantised G
  OperandRecipe high_precision;
  size_t block;
};

// The rules of a text of LinearOptions::scale_rule.
struct ScaleRules {
  std::optional<ScaleRule> usual;
  std::vector<std::pair<OperandSet, ScaleRule>> others;  // the last one of an operand counts

  ScaleRule Of(LinearOperand operand, ScaleRule fallback) const {
    ScaleRule rule = usual.value_or(fallback);
    for (const auto& [operands, other] : others) {
      if (operands.Has(operand)) rule = other;
    }
    return rule;
  }
};

ScaleRules ParseScaleRules(std::string_view text) {
  ScaleRules rules;
  if (text.empty()) return rules;
  for (const std::string& piece : SplitList(text)) {
    const size_t equals = piece.find('=');
    if (equals != std::string::npos) {
      rules.others.emplace_back(ParseOperandSet(piece.substr(0, equals)),
                                ParseScaleRule(piece.substr(equals + 1)));
    } else if (!rules.usual.has_value()) {
      rules.usual = ParseScaleRule(piece);
    } else {
      throw Error::Format("'{}' is a second rule without an operand", piece);
    }
  }
  return rules;
}

ScaleRules RulesOf(const LinearOptions& options) {
  return ParseOption("scale_rule", options.scale_rule, "", ParseScaleRules);
}

void RejectOption(const LinearOptions& options, std::string_view option, bool given) {
  if (given) throw KeyError::Format(option, "kind '{}' has no such option", options.kind);
}

void RejectForeignOptions(const LinearKindRow& row, const LinearOptions& options) {
  if (!row.Quantized()) {
    RejectOption(options, "format", !options.format.empty());
    RejectOption(options, "gradient_format", !options.gradient_format.empty());
    RejectOption(options, "gradient_rounding", options.gradient_rounding != Rounding());
    RejectOption(options, "accumulate", !options.accumulate.empty());
    RejectOption(options, "scale_rule", !options.scale_rule.empty());
    RejectOption(options, "high_operands", !options.high_operands.Empty());
    RejectOption(options, "backward_from_codes", !options.backward_from_codes.Empty());
  }
  if (row.saves == LinearSaves::kQuantized && !options.high_operands.IsOfTensors()) {
    throw KeyError::Format(
        "high_operands", "kind '{}' keeps codes, so they are x, w, g alone", options.kind);
  }
  if (row.saves == LinearSaves::kQuantized) {
    RejectOption(options, "backward_from_codes", !options.backward_from_codes.Empty());
    if (!RulesOf(options).others.empty()) {
      throw KeyError::Format(
          "scale_rule", "kind '{}' saves codes, so that all operands have one rule", options.kind);
    }
  }
  RejectOption(options, "container", !row.Quantized() && !options.container.empty());
  RejectOption(options, "hadamard", !row.Quantized() && !options.hadamard.empty());
  if (row.saves == LinearSaves::kQuantized && !options.hadamard.empty()) {
    throw KeyError::Format("hadamard",
                           "kind '{}' saves codes for GEMMs along different dimensions, which one "
                           "transform cannot serve",
                           options.kind);
  }
  RejectOption(options, "block", row.block == 0 && options.block != 0);
  RejectOption(options, "delayed", !row.delayed && options.delayed.has_value());
  if (options.delayed.has_value()) {
    if (!options.scale_rule.empty() && options.scale_rule != "absmax" &&
        options.scale_rule != "pow2-floor" && options.scale_rule != "pow2-ceil") {
      throw KeyError("scale_rule", "delayed scaling takes absmax, pow2-floor or pow2-ceil");
    }
    if (options.delayed->history == 0) throw KeyError("delayed", "a history of 0 steps");
  }
  const Rounding& rounding = options.gradient_rounding;
  if (rounding.mode == RoundingMode::kStochastic &&
      (rounding.random_bits < 1 || rounding.random_bits > 32)) {
    throw KeyError::Format(
        "gradient_rounding", "{} random bits are not 1 to 32", rounding.random_bits);
  }
}

ScaleRule QuantizedScaleRule(const LinearKindRow& row,
                             const LinearOptions& options,
                             const Format& format) {
  const bool scaled = UsualScaleRule(format.spec) != ScaleRule::kNone;
  const ScaleRule usual = scaled ? row.scale_rule : ScaleRule::kNone;
  return RulesOf(options).usual.value_or(usual);
}

// Throws Error unless the rule has what it needs.
void CheckScaleRule(LinearGemm product, const OperandRecipe& made) {
  const ScaleRule rule = made.scale_rule;
  const auto fail = [&](const std::string& what) {
    throw KeyError::Format("scale_rule",
                           "{} {}, unlike an operand of the {} GEMM",
                           ToString(rule),
                           what,
                           ToString(product));
  };
  const bool blocks = made.layout.granularity == Granularity::kBlock;
  if (ReadsElements(rule) && made.format.spec != kE2M1fn) fail("is for e2m1fn");
  if (DependsOnRow(rule) && !blocks) fail("is for blocks along the inner dimension");
  if (rule != ScaleRule::kMsEden) return;
  if (made.hadamard.size == 0) fail("is for operands with a Hadamard transform");
  if (made.hadamard.size % made.layout.block != 0) fail("is for blocks that divide hadamard_size");
  if (made.rounding.mode != RoundingMode::kNearestEven) fail("is for rounding rne");
}

// Formats of more than 8 bits usually have no scale; under delayed scaling they do.
ScaleRule DelayedRule(ScaleRule rule) {
  return rule == ScaleRule::kNone ? ScaleRule::kAbsmax : rule;
}

// Returns the accumulation mode of an option, or nothing for that of tensor cores.
std::optional<AccumulationMode> ModeOf(std::string_view option,
                                       std::string_view text,
                                       std::string_view fallback) {
  if (text == "tensor-cores") return std::nullopt;
  return ParseOption(option, text, fallback, ParseAccumulationMode);
}

Choices MakeChoices(const LinearKindRow& row, const LinearOptions& options) {
  Choices result;
  result.block = options.block != 0 ? options.block : row.block;

  result.high_precision = HighPrecision(
      ParseOption("high_precision", options.high_precision, "bf16", ParseHighPrecision));

  OperandRecipe& forward = result.forward;
  forward.format = ParseOption("format", options.format, row.format, ParseQuantized);
  forward.scale_rule = QuantizedScaleRule(row, options, forward.format);
  forward.delayed = options.delayed.has_value();

  const bool e4m3 = forward.format.spec == kE4M3fn ||
                    (row.e5m2_backward && forward.format.spec == kE4M3);  // Gaudi's, up to 240
  const bool hybrid = row.e5m2_gradients && e4m3;
  result.gradient = forward;
  result.gradient.format = ParseOption("gradient_format",
                                       options.gradient_format,
                                       hybrid ? std::string_view("e5m2") : forward.format.name,
                                       ParseQuantized);
  result.gradient.scale_rule = QuantizedScaleRule(row, options, result.gradient.format);
  result.gradient.rounding = options.gradient_rounding;
  result.backward = forward;
  if (row.e5m2_backward) {
    result.backward.format = result.gradient.format;
    result.backward.scale_rule = result.gradient.scale_rule;
  }
  return result;
}

// Returns the options with what a word for a format with scales, such as "mxfp4", stands for.
LinearOptions WithoutWord(const LinearKindRow& row, LinearOptions options) {
  const ScaledFormat* const word = FindScaledFormat(options.format);
  if (word == nullptr) return options;
  if (row.block == 0) {
    throw KeyError::Format(
        "format",
        "{} has scales of blocks, which kind '{}' has not; kinds mx and block do",
        options.format,
        options.kind);
  }
  options.format = word->elements;
  if (options.block == 0) options.block = static_cast<size_t>(word->block);
  if (!RulesOf(options).usual.has_value()) {
    options.scale_rule = fmt::format(
        "{}{}{}", word->rule, options.scale_rule.empty() ? "" : ",", options.scale_rule);
  }
  return options;
}

ScaleLayout LayoutOf(char letter, size_t block) {
  switch (letter) {
    case 'r':
      return {.granularity = Granularity::kRow};
    case 'b':
      return {.granularity = Granularity::kBlock, .block = block};
    case 's':
      return {.granularity = Granularity::kTile, .block = block, .tile_rows = block};
    default:
      return {.granularity = Granularity::kTensor};
  }
}

// Returns the scaling letters of the kind, with 'h' for operands that stay in high precision.
std::string ScalingOf(const LinearKindRow& row, const OperandSet& high_operands) {
  std::string letters(row.scaling);
  for (int i = 0; i < kLinearOperands; ++i) {
    if (high_operands.Has(static_cast<LinearOperand>(i))) letters[static_cast<size_t>(i)] = kHigh;
  }
  return letters;
}

// Returns the operands of the GEMMs with a Hadamard transform.
OperandSet TransformedOperands(const LinearOptions& options) {
  const std::string gemms = ParseOption("hadamard", options.hadamard, "", ParseGemms);
  return ParseOperandSet(gemms);
}

// Returns the transform of these GEMMs.
HadamardRecipe HadamardOf(const LinearOptions& options) {
  if (options.hadamard.empty()) {
    for (const auto& [option, given] :
         {std::pair("hadamard_size", options.hadamard_size != 0),
          std::pair("hadamard_signs", !options.hadamard_signs.empty())}) {
      if (given) throw KeyError(option, "no GEMM is transformed; hadamard names them");
    }
    return {};
  }
  const size_t size = options.hadamard_size == 0 ? 16 : options.hadamard_size;
  if (!IsHadamardSize(size)) {
    throw KeyError::Format("hadamard_size", "{} is not one of 16, 32, 64, 128", size);
  }
  HadamardRecipe result =
      ParseOption("hadamard_signs", options.hadamard_signs, "random", ParseHadamardSigns);
  result.size = size;
  return result;
}

OperandRecipe MakeOperandRecipe(const Choices& choices,
                                char letter,
                                const OperandRecipe& quantized) {
  if (letter == kHigh) return choices.high_precision;
  OperandRecipe result = quantized;
  result.layout = LayoutOf(letter, choices.block);
  return result;
}

// Sets which tensors of the backward GEMMs come from the codes of the forward GEMM.
void TakeFromCodes(const LinearOptions& options, LinearRecipe& recipe) {
  const OperandSet& named = options.backward_from_codes;
  if (named.Empty()) return;
  constexpr std::string_view kKey = "backward_from_codes";
  if (!named.IsOfTensors() || named.Has(LinearOperand::kInputGradientG)) {
    throw KeyError::Format(kKey, "'{}' is not x, w or both", Text(named));
  }
  if (options.delayed.has_value()) throw KeyError(std::string(kKey), "not with delayed scaling");
  for (const LinearOperand operand : {LinearOperand::kForwardX, LinearOperand::kForwardW}) {
    if (!named.Has(operand)) continue;
    if (recipe[operand].hadamard.size != 0) {
      throw KeyError(std::string(kKey), "not with a Hadamard transform of the forward GEMM");
    }
    // Without codes, such as with the operand in high_operands, the tensor itself is taken.
    const bool quantized = !recipe[operand].Unscaled();
    (operand == LinearOperand::kForwardX ? recipe.x_from_codes : recipe.w_from_codes) = quantized;
  }
}

}  // namespace

std::string_view ToString(LinearGemm product) { return KeywordToString(kProductNames, product); }

std::string ParseGemms(std::string_view text) {
  bool named[std::size(kProducts)] = {};
  if (!text.empty()) {
    for (const std::string& piece : SplitList(text)) {
      named[static_cast<int>(ParseKeyword(kProductNames, "GEMM", piece))] = true;
    }
  }
  std::string result;
  for (const LinearGemm product : kProducts) {
    if (!named[static_cast<int>(product)]) continue;
    result += fmt::format("{}{}", result.empty() ? "" : ",", ToString(product));
  }
  return result;
}

HadamardRecipe ParseHadamardSigns(std::string_view text) {
  if (text == "random") return {.source = HadamardSource::kRandom};
  if (text == "redrawn") return {.source = HadamardSource::kRedrawn};
  if (text == "fixed") return {};
  HadamardRecipe result;
  const std::string_view digits = text.substr(0, 2) == "0x" ? text.substr(2) : std::string_view();
  const auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), result.mask, 16);
  if (digits.empty() || status != std::errc() || end != digits.data() + digits.size()) {
    throw NotOneOf("signs", text, "random, redrawn, fixed, a mask such as 0xD7E8");
  }
  return result;
}

std::string HadamardText(const HadamardRecipe& recipe) {
  if (recipe.size == 0) return "";
  std::string signs = recipe.source == HadamardSource::kRandom    ? "random"
                      : recipe.source == HadamardSource::kRedrawn ? "redrawn"
                      : recipe.mask == 0                          ? "fixed"
                                         : fmt::format("0x{:04X}", recipe.mask);
  return fmt::format("hadamard:{}:{}", recipe.size, signs);
}

OperandRecipe HighPrecision(const Format& format) {
  OperandRecipe result;
  result.format = format;
  result.scale_rule = ScaleRule::kNone;
  result.overflow = Overflow::kNonsaturate;
  return result;
}

LinearRecipe MakeLinearRecipe(const LinearOptions& given) {
  const LinearKindRow& row = FindLinearKind(given.kind);
  const LinearOptions options = WithoutWord(row, given);
  RejectForeignOptions(row, options);
  const Choices choices = MakeChoices(row, options);

  const std::optional<AccumulationMode> high_precision =
      ModeOf("high_precision_accumulate", options.high_precision_accumulate, "fp32");

  LinearRecipe result;
  result.kind = row.kind.name;
  result.saves = row.saves;
  result.high_precision = choices.high_precision.format;
  result.delayed = options.delayed;
  if (result.delayed.has_value()) result.delayed->rule = DelayedRule(choices.forward.scale_rule);
  const std::string letters = ScalingOf(row, options.high_operands);
  const OperandSet transformed = TransformedOperands(options);
  const HadamardRecipe hadamard = HadamardOf(options);
  const ScaleRules rules = RulesOf(options);
  for (const LinearGemm product : kProducts) {
    const size_t first = 2 * static_cast<size_t>(product);
    const char a = letters[first], b = letters[first + 1];
    GemmRecipe& made = result[product];
    // A is X in the forward GEMM and G in the two others; B is never G.
    const bool forward = product == LinearGemm::kForward;
    made.a = MakeOperandRecipe(choices, a, forward ? choices.forward : choices.gradient);
    made.b = MakeOperandRecipe(choices, b, forward ? choices.forward : choices.backward);
    for (OperandRecipe* const operand : {&made.a, &made.b}) {
      const auto number = static_cast<LinearOperand>(first + (operand == &made.b ? 1 : 0));
      if (!operand->Unscaled()) operand->scale_rule = rules.Of(number, operand->scale_rule);
    }
    const bool high = a == kHigh && b == kHigh;
    if (transformed.Has(static_cast<LinearOperand>(first))) {
      if (row.scaling[first] == kHigh && row.scaling[first + 1] == kHigh) {
        throw KeyError::Format("hadamard",
                               "kind '{}' quantises no operand of the {} GEMM",
                               options.kind,
                               ToString(product));
      }
      if (!high) made.a.hadamard = made.b.hadamard = hadamard;
    }
    if (!options.container.empty() && !high) {
      made.container = ParseOption("container", options.container, "", ParseContainer);
      CheckContainer(product, made);
    }
    for (const OperandRecipe* operand : {&made.a, &made.b}) CheckScaleRule(product, *operand);
    const bool integers = made.a.format.spec == kInt8 && made.b.format.spec == kInt8;
    const std::optional<AccumulationMode> mode =
        high ? high_precision
             : ModeOf("accumulate", options.accumulate, integers ? "exact" : "fp32");
    if (mode.has_value()) {
      made.accumulation = *mode;
      if (IsBlockScaled(*mode)) CheckBlockScaled(product, made);
    } else {
      PutOnTensorCores(result.kind, product, made);
    }
  }
  TakeFromCodes(options, result);
  return result;
}

}  // namespace numsim
