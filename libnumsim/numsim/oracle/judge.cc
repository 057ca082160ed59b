#include "numsim/oracle/judge.h"

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<NanRule> kNanRules[] = {{"exact", NanRule::kExact}, {"any", NanRule::kAny}};

}  // namespace

NanRule ParseNanRule(std::string_view text) { return ParseKeyword(kNanRules, "--nan", text); }

bool IsNan(const Column& column, uint64_t code) noexcept {
  return column.format.has_value() &&
         Classify(column.format->spec, static_cast<uint32_t>(code)) == ValueClass::kNan;
}

Judge::Judge(const Operation& operation, NanRule nan, size_t limit)
    : operation_(operation),
      nan_(nan),
      limit_(limit),
      inputs_(operation.inputs().size()),
      expected_(operation.results().size()) {}

std::unique_ptr<CaseTally> Judge::Fresh() const {
  return std::make_unique<Judge>(operation_, nan_, limit_);
}

bool Judge::Accepts(size_t i, uint64_t got, uint64_t expected) const noexcept {
  if (got == expected) return true;
  const Column& column = operation_.results()[i];
  return nan_ == NanRule::kAny && IsNan(column, got) && IsNan(column, expected);
}

void Judge::Add(uint64_t place, std::span<const uint64_t> row) noexcept {
  ++cases_;
  const Flags flags = operation_.Evaluate(row.first(inputs_), expected_);
  bool right = true;
  for (size_t i = 0; i < expected_.size(); ++i) {
    right = right && Accepts(i, row[inputs_ + i], expected_[i]);
  }
  const bool with_flags = row.size() > inputs_ + expected_.size();
  judged_flags_ = judged_flags_ || with_flags;
  const bool right_flags = !with_flags || row.back() == flags;
  if (right && right_flags) return;
  ++mismatches_;
  if (right) ++wrong_in_flags_alone_;
  if (first_.size() >= limit_) return;
  first_.push_back({place, std::vector<uint64_t>(row.begin(), row.end()), expected_, flags});
}

void Judge::Append(const CaseTally& later) {
  const Judge& other = static_cast<const Judge&>(later);
  cases_ += other.cases_;
  mismatches_ += other.mismatches_;
  wrong_in_flags_alone_ += other.wrong_in_flags_alone_;
  judged_flags_ = judged_flags_ || other.judged_flags_;
  for (const Mismatch& mismatch : other.first_) {
    if (first_.size() < limit_) first_.push_back(mismatch);
  }
}

}  // namespace numsim
