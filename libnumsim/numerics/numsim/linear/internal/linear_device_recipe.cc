// The rules about which recipes run on a device. They query no device, so this file is compiled
// even without device support and is not named *_device.cc.
#include "numsim/linear/internal/linear_device_recipe.h"

#include <algorithm>
#include <utility>

#include "numsim/base/error.h"
#include "numsim/formats/format_table.h"
#include "numsim/gemm/gemm_device.h"
#include "numsim/linear/internal/linear_kinds.h"
#include "numsim/linear/linear_recipe.h"

namespace numsim {
namespace {

// The formats of a GEMM's operands as they enter it.
struct Pair {
  const Format& a;
  const Format& b;

  bool AreBoth(const char* format) const {
    const FormatSpec spec = ParseFormat(format).spec;
    return a.spec == spec && b.spec == spec;
  }
};

Pair PairOf(const GemmRecipe& product) {
  if (product.container.has_value()) return {*product.container, *product.container};
  return {product.a.format, product.b.format};
}

bool IsFp8(const Format& format) {
  return format.spec == ParseFormat("e4m3fn").spec || format.spec == ParseFormat("e5m2").spec;
}

// The accumulation modes that tensor cores support for a pair of formats.
struct UnitModes {
  const char* own;   // the one that ForDevice selects
  const char* slow;  // another one, or null
  // The one that ForDevice selects for weight gradients, whose inner dimension is the tokens, or null if
  // that is `own`. Then `own` with sums in parts of any length is supported.
  const char* parts;
  bool library;      // mode library is supported, too
  const char* text;  // all of them, for an Error

  const char* For(LinearGemm product) const {
    return parts != nullptr && product == LinearGemm::kWeightGradient ? parts : own;
  }
};

// hopper-bf16, which is hopper-fp16 too, in parts: few results of many tokens would leave most of a
// device idle. 65,536 tokens are 8 parts, so that 768 x 768 results fill 132 multiprocessors.
constexpr const char* kTokensInParts = "trunc:25,16,8192";

constexpr UnitModes kInt8Modes{"exact", nullptr, nullptr, false, "exact"};
constexpr UnitModes kFp8Modes{
    "hopper-fp8-fast", "hopper-fp8", nullptr, true, "hopper-fp8-fast, hopper-fp8, library"};
constexpr UnitModes kBf16Modes{
    "hopper-bf16", nullptr, kTokensInParts, true, "hopper-bf16, trunc:25,16,PROMOTE, library"};
constexpr UnitModes kFp16Modes{
    "hopper-fp16", nullptr, kTokensInParts, true, "hopper-fp16, trunc:25,16,PROMOTE, library"};

// Returns the modes of the pair, or null if no tensor core supports it.
const UnitModes* ModesOf(const Pair& pair) {
  if (pair.AreBoth("int8")) return &kInt8Modes;
  if (pair.AreBoth("bf16")) return &kBf16Modes;
  if (pair.AreBoth("fp16")) return &kFp16Modes;
  const bool fp8 = IsFp8(pair.a) && IsFp8(pair.b) && !pair.AreBoth("e5m2");
  return fp8 ? &kFp8Modes : nullptr;
}

bool Serves(const UnitModes& modes, AccumulationMode accumulation) {
  if (accumulation.kind == AccumulationKind::kLibrary) return modes.library;
  if (modes.parts != nullptr) accumulation.promote = 0;
  if (accumulation == ParseAccumulationMode(modes.own)) return true;
  return modes.slow != nullptr && accumulation == ParseAccumulationMode(modes.slow);
}

// Returns the operand whose scales change along the inner dimension in a way that no kernel serves,
// or null.
const OperandRecipe* UnservedBlocks(const GemmRecipe& product) {
  if (product.container.has_value()) return nullptr;
  for (const OperandRecipe* operand : {&product.a, &product.b}) {
    const size_t block = operand->layout.block;
    const bool served =
        TakesBlocks(product.a.format.spec, product.b.format.spec, product.accumulation, block);
    if (block != 0 && !served) return operand;
  }
  return nullptr;
}

// Throws Error with the reason if tensor cores do not serve the GEMM.
void CheckTensorCores(std::string_view kind, LinearGemm product, const GemmRecipe& made) {
  const Pair pair = PairOf(made);
  const UnitModes* modes = ModesOf(pair);
  if (modes == nullptr) {
    throw Error::Format(
        "kind '{}', {} product: tensor cores do not multiply {} by {}; they take int8 x int8, e4m3fn "
        "and e5m2 but not two e5m2, bf16 x bf16, fp16 x fp16; others need a container, or mode fp32",
        kind,
        ToString(product),
        pair.a.name,
        pair.b.name);
  }
  if (!Serves(*modes, made.accumulation)) {
    throw Error::Format(
        "kind '{}', {} product: a device does not add {} x {} under mode {}; it has {}, and fp32, fp64 and "
        "fp32-chunked for all formats",
        kind,
        ToString(product),
        pair.a.name,
        pair.b.name,
        ToString(made.accumulation),
        modes->text);
  }
  if (const OperandRecipe* operand = UnservedBlocks(made)) {
    throw Error::Format(
        "kind '{}', {} product: scales of layout {}; tensor cores take tensor, row and, for 8-bit "
        "operands, blocks of multiples of {} (of {} alone under mode hopper-fp8); others need a container, "
        "or mode fp32",
        kind,
        ToString(product),
        ToString(operand->layout),
        kBlockProducts,
        kBlockProducts);
  }
}

void CheckProduct(const LinearRecipe& recipe, LinearGemm product) {
  const GemmRecipe& made = recipe[product];
  if (made.a.hadamard.size != 0) {
    throw Error::Format("kind '{}', {} product: a device has no Hadamard transform; the host has",
                        recipe.kind,
                        ToString(product));
  }
  for (const OperandRecipe* operand : {&made.a, &made.b}) {
    if (IsOnlyForHost(operand->scale_rule)) {
      throw Error::Format("kind '{}', {} product: a device has no scale rule {}; the host has",
                          recipe.kind,
                          ToString(product),
                          ToString(operand->scale_rule));
    }
  }
  const bool exact_int8 =
      made.accumulation.kind == AccumulationKind::kExact && PairOf(made).AreBoth("int8");
  if (IsOrderedMode(made.accumulation) || exact_int8) return;  // other kernels serve these
  CheckTensorCores(recipe.kind, product, made);
}

// True if scales that change along the inner dimension stay outside the operands.
bool HasBlocks(const GemmRecipe& product) {
  return !product.container.has_value() &&
         (product.a.layout.block != 0 || product.b.layout.block != 0);
}

// Returns the narrowest of bf16 and fp16 that holds the values of both operands, or nothing.
std::optional<Format> ContainerFor(const GemmRecipe& product) {
  for (const char* name : {"bf16", "fp16"}) {
    const Format container = ParseFormat(name);
    if (FitsContainer(product.a, container.spec) && FitsContainer(product.b, container.spec)) {
      return container;
    }
  }
  return std::nullopt;
}

// Gives the GEMM the mode of tensor cores. Returns false, without a change, if they do not serve it as it is.
bool TryTensorCores(LinearGemm gemm, GemmRecipe& product, bool library) {
  const UnitModes* modes = ModesOf(PairOf(product));
  if (modes == nullptr) return false;
  GemmRecipe made = product;
  // cuBLASLt takes no scales of blocks.
  const bool to_library = library && modes->library && !HasBlocks(product);
  made.accumulation = ParseAccumulationMode(to_library ? "library" : modes->For(gemm));
  if (UnservedBlocks(made) != nullptr) return false;
  product = std::move(made);
  return true;
}

// Does the same, in a container where that is needed.
bool TryTensorCoresOrContainer(LinearGemm gemm, GemmRecipe& product, bool library) {
  if (TryTensorCores(gemm, product, library)) return true;
  product.container = ContainerFor(product);
  return TryTensorCores(gemm, product, library);
}

}  // namespace

void CheckOnDevice(const LinearRecipe& recipe) {
  if (recipe.x_from_codes || recipe.w_from_codes) {
    throw Error::Format("kind '{}': a device has no backward_from_codes; the host has",
                        recipe.kind);
  }
  for (const LinearGemm product : kProducts) CheckProduct(recipe, product);
}

LinearRecipe ForDevice(LinearRecipe recipe, bool library) {
  for (const LinearGemm gemm : kProducts) TryTensorCoresOrContainer(gemm, recipe[gemm], library);
  return recipe;
}

void PutOnTensorCores(std::string_view kind, LinearGemm product, GemmRecipe& made) {
  if (TryTensorCoresOrContainer(product, made, false)) return;
  const UnitModes* modes = ModesOf(PairOf(made));
  if (modes != nullptr) made.accumulation = ParseAccumulationMode(modes->For(product));
  CheckTensorCores(kind, product, made);  // throws, for formats or scales that they lack
}

}  // namespace numsim
