// The files of the published packs.
#include <algorithm>
#include <array>
#include <iterator>

#include "numsim/arith/accumulation_mode.h"
#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/formats/format_table.h"
#include "numsim/oracle/pack.h"
#include "numsim/profiles/profile.h"
#include "numsim/rounding/rounding_modes.h"

namespace numsim {
namespace {

constexpr std::array kSets = {
    PackSetInfo{"standard",
                "fp8, fp6, fp4, e8m0fnu, fp16 and bf16: conversion, arithmetic, blocks"},
    PackSetInfo{"p3109-minimal", "minimal operations of the P3109 draft v4.0, nearest-even"},
    PackSetInfo{"formats", "every named format: from fp32 and to fp32"},
    PackSetInfo{"operations", "every operation, in e4m3fn"},
    PackSetInfo{"profiles", "every conversion from fp32 of other implementations"},
    PackSetInfo{"accumulation-modes", "dot products under every named accumulation mode"},
};

const OperationInfo& InfoOf(std::string_view op) {
  for (const OperationInfo& info : OperationTable()) {
    if (info.name == op) return info;
  }
  throw Error::Format("--set: operation '{}' does not exist", op);
}

// Collects entries and sets every policy that the operation uses explicitly.
class Entries {
 public:
  // `level` is a text for ParseCaseLevel().
  void Add(OperationRequest request, std::string_view level) {
    const OperationInfo& info = InfoOf(request.op);
    if (info.options.rounding && !request.rounding) request.rounding = Rounding{};
    if (info.options.overflow) {
      const bool block = request.op.starts_with("quantize");
      if (!request.overflow) {
        request.overflow = block ? Overflow::kSaturate : Overflow::kNonsaturate;
      }
      request.tininess = Tininess::kAfterRounding;
    }
    AddAsItIs(std::move(request), level);
  }
  // Adds an operation that has the policies that it needs.
  void AddAsItIs(OperationRequest request, std::string_view level) {
    list_.push_back({std::move(request), ParseCaseLevel(level, kSeed)});
  }
  // Adds an operation whose operands and result have the same format.
  void Add(const char* op, const std::string& format, std::string_view level) {
    OperationRequest request;
    request.op = op;
    request.format = format;
    Add(std::move(request), level);
  }
  void AddConvert(const std::string& from,
                  const std::string& to,
                  std::string_view level,
                  const Rounding& rounding = {},
                  Overflow overflow = Overflow::kNonsaturate) {
    OperationRequest request;
    request.op = "convert";
    request.format = from;
    request.to = to;
    request.rounding = rounding;
    request.overflow = overflow;
    Add(std::move(request), level);
  }

  std::vector<PackEntry> Take() { return std::move(list_); }

 private:
  static constexpr uint64_t kSeed = 1;

  std::vector<PackEntry> list_;
};

void AddConversions(Entries& entries) {
  constexpr const char* kSmall[] = {
      "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu", "e3m2fn", "e2m3fn", "e2m1fn"};
  for (const char* const to : kSmall) {
    for (const Overflow overflow : {Overflow::kNonsaturate, Overflow::kSaturate}) {
      entries.AddConvert("fp32", to, "edges", {}, overflow);
    }
    entries.AddConvert(to, "fp32", "full");
  }
  for (const char* const to : {"e4m3fn", "e5m2", "e8m0fnu"}) {
    for (const RoundingMode mode : kDeterministicModes) {
      if (mode != RoundingMode::kNearestEven) entries.AddConvert("fp32", to, "edges", {mode});
    }
  }
  for (const char* const to : {"e4m3fn", "e5m2"}) {
    entries.AddConvert("fp16", to, "full");
    entries.AddConvert("bf16", to, "full");
  }
  for (const char* const to : {"fp16", "bf16"}) entries.AddConvert("fp32", to, "random:20000");
  for (const StochasticVariant variant :
       {StochasticVariant::kA, StochasticVariant::kB, StochasticVariant::kC}) {
    entries.AddConvert("fp32", "e4m3fn", "random:10000", {RoundingMode::kStochastic, variant, 8});
  }
  entries.AddConvert(
      "fp32", "bf16", "random:10000", {RoundingMode::kStochastic, StochasticVariant::kA, 16});
}

void AddArithmetic(Entries& entries) {
  for (const char* const format : {"e4m3fn", "e5m2"}) {
    for (const char* const op : {"add", "sub", "mul", "div", "rem", "sqrt"}) {
      entries.Add(op, format, "full");
    }
    entries.Add("fma", format, "random:50000");
  }
  for (const char* const format : {"e3m2fn", "e2m3fn", "e2m1fn"}) {
    for (const char* const op : {"add", "sub", "mul", "div", "sqrt"}) {
      entries.Add(op, format, "full");
    }
  }
  entries.Add("fma", "e2m1fn", "full");
  for (const char* const format : {"fp16", "bf16"}) {
    for (const char* const op : {"add", "sub", "mul", "div", "fma"}) {
      entries.Add(op, format, "random:10000");
    }
  }
  OperationRequest mixed;
  mixed.op = "mul";
  mixed.format = "e4m3fn";
  mixed.format_b = "e5m2";
  mixed.to = "bf16";
  entries.Add(mixed, "full");
  mixed.op = "fma";
  mixed.format_b.clear();
  mixed.format_c = mixed.to = "fp32";
  entries.Add(mixed, "random:20000");
}

void AddBlocks(Entries& entries) {
  for (const char* const to : {"e4m3fn", "e5m2", "e3m2fn", "e2m3fn", "e2m1fn"}) {
    OperationRequest request;
    request.op = "quantize-mx";
    request.to = to;
    entries.Add(std::move(request), "edges");
  }
  OperationRequest nvfp4;
  nvfp4.op = "quantize-nvfp4";
  entries.Add(std::move(nvfp4), "edges");
  for (const char* const format : {"e4m3fn", "e2m1fn"}) {
    OperationRequest dot;
    dot.op = "dot";
    dot.format = format;
    dot.to = "fp32";
    entries.Add(std::move(dot), "edges");
  }
}

// Adds the minimal operations of [P3109] v4.0, 4.5: formats Binary8p4se, Binary8p3se, Binary4p2sf
// and, from the choice that the draft offers, bf16 and fp32; nearest-even, SatNone. Formats are
// combined only in conversions.
constexpr const char* kMinimalOfOne[] = {"Negate",
                                         "Abs",
                                         "Recip",
                                         "IsZero",
                                         "IsOne",
                                         "IsNaN",
                                         "IsInfinite",
                                         "IsFinite",
                                         "IsSignMinus",
                                         "IsNormal",
                                         "IsSubnormal",
                                         "NextGreaterThan",
                                         "NextLessThan"};
constexpr const char* kMinimalOfTwo[] = {"Minimum",
                                         "Maximum",
                                         "MinimumNumber",
                                         "MaximumNumber",
                                         "MinimumMagnitude",
                                         "MaximumMagnitude",
                                         "MinimumMagnitudeNumber",
                                         "MaximumMagnitudeNumber",
                                         "MinimumFinite",
                                         "MaximumFinite",
                                         "CompareLess",
                                         "CompareLessEqual",
                                         "CompareEqual",
                                         "CompareGreater",
                                         "CompareGreaterEqual"};

void AddMinimalP3109(Entries& entries) {
  constexpr const char* kFormats[] = {"binary8p4se", "binary8p3se", "binary4p2sf"};
  constexpr const char* kWide[] = {"bf16", "fp32"};
  const auto named = [](const char* name) { return std::string("p3109.") + name; };
  const auto convert = [&](const char* from, const char* to, std::string_view level) {
    OperationRequest request;
    request.op = named("Convert");
    request.format = from;
    request.to = to;
    entries.Add(std::move(request), level);
  };
  for (const char* const format : kFormats) {
    const bool small = std::string_view(format) == "binary4p2sf";
    for (const char* const other : kFormats) convert(format, other, "full");
    for (const char* const wide : kWide) {
      convert(format, wide, "full");
      convert(wide, format, std::string_view(wide) == "fp32" ? "edges" : "full");
    }
    for (const char* const op : kMinimalOfOne) entries.Add(named(op).c_str(), format, "full");
    for (const char* const op : {"Add", "Subtract", "Multiply"}) {
      entries.Add(named(op).c_str(), format, "full");
    }
    for (const char* const op : {"FMA", "FAA"}) {
      entries.Add(named(op).c_str(), format, small ? "full" : "random:50000");
    }
    for (const char* const op : kMinimalOfTwo) {
      entries.Add(named(op).c_str(), format, small ? "full" : "edges");
    }
    for (const char* const op : {"ScaledAdd", "ScaledSubtract", "ScaledMultiply"}) {
      OperationRequest request;
      request.op = named(op);
      request.format = format;
      request.scale_format = "binary8p1uf";
      entries.Add(std::move(request), "random:20000");
    }
  }
}

void AddFormats(Entries& entries) {
  for (const FormatEntry& row : FormatTable()) {
    const std::string format(row.name);
    if (format == "fp32") continue;
    entries.AddConvert("fp32", format, "edges");
    const char* const saturated = row.spec.Bits() > 8 ? "random:4000" : "edges";
    entries.AddConvert("fp32", format, saturated, {}, Overflow::kSaturate);
    entries.AddConvert(format, "fp32", row.spec.Bits() > 16 ? "edges" : "full");
  }
}

// Operations of one operand have all codes of it.
void AddOperations(Entries& entries) {
  for (const OperationInfo& info : OperationTable()) {
    OperationRequest request;
    request.op = info.name;
    if (!info.options.wide_source) request.format = "e4m3fn";
    if (info.options.wide_source && info.options.to) request.to = "e4m3fn";
    if (request.op == "dot") request.to = "fp32";
    if (info.options.invalid_integer) request.invalid_integer = InvalidInteger::kRiscv;
    // Of operations on blocks, a case has dozens of operands.
    const size_t inputs = MakeOperation(request)->inputs().size();
    const size_t cases = std::clamp<size_t>(16000 / inputs, 250, 4000);
    entries.Add(std::move(request), inputs == 1 ? "edges" : fmt::format("random:{}", cases));
  }
}

void AddProfiles(Entries& entries) {
  for (const ProfileInfo& info : ProfileTable()) {
    for (const std::string& target : ProfileTargets(info.name, SourceType::kFloat32)) {
      OperationRequest request;
      request.op = "convert";
      request.format = "fp32";
      request.to = target;
      request.profile = info.name;
      entries.AddAsItIs(std::move(request), info.stochastic ? "random:4000" : "edges");
    }
  }
}

// Returns the name of a format of the table.
std::string NameOf(const FormatSpec& spec) {
  const auto table = FormatTable();
  const auto row = std::find_if(
      table.begin(), table.end(), [&](const FormatEntry& entry) { return entry.spec == spec; });
  NUMSIM_CHECK(row != table.end(), "a format without a name");
  return std::string(row->name);
}

void AddAccumulationModes(Entries& entries) {
  for (const AccumulationModeRow& row : AccumulationModeTable()) {
    for (const FormatEntry& format : FormatTable()) {
      if (!IsFor(row, format.spec)) continue;
      OperationRequest dot;
      dot.op = "dot";
      dot.format = format.name;
      dot.to = "fp32";
      dot.accumulation = row.name;
      if (IsBlockScaled(row.mode)) dot.scale_format = NameOf(row.mode.format);
      dot.length = 64;
      entries.Add(std::move(dot), "random:500");
    }
  }
}

// In the order of kSets.
constexpr void (*kAdd[])(Entries&) = {[](Entries& entries) {
                                        AddConversions(entries);
                                        AddArithmetic(entries);
                                        AddBlocks(entries);
                                      },
                                      AddMinimalP3109,
                                      AddFormats,
                                      AddOperations,
                                      AddProfiles,
                                      AddAccumulationModes};
static_assert(std::size(kAdd) == std::size(kSets));

}  // namespace

std::span<const PackSetInfo> PackSets() { return kSets; }

std::vector<PackEntry> PackEntries(std::string_view set) {
  std::string names;
  for (size_t i = 0; i < kSets.size(); ++i) {
    if (kSets[i].name == set) {
      Entries entries;
      kAdd[i](entries);
      return entries.Take();
    }
    names += (names.empty() ? "" : ", ") + std::string(kSets[i].name);
  }
  throw NotOneOf("--set", set, names);
}

}  // namespace numsim
