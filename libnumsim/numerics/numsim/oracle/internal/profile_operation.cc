// convert from fp32 as another implementation does it: by a profile instead of numsim's own rule.
// A stochastic profile has one column of random bits, those that it uses of its register for one
// element (RandomLayout). There are no flags: implementations define none.
#include <utility>

#include "numsim/base/error.h"
#include "numsim/formats/named_formats.h"
#include "numsim/oracle/internal/operation_row.h"
#include "numsim/profiles/profile.h"

namespace numsim {
namespace {

void CheckRequest(const OperationRequest& r, const Format& source) {
  if (source.spec != kFp32) {
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
                   const ResolvedRequest& r)
      : Operation(info, CaseShape::kElementwise), conversion_(std::move(conversion)) {
    info_.has_flags = false;
    inputs_.push_back(CodeColumn("a", r.a));
    operands_ = 1;
    if (conversion_.random_bits() > 0) {
      inputs_.push_back(
          {.name = "random", .bits = conversion_.random_bits(), .kind = ColumnKind::kRandom});
    }
    // An implementation may give codes of the format another meaning.
    const bool same = conversion_.meaning() == r.to.spec;
    results_.push_back(CodeColumn(
        "result", same ? r.to : Format{ToString(conversion_.meaning()), conversion_.meaning()}));
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
  CheckRequest(request, resolved.a);
  ProfileConversion conversion(request.profile, SourceType::kFloat32, resolved.to);
  return std::make_unique<ProfileOperation>(info, std::move(conversion), resolved);
}

}  // namespace numsim
