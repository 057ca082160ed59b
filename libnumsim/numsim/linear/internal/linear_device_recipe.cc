// The rules about which recipes run on a device. They query no device, so this file is compiled
// even without device support and is not named *_device.cc.
#include "numsim/base/error.h"
#include "numsim/linear/linear_device.h"

namespace numsim {
namespace {

bool Is(const OperandRecipe& operand, const char* format) {
  return operand.format.spec == ParseFormat(format).spec;
}

bool AreBoth(const GemmRecipe& product, const char* format) {
  return Is(product.a, format) && Is(product.b, format);
}

bool IsFp8(const OperandRecipe& operand) { return Is(operand, "e4m3fn") || Is(operand, "e5m2"); }

// The accumulation modes that tensor cores support for a pair of formats.
struct UnitRules {
  const char* own;   // the one that ForDevice selects
  const char* slow;  // another one, or null
  bool library;      // mode library is supported, too
  const char* text;  // all of them, for an Error
};

constexpr UnitRules kInt8Rules{"exact", nullptr, false, "exact"};
constexpr UnitRules kFp8Rules{
    "hopper-fp8-fast", "hopper-fp8", true, "hopper-fp8-fast, hopper-fp8, library"};
constexpr UnitRules kBf16Rules{"hopper-bf16", nullptr, true, "hopper-bf16, library"};
constexpr UnitRules kFp16Rules{"hopper-fp16", nullptr, true, "hopper-fp16, library"};

// Returns the modes of the GEMM's formats, or null if no tensor core supports the pair.
const UnitRules* RulesOf(const GemmRecipe& product) {
  if (AreBoth(product, "int8")) return &kInt8Rules;
  if (AreBoth(product, "bf16")) return &kBf16Rules;
  if (AreBoth(product, "fp16")) return &kFp16Rules;
  const bool fp8 = IsFp8(product.a) && IsFp8(product.b) && !AreBoth(product, "e5m2");
  return fp8 ? &kFp8Rules : nullptr;
}

bool Serves(const UnitRules& rules, const AccumulationMode& accumulation) {
  if (accumulation.kind == AccumulationKind::kLibrary) return rules.library;
  if (accumulation == ParseAccumulationMode(rules.own)) return true;
  return rules.slow != nullptr && accumulation == ParseAccumulationMode(rules.slow);
}

void CheckLayout(const LinearRecipe& recipe, LinearGemm product, const OperandRecipe& operand) {
  const Granularity granularity = operand.layout.granularity;
  if (granularity == Granularity::kTensor || granularity == Granularity::kRow) return;
  throw Error::Format(
      "kind '{}', {} product: scales of layout {}; a device takes tensor and row, not scales that "
      "change along the inner dimension",
      recipe.kind,
      ToString(product),
      ToString(operand.layout));
}

void CheckProduct(const LinearRecipe& recipe, LinearGemm product) {
  const GemmRecipe& made = recipe[product];
  CheckLayout(recipe, product, made.a);
  CheckLayout(recipe, product, made.b);
  const UnitRules* rules = RulesOf(made);
  if (rules == nullptr) {
    throw Error::Format(
        "kind '{}', {} product: a device does not multiply {} by {}; it takes int8 x int8, e4m3fn "
        "and e5m2 but not two e5m2, bf16 x bf16, fp16 x fp16",
        recipe.kind,
        ToString(product),
        made.a.format.name,
        made.b.format.name);
  }
  if (!Serves(*rules, made.accumulation)) {
    throw Error::Format(
        "kind '{}', {} product: a device does not add {} x {} by rule {}; it has {}",
        recipe.kind,
        ToString(product),
        made.a.format.name,
        made.b.format.name,
        ToString(made.accumulation),
        rules->text);
  }
}

}  // namespace

void CheckOnDevice(const LinearRecipe& recipe) {
  if (recipe.delayed.has_value()) {
    throw Error::Format("kind '{}': a device has no delayed scaling", recipe.kind);
  }
  if (recipe.high_precision.spec != ParseFormat("bf16").spec) {
    throw Error::Format("high_precision: {}; tensors on a device are bf16",
                        recipe.high_precision.name);
  }
  for (const LinearGemm product : kProducts) CheckProduct(recipe, product);
}

LinearRecipe ForDevice(LinearRecipe recipe, bool library) {
  for (GemmRecipe& product : recipe.products) {
    const UnitRules* rules = RulesOf(product);
    if (rules == nullptr) continue;
    product.accumulation =
        ParseAccumulationMode(library && rules->library ? "library" : rules->own);
  }
  return recipe;
}

}  // namespace numsim
