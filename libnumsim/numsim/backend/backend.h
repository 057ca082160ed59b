// Which implementation of the kernels is active.
//
// A backend is "scalar" (the reference, one element at a time) or the lower-case name of a Highway
// target compiled into this library and supported by this processor ("avx3", "avx2", "sse4", ...).
// All give the same bits. Without a choice the best target is active.
//
// Under the backend "cuda" the array calls of the kernels that have a device form (*_device.h) copy
// their arguments to the device, run there and copy the results back: the same calls, the same
// bits. What has no such form, and single elements, run on the best Highway target. Programs that
// keep their arrays on the device call *_device.h themselves, under any backend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Every usable backend: the targets, best first, "scalar", then "cuda" where there is a device.
std::vector<std::string> AvailableBackends();

// Makes `name` active for every later kernel call of the process. Throws Error that lists the
// available ones when `name` is not usable here, for cuda with the reason: never a silent
// fall-back.
void ForceBackend(std::string_view name);

// Applies the environment variable NUMSIM_BACKEND if it is set and not empty; true if it was.
bool ForceBackendFromEnvironment();

// The active backend.
std::string_view SimdTargetName();

// Whether the active backend is the scalar reference.
bool UsesScalarReference() noexcept;

// Whether the active backend is cuda.
bool UsesDevice() noexcept;

}  // namespace numsim
