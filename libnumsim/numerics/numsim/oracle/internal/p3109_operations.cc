// The operations of [P3109] by the draft's own names: p3109.Add, p3109.ScaledAdd, p3109.BlockAdd,
// p3109.IsZero, p3109.BlockDotProduct and so on. They have no flags; arith/p3109.h and
// arith/p3109_blocks.h define them.
//
// Columns: operands a, b, c (of a block a[i], ...), then a scale per operand (scale-a, ...), then the
// scale of the result (`scale`), where an operation has them. Results: `result`; of an operation that
// makes a block, its elements q[i] behind its scale if the operation computes that.
#include <fmt/format.h>

#include <array>
#include <deque>
#include <vector>

#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/oracle/internal/p3109_block_operations.h"

namespace numsim {
namespace {

using p3109::OpInfo;

constexpr const char* kNames[] = {"a", "b", "c"};

uint32_t Code(uint64_t column) { return static_cast<uint32_t>(column); }

// Operations on values: an operand is a code, or a code and a scale.
class OnValues : public Operation {
 public:
  OnValues(const OperationInfo& info, const ResolvedRequest& r, const OpInfo& op, bool scaled)
      : Operation(
            info,
            op.op == p3109::Op::kFMA && !scaled ? CaseShape::kProductSum : CaseShape::kElementwise),
        op_(op),
        scaled_(scaled),
        formats_{r.a.spec, r.b.spec, r.c.spec},
        scale_(r.scale.spec),
        plan_(r.plan) {
    const Format* formats[] = {&r.a, &r.b, &r.c};
    for (size_t i = 0; i < op.operands; ++i) inputs_.push_back(CodeColumn(kNames[i], *formats[i]));
    for (size_t i = 0; scaled && i < op.operands; ++i) {
      inputs_.push_back(CodeColumn(fmt::format("scale-{}", kNames[i]), r.scale));
    }
    operands_ = inputs_.size();
    AppendRandom(r.plan.rounding, 1, inputs_);
    results_.push_back(CodeColumn("result", r.to));
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    const uint32_t random = in.size() > operands_ ? Code(in[operands_]) : 0;
    const size_t n = op_.operands;
    std::array<Operand, 3> x;
    for (size_t i = 0; i < n; ++i) x[i] = {formats_[i], Code(in[i])};
    if (!scaled_) {
      results[0] = Compute(op_.op, std::span(x).first(n), plan_, random);
      return 0;
    }
    std::array<ScaledOperand, 3> y;
    for (size_t i = 0; i < n; ++i) y[i] = {{scale_, Code(in[n + i])}, x[i]};
    results[0] = Compute(op_.op, std::span(y).first(n), kOne, plan_, random);
    return 0;
  }

 private:
  static constexpr Operand kOne = {kFp32, 0x3F800000};

  OpInfo op_;
  bool scaled_;
  FormatSpec formats_[3];
  FormatSpec scale_;
  EncodePlan plan_;
};

// The questions about codes.
using Question = bool (*)(const Operand& a, const Operand& b);

class Asks : public Operation {
 public:
  Asks(const OperationInfo& info, const ResolvedRequest& r, Question question, bool two)
      : Operation(info, CaseShape::kElementwise),
        question_(question),
        a_(r.a.spec),
        b_(two ? r.b.spec : r.a.spec) {
    inputs_.push_back(CodeColumn("a", r.a));
    if (two) inputs_.push_back(CodeColumn("b", r.b));
    operands_ = inputs_.size();
    results_.push_back({.name = "result", .bits = 1, .kind = ColumnKind::kTruth});
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    results[0] = question_({a_, Code(in[0])}, {b_, Code(in[operands_ - 1])}) ? 1 : 0;
    return 0;
  }

 private:
  Question question_;
  FormatSpec a_, b_;
};

// NextGreaterThan, NextLessThan and Class.
class OfOneCode : public Operation {
 public:
  using Function = uint32_t (*)(const Operand& a);

  OfOneCode(const OperationInfo& info, const ResolvedRequest& r, Function function, bool is_class)
      : Operation(info, CaseShape::kElementwise), function_(function), a_(r.a.spec) {
    inputs_.push_back(CodeColumn("a", r.a));
    operands_ = 1;
    results_.push_back(is_class ? Column{.name = "class", .bits = 3, .kind = ColumnKind::kInteger}
                                : CodeColumn("result", r.a));
  }

  Flags Evaluate(std::span<const uint64_t> in,
                 std::span<uint64_t> results) const noexcept override {
    results[0] = function_({a_, Code(in[0])});
    return 0;
  }

 private:
  Function function_;
  FormatSpec a_;
};

// --- The table

using p3109::Comparison;

template <Comparison kComparison>
bool Compares(const Operand& a, const Operand& b) {
  return p3109::Holds(kComparison, a, b);
}
template <bool (*kPredicate)(const Operand&)>
bool Is(const Operand& a, const Operand&) {
  return kPredicate(a);
}
uint32_t ClassCode(const Operand& a) { return static_cast<uint32_t>(p3109::ClassOf(a)); }

struct NamedQuestion {
  std::string_view name, summary;
  Question question;
  bool two;
};
constexpr NamedQuestion kQuestions[] = {
    {"p3109.CompareLess", "a < b", &Compares<Comparison::kLess>, true},
    {"p3109.CompareLessEqual", "a <= b", &Compares<Comparison::kLessEqual>, true},
    {"p3109.CompareEqual", "a = b", &Compares<Comparison::kEqual>, true},
    {"p3109.CompareGreaterEqual", "a >= b", &Compares<Comparison::kGreaterEqual>, true},
    {"p3109.CompareGreater", "a > b", &Compares<Comparison::kGreater>, true},
    {"p3109.TotalOrder", "a <= b, with NaN below all numbers", &p3109::TotalOrder, true},
    {"p3109.IsZero", "a is 0", &Is<&p3109::IsZero>, false},
    {"p3109.IsOne", "a is 1", &Is<&p3109::IsOne>, false},
    {"p3109.IsNaN", "a is NaN", &Is<&p3109::IsNan>, false},
    {"p3109.IsInfinite", "a is infinite", &Is<&p3109::IsInfinite>, false},
    {"p3109.IsFinite", "a is a finite number", &Is<&p3109::IsFinite>, false},
    {"p3109.IsSignMinus", "a is below 0", &Is<&p3109::IsSignMinus>, false},
    {"p3109.IsNormal", "a is normal", &Is<&p3109::IsNormal>, false},
    {"p3109.IsSubnormal", "a is subnormal", &Is<&p3109::IsSubnormal>, false},
};

struct NamedFunction {
  std::string_view name, summary;
  OfOneCode::Function function;
  bool is_class;
};
constexpr NamedFunction kFunctions[] = {
    {"p3109.Class",
     "class of a: 0 NaN, 1 -inf, 2 -normal, 3 -subnormal, 4 zero, 5 subnormal, 6 normal, 7 inf",
     &ClassCode,
     true},
    {"p3109.NextGreaterThan", "the least value above a, or NaN", &p3109::NextGreaterThan, false},
    {"p3109.NextLessThan", "the greatest value below a, or NaN", &p3109::NextLessThan, false},
};

template <typename Kind>
struct NamedKind {
  std::string_view name, summary;
  Kind kind;
};
constexpr NamedKind<BlockConversion> kConversions[] = {
    {"p3109.ConvertFromBlock", "the values of a block's elements", BlockConversion::kFromBlock},
    {"p3109.ConvertToBlock", "elements a / scale of a block", BlockConversion::kToBlock},
    {"p3109.ConvertToBlockMaxAbsFinite",
     "a block of a with the largest finite |a| as scale",
     BlockConversion::kToBlockMaxAbsFinite},
};
constexpr NamedKind<BlockReduction> kReductions[] = {
    {"p3109.BlockReduceAdd", "the exact sum of a block, rounded once", BlockReduction::kAdd},
    {"p3109.BlockReduceMultiply",
     "the exact product of a block, rounded once",
     BlockReduction::kMultiply},
    {"p3109.BlockDotProduct",
     "the exact dot product of two blocks, rounded once",
     BlockReduction::kDotProduct},
};

OptionSet Options(size_t operands, bool rounds) {
  return {.format_b = operands > 1,
          .format_c = operands > 2,
          .to = rounds,
          .rounding = rounds,
          .overflow = rounds};
}
OptionSet OptionsOfBlock(size_t operands) {
  OptionSet options = Options(operands, true);
  options.scale_format = options.length = true;
  return options;
}

class P3109Table {
 public:
  P3109Table() {
    for (const OpInfo& op : p3109::kOps) {
      Add("p3109.", op, Options(op.operands, true), [&op](const auto& info, const auto& r) {
        return std::make_unique<OnValues>(info, r, op, false);
      });
    }
    AddQuestions();
    AddBlocks();
  }

  std::vector<OperationRow> rows;

 private:
  using Make = OperationRow::Make;

  void Add(std::string_view prefix, const OpInfo& op, OptionSet options, Make make) {
    names_.push_back(fmt::format("{}{}", prefix, op.name));
    rows.push_back({{names_.back(), op.meaning, false, options}, std::move(make)});
  }
  void AddQuestions() {
    for (const NamedQuestion& q : kQuestions) {
      rows.push_back({{q.name, q.summary, false, Options(q.two ? 2 : 1, false)},
                      [&q](const auto& info, const auto& r) {
                        return std::make_unique<Asks>(info, r, q.question, q.two);
                      }});
    }
    for (const NamedFunction& f : kFunctions) {
      rows.push_back({{f.name, f.summary, false, {}}, [&f](const auto& info, const auto& r) {
                        return std::make_unique<OfOneCode>(info, r, f.function, f.is_class);
                      }});
    }
  }
  void AddBlocks() {
    for (const auto& c : kConversions) {
      OptionSet options = OptionsOfBlock(1);
      options.scale_rounding = c.kind == BlockConversion::kToBlockMaxAbsFinite;
      rows.push_back({{c.name, c.summary, false, options}, [&c](const auto& info, const auto& r) {
                        return MakeConversionOfBlock(info, r, c.kind);
                      }});
    }
    for (const auto& d : kReductions) {
      const size_t operands = d.kind == BlockReduction::kDotProduct ? 2 : 1;
      rows.push_back({{d.name, d.summary, false, OptionsOfBlock(operands)},
                      [&d](const auto& info, const auto& r) {
                        return MakeReductionOfBlocks(info, r, d.kind);
                      }});
    }
    for (const OpInfo& op : p3109::kOps) {
      OptionSet scaled = Options(op.operands, true);
      scaled.scale_format = true;
      Add("p3109.Scaled", op, scaled, [&op](const auto& info, const auto& r) {
        return std::make_unique<OnValues>(info, r, op, true);
      });
      Add("p3109.Block", op, OptionsOfBlock(op.operands), [&op](const auto& info, const auto& r) {
        return MakeElementwiseOnBlocks(info, r, op);
      });
    }
  }

  std::deque<std::string> names_;  // to which the rows refer
};

}  // namespace

std::span<const OperationRow> P3109Rows() {
  static const P3109Table table;
  return table.rows;
}

}  // namespace numsim
