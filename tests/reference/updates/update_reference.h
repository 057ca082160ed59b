// The independent definition of the update rules that do not match a quantity:
// numsim/updates/update_rule.h in exact arithmetic, element by element. Of the library only the
// types that go in and out, and the random words.
#pragma once

#include <string_view>
#include <vector>

#include "numsim/random/streams.h"
#include "numsim/updates/update_rule.h"

namespace update_reference {

// The fields of numsim::UpdateState.
struct State {
  std::vector<float> values;
  std::vector<uint16_t> words;
  std::vector<float> scales;

  friend bool operator==(const State&, const State&) = default;
};

struct Result {
  std::vector<float> weights;
  State state;
  numsim::UpdateOutcome outcome;
  std::vector<numsim::UpdateOutcome> groups;
};

// One step of weights of the host. `format` names step.format in the oracle's list, as
// rule.compensation->name does that of a compensation. Sums are exact before they become float64.
// Fields of the outcome that are not finite stand for whatever is not finite; a status that moves
// nothing leaves all sums zero.
Result TakeStep(const numsim::UpdateRule& rule,
                std::string_view format,
                const numsim::WeightUpdate& step,
                numsim::RandomStream random,
                const State& state);

}  // namespace update_reference
