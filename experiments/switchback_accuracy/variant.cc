// The linear layers that `switchback-accuracy` compares.
#include <fmt/format.h>

#include "experiments/shared/linear_variant.h"
#include "experiments/switchback_accuracy/switchback_accuracy.h"
#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"

namespace numsim::experiments::switchback_accuracy {
namespace {

constexpr std::string_view kAllSuffix = "+all";

// Returns the variant with its formats as the recipe resolves them.
Variant Resolved(const LinearOptions& options, const std::string& layers = kBlockLayers) {
  const LinearRecipe recipe = MakeLinearRecipe(options);
  return {options.kind,
          recipe[LinearGemm::kForward].a.format.name,
          recipe[LinearGemm::kInputGradient].a.format.name,
          layers};
}

}  // namespace

LinearOptions Variant::Options() const {
  LinearOptions options;
  options.kind = kind;
  options.high_precision = kBaseline.format;
  if (kind == kBaseline.kind) return options;
  options.format = format;
  options.gradient_format = gradient_format;
  return options;
}

std::string Variant::Text() const {
  if (kind == kBaseline.kind) return kind;
  LinearOptions options = Options();
  options.gradient_format.clear();
  const bool plain = format == gradient_format && Resolved(options, layers) == *this;
  return kind + ":" + format + (plain ? "" : "/" + gradient_format) +
         (layers == kAllLayers ? std::string(kAllSuffix) : "");
}

Variant ParseVariant(const std::string& text) {
  const bool all = text.ends_with(kAllSuffix);
  const size_t length = text.size() - (all ? kAllSuffix.size() : 0);
  LinearOptions options = ParseLinearVariant(std::string_view(text).substr(0, length));
  options.high_precision = kBaseline.format;
  // In `standard` nothing is quantised in either case.
  return Resolved(options, all && options.kind != kBaseline.kind ? kAllLayers : kBlockLayers);
}

Variant VariantOf(const TrainConfig& config) {
  return Resolved(config.linear.all, config.linear.first_last_high ? kBlockLayers : kAllLayers);
}

Variant VariantOf(const Frame& rows) {
  return {
      rows.Text("kind"), rows.Text("format"), rows.Text("gradient_format"), rows.Text("layers")};
}

study::Choice VariantChoice(const std::string& text) {
  const Variant variant = ParseVariant(text);
  const LinearOptions options = variant.Options();
  return {variant.Text(),
          {"linear.kind=" + options.kind,
           "linear.format=" + options.format,
           "linear.gradient_format=" + options.gradient_format,
           fmt::format("linear.first_last_high={}", variant.layers == kBlockLayers)}};
}

std::string Precision(const Variant& variant) {
  const FormatSpec spec = ParseFormat(variant.format).spec;
  if (variant.format == "int8") return "int8";
  return spec.Bits() == 8 ? "fp8" : variant.format;
}

}  // namespace numsim::experiments::switchback_accuracy
