#include "numsim/oracle/internal/p3109_block_operations.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "numsim/arith/p3109_blocks.h"

namespace numsim {
namespace {

using p3109::Block;
using p3109::OpInfo;

constexpr int kBlockLength = 32;
constexpr const char* kNames[] = {"a", "b", "c"};

uint32_t Code(uint64_t column) { return static_cast<uint32_t>(column); }

// Common base of the operations on blocks.
class OnBlocks : public Operation {
 protected:
  OnBlocks(const OperationInfo& info, const ResolvedRequest& r, size_t blocks)
      : Operation(info, CaseShape::kRow),
        blocks_(blocks),
        formats_{r.a.spec, r.b.spec, r.c.spec},
        scale_(r.scale.spec),
        plan_(r.plan) {
    length_ = static_cast<size_t>(r.length != 0 ? r.length : kBlockLength);
    const Format* formats[] = {&r.a, &r.b, &r.c};
    for (size_t k = 0; k < blocks; ++k) {
      for (size_t i = 0; i < length_; ++i) {
        inputs_.push_back(CodeColumn(fmt::format("{}[{}]", kNames[k], i), *formats[k]));
      }
    }
  }

  void AddScales(const Format& format) {
    for (size_t k = 0; k < blocks_; ++k) {
      inputs_.push_back(CodeColumn(fmt::format("scale-{}", kNames[k]), format));
    }
  }
  void Finish(const ResolvedRequest& r, size_t random) {
    operands_ = inputs_.size();
    has_random_ = AppendRandom(r.plan.rounding, random, inputs_) != 0;
  }
  void AddElements(const Format& format) {
    for (size_t i = 0; i < length_; ++i) {
      results_.push_back(CodeColumn(fmt::format("q[{}]", i), format));
    }
  }

  // The codes of a row as the functions of arith take them.
  struct BlockCodes {
    std::array<uint32_t, 3 * kMostDotLength> elements;
    std::array<uint32_t, kMostDotLength> out, random;
  };
  std::span<const uint32_t> Elements(std::span<const uint64_t> in,
                                     size_t k,
                                     BlockCodes& row) const {
    const auto codes = std::span(row.elements).subspan(k * length_, length_);
    for (size_t i = 0; i < length_; ++i) codes[i] = Code(in[k * length_ + i]);
    return codes;
  }
  Block BlockOf(std::span<const uint64_t> in, size_t k, BlockCodes& row) const {
    return {{scale_, Code(in[blocks_ * length_ + k])}, formats_[k], Elements(in, k, row)};
  }
  // The random bits from column operands_ + first on; none in a deterministic mode.
  std::span<const uint32_t> RandomOf(std::span<const uint64_t> in,
                                     size_t first,
                                     BlockCodes& row) const {
    if (!has_random_) return {};
    for (size_t i = 0; i < length_; ++i) row.random[i] = Code(in[operands_ + first + i]);
    return std::span(row.random).first(length_);
  }
  uint32_t OneRandom(std::span<const uint64_t> in) const {
    return has_random_ ? Code(in[operands_]) : 0;
  }
  std::span<uint32_t> Out(BlockCodes& row) const { return std::span(row.out).first(length_); }
  void Deliver(const BlockCodes& row, std::span<uint64_t> results) const {
    for (size_t i = 0; i < length_; ++i) results[results.size() - length_ + i] = row.out[i];
  }

  size_t blocks_;
  FormatSpec formats_[3];
  FormatSpec scale_;
  EncodePlan plan_;
  bool has_random_ = false;
};

class ElementwiseOnBlocks : public OnBlocks {
 public:
  ElementwiseOnBlocks(const OperationInfo& info, const ResolvedRequest& r, const OpInfo& op)
      : OnBlocks(info, r, op.operands), op_(op.op) {
    AddScales(r.scale);
    inputs_.push_back(CodeColumn("scale", r.scale));
    Finish(r, length_);
    AddElements(r.to);
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    BlockCodes row;
    std::array<Block, 3> blocks;
    for (size_t k = 0; k < blocks_; ++k) blocks[k] = BlockOf(in, k, row);
    const Operand scale = {scale_, Code(in[operands_ - 1])};
    ComputeBlock(
        op_, std::span(blocks).first(blocks_), scale, plan_, Out(row), RandomOf(in, 0, row));
    Deliver(row, results);
    return 0;
  }

 private:
  p3109::Op op_;
};

class ConversionOfBlock : public OnBlocks {
 public:
  ConversionOfBlock(const OperationInfo& info, const ResolvedRequest& r, BlockConversion conversion)
      : OnBlocks(info, r, 1), conversion_(conversion), scale_plan_(r.scale_plan) {
    const bool computes_scale = conversion == BlockConversion::kToBlockMaxAbsFinite;
    if (conversion == BlockConversion::kFromBlock) AddScales(r.scale);
    if (conversion == BlockConversion::kToBlock) inputs_.push_back(CodeColumn("scale", r.scale));
    operands_ = inputs_.size();
    if (computes_scale) {
      results_.push_back(CodeColumn("scale", r.scale));
      std::vector<Column> column;
      if (AppendRandom(scale_plan_.rounding, 1, column) != 0) {
        column[0].name = "random-scale";
        inputs_.push_back(column[0]);
        scale_draws_ = true;
      }
    }
    has_random_ = AppendRandom(r.plan.rounding, length_, inputs_) != 0;
    AddElements(r.to);
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    BlockCodes row;
    const auto out = Out(row);
    const auto random = RandomOf(in, scale_draws_ ? 1 : 0, row);
    const auto x = Elements(in, 0, row);
    switch (conversion_) {
      case BlockConversion::kFromBlock:
        p3109::ConvertFromBlock(BlockOf(in, 0, row), plan_, out, random);
        break;
      case BlockConversion::kToBlock:
        p3109::ConvertToBlock(formats_[0], x, {scale_, Code(in[length_])}, plan_, out, random);
        break;
      case BlockConversion::kToBlockMaxAbsFinite:
        results[0] = p3109::ConvertToBlockMaxAbsFinite(formats_[0],
                                                       x,
                                                       scale_plan_,
                                                       plan_,
                                                       out,
                                                       scale_draws_ ? Code(in[operands_]) : 0,
                                                       random);
    }
    Deliver(row, results);
    return 0;
  }

 private:
  BlockConversion conversion_;
  EncodePlan scale_plan_;
  bool scale_draws_ = false;
};

class ReductionOfBlocks : public OnBlocks {
 public:
  ReductionOfBlocks(const OperationInfo& info, const ResolvedRequest& r, BlockReduction reduction)
      : OnBlocks(info, r, reduction == BlockReduction::kDotProduct ? 2 : 1), reduction_(reduction) {
    AddScales(r.scale);
    Finish(r, 1);
    results_.push_back(CodeColumn("result", r.to));
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    BlockCodes row;
    const Block a = BlockOf(in, 0, row);
    switch (reduction_) {
      case BlockReduction::kAdd:
        results[0] = BlockReduceAdd(a, plan_, OneRandom(in));
        break;
      case BlockReduction::kMultiply:
        results[0] = BlockReduceMultiply(a, plan_, OneRandom(in));
        break;
      case BlockReduction::kDotProduct:
        results[0] = BlockDotProduct(a, BlockOf(in, 1, row), plan_, OneRandom(in));
    }
    return 0;
  }

 private:
  BlockReduction reduction_;
};

}  // namespace

std::unique_ptr<Operation> MakeElementwiseOnBlocks(const OperationInfo& info,
                                                   const ResolvedRequest& r,
                                                   const OpInfo& op) {
  return std::make_unique<ElementwiseOnBlocks>(info, r, op);
}

std::unique_ptr<Operation> MakeConversionOfBlock(const OperationInfo& info,
                                                 const ResolvedRequest& r,
                                                 BlockConversion conversion) {
  return std::make_unique<ConversionOfBlock>(info, r, conversion);
}

std::unique_ptr<Operation> MakeReductionOfBlocks(const OperationInfo& info,
                                                 const ResolvedRequest& r,
                                                 BlockReduction reduction) {
  return std::make_unique<ReductionOfBlocks>(info, r, reduction);
}

}  // namespace numsim
