#include "numsim/ops/attention_recipe.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/formats/decode.h"
#include "numsim/formats/named_formats.h"
#include "numsim/quantize/quantized_matrix.h"
#include "numsim/rounding/encode.h"

namespace numsim {
namespace {

constexpr std::string_view kScalings = "head, row, block:N";
constexpr int kMostScaledBits = 16;

constexpr ScaleRule kRules[] = {ScaleRule::kAbsmax,
                                ScaleRule::kPow2Floor,
                                ScaleRule::kPow2Ceil,
                                ScaleRule::kE8m0,
                                ScaleRule::kNone,
                                ScaleRule::kE8m0Even,
                                ScaleRule::kE8m0Ulp,
                                ScaleRule::kE8m0ThreeEighths,
                                ScaleRule::kE8m0Ceil,
                                ScaleRule::kE4m3};

// Returns what `parse` returns. An Error of it becomes one about the key.
template <typename Parse>
auto ParseKey(std::string_view key, const Parse& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    throw KeyError(std::string(key), error.what());
  }
}

// Returns the names of modes that a mistyped one may stand for, separated by ", ".
std::string ModeNames() {
  std::string names = "exact, fp64, fp32, fp32:unfused";
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    names += fmt::format(", {}", row.name);
  }
  return names;
}

AccumulationMode ParseMode(const std::string& text) {
  if (text == "library") {
    throw KeyError(
        "accumulate",
        "'library' leaves the order of sums to a linear algebra library, which attention "
        "does not use; expected another accumulation mode (oracle.md), such as fp32:unfused");
  }
  try {
    return ParseOrderedAccumulationMode(text);
  } catch (const Error& error) {
    throw KeyError("accumulate", error.what() + DidYouMean(text, ModeNames()));
  }
}

Format ParseOperandFormat(std::string_view key, const std::string& text) {
  Format format = ParseKey(key, [&] { return ParseFormat(text); });
  if (!format.spec.IsSigned() || format.spec.zero == Zero::kNone) {
    throw KeyError::Format(key, "format '{}' has no sign or no zero", format.name);
  }
  return format;
}

ScaleRule ParseRule(const std::string& text) {
  const ScaleRule rule = ParseKey("scale_rule", [&] { return ParseScaleRule(text); });
  for (const ScaleRule known : kRules) {
    if (rule == known) return rule;
  }
  throw KeyError::Format(
      "scale_rule",
      "{} does not follow from the absolute maximum of a group alone; attention has {}",
      text,
      AttentionScaleRuleNames());
}

ScaleLayout ParseScaling(const std::string& text) {
  if (text.empty() || text == "head") return {};
  if (text == "row" || text.starts_with("block:")) {
    return ParseKey("scaling", [&] { return ParseScaleLayout(text); });
  }
  throw KeyError::Format(
      "scaling", "'{}' is not one of {}{}", text, kScalings, DidYouMean(text, kScalings));
}

AttentionOperand MakeOperand(std::string_view key,
                             const std::string& text,
                             const AttentionPrecision& precision) {
  AttentionOperand operand;
  operand.format = ParseOperandFormat(key, text);
  const int bits = operand.format.spec.Bits();
  operand.scale_rule = precision.scale_rule.empty() ? UsualScaleRule(operand.format.spec)
                                                    : ParseRule(precision.scale_rule);
  const bool scaled = operand.scale_rule != ScaleRule::kNone;
  if (scaled && bits > kMostScaledBits) {
    throw KeyError::Format(key,
                           "format '{}' has {} bits; one with scales has at most {}",
                           operand.format.name,
                           bits,
                           kMostScaledBits);
  }
  if (scaled) operand.layout = ParseScaling(precision.scaling);
  operand.overflow = scaled || bits <= 8 ? Overflow::kSaturate : Overflow::kNonsaturate;
  return operand;
}

Scale MakePScale(const AttentionOperand& p, double given) {
  if (given == 0) return MakeScale(p.format.spec, 1, p.scale_rule);
  const auto scale = static_cast<float>(given);
  if (!std::isnormal(scale) || scale < 0 || !std::isnormal(1 / scale)) {
    throw KeyError::Format(
        "p_scale", "{} is neither 0 nor a positive number whose inverse is finite", given);
  }
  if (p.format.spec.Bits() > kMostScaledBits) {
    throw KeyError::Format("p_scale", "format '{}' takes no scale", p.format.name);
  }
  return {scale, 1 / scale};
}

bool Holds(const FormatSpec& format, float x) {
  const uint32_t code = EncodeF32(MakeEncodePlan(format), std::bit_cast<uint32_t>(x), 0);
  return Decode(format, code) == x;
}

// Throws KeyError unless the unit of a block-scaled mode takes the operands and their scales.
void CheckBlockScaled(const AttentionRecipe& recipe) {
  const AccumulationMode& mode = recipe.accumulation;
  const std::string name = ToString(mode);
  const AccumulationModeRow* const row = FindAccumulationMode(name);
  const bool powers = mode.format == kE8M0fnu;
  for (const AttentionOperand* const operand : {&recipe.forward, &recipe.gradient}) {
    if (row != nullptr && !IsFor(*row, operand->format.spec)) {
      throw KeyError::Format(
          "accumulate", "{} is for {}, not for {}", name, row->operands, operand->format.name);
    }
    const ScaleRule rule = operand->scale_rule;
    if (rule != ScaleRule::kNone && (powers ? !GivesPowersOfTwo(rule) : rule != ScaleRule::kE4m3)) {
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
  if (!Holds(mode.format, recipe.p_scale.scale)) {
    throw KeyError::Format("p_scale",
                           "{} takes scales of {}, and {} is none",
                           name,
                           ToString(mode.format),
                           recipe.p_scale.scale);
  }
}

}  // namespace

AttentionRecipe::AttentionRecipe() {
  forward.format = {"fp32", kFp32};
  gradient = p = forward;
  accumulation.kind = AccumulationKind::kFormatUnfused;
  accumulation.format = kFp32;
}

bool AttentionRecipe::IsOfFloat32() const {
  const auto plain = [](const AttentionOperand& operand) {
    return operand.Unscaled() && operand.format.spec == kFp32;
  };
  return plain(forward) && plain(gradient);
}

bool AttentionRecipe::IsUnfused() const {
  return accumulation.kind == AccumulationKind::kFormatUnfused && accumulation.format == kFp32;
}

AttentionRecipe MakeAttentionRecipe(const AttentionPrecision& precision) {
  AttentionRecipe recipe;
  recipe.accumulation = ParseMode(precision.accumulate);
  recipe.forward = MakeOperand("format", precision.format, precision);
  recipe.gradient = precision.gradient_format.empty()
                        ? recipe.forward
                        : MakeOperand("gradient_format", precision.gradient_format, precision);
  if (!precision.scaling.empty() && recipe.forward.Unscaled() && recipe.gradient.Unscaled()) {
    throw KeyError::Format(
        "scaling",
        "'{}' without scales: scale_rule is none, as it is by default for formats of "
        "more than 8 bits",
        precision.scaling);
  }
  recipe.p = recipe.forward;
  recipe.p.layout = {};
  recipe.p_scale = MakePScale(recipe.p, precision.p_scale);
  if (IsBlockScaled(recipe.accumulation)) CheckBlockScaled(recipe);
  return recipe;
}

std::string AttentionScaleRuleNames() {
  std::string names;
  for (const ScaleRule rule : kRules) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", ToString(rule));
  }
  return names;
}

}  // namespace numsim
