// Which implementation of the kernels is active.
//
// A backend is "scalar" (the reference, one element at a time) or the lower-case name of a Highway
// target compiled into this library and supported by this processor ("avx3", "avx2", "sse4", ...).
// All give the same bits. Without a choice the best target is active.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Every usable backend, best first, "scalar" last.
std::vector<std::string> AvailableBackends();

// Makes `name` active for every later kernel call of the process. Throws Error that lists the
// available ones when `name` is not usable here: never a silent fall-back.
void ForceBackend(std::string_view name);

// Applies the environment variable NUMSIM_BACKEND if it is set and not empty; true if it was.
bool ForceBackendFromEnvironment();

// The active backend.
std::string_view SimdTargetName();

// Whether the active backend is the scalar reference.
bool UsesScalarReference() noexcept;

}  // namespace numsim
