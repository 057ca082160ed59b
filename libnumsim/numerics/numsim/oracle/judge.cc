#include "numsim/oracle/judge.h"

#include <numeric>
#include <utility>

#include "numsim/base/keyword.h"

namespace numsim {
namespace {

constexpr Keyword<NanRule> kNanRules[] = {{"exact", NanRule::kExact}, {"any", NanRule::kAny}};

constexpr Keyword<MismatchKind> kKinds[] = {
    {"value", MismatchKind::kValue}, {"flags", MismatchKind::kFlags}, {"nan", MismatchKind::kNan}};

}  // namespace

NanRule ParseNanRule(std::string_view text) { return ParseKeyword(kNanRules, "--nan", text); }

std::string_view ToString(MismatchKind kind) { return KeywordToString(kKinds, kind); }

bool IsNan(const Column& column, uint64_t code) noexcept {
  return column.format.has_value() &&
         Classify(column.format->spec, static_cast<uint32_t>(code)) == ValueClass::kNan;
}

Judge::Judge(const Operation& operation, NanRule nan, size_t limit, Sink sink)
    : operation_(operation),
      nan_(nan),
      limit_(limit),
      sink_(std::move(sink)),
      inputs_(operation.inputs().size()),
      expected_(operation.results().size()) {}

std::unique_ptr<CaseTally> Judge::Fresh() const {
  auto part = std::make_unique<Judge>(operation_, nan_, limit_);
  part->keeps_all_ = keeps_all_ || sink_ != nullptr;
  return part;
}

bool Judge::AreBothNan(size_t i, uint64_t got, uint64_t expected) const noexcept {
  const Column& column = operation_.results()[i];
  return IsNan(column, got) && IsNan(column, expected);
}

bool Judge::Accepts(size_t i, uint64_t got, uint64_t expected) const noexcept {
  return got == expected || (nan_ == NanRule::kAny && AreBothNan(i, got, expected));
}

void Judge::Add(uint64_t place, std::span<const uint64_t> row) noexcept {
  ++cases_;
  const Flags flags = operation_.Evaluate(row.first(inputs_), expected_);
  bool right = true, right_values = true;
  for (size_t i = 0; i < expected_.size(); ++i) {
    const uint64_t got = row[inputs_ + i];
    if (Accepts(i, got, expected_[i])) continue;
    right = false;
    right_values = right_values && AreBothNan(i, got, expected_[i]);
  }
  const bool with_flags = row.size() > inputs_ + expected_.size();
  judged_flags_ = judged_flags_ || with_flags;
  const bool right_flags = !with_flags || row.back() == flags;
  if (right && right_flags) return;
  const MismatchKind kind = !right_values  ? MismatchKind::kValue
                            : !right_flags ? MismatchKind::kFlags
                                           : MismatchKind::kNan;
  ++counts_[static_cast<size_t>(kind)];
  if (!keeps_all_ && kept_[static_cast<size_t>(kind)].size() >= limit_) return;
  Keep({place, std::vector<uint64_t>(row.begin(), row.end()), expected_, flags, kind});
}

void Judge::Keep(const Mismatch& mismatch) {
  if (keeps_all_) {
    all_.push_back(mismatch);
    return;
  }
  std::vector<Mismatch>& kept = kept_[static_cast<size_t>(mismatch.kind)];
  if (kept.size() < limit_) kept.push_back(mismatch);
}

void Judge::Append(const CaseTally& later) {
  const Judge& other = static_cast<const Judge&>(later);
  cases_ += other.cases_;
  judged_flags_ = judged_flags_ || other.judged_flags_;
  for (size_t kind = 0; kind < kMismatchKinds; ++kind) {
    counts_[kind] += other.counts_[kind];
    for (const Mismatch& mismatch : other.kept_[kind]) Keep(mismatch);
  }
  for (const Mismatch& mismatch : other.all_) {
    if (sink_) sink_(mismatch);
    Keep(mismatch);
  }
}

uint64_t Judge::mismatches() const {
  return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0});
}

std::vector<Mismatch> Judge::first() const {
  std::vector<Mismatch> first;
  for (const std::vector<Mismatch>& kept : kept_) {
    for (const Mismatch& mismatch : kept) {
      if (first.size() < limit_) first.push_back(mismatch);
    }
  }
  return first;
}

}  // namespace numsim
