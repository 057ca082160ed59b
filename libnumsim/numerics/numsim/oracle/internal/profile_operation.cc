// convert from fp32, or from-f64, as another implementation does it: by a profile instead of numsim's
// own rule.
// A stochastic profile has one column of random bits, those that it uses of its register for one
// element (RandomLayout). There are no flags: implementations define none.
#include <utility>

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/profiles/profile.h"

namespace numsim {
namespace {

bool IsFromFloat64(const OperationInfo& info) { return info.name == "from-f64"; }

void CheckRequest(const OperationInfo& info, const OperationRequest& r, const Format& source) {
  if (!IsFromFloat64(info) && source.spec != kFp32) {
    throw Error::Format("--profile converts from fp32, not from --format {}", source.name);
  }
  const auto exclude = [](std::string_view option, bool given) {
    if (given) throw Error::Format("--profile excludes --{}: the profile defines it", option);
  };
  exclude("rounding", r.rounding.has_value());
  exclude("overflow", r.overflow.has_value());
  exclude("tininess", r.tininess.has_value());
}

class ProfileOperation : public Operation {
 public:
  ProfileOperation(const OperationInfo& info,
                   ProfileConversion conversion,
                   const ResolvedRequest& r,
                   const Format& target)
      : Operation(info, CaseShape::kElementwise), conversion_(std::move(conversion)) {
    info_.has_flags = false;
    if (IsFromFloat64(info)) {
      inputs_.push_back({.name = "a", .bits = 64, .kind = ColumnKind::kFloat64});
      sum_exponents_ = {target.spec.SubnormalExponent(), target.spec.MaxExponent()};
    } else {
      inputs_.push_back(CodeColumn("a", r.a));
    }
    operands_ = 1;
    if (conversion_.random_bits() > 0) {
      inputs_.push_back(
          {.name = "random", .bits = conversion_.random_bits(), .kind = ColumnKind::kRandom});
    }
    // An implementation may give codes of the format another meaning.
    const bool same = conversion_.meaning() == target.spec;
    results_.push_back(CodeColumn(
        "result", same ? target : Format{ToString(conversion_.meaning()), conversion_.meaning()}));
  }

  Flags Evaluate(std::span<const uint64_t> inputs,
                 std::span<uint64_t> results) const noexcept override {
    const auto random = static_cast<uint32_t>(inputs.size() > 1 ? inputs[1] : 0);
    results[0] = conversion_.Encode(inputs[0], random);
    return 0;
  }

 private:
  ProfileConversion conversion_;
};

}  // namespace

std::unique_ptr<Operation> MakeProfileOperation(const OperationInfo& info,
                                                const OperationRequest& request,
                                                const ResolvedRequest& resolved) {
  CheckRequest(info, request, resolved.a);
  const bool wide = IsFromFloat64(info);  // whose --format is the result's
  const Format& target = wide ? resolved.a : resolved.to;
  ProfileConversion conversion(
      request.profile, wide ? SourceType::kFloat64 : SourceType::kFloat32, target);
  return std::make_unique<ProfileOperation>(info, std::move(conversion), resolved, target);
}

}  // namespace numsim
