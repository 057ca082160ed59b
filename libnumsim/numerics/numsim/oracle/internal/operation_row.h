// Interface between MakeOperation() and the files that define operations: the rows of the operation
// table, and a parsed request with its defaults filled in.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "numsim/oracle/operation.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

struct ResolvedRequest {
  Format a, b, c, to, scale;
  EncodePlan plan;        // plan for encoding to `to`; an operation may use only parts of it
  EncodePlan scale_plan;  // plan for a scale that the operation computes
  InvalidInteger invalid_integer = InvalidInteger::kRiscv;
  std::string accumulation;  // empty: the default
  bool any_operands = false;
  int length = 0;  // 0: the default
  bool tensor_scale = false;
  int block = 0;                  // 0: the default
  bool has_block_scales = false;  // dot
  std::string scale_rule;         // empty: the default
};

struct OperationRow {
  using Make = std::function<std::unique_ptr<Operation>(const OperationInfo& info,
                                                        const ResolvedRequest& request)>;
  OperationInfo info;
  Make make;
};

std::span<const OperationRow> ElementwiseRows();
std::span<const OperationRow> BlockRows();
std::span<const OperationRow> DotRows();
std::span<const OperationRow> P3109Rows();

// Makes the operation convert or from-f64 of a request with a profile. Throws Error if the source of
// convert is not fp32,
// if the profile does not define the conversion, or if the request sets an option that the profile
// determines.
std::unique_ptr<Operation> MakeProfileOperation(const OperationInfo& info,
                                                const OperationRequest& request,
                                                const ResolvedRequest& resolved);

Column CodeColumn(std::string name, const Format& format);
// Appends `count` columns named "random" or "random[0]", ... if the rounding mode is stochastic.
// Returns the number of appended columns.
size_t AppendRandom(const Rounding& rounding, size_t count, std::vector<Column>& columns);

}  // namespace numsim
