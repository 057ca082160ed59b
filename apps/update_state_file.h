// Stores the state of an update rule in a .safetensors file. One file holds all arrays of a state,
// and states the rule, format and weights that it belongs to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "numsim/updates/update_rule.h"

namespace numsim::apps {

// The rule and the weights that a state belongs to.
struct UpdateStateOwner {
  std::string rule;           // ToString(UpdateRule)
  std::string format;         // ToString() of the weights' format
  std::vector<size_t> shape;  // shape of the weights
  std::string weights;        // DigestOf() of their values
};

// Returns the SHA-256 of float32 values, in which all NaNs count as the same.
std::string DigestOf(std::span<const float> values);

bool IsEmpty(const UpdateState& state);

// Returns the bytes of the file. Its metadata are "rule", "format" and "weights". Its tensors, as
// far as the state has them, are "values" (F32) and "words" (U16) with the shape of the weights, and
// "scales" (F32), one per group.
std::string UpdateStateFile(const UpdateState& state, const UpdateStateOwner& owner);

// Reads such a file. The result has the sizes of `start`, the initial state of the rule. Throws
// Error that names the file and the mismatch: rule, format, a missing or unexpected tensor, its
// dtype or its shape, or other weights, as an update in place leaves that was killed between its two
// files. Also throws the errors of SafetensorsFile.
UpdateState ReadUpdateState(const std::string& path,
                            const UpdateStateOwner& owner,
                            const UpdateState& start);

}  // namespace numsim::apps
