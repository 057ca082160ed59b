// Selection of the backend, the implementation of the kernels that is active.
//
// A backend is "scalar" (the reference, one element at a time) or the lower-case name of a Highway
// target compiled into this library and supported by this processor ("avx3", "avx2", "sse4", ...).
// All backends give the same bits. The best target is active by default.
//
// Under the backend "cuda", array functions that also serve matrices of a device (backend/matrix.h)
// copy their host arguments to the device, run there and copy the results back: the same calls with
// the same bits. Other functions, and calls on single elements, run on the best Highway target.
// Matrices that are on the device are computed there under any backend.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace numsim {

// Returns every usable backend: the targets, best first, then "scalar", then "cuda" if there is a
// usable device. Waits as ForceBackend does.
std::vector<std::string> AvailableBackends();

// Makes `name` the backend of every later kernel call in the process. Throws Error if `name` is not
// usable here; the message lists the available backends or, for cuda, gives the reason. There is
// never a silent fallback. Waits for calls of other threads that hold a BackendCall
// (backend_call.h); a call without one must not run meanwhile, because it would change its kernels
// midway.
void ForceBackend(std::string_view name);

// Applies the environment variable NUMSIM_BACKEND if it is set and not empty. Returns true if it
// was applied. Throws as ForceBackend does.
bool ForceBackendFromEnvironment();

// Returns the name of the active backend.
std::string_view BackendName();

// Returns true if the active backend is the scalar reference.
bool UsesScalarReference() noexcept;

// Returns true if the active backend is cuda.
bool UsesDevice() noexcept;

}  // namespace numsim
