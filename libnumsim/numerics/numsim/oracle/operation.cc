#include "numsim/oracle/operation.h"

#include <fmt/format.h>

#include "numsim/base/error.h"
#include "numsim/base/nearest_name.h"
#include "numsim/oracle/internal/operation_row.h"

namespace numsim {
namespace {

std::vector<OperationRow> MakeRows() {
  std::vector<OperationRow> rows;
  for (const auto part : {ElementwiseRows(), BlockRows(), DotRows(), P3109Rows()}) {
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

const std::vector<OperationRow>& Rows() {
  static const std::vector<OperationRow> rows = MakeRows();
  return rows;
}

// An unknown name is answered with the names of its family: P3109's or the others.
const OperationRow& FindRow(std::string_view name) {
  constexpr std::string_view kP3109 = "p3109.";
  std::string names;
  for (const OperationRow& row : Rows()) {
    if (row.info.name == name) return row;
    if (row.info.name.starts_with(kP3109) != name.starts_with(kP3109)) continue;
    if (!names.empty()) names += ", ";
    names += row.info.name;
  }
  throw NotOneOf("--op", name, names);
}

void CheckUse(std::string_view op, std::string_view option, bool given, bool used) {
  if (given && !used) throw Error::Format("--op {} does not use --{}", op, option);
}

void CheckOptions(const OperationRequest& r, const OptionSet& uses) {
  CheckUse(r.op, "format-b", !r.format_b.empty(), uses.format_b);
  CheckUse(r.op, "format-c", !r.format_c.empty(), uses.format_c);
  CheckUse(r.op, "to", !r.to.empty(), uses.to);
  CheckUse(r.op, "scale-format", !r.scale_format.empty(), uses.scale_format);
  CheckUse(r.op, "accumulation-mode", !r.accumulation.empty(), uses.accumulation);
  CheckUse(r.op, "any-operands", r.any_operands, uses.accumulation);
  CheckUse(r.op, "rounding", r.rounding.has_value(), uses.rounding);
  CheckUse(r.op, "overflow", r.overflow.has_value(), uses.overflow);
  CheckUse(r.op, "tininess", r.tininess.has_value(), uses.overflow);
  CheckUse(r.op, "invalid-integer", r.invalid_integer.has_value(), uses.invalid_integer);
  CheckUse(r.op, "length", r.length != 0, uses.length);
  CheckUse(r.op, "tensor-scale", r.tensor_scale, uses.tensor_scale);
  CheckUse(r.op, "profile", !r.profile.empty(), r.op == "convert" || r.op == "from-f64");
  CheckUse(r.op, "block", r.block != 0, uses.block);
  CheckUse(r.op, "scale-rule", !r.scale_rule.empty(), uses.scale_rule);
  CheckUse(r.op, "scale-rounding", !r.scale_rounding.empty(), uses.scale_rounding);
  for (const auto& [option, value] : {std::pair("length", r.length), std::pair("block", r.block)}) {
    if (value < 0 || value > kMostDotLength) {
      throw Error::Format("--{} {} is not between 1 and {}", option, value, kMostDotLength);
    }
  }
  if (uses.block && r.scale_format.empty() && (r.block != 0 || r.tensor_scale)) {
    throw Error::Format("--{} needs --scale-format", r.block != 0 ? "block" : "tensor-scale");
  }
  if (r.rounding && r.rounding->mode == RoundingMode::kStochastic &&
      (r.rounding->random_bits < 1 || r.rounding->random_bits > 32)) {
    throw Error::Format("{} random bits, expected 1 to 32", r.rounding->random_bits);
  }
}

// Returns the format that an option names, or `otherwise` if the option is empty.
Format FormatOf(std::string_view option, const std::string& text, const Format& otherwise) {
  if (text.empty()) return otherwise;
  try {
    return ParseFormat(text);
  } catch (const Error& error) {
    throw Error::Format("--{}: {}", option, error.what());
  }
}

// Returns the plan of a scale: that of the elements, unless --scale-rounding says otherwise.
EncodePlan ScalePlan(const OperationRequest& r, const ResolvedRequest& resolved) {
  Rounding rounding = resolved.plan.rounding;
  Overflow overflow = resolved.plan.overflow;
  if (!r.scale_rounding.empty()) {
    const std::string_view text = r.scale_rounding;
    const size_t comma = text.find(',');
    try {
      rounding.mode = ParseRoundingMode(text.substr(0, comma));
      if (comma != text.npos) overflow = ParseOverflow(text.substr(comma + 1));
    } catch (const Error& error) {
      throw Error::Format("--scale-rounding {}: {}", text, error.what());
    }
  }
  return MakeEncodePlan(resolved.scale.spec, rounding, overflow);
}

ResolvedRequest Resolve(const OperationRequest& r, const OptionSet& uses) {
  if (r.format.empty() && !uses.wide_source) {
    throw Error::Format("--op {} needs --format", r.op);
  }
  if (r.to.empty() && uses.wide_source && uses.to) throw Error::Format("--op {} needs --to", r.op);
  ResolvedRequest resolved;
  resolved.a = FormatOf("format", r.format.empty() ? "fp32" : r.format, {});
  resolved.b = FormatOf("format-b", r.format_b, resolved.a);
  resolved.to = FormatOf("to", r.to, resolved.a);
  resolved.c = FormatOf("format-c", r.format_c, resolved.to);
  resolved.scale =
      FormatOf("scale-format", r.scale_format.empty() ? "binary8p1uf" : r.scale_format, {});
  resolved.accumulation = r.accumulation;
  resolved.any_operands = r.any_operands;
  resolved.length = r.length;
  resolved.block = r.block;
  resolved.has_block_scales = uses.block && !r.scale_format.empty();
  resolved.tensor_scale = r.tensor_scale;
  resolved.scale_rule = r.scale_rule;
  const bool block = uses.wide_source && uses.length;  // quantisation saturates [OCP-MX]
  resolved.plan =
      MakeEncodePlan(resolved.to.spec,
                     r.rounding.value_or(Rounding{}),
                     r.overflow.value_or(block ? Overflow::kSaturate : Overflow::kNonsaturate));
  resolved.invalid_integer = r.invalid_integer.value_or(InvalidInteger::kRiscv);
  resolved.plan.tininess = r.tininess.value_or(Tininess::kAfterRounding);
  resolved.scale_plan = ScalePlan(r, resolved);
  return resolved;
}

std::vector<OperationInfo> MakeTable() {
  std::vector<OperationInfo> table;
  for (const OperationRow& row : Rows()) table.push_back(row.info);
  return table;
}

}  // namespace

std::string_view ToString(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kCode:
      return "code";
    case ColumnKind::kInteger:
      return "integer";
    case ColumnKind::kFloat64:
      return "float64";
    case ColumnKind::kTruth:
      return "truth";
    case ColumnKind::kRandom:
      return "random";
  }
  return "";
}

Column CodeColumn(std::string name, const Format& format) {
  return {.name = std::move(name),
          .bits = format.spec.Bits(),
          .kind = ColumnKind::kCode,
          .format = format};
}

size_t AppendRandom(const Rounding& rounding, size_t count, std::vector<Column>& columns) {
  if (rounding.mode != RoundingMode::kStochastic) return 0;
  for (size_t i = 0; i < count; ++i) {
    columns.push_back({.name = count == 1 ? "random" : fmt::format("random[{}]", i),
                       .bits = rounding.random_bits,
                       .kind = ColumnKind::kRandom});
  }
  return count;
}

std::span<const OperationInfo> OperationTable() {
  static const std::vector<OperationInfo> table = MakeTable();
  return table;
}

std::unique_ptr<Operation> MakeOperation(const OperationRequest& request) {
  const OperationRow& row = FindRow(request.op);
  CheckOptions(request, row.info.options);
  const ResolvedRequest resolved = Resolve(request, row.info.options);
  if (!request.profile.empty()) return MakeProfileOperation(row.info, request, resolved);
  return row.make(row.info, resolved);
}

}  // namespace numsim
