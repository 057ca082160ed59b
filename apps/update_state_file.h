// The state of an update rule in a .safetensors file: one file for all arrays of a state, which
// says to what rule, format and weights it belongs.
#pragma once

#include <string>
#include <vector>

#include "numsim/updates/update_rule.h"

namespace numsim::apps {

// What a state belongs to.
struct UpdateStateOwner {
  std::string rule;           // ToString(UpdateRule)
  std::string format;         // ToString of the weights' format
  std::vector<size_t> shape;  // of the weights
};

bool IsEmpty(const UpdateState& state);

// The bytes of the file. Metadata: "rule" and "format". Tensors, each where the state has it:
// "values" F32 and "words" U16, of the shape of the weights, "scales" F32, one a group.
std::string UpdateStateFile(const UpdateState& state, const UpdateStateOwner& owner);

// Reads such a file. `start` is the state that the rule starts with: what is read has its sizes.
// Throws Error naming the file and what does not fit: rule, format, a tensor that is missing or too
// many, its dtype, its shape; or as SafetensorsFile does.
UpdateState ReadUpdateState(const std::string& path,
                            const UpdateStateOwner& owner,
                            const UpdateState& start);

}  // namespace numsim::apps
