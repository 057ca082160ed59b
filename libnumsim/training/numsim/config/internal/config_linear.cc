// The keys of [linear] and of each [[linear.override]].
#include <optional>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/config/internal/rounding_text.h"
#include "numsim/config/shared/config_table.h"
#include "numsim/formats/format_names.h"

namespace numsim {
namespace {

std::string KindNames() {
  std::string names;
  for (const LinearKind& kind : LinearKinds()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", kind.name);
  }
  return names;
}

std::string ParseKind(const std::string& text) {
  for (const LinearKind& kind : LinearKinds()) {
    if (kind.name == text) return text;
  }
  throw Error::Format("'{}' is not one of {}{}", text, KindNames(), DidYouMean(text, KindNames()));
}

// Returns a row for an option of delayed scaling. Each option has a key of its own.
// `delayed_history`, which is read first, enables delayed scaling.
template <typename Value, typename Read, typename Write>
ConfigRow<LinearOptions> DelayedRow(std::string name,
                                    Value DelayedScalingOptions::*field,
                                    Read read,
                                    Write write,
                                    std::string meaning,
                                    std::string valid) {
  return {std::move(name),
          std::move(meaning),
          std::move(valid),
          [field, read](LinearOptions& options, const ConfigValue& value) {
            DelayedScalingOptions unused;
            DelayedScalingOptions& delayed =
                options.delayed.has_value() ? *options.delayed : unused;
            delayed.*field = read(value);
            if (unused != DelayedScalingOptions()) {
              throw Error("delayed scaling requires delayed_history");
            }
          },
          [field, write](const LinearOptions& options) {
            return write(options.delayed.value_or(DelayedScalingOptions()).*field);
          }};
}

void AppendDelayedRows(ConfigRows<LinearOptions>& rows) {
  rows.push_back(
      {"delayed_history",
       "te-hybrid, e5m2-backward: steps in the history of absolute maxima for delayed scaling; 0: current scaling",
       "whole number >= 0, <= 65536",
       [](LinearOptions& options, const ConfigValue& value) {
         const uint64_t history = ReadWhole(value, 0, 65536);
         const DelayedScalingOptions kept = options.delayed.value_or(DelayedScalingOptions());
         options.delayed.reset();
         if (history == 0) return;
         options.delayed = kept;
         options.delayed->history = history;
       },
       [](const LinearOptions& options) {
         return WholeText(options.delayed.has_value() ? options.delayed->history : 0);
       }});
  rows.push_back(DelayedRow(
      "delayed_algorithm",
      &DelayedScalingOptions::algorithm,
      [](const ConfigValue& value) { return ParseAmaxAlgorithm(ReadText(value)); },
      [](AmaxAlgorithm algorithm) { return QuotedText(ToString(algorithm)); },
      "delayed scaling: which maximum of the history sets the scale",
      "max, most-recent, window"));
  rows.push_back(DelayedRow(
      "delayed_margin",
      &DelayedScalingOptions::margin,
      [](const ConfigValue& value) { return static_cast<int>(ReadSigned(value, -32, 32)); },
      [](int margin) { return fmt::format("{}", margin); },
      "delayed scaling: the scale leaves room for values 2^margin times larger",
      "whole number >= -32, <= 32"));
}

// Formats are kept under numsim's own names, so that configurations that name them differently are
// equal.
std::string FormatNameOf(const std::string& text) {
  return text.empty() ? "" : ParseFormat(text).name;
}

// Of quantised operands also a word for a format with scales, such as nvfp4.
std::string QuantizedNameOf(const std::string& text) {
  const ScaledFormat* const word = FindScaledFormat(text);
  return word != nullptr ? std::string(word->name) : FormatNameOf(text);
}

std::string HadamardSignsOf(const std::string& text) {
  if (!text.empty()) ParseHadamardSigns(text);
  return text;
}

}  // namespace

ConfigRows<LinearOptions> LinearRows() {
  using L = LinearOptions;
  const auto same = [](const std::string& text) { return text; };
  // clang-format off
  ConfigRows<L> rows = {
      TextRow("kind",                      &L::kind,                      ParseKind, same, "kind of linear layer (linear.md)", KindNames()),
      TextRow("format",                    &L::format,                    QuantizedNameOf, same, "format of quantised operands; empty: the kind's default",
              "a signed format of at most 16 bits; for mx and block also mxfp8, mxfp6, mxfp4, nvfp4 and others with scales"),
      TextRow("gradient_format",           &L::gradient_format,           FormatNameOf, same, "format of quantised output gradients; empty: the kind's default",
              "a signed format of at most 16 bits"),
      TextRow("high_precision",            &L::high_precision,            FormatNameOf, same, "format of operands that are not quantised; empty: bf16", "fp32, bf16, fp16"),
      TextRow("gradient_rounding",         &L::gradient_rounding,         ParseRounding, RoundingText, "rounding of quantised output gradients",
              RoundingTexts()),
      TextRow("accumulate",                &L::accumulate,                "accumulation mode of GEMMs with quantised operands; empty: exact for int8, else fp32",
              "an accumulation mode (oracle.md); tensor-cores"),
      TextRow("high_precision_accumulate", &L::high_precision_accumulate, "accumulation mode of the other GEMMs; empty: fp32", "an accumulation mode (oracle.md); library, tensor-cores"),
      TextRow("container",                 &L::container,                 FormatNameOf, same, "format in which the operands of GEMMs with quantised operands enter; empty: their own", "bf16, fp16"),
      TextRow("scale_rule",                &L::scale_rule,                "how scales are computed from absolute maxima; empty: the kind's default",
              ScaleRuleNames() + "; then ,OPERAND=RULE for single operands"),
      WholeRow("block",                    &L::block,                     0, "block, mx: elements per block; 0: 128 for block, 32 for mx"),
      TextRow("high_operands",             &L::high_operands,             ParseOperandSet, Text,
              "GEMM operands to keep in high precision, separated by commas",
              "x, w, g; forward, input-gradient, weight-gradient; forward.x, forward.w, input-gradient.g, input-gradient.w, weight-gradient.g, weight-gradient.x"),
      TextRow("backward_from_codes",       &L::backward_from_codes,       ParseOperandSet, Text,
              "tensors whose backward operand comes from the dequantised codes of the forward GEMM", "x, w"),
      TextRow("hadamard",                  &L::hadamard,                  ParseGemms, same, "GEMMs whose operands are Hadamard-transformed along the inner dimension",
              "forward, input-gradient, weight-gradient"),
      WholeRow("hadamard_size",            &L::hadamard_size,             0, "elements per block of a Hadamard transform: 16, 32, 64, 128; 0: 16"),
      TextRow("hadamard_signs",            &L::hadamard_signs,            HadamardSignsOf, same, "signs of Hadamard transforms; empty: random",
              "random, redrawn, fixed, a mask of 16 bits such as 0xD7E8"),
  };
  // clang-format on
  AppendDelayedRows(rows);
  return rows;
}

}  // namespace numsim
