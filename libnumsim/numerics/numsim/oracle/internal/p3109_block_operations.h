// The operations of [P3109] on blocks, for the table in p3109_operations.cc.
#pragma once

#include <memory>

#include "numsim/arith/p3109.h"
#include "numsim/oracle/internal/operation_row.h"

namespace numsim {

enum class BlockConversion : uint8_t { kFromBlock, kToBlock, kToBlockMaxAbsFinite };
enum class BlockReduction : uint8_t { kAdd, kMultiply, kDotProduct };

std::unique_ptr<Operation> MakeElementwiseOnBlocks(const OperationInfo& info,
                                                   const ResolvedRequest& r,
                                                   const p3109::OpInfo& op);
std::unique_ptr<Operation> MakeConversionOfBlock(const OperationInfo& info,
                                                 const ResolvedRequest& r,
                                                 BlockConversion conversion);
std::unique_ptr<Operation> MakeReductionOfBlocks(const OperationInfo& info,
                                                 const ResolvedRequest& r,
                                                 BlockReduction reduction);

}  // namespace numsim
