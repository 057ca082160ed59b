// Between MakeOperation and the files that define operations: rows of the table, and a request
// whose texts are parsed and whose defaults are filled in.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "numsim/oracle/operation.h"
#include "numsim/rounding/encode_plan.h"

namespace numsim {

struct ResolvedRequest {
  Format a, b, c, to, scale;
  EncodePlan plan;           // to `to`, or what of it the operation uses
  std::string accumulation;  // empty: the default
  int length = 0;            // 0: the default
  bool tensor_scale = false;
};

struct OperationRow {
  OperationInfo info;
  std::unique_ptr<Operation> (*make)(const OperationInfo& info, const ResolvedRequest& request);
};

std::span<const OperationRow> ElementwiseRows();
std::span<const OperationRow> BlockRows();
std::span<const OperationRow> DotRows();

Column CodeColumn(std::string name, const Format& format);
// Appends `count` columns "random" or "random[0]", ... if the mode is stochastic; returns how many.
size_t AppendRandom(const Rounding& rounding, size_t count, std::vector<Column>& columns);

}  // namespace numsim
