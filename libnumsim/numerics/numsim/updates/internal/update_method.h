// The kinds of update rules as objects: one per row of update_kinds.inc, each in a file of its
// own. ApplyUpdate checks, prepares and sums up; the object computes new weights, block by block if
// the rule treats each weight by itself (ElementwiseMethod), else group by group.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "numsim/rounding/encode_plan.h"
#include "numsim/updates/internal/update_groups.h"
#include "numsim/updates/internal/update_job.h"
#include "numsim/updates/shared/element_rules.h"
#include "numsim/updates/shared/update_parts.h"
#include "numsim/updates/update_rule.h"

namespace numsim {

class ElementwiseMethod;

struct UpdateTraits {
  RuleState state = RuleState::kNone;  // the array of UpdateState that the rule keeps
  bool has_scope = false;
  bool has_scales = false;   // also keeps a scale per group
  bool compensates = false;  // the state is added to the weight: W = w + c
  bool searches = false;
  bool draws = false;  // rounds its steps by OwnPlan, with random bits
  // If nothing moved although lr u is not zero, the status is kBelowMinStep.
  bool tells_if_nothing_moved = false;
  bool on_device = false;                   // a device has the rule, for a single group
  bool needs_symmetry = false;              // a format has -w for each of its numbers w
  const FormatSpec* only_format = nullptr;  // of the weights; null: any
};

// The arguments of a start. The arrays of the state have their sizes.
struct UpdateStart {
  const EncodePlan& plan;  // Q
  const ElementGroups& groups;
  std::span<const float> initial;
  UpdateState& state;
  std::span<float> weights;
};

// Weights and what a rule keeps beside them.
struct KeptWeights {
  const UpdateRule& rule;
  MatrixSpan<const float> weights;
  const UpdateState& state;
};

class UpdateMethod {
 public:
  explicit constexpr UpdateMethod(const UpdateTraits& traits_of_kind) : traits(traits_of_kind) {}

  const UpdateTraits traits;

  // Reads the ARGUMENT of the text of a rule, `whole`. Throws Error if it is not one.
  virtual void SetArgument(UpdateRule& rule,
                           std::string_view argument,
                           std::string_view whole) const;
  // Returns the argument that SetArgument reads back; empty for the default.
  virtual std::string ArgumentText(const UpdateRule&) const { return ""; }
  // Throws Error for options of the rule that cannot be.
  virtual void CheckOptions(const UpdateRule&) const {}
  // Throws Error if the rule does not support weights of that format. only_format is checked before.
  virtual void CheckFormat(const UpdateRule&, const Format&) const {}

  // See OwnPlan of update_parts.h and StateBytesPerWeight.
  virtual EncodePlan OwnPlan(const UpdateRule&, const FormatSpec& format) const {
    return WeightPlan(format);
  }
  virtual double StateBytes(const UpdateRule& rule, const FormatSpec& format) const;

  // Writes the weights and the state that a rule starts with, see StartUpdates.
  virtual void Start(const UpdateStart& start) const;
  // Returns true if n words, with their weights, are finite numbers. Only for rules with words.
  virtual bool HasFiniteWords(const float*, const uint16_t*, size_t) const { return true; }
  // Writes the weights of a block as precisely as the rule knows them, without a compensation;
  // float64 holds them exactly.
  virtual void LoadWeights(const KeptWeights& kept, ElementRange block, double* out) const;

  // Takes a whole step of the host, in place, that needs none of the preparations of ApplyUpdate.
  // Returns no outcome, and changes nothing, for all other steps.
  virtual std::optional<UpdateOutcome> TakeInPlace(const WeightUpdate&, std::span<float>) const {
    return std::nullopt;
  }
  // Takes the step of a group and writes its new weights and state. Requires update_square > 0.
  virtual GroupResult StepGroup(const UpdateJob& job, const UpdateGroup& group) const = 0;
  // Returns itself if the rule treats each weight by itself, else null.
  virtual const ElementwiseMethod* Elementwise() const { return nullptr; }

 protected:
  ~UpdateMethod() = default;  // every object lives as long as the program
};

// A rule that treats each weight by itself. Has no scope.
class ElementwiseMethod : public UpdateMethod {
 public:
  using UpdateMethod::UpdateMethod;

  // Writes the new weights of at most kSumBlock elements to `after`, which overlaps nothing, and
  // their new state. Returns the number of weights that the step takes beyond the largest finite
  // value. Requires the default floating-point environment.
  virtual uint64_t StepBlock(const UpdateJob& job, ElementRange block, float* after) const = 0;

  GroupResult StepGroup(const UpdateJob& job, const UpdateGroup& group) const final;
  const ElementwiseMethod* Elementwise() const final { return this; }

  // Scans the arrays and takes the step, a block at a time. Leaves out the step of blocks that are
  // not finite. The maxima of the job need not be set.
  ScannedStep ScanAndStep(const UpdateJob& job) const;

 protected:
  ~ElementwiseMethod() = default;

 private:
  StepSums SumBlock(const UpdateJob& job, ElementRange block, bool apart) const;
};

#define NUMSIM_UPDATE_KIND(kind, name) const UpdateMethod& kind##Method();
#include "numsim/updates/update_kinds.inc"
#undef NUMSIM_UPDATE_KIND

const UpdateMethod& MethodOf(UpdateKind rule);

// Returns the rule's scope, or one group for rules without.
inline ScaleLayout ScopeOf(const UpdateRule& rule) {
  return MethodOf(rule.kind).traits.has_scope ? rule.scope : ScaleLayout{};
}

// Throws Error for a scope that is none, options that cannot be, or weights of another format than the
// only one.
void CheckRule(const UpdateRule& rule, const FormatSpec& format);

}  // namespace numsim
